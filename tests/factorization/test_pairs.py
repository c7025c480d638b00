from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atpgraph.closure import PathSampler, closure_forest, kernel_table
from atpgraph.errors import InputError
from atpgraph.factorization import Descent, Factorization, PairRows, _descent, fit_pairs
from atpgraph.graph import DiGraph
from atpgraph.graph.generators import citation_dag
from atpgraph.hierarchy import levels
from tests.dags import chain, closure_matrix, dags, random_dag, star


def fit(dag: DiGraph, k: int = 32, kernel: object = "log", **options) -> Factorization:
    level = levels(dag)
    table = kernel_table(kernel, int(level.max(initial=1)))
    options = {"random_state": 0} | options
    return fit_pairs(PathSampler(closure_forest(dag)), level, table, n_components=k, **options)


def scores(found: Factorization) -> np.ndarray:
    return found.source.astype(float) @ found.target.astype(float).T


def off_diagonal(n: int) -> np.ndarray:
    return ~np.eye(n, dtype=bool)


@settings(max_examples=40, deadline=None)
@given(dags(max_nodes=30))
def test_the_sign_of_a_score_is_the_path(dag: DiGraph) -> None:
    found = fit(dag)
    apart = off_diagonal(dag.n_nodes)
    np.testing.assert_array_equal((scores(found) > 0)[apart], closure_matrix(dag)[apart])


def test_the_size_of_a_score_is_the_kernel() -> None:
    dag = random_dag(40, 90, 1)
    level = levels(dag)
    found = scores(fit(dag, 48, max_iter=100, tol=1e-6))
    u, v = np.nonzero(closure_matrix(dag))
    wanted = kernel_table("log", int(level.max()))[level[v] - level[u]]
    np.testing.assert_allclose(found[u, v], wanted, atol=0.15)
    others = ~closure_matrix(dag) & off_diagonal(40)
    assert found[others].max() < -Descent().margin + 0.15


@pytest.mark.parametrize("kernel", ["linear", "constant", lambda delta: 0.001 * delta**0.5])
def test_kernels_of_any_scale(kernel) -> None:
    dag = random_dag(60, 150, 3)
    found = fit(dag, 48, kernel, max_iter=100)
    apart = off_diagonal(60)
    np.testing.assert_array_equal((scores(found) > 0)[apart], closure_matrix(dag)[apart])
    level = levels(dag)
    u, v = np.nonzero(closure_matrix(dag))
    wanted = kernel_table(kernel, int(level.max()))[level[v] - level[u]]
    assert np.ptp(wanted) == 0 or np.corrcoef(scores(found)[u, v], wanted)[0, 1] > 0.9
    assert abs(scores(found)[u, v].mean() / wanted.mean() - 1) < 0.1


@pytest.mark.parametrize("k", [1, 2, 3, 16, 50])
def test_threads_do_not_matter(k: int) -> None:
    dag = citation_dag(3000, 9000, random_state=1)
    one, two = (fit(dag, k, max_iter=2, n_jobs=jobs) for jobs in (1, 3))
    assert one.source.shape == one.target.shape == (3000, k)
    assert one.source.tobytes() == two.source.tobytes()
    assert one.target.tobytes() == two.target.tobytes()
    assert one.objective.tolist() == two.objective.tolist()
    other = fit(dag, k, max_iter=2, random_state=1)
    assert other.source.tobytes() != one.source.tobytes()


@pytest.mark.parametrize("kernel", ["log", "linear", lambda delta: 0.001 * delta**0.5])
def test_a_fit_goes_on_where_another_ended(kernel) -> None:
    dag = citation_dag(800, 2400, random_state=1)
    first = fit(dag, 24, kernel, max_iter=20)
    on = fit(dag, 24, kernel, max_iter=2, start=(first.source, first.target))
    assert on.objective[0] < 1.5 * first.objective[-1]
    none = (np.zeros_like(first.source), np.zeros_like(first.target))
    fresh = fit(dag, 24, kernel, max_iter=2, start=none)
    assert fresh.objective[0] > 2 * on.objective[0]


def test_only_some_rows_learn() -> None:
    dag = citation_dag(800, 2400, random_state=1)
    first = fit(dag, 24, max_iter=4)
    rows = np.flatnonzero(dag.out_degree > 0)[:50]
    on = fit(dag, 24, max_iter=2, start=(first.source, first.target), rows=rows)
    moved = np.flatnonzero(np.any(on.source != first.source, axis=1))
    # A node without any path has a bias below what the others have, which may have moved.
    assert set(moved.tolist()) - set(np.flatnonzero(dag.out_degree == 0).tolist()) == set(rows)
    nothing = fit(dag, 24, start=(first.source, first.target), rows=np.zeros(0, dtype=int))
    assert nothing.n_iter == 0
    np.testing.assert_array_equal(nothing.source, first.source)
    np.testing.assert_array_equal(nothing.target, first.target)


def test_vectors_go_further_where_less_is_known() -> None:
    dag = citation_dag(800, 2400, random_state=1)
    first = fit(dag, 24, max_iter=4)
    known = np.where(np.arange(800) % 2 == 0, 1.0, 0.01)
    one, same, two = (
        fit(dag, 24, max_iter=1, start=(first.source, first.target), **options)
        for options in ({}, {"known": 1.0}, {"known": known})
    )
    assert one.source.tobytes() == same.source.tobytes()
    moved = [np.linalg.norm(found.source - first.source, axis=1) for found in (one, two)]
    able = dag.out_degree > 0
    odd = able & (known < 1)
    assert moved[1][odd].mean() > 2 * moved[0][odd].mean()
    assert moved[1][able & ~odd].mean() < 1.5 * moved[0][able & ~odd].mean()


def test_the_loss_falls_and_ends_the_rounds() -> None:
    found = fit(star(8))
    assert found.converged
    assert found.n_iter < 10
    assert found.objective[-1] <= 1e-4 * found.objective[0]
    long = fit(chain(300), 8, max_iter=5)
    assert not long.converged
    assert long.n_iter == 5
    assert long.objective[-1] < long.objective[0]


def test_two_components_hold_the_biases() -> None:
    found = fit(random_dag(20, 40, 0), 8)
    np.testing.assert_array_equal(found.source[:, 7], 1.0)
    np.testing.assert_array_equal(found.target[:, 6], 1.0)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_graphs_without_a_path(n: int) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    found = fit(DiGraph.from_codes(nothing, nothing, n))
    assert found.source.shape == (n, 32)
    assert found.n_iter == 0
    assert (scores(found) < 0).all()


def test_nodes_without_paths_score_below_the_margin() -> None:
    dag = random_dag(50, 60, 2)
    found = fit(dag)
    reach = closure_matrix(dag)
    ends = ~reach.any(axis=1)[:, None] | ~reach.any(axis=0)[None, :]
    assert scores(found)[ends].max() <= -found.margin + 1e-4


def test_what_cannot_be_fitted_is_refused() -> None:
    dag = chain(4)
    with pytest.raises(InputError, match="above 0"):
        fit(dag, kernel=lambda delta: delta - 1.0)
    with pytest.raises(InputError, match="regularization is nan"):
        fit(dag, regularization=float("nan"))
    with pytest.raises(InputError, match="2 entries for 4 levels"):
        fit_pairs(PathSampler(closure_forest(dag)), levels(dag), [0.0, 1.0])


@given(st.integers(0, 2**32 - 1))
def test_kernels_do_what_plain_lines_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, paths = 12, 30
    dag = random_dag(n, 40, seed)
    level = levels(dag)
    table = kernel_table("log", int(level.max())).astype(np.float32)
    reach = closure_matrix(dag)
    u, v = np.nonzero(reach)
    chosen = rng.permutation(len(u))[:paths]
    u, v = u[chosen].astype(np.int32), v[chosen].astype(np.int32)
    S, T = rng.standard_normal((2, n, 16)).astype(np.float32)
    S[:, 6], T[:, 5] = 1, 1
    S[:, 7:], T[:, 7:] = 0, 0
    margin, clip, rate, decay = (np.float32(x) for x in (1.5, 2.0, 0.1, 1e-3))
    path, column = np.empty((2, 6 * len(u)), dtype=np.int32)
    pool = np.arange(n, dtype=np.int32)
    count = _descent.violations(u, v, pool, 3, np.uint64(seed + 1), S, T, margin, path, column)
    path, column = path[:count], column[:count]
    assert (np.diff(path) >= 0).all()
    assert (column != u[path]).all()
    assert (np.einsum("ij,ij->i", S[u[path]], T[column]) > -margin - 1e-5).all()

    seen = np.zeros((2, n), dtype=np.float32)
    source, target = S.astype(float), T.astype(float)
    squares = np.zeros((2, n))
    loss = 0.0
    for e in range(len(u)):
        pairs = [(v[e], table[level[v[e]] - level[u[e]]], False)]
        pairs += [(w, -margin, True) for w in column[path == e] if not reach[u[e], w]]
        for w, wanted, one_sided in pairs:
            slope = source[u[e]] @ target[w] - wanted
            if one_sided and slope <= 0:
                continue
            loss += slope**2 / 2
            slope = np.clip(slope, -clip, clip)
            s, t = source[u[e]].copy(), target[w].copy()
            squares[0, u[e]] += slope**2 * np.mean(t**2)
            squares[1, w] += slope**2 * np.mean(s**2)
            source[u[e]] -= rate / np.sqrt(squares[0, u[e]] + 1e-8) * (slope * t + decay * s)
            target[w] -= rate / np.sqrt(squares[1, w] + 1e-8) * (slope * s + decay * t)
            source[u[e], 6], target[w, 5] = 1, 1
    met = _descent.descend(
        u, v, path, column, reach[u[path], column], level, table, S, T, seen, 5, margin, clip, rate,
        decay,
    )  # fmt: skip
    np.testing.assert_allclose(met, loss, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(S, source, atol=2e-3)
    np.testing.assert_allclose(T, target, atol=2e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([2, 9, 20]))
@example(58113, False, 9)  # steps cut short gain little before the minimum
def test_single_rows_are_the_minimum(seed: int, sources: bool, k: int) -> None:
    rng = np.random.default_rng(seed)
    n = 25
    source, target = rng.standard_normal((2, n, k)).astype(np.float32)
    fixed = k - 1 if sources else k - 2
    if k >= 3:
        source[:, k - 1], target[:, k - 2] = 1, 1
    sizes = rng.integers(0, 40, n)
    popularity = rng.random(n) / n
    how = Descent(draws=10, negatives=3)
    rows = PairRows(source, target, sizes, popularity, margin=0.7, regularization=0.01, descent=how)
    listed = np.sort(rng.choice(n, rng.integers(1, 12), replace=False))
    values = 1 + rng.random(len(listed))
    solve = rows.sources if sources else rows.targets
    (found,) = solve([0, len(listed)], listed, values)

    drawn = np.minimum(sizes, 10)
    uniform = 1 / n
    if sources:
        vectors, paths = target.astype(float), np.ones(n)
        others = len(listed) * 3 * (uniform + popularity)
    else:
        vectors, paths = source.astype(float), drawn / np.maximum(sizes, 1)
        others = drawn * 3 * (uniform + paths[listed].sum() / max(drawn.sum(), 1))
    free = np.ones(k, dtype=bool)
    if k >= 3:
        free[fixed] = False
    weight = max(paths[listed].sum(), 1)

    def objective(part: np.ndarray) -> float:
        x = np.ones(k)
        x[free] = part
        miss = vectors @ x
        loss = others * np.maximum(miss + 0.7, 0) ** 2
        loss[listed] = paths[listed] * (miss[listed] - values) ** 2
        return float(loss.sum() + 0.01 * weight * (part**2).sum())

    if k >= 3:
        assert found[fixed] == 1
    best = scipy.optimize.minimize(objective, found[free].astype(float), method="BFGS")
    assert objective(found[free].astype(float)) <= best.fun * 1.001 + 1e-5


def test_a_node_folded_in_is_as_good_as_one_fitted() -> None:
    dag = citation_dag(1500, 4500, random_state=0)
    level = levels(dag)
    forest = closure_forest(dag)
    paths = PathSampler(forest)
    table = kernel_table("log", int(level.max()))
    found = fit(dag, 32)
    rows = PairRows(
        found.source, found.target, forest.sizes, paths.popularity(16), margin=found.margin
    )
    reach = closure_matrix(dag)

    def csr(nodes: np.ndarray, related: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        values = [
            table[np.abs(level[others] - level[node])]
            for node, others in zip(nodes, related, strict=True)
        ]
        ends = np.concatenate([[0], np.cumsum([len(others) for others in related])])
        return ends, np.concatenate(related), np.concatenate(values)

    some = np.flatnonzero(reach.sum(axis=1) >= 5)[:20]
    new = rows.sources(*csr(some, [forest.descendants(u) for u in some]))
    assert ((new @ found.target.T > 0) == reach[some]).mean() > 0.999
    some = np.flatnonzero(reach.sum(axis=0) >= 5)[:20]
    new = rows.targets(*csr(some, [forest.ancestors(v) for v in some]))
    assert ((found.source @ new.T > 0) == reach[:, some]).mean() > 0.999
