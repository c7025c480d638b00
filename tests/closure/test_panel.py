from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph._threads import Workers
from atpgraph.closure._positions import Positions
from atpgraph.closure.panel import Panel
from atpgraph.closure.swept_paths import SweptPaths
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
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
    sizes = panel.sizes()
    np.testing.assert_array_equal(sizes, reach[:, columns].sum(axis=0))
    wanted = np.sort(rng.integers(-1, dag.n_nodes, (len(columns), 3)), axis=1)
    wanted[(wanted >= sizes[:, None]) | (np.diff(wanted, axis=1, prepend=-2) == 0)] = -1
    wanted.sort(axis=1)
    for at, found in enumerate(panel.pick(wanted).tolist()):
        every = panel.reaching(at).tolist()
        assert found == [every[place] if place >= 0 else -1 for place in wanted[at].tolist()]
    assert panel.count() == reach[:, columns].sum() + len(columns)


def test_several_sheets_on_several_threads() -> None:
    dag = random_dag(1500, 4000, 1)
    reach = closure_matrix(dag)
    u = np.random.default_rng(0).integers(0, 1500, 5000)
    v = np.random.default_rng(1).integers(0, 1500, 5000)
    for threads in (1, 3):
        panel = panel_of(dag, np.arange(1500), threads)
        np.testing.assert_array_equal(panel.joined(u, v), reach[u, v] | (u == v))


def test_swept_paths_are_exact() -> None:
    dag = random_dag(1200, 3000, 2)
    reach = closure_matrix(dag)
    paths = SweptPaths(dag, levels(dag), reach.sum(axis=1))
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
