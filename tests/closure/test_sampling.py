from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import AncestorSampler, PathSampler, closure_forest
from atpgraph.graph import DiGraph
from tests.dags import chain, closure_matrix, dags, random_dag

SEED = np.uint64(7)


@settings(max_examples=60)
@given(dags(), st.integers(1, 6))
def test_draws_are_descendants(dag: DiGraph, count: int) -> None:
    sampler = PathSampler(closure_forest(dag))
    reach = closure_matrix(dag)
    nodes = np.arange(dag.n_nodes, dtype=np.int32)
    u, v = sampler.draw(nodes, count, SEED)
    assert reach[u, v].all()
    assert sampler.joined(u, v).all()
    np.testing.assert_array_equal(
        np.bincount(u, minlength=dag.n_nodes), np.minimum(reach.sum(axis=1), count)
    )
    assert len(np.unique(u * np.int64(dag.n_nodes) + v)) == len(u), "a descendant drawn twice"


@given(dags())
def test_all_are_drawn_where_there_are_few(dag: DiGraph) -> None:
    sampler = PathSampler(closure_forest(dag))
    u, v = sampler.draw(np.arange(dag.n_nodes, dtype=np.int32), dag.n_nodes, SEED)
    drawn = np.zeros((dag.n_nodes, dag.n_nodes), dtype=bool)
    drawn[u, v] = True
    np.testing.assert_array_equal(drawn, closure_matrix(dag))


@pytest.mark.parametrize(("seed", "count"), [(0, 1), (1, 2), (2, 3)])
def test_every_descendant_is_as_likely(seed: int, count: int) -> None:
    dag = random_dag(14, 30, seed)
    sampler = PathSampler(closure_forest(dag))
    reach = closure_matrix(dag)
    nodes = np.arange(14, dtype=np.int32)
    drawn = np.zeros((14, 14))
    seeds = np.random.default_rng(seed).integers(1, 2**63, 3000, dtype=np.uint64)
    for number in seeds:
        u, v = sampler.draw(nodes, count, number)
        drawn[u, v] += 1
    share = np.minimum(count, reach.sum(axis=1)) / np.maximum(reach.sum(axis=1), 1)
    expected = reach * share[:, None]
    assert np.abs(drawn / len(seeds) - expected).max() < 0.04
    popularity = sampler.popularity(count)
    np.testing.assert_allclose(popularity, expected.sum(axis=0) / expected.sum(), atol=1e-12)


def test_deep_forests_take_few_steps() -> None:
    # A walk up a chain of 200,000 nodes for each draw would take minutes.
    n = 200_000
    sampler = PathSampler(closure_forest(chain(n)))
    u, v = sampler.draw(np.arange(n, dtype=np.int32), 2, SEED)
    assert (u < v).all()
    # From the middle of the lower and of the upper half of what is ahead, on average.
    ahead = ((v - u) / (n - 1 - u))[:-1].reshape(-1, 2)
    np.testing.assert_allclose(np.sort(ahead, axis=1).mean(axis=0), [0.25, 0.75], atol=0.01)


@settings(max_examples=60)
@given(dags(), st.integers(1, 6))
def test_ancestors_are_the_paths_turned_round(dag: DiGraph, count: int) -> None:
    back = AncestorSampler(closure_forest(dag))
    reach = closure_matrix(dag).T
    nodes = np.arange(dag.n_nodes, dtype=np.int32)
    assert back.sizes.tolist() == reach.sum(axis=1).tolist()
    u, v = back.draw(nodes, count, SEED)
    assert reach[u, v].all()
    every = nodes.repeat(len(nodes)), np.tile(nodes, len(nodes))
    np.testing.assert_array_equal(back.joined(*every), reach[every])
    np.testing.assert_array_equal(
        np.bincount(u, minlength=dag.n_nodes), np.minimum(reach.sum(axis=1), count)
    )
    assert len(np.unique(u * np.int64(dag.n_nodes) + v)) == len(u), "an ancestor drawn twice"
    for node, found in zip(nodes.tolist(), back.reached(nodes), strict=True):
        assert found.tolist() == np.flatnonzero(reach[node]).tolist()


@pytest.mark.parametrize(("seed", "count"), [(0, 1), (1, 2), (2, 3)])
def test_every_ancestor_is_as_likely(seed: int, count: int) -> None:
    dag = random_dag(14, 30, seed)
    back = AncestorSampler(closure_forest(dag))
    reach = closure_matrix(dag).T
    drawn = np.zeros((14, 14))
    seeds = np.random.default_rng(seed).integers(1, 2**63, 3000, dtype=np.uint64)
    for number in seeds:
        u, v = back.draw(np.arange(14, dtype=np.int32), count, number)
        drawn[u, v] += 1
    share = np.minimum(count, reach.sum(axis=1)) / np.maximum(reach.sum(axis=1), 1)
    assert np.abs(drawn / len(seeds) - reach * share[:, None]).max() < 0.04
