"""The factorisation against its twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import closure_forests, kernel_table
from atpgraph.factorization import nnls as nnls_module
from atpgraph.factorization._nnls_rows import TILE, Solve
from atpgraph.factorization.nnls import ImplicitMatrix
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import chain, dags, random_dag, star
from tests.factorization.twins import fit, nnls_row, objective, written_out

weights = st.sampled_from([0.0, 0.05, 0.6, 1.0])


penalties = st.sampled_from([0.0, 0.01, 0.5])


@settings(max_examples=40)
@given(dags(max_nodes=30, min_nodes=2), st.integers(1, 20), weights, penalties, st.data())
def test_row_update_is_nnls(
    dag: DiGraph, k: int, w0: float, penalty: float, data: st.DataObject
) -> None:
    M = written_out(dag)
    reach = M > 0
    rank = levels(dag)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    T = rng.random((dag.n_nodes, k))
    table = kernel_table("log", int(rank.max()))[:, None]
    rows, columns = ImplicitMatrix.both(closure_forests(dag), rank)
    for side, matrix, mask in ((rows, M, reach), (columns, M.T, reach.T)):
        wide = np.pad(T, ((0, 0), (0, -k % TILE)))
        x = np.zeros_like(wide)
        middle = data.draw(st.integers(1, dag.n_nodes - 1))
        value = 0.0
        shared = w0 * wide.T @ wide
        sweeps = 20_000 if penalty else 3_000_000  # the last digits take long without a penalty
        how = Solve(k, shared, 1.0 - w0, penalty, sweeps, 0.0)
        for task in ((middle, dag.n_nodes), (0, middle)):  # any cut, any order
            value += side.update(task, table, wide, x, how)
        assert np.all(x >= 0)
        assert not x[:, k:].any()
        total = 0.0
        for i in range(dag.n_nodes):
            best = nnls_row(matrix[i], mask[i], T, w0, penalty)
            if not mask[i].any():
                assert not x[i].any()
                continue

            def loss(s: np.ndarray, i: int = i, matrix=matrix, mask=mask) -> float:
                weight = np.where(mask[i], 1.0, w0)
                fitted = weight @ (matrix[i] - T @ s) ** 2
                return float(fitted + penalty * mask[i].sum() * (s @ s))

            # Equal minimum always; equal minimiser where it is unique.
            assert loss(x[i, :k]) == pytest.approx(loss(best), rel=1e-5, abs=1e-6)
            if penalty:
                np.testing.assert_allclose(x[i, :k], best, atol=1e-4)
            total += loss(x[i, :k])
        assert value + np.sum(matrix**2) == pytest.approx(total, rel=1e-9, abs=1e-8)


@settings(max_examples=25)
@given(dags(max_nodes=60, min_nodes=2), st.integers(1, 6), weights, penalties)
def test_objective_is_the_written_out_one_and_never_rises(
    dag: DiGraph, k: int, w0: float, penalty: float
) -> None:
    options = {"n_components": k, "zero_weight": w0, "regularization": penalty}
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        # Balancing changes the penalty; look at the vectors before it.
        patch.setattr(nnls_module, "_balanced", lambda S, T: (S, T))
        patch.setattr(nnls_module, "_KIND", np.dtype(np.float64))
        patch.setattr(nnls_module, "_LEAST_FALL", 0.0)
        result = fit(dag, max_iter=12, **options)
    if not result.n_iter:
        return
    M = written_out(dag)
    size = np.sum(M**2)
    expected = objective(M, result.source, result.target, w0, penalty)
    assert result.objective[-1] == pytest.approx(expected, rel=1e-9, abs=1e-10 * size)
    assert np.all(np.diff(result.objective) <= 1e-12 * size)


def test_single_precision_agrees_with_double(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = random_dag(400, 1200, 3)
    single = fit(dag, n_components=8, max_iter=5)
    monkeypatch.setattr(nnls_module, "_KIND", np.dtype(np.float64))
    double = fit(dag, n_components=8, max_iter=5)
    assert single.source.dtype == np.float32
    np.testing.assert_allclose(single.objective, double.objective, rtol=1e-3)
    assert np.all(np.diff(single.objective) <= 0)


@pytest.mark.parametrize(("n", "m", "k"), [(40, 90, 4), (60, 100, 6), (80, 300, 5)])
def test_plain_nmf_is_as_good_as_scikit_learn(
    n: int, m: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nnls_module, "_LEAST_FALL", 1e-8)
    decomposition = pytest.importorskip("sklearn.decomposition")
    dag = random_dag(n, m, 7)
    M = written_out(dag)
    best = np.inf
    for seed in range(3):
        model = decomposition.NMF(k, init="random", random_state=seed, max_iter=5000, tol=1e-7)
        model.fit(M)
        best = min(best, model.reconstruction_err_**2)
    how = {"n_components": k, "zero_weight": 1.0, "regularization": 0.0, "max_iter": 2000}
    ours = min(fit(dag, **how, random_state=seed).objective[-1] for seed in range(3))
    assert ours <= 1.01 * best


@pytest.mark.parametrize("w0", [0.0, 0.1])
def test_any_number_of_threads_gives_the_same_bytes(w0: float) -> None:
    dag = random_dag(1500, 5000, 2)
    one, two, three = (
        fit(dag, n_components=20, zero_weight=w0, n_jobs=jobs, max_iter=3) for jobs in (1, 2, 3)
    )
    for other in (two, three):
        assert one.source.tobytes() == other.source.tobytes()
        assert one.target.tobytes() == other.target.tobytes()
        assert one.objective.tolist() == other.objective.tolist()


def test_components_are_balanced_and_nothing_is_lost_by_it() -> None:
    result = fit(random_dag(100, 300, 4), n_components=7, max_iter=4)
    norms = [np.linalg.norm(X, axis=0) for X in (result.source, result.target)]
    np.testing.assert_allclose(norms[0], norms[1], rtol=1e-5)


@pytest.mark.parametrize("kernel", ["constant", "linear", "harmonic", "log"])
def test_reachable_pairs_are_told_from_the_rest(kernel: str) -> None:
    dag = random_dag(60, 150, 5)
    M = written_out(dag, kernel)
    result = fit(dag, kernel, n_components=16, zero_weight=0.5, max_iter=60)
    product = result.source @ result.target.T
    assert product[M > 0].min() > np.quantile(product[M == 0], 0.9)


@pytest.mark.parametrize(
    "dag",
    [
        DiGraph.from_codes([], [], 0),
        DiGraph.from_codes([], [], 1),
        DiGraph.from_codes([], [], 5),
        DiGraph.from_codes([0], [1], 2),
        DiGraph.from_codes([0, 3], [1, 4], 7),
    ],
    ids=["empty", "one node", "no edges", "one edge", "disconnected"],
)
@pytest.mark.parametrize("k", [1, 3, 70])
@pytest.mark.parametrize("w0", [0.0, 1.0])
def test_degenerate_graphs(dag: DiGraph, k: int, w0: float) -> None:
    result = fit(dag, n_components=k, zero_weight=w0, regularization=0.0)
    assert result.source.shape == result.target.shape == (dag.n_nodes, k)
    assert np.isfinite(result.source).all()
    assert np.isfinite(result.target).all()
    assert not result.source[dag.out_degree == 0].any()
    assert not result.target[dag.in_degree == 0].any()
    if dag.n_edges == 1 or (dag.n_edges and w0 == 0.0):  # rank one can do these
        M = written_out(dag)
        product = result.source @ result.target.T
        np.testing.assert_allclose(product[M > 0], M[M > 0], rtol=0.05)


def test_deep_and_wide() -> None:
    deep = fit(chain(3_000), n_components=2, max_iter=1)
    wide = fit(star(60_000), n_components=8, max_iter=2)
    assert np.isfinite(deep.source).all()
    assert deep.source[0].any()
    centre = wide.target[-1].astype(float)
    np.testing.assert_allclose(wide.source[:-1] @ centre, np.log(np.e + 1), rtol=0.05)
