from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import panel as panel_module
from atpgraph.closure._positions import Positions
from atpgraph.closure.panel import Panel
from atpgraph.closure.swept_paths import SweptPaths
from atpgraph.graph import DiGraph
from atpgraph.util.threads import Workers
from tests.dags import closure_matrix, dags, random_dag


def panel_of(dag: DiGraph, columns: np.ndarray, threads: int = 1) -> Panel:
    with Workers(threads) as workers:
        return Panel(Positions.of(dag), columns, workers)


@settings(max_examples=40)
@given(dags(min_nodes=1), st.integers(0, 2**32 - 1))
def test_a_panel_knows_who_reaches_it(dag: DiGraph, seed: int) -> None:
    reach = closure_matrix(dag)
    rng = np.random.default_rng(seed)
    columns = rng.permutation(dag.n_nodes)[: rng.integers(1, dag.n_nodes + 1)]
    panel = panel_of(dag, columns)
    u, v = (side.reshape(-1) for side in np.meshgrid(np.arange(dag.n_nodes), columns))
    np.testing.assert_array_equal(panel.joined(u, v), reach[u, v] | (u == v))
    for at, column in enumerate(columns.tolist()):
        np.testing.assert_array_equal(panel.reaching(at), np.flatnonzero(reach[:, column]))
    drawn = panel.draw(3, rng)
    for at, column in enumerate(columns.tolist()):
        found = drawn[at][drawn[at] >= 0]
        assert len(set(found.tolist())) == len(found) == min(reach[:, column].sum(), 3)
        assert reach[found, column].all()
    assert panel.count() == reach[:, columns].sum() + len(columns)


def test_several_sheets_on_several_threads() -> None:
    dag = random_dag(1500, 4000, 1)
    reach = closure_matrix(dag)
    u = np.random.default_rng(0).integers(0, 1500, 5000)
    v = np.random.default_rng(1).integers(0, 1500, 5000)
    for threads in (1, 3):
        panel = panel_of(dag, np.arange(1500), threads)
        np.testing.assert_array_equal(panel.joined(u, v), reach[u, v] | (u == v))


@pytest.mark.parametrize("few", [8, 4000])
def test_every_node_that_reaches_a_column_is_as_likely_to_be_drawn(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Among a third of the nodes, or among all where too few of that third reach the column.
    monkeypatch.setattr(panel_module, "_SAMPLE", 400)
    monkeypatch.setattr(panel_module, "_FEW", few)
    dag = random_dag(1200, 4000, 1)
    reach = closure_matrix(dag)
    popular = np.argsort(-reach.sum(axis=0))[:600]
    panel = panel_of(dag, popular)
    rng = np.random.default_rng(0)
    rounds = 60
    hits = np.zeros((1200, 600))
    for _ in range(rounds):
        found = panel.draw(4, rng)
        assert (found >= 0).all()
        assert all(len(set(row)) == 4 for row in found.tolist())
        for column in found.T:
            hits[column, np.arange(600)] += 1
    assert not hits[~reach[:, popular]].any()
    expected = reach[:, popular] * (4 * rounds / reach[:, popular].sum(axis=0))
    by_node, wanted = hits.sum(axis=1), expected.sum(axis=1)
    order = np.argsort(-wanted)
    for part in np.array_split(order[wanted[order] > 50], 5):
        assert abs(by_node[part].sum() / wanted[part].sum() - 1) < 0.1


def test_swept_paths_are_exact() -> None:
    dag = random_dag(1200, 3000, 2)
    reach = closure_matrix(dag)
    paths = SweptPaths(Positions.of(dag.reverse()), reach.sum(axis=1))
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 1200, (2, 4000))
    np.testing.assert_array_equal(paths.joined(u, v), reach[u, v])
    nodes = rng.permutation(1200)[:700].astype(np.int32)
    for node, found in zip(nodes, paths.reached(nodes), strict=True):
        np.testing.assert_array_equal(found, np.flatnonzero(reach[node]))
    a, b = paths.draw(nodes, 4, np.uint64(5))
    assert reach[a, b].all()
    np.testing.assert_array_equal(
        np.bincount(a, minlength=1200)[nodes], np.minimum(reach[nodes].sum(axis=1), 4)
    )
    assert len(np.unique(a * np.int64(1200) + b)) == len(a)
