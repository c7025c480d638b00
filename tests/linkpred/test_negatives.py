"""Negatives against brute force, and uniform."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.graph import DiGraph
from atpgraph.linkpred.protocols.negatives import non_edges, one_way_pairs
from tests.linkpred.helpers import as_set, brute_one_way, graphs


@settings(deadline=None)
@given(graphs(), st.integers(1, 200), st.integers(0, 2**32))
def test_one_way_pairs_against_brute_force(graph: DiGraph, count: int, seed: int) -> None:
    pairs = one_way_pairs(graph, count, np.random.default_rng(seed))
    truth = brute_one_way(graph)
    assert as_set(pairs) <= truth
    assert len(as_set(pairs)) == len(pairs) == min(count, len(truth))


@settings(deadline=None)
@given(graphs(), st.integers(1, 200), st.integers(0, 2**32))
def test_one_way_pairs_of_some_nodes(graph: DiGraph, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    some = np.flatnonzero(rng.random(graph.n_nodes) < 0.5)
    pairs = one_way_pairs(graph, count, rng, among=some)
    truth = {(u, v) for u, v in brute_one_way(graph) if u in set(some.tolist())}
    assert as_set(pairs) <= truth
    assert len(as_set(pairs)) == len(pairs) == min(count, len(truth))


def test_one_way_pairs_over_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atpgraph.linkpred.protocols.negatives._BLOCK_BYTES", 1)
    rng = np.random.default_rng(5)
    graph = DiGraph.from_codes(rng.integers(300, size=420), rng.integers(300, size=420), 300)
    truth = brute_one_way(graph)
    pairs = one_way_pairs(graph, 10**9, rng)
    assert as_set(pairs) == truth
    pairs = one_way_pairs(graph, 500, rng)
    assert len(as_set(pairs)) == 500
    assert as_set(pairs) <= truth


def test_one_way_pairs_are_uniform() -> None:
    graph = DiGraph.from_codes([0, 1, 2, 3, 3], [1, 2, 1, 0, 4], 5)  # 1 and 2 form a component
    truth = brute_one_way(graph)
    rng = np.random.default_rng(0)
    seen: Counter[tuple[int, int]] = Counter()
    draws = 1500
    for _ in range(draws):
        pairs = one_way_pairs(graph, 1, rng)
        seen.update(as_set(pairs))
    expected = draws / len(truth)
    assert set(seen) == truth
    chi_square = sum((count - expected) ** 2 / expected for count in seen.values())
    assert chi_square < 25  # 7 pairs, 6 degrees of freedom: p < 0.0004


@settings(deadline=None)
@given(graphs(), st.integers(1, 60), st.integers(0, 2**32))
def test_non_edges(graph: DiGraph, count: int, seed: int) -> None:
    pairs = non_edges(graph, count, np.random.default_rng(seed))
    found = as_set(pairs)
    available = graph.n_nodes * (graph.n_nodes - 1) - graph.n_edges + graph.n_self_loops
    assert len(found) == len(pairs) == min(count, available)
    assert not found & as_set(graph)
    assert all(u != v for u, v in found)
