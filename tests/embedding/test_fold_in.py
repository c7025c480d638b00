"""New nodes: single rows against SciPy, and the answers of folded nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph import ATP
from atpgraph.closure import closure_forest, closure_forests, collect_paths, kernel_table
from atpgraph.embedding.growth import LearnedRows, NnlsRows
from atpgraph.factorization import Options, fit_panels
from atpgraph.graph import DiGraph
from atpgraph.graph.generators import citation_dag
from atpgraph.hierarchy import levels
from tests.dags import closure_matrix, dags
from tests.factorization.twins import nnls_row


def test_fold_in_is_the_row_a_refit_would_solve(links: ATP) -> None:
    fitted = links
    dag = fitted.dag_
    out = [int(np.argmax(dag.out_degree))]
    source, target = fitted.fold_in(out_edges=out)
    assert np.all(target == 0)
    rows, _ = closure_forests(dag)
    reached = np.union1d(rows.descendants(out), out)
    table = np.append(kernel_table("log", int(fitted.levels_.max())), 0.0)
    values = table[np.maximum(fitted.levels_[reached] - 1, 1)]
    how = fitted.settings_
    rows = NnlsRows((fitted.source_, fitted.target_), how.zero_weight, how.regularization)
    assert source == pytest.approx(rows.solve(0, reached, values), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("model", ["fitted", "links"])
def test_fold_in_keeps_direction(model: str, request) -> None:
    """A new node between the bottom and the top leads up and is led to from below."""
    fitted = request.getfixturevalue(model)
    rank = fitted.levels_
    low, high = np.flatnonzero(rank <= 2)[:5].tolist(), np.flatnonzero(rank >= rank.max() - 1)
    source, target = fitted.fold_in(out_edges=high.tolist(), in_edges=low)
    assert np.mean(fitted.target_[high] @ source) > np.mean(fitted.target_[low] @ source)
    assert np.mean(fitted.source_[low] @ target) > np.mean(fitted.source_[high] @ target)
    source, target = fitted.fold_in()
    assert np.max(fitted.target_ @ source) <= 0
    assert np.max(fitted.source_ @ target) <= 0


def test_fold_in_does_not_take_ancestors_for_descendants() -> None:
    chain = ATP(n_components=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
    source, _ = chain.fold_in(out_edges=["b"], in_edges=["c"])  # would close b → c → new → b
    beyond, back = (float(source @ chain.target_[code]) for code in chain.graph_.codes(["d", "b"]))
    assert beyond > 0 > back


weights = st.sampled_from([0.0, 0.05, 0.6, 1.0])
penalties = st.sampled_from([0.0, 0.01, 0.5])


@settings(max_examples=30)
@given(dags(max_nodes=25, min_nodes=2), st.integers(1, 10), weights, penalties)
def test_non_negative_rows_are_those_of_scipy(
    dag: DiGraph, k: int, w0: float, penalty: float
) -> None:
    M = closure_forest(dag).to_sparse(levels(dag), "log").toarray()
    T = np.random.default_rng(0).random((dag.n_nodes, k))
    rows = NnlsRows((T, T), w0, penalty)
    for i in range(dag.n_nodes):
        columns = np.flatnonzero(M[i])
        row = rows.solve(0, columns, M[i, columns])
        assert row.tolist() == rows.solve(1, columns, M[i, columns]).tolist()
        if not len(columns):
            assert not row.any()
            continue
        best = nnls_row(M[i], M[i] > 0, T, w0, penalty)
        weight = np.where(M[i] > 0, 1.0, w0)
        found, least = (
            weight @ (M[i] - T @ s) ** 2 + penalty * np.count_nonzero(M[i]) * (s @ s)
            for s in (row, best)
        )
        assert found == pytest.approx(least, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("k", [2, 16])
def test_learned_rows_tell_paths_from_others(k: int) -> None:
    dag = citation_dag(300, 900, random_state=1)
    level, reach = levels(dag), closure_matrix(dag)
    paths, table = collect_paths(dag, level), kernel_table("log", int(level.max()))
    fit = fit_panels(paths, table, Options(n_components=k, random_state=0))
    rows = LearnedRows((fit.source.astype(np.float16), fit.target), paths, fit.margin, 1e-4)
    for at in range(0, 300, 29):
        for side, vectors, mine in ((0, fit.target, reach[at]), (1, fit.source, reach[:, at])):
            columns = np.flatnonzero(mine)
            values = table[np.abs(level[columns] - level[at])]
            scores = vectors @ rows.solve(side, columns, values)
            others = np.flatnonzero(~mine & (np.arange(300) != at))
            if not len(columns):
                assert k < 3 or scores[others].max() <= 0
            elif k == 16:
                assert np.mean(scores[columns] > 0) > 0.95
                assert np.mean(scores[others] > 0) < 0.05
