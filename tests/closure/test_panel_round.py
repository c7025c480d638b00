from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import PanelRound, PanelSource
from atpgraph.closure.panel import COLUMNS, WORDS, Positions
from atpgraph.closure.paths import SHEETS, take
from atpgraph.graph import DiGraph
from atpgraph.util.threads import Workers
from tests.dags import closure_matrix, dags, random_dag


def paths_of(dag: DiGraph) -> PanelSource:
    reach = closure_matrix(dag)
    sizes, ancestors = reach.sum(axis=1), reach.sum(axis=0)
    return PanelSource(Positions.of(dag), sizes, ancestors, ancestors + 0.0)


def drawn(
    panel: PanelRound, count: int, rng: np.random.Generator, step: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """What :func:`take` draws for every node, or one in `step`, as pairs."""
    words = np.empty((panel.uniform + 63) >> 6, dtype=np.uint64)
    pairs = []
    for i in range(0, len(panel.nodes), step):
        u = int(panel.nodes[i])
        many = min(int(panel.counts[i]), count)
        targets = np.empty(count, dtype=np.int32)
        take(i, many, rng.random(), panel, words, targets)
        pairs += [(u, v) for v in targets[:many].tolist()]
    u, v = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return u, v


@settings(max_examples=60, deadline=None)
@given(dags(min_nodes=1), st.integers(1, 6), st.integers(0, 99), st.booleans())
def test_draws_are_descendants_and_the_panel_is_exact(
    dag: DiGraph, count: int, seed: int, tilted: bool
) -> None:
    reach = closure_matrix(dag)
    rng = np.random.default_rng(seed)
    with Workers(1) as workers:
        panel = paths_of(dag).renew(count, rng, workers, tilted=tilted)
    u, v = drawn(panel, count, rng)
    assert reach[u, v].all()
    np.testing.assert_array_equal(
        np.bincount(u, minlength=dag.n_nodes), np.minimum(reach.sum(axis=1), count)
    )
    assert len(np.unique(u * dag.n_nodes + v)) == len(u), "a descendant drawn twice"
    reached = np.flatnonzero(reach.any(axis=0))
    uniform = panel.columns[: panel.uniform]
    np.testing.assert_array_equal(np.sort(uniform), reached)  # small graphs are all panel
    assert np.isin(panel.columns[panel.popular], reached).all()
    for at, column in enumerate(panel.columns.tolist()):
        words = panel.bits[at // COLUMNS, :, (at >> 6) % WORDS]
        joined = (words >> np.uint64(at & 63)) & np.uint64(1) != 0
        expected = reach[panel.nodes, column] | (panel.nodes == column)
        np.testing.assert_array_equal(joined, expected)
        assert panel.own[column] == at


def test_every_descendant_is_as_likely_in_a_graph_wider_than_the_panel() -> None:
    # Nodes with few descendants draw from the sketch, those with many from the panel.
    n = 6 * COLUMNS
    dag = random_dag(n, 4 * n, 1)
    reach = closure_matrix(dag)
    paths = paths_of(dag)
    counted = np.zeros(n)
    rng = np.random.default_rng(0)
    rounds = 60
    with Workers(2) as workers:
        for _ in range(rounds):
            panel = paths.renew(4, rng, workers)
            assert panel.uniform == 3 * SHEETS * COLUMNS // 4
            u, v = drawn(panel, 4, rng, step=8)
            assert reach[u, v].all()
            counted += np.bincount(v, minlength=n)
    sizes = reach.sum(axis=1)
    weight = np.zeros(n)
    weight[panel.nodes[::8]] = (np.minimum(4, sizes) / np.maximum(sizes, 1))[panel.nodes[::8]]
    expected = rounds * (reach * weight[:, None]).sum(axis=0)
    # In one round nodes share what they draw, so there is noise: compare tenths of the nodes.
    order = np.argsort(expected)
    for part in np.array_split(order, 10)[5:]:
        assert expected[part].sum() > 500
        assert abs(counted[part].sum() / expected[part].sum() - 1) < 0.15


def test_tilted_rounds_prefer_columns_with_few_ancestors() -> None:
    n = 6 * COLUMNS
    dag = random_dag(n, 4 * n, 1)
    ancestors = closure_matrix(dag).sum(axis=0)
    paths, rng = paths_of(dag), np.random.default_rng(0)
    mean = []
    with Workers(1) as workers:
        for tilted in (False, True):
            panel = paths.renew(4, rng, workers, tilted=tilted)
            columns = panel.columns[: panel.uniform]
            assert len(np.unique(columns)) == panel.uniform == 3 * SHEETS * COLUMNS // 4
            mean.append(np.mean(np.minimum(1, 4 / ancestors[columns])))
    assert mean[1] > 2 * mean[0]
