from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph._threads import Workers
from atpgraph.closure import SketchedPaths, sketched_paths
from atpgraph.closure.panel import COLUMNS
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import closure_matrix, dags, random_dag

SEED = np.uint64(7)


def paths_of(dag: DiGraph) -> SketchedPaths:
    reach = closure_matrix(dag)
    return SketchedPaths(dag, levels(dag), reach.sum(axis=1), reach.sum(axis=0) + 0.0)


@settings(max_examples=60)
@given(dags(min_nodes=1), st.integers(1, 6), st.integers(0, 99))
def test_draws_are_descendants_and_the_panel_is_exact(dag: DiGraph, count: int, seed: int) -> None:
    reach = closure_matrix(dag)
    paths = paths_of(dag)
    with Workers(1) as workers:
        uniform, popular = paths.renew(count, np.random.default_rng(seed), workers)
    u, v = paths.draw(np.arange(dag.n_nodes, dtype=np.int32), count, SEED)
    assert reach[u, v].all()
    np.testing.assert_array_equal(
        np.bincount(u, minlength=dag.n_nodes), np.minimum(reach.sum(axis=1), count)
    )
    assert len(np.unique(u * np.int64(dag.n_nodes) + v)) == len(u), "a descendant drawn twice"
    reached = np.flatnonzero(reach.any(axis=0))
    np.testing.assert_array_equal(np.sort(uniform), reached)  # small graphs are all panel
    assert np.isin(popular, reached).all()
    for known in (uniform, popular):
        a, b = (side.reshape(-1) for side in np.meshgrid(np.arange(dag.n_nodes), known))
        np.testing.assert_array_equal(paths.joined(a, b), reach[a, b] | (a == b))


def test_every_descendant_is_as_likely_in_a_graph_wider_than_the_panel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sketched_paths, "_MOST_SHEETS", 2)
    # Nodes with few descendants draw from the sketch, those with many from the panel.
    n = 6 * COLUMNS
    dag = random_dag(n, 4 * n, 1)
    reach = closure_matrix(dag)
    paths = paths_of(dag)
    nodes = np.arange(n, dtype=np.int32)
    drawn = np.zeros(n)
    rng = np.random.default_rng(0)
    rounds = 60
    with Workers(2) as workers:
        for _ in range(rounds):
            uniform, _ = paths.renew(4, rng, workers)
            assert len(uniform) == 3 * COLUMNS // 2
            u, v = paths.draw(nodes, 4, np.uint64(rng.integers(1, 2**63)))
            assert reach[u, v].all()
            drawn += np.bincount(v, minlength=n)
    sizes = reach.sum(axis=1)
    expected = rounds * (reach * (np.minimum(4, sizes) / np.maximum(sizes, 1))[:, None]).sum(axis=0)
    # In one round nodes share what they draw, so there is noise: compare tenths of the nodes.
    order = np.argsort(expected)
    for part in np.array_split(order, 10)[2:]:
        assert abs(drawn[part].sum() / expected[part].sum() - 1) < 0.15
