from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure.panel import Panel, Positions
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
    np.testing.assert_array_equal(
        panel.sizes(), reach[:, columns].sum(axis=1) + np.isin(np.arange(dag.n_nodes), columns)
    )


def test_several_sheets_on_several_threads() -> None:
    dag = random_dag(1500, 4000, 1)
    reach = closure_matrix(dag)
    u = np.random.default_rng(0).integers(0, 1500, 5000)
    v = np.random.default_rng(1).integers(0, 1500, 5000)
    for threads in (1, 3):
        panel = panel_of(dag, np.arange(1500), threads)
        np.testing.assert_array_equal(panel.joined(u, v), reach[u, v] | (u == v))
