from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from atpgraph.cycles import agony
from atpgraph.graph import DiGraph
from tests.strategies import digraphs


def agony_of(graph: DiGraph, rank: np.ndarray) -> float:
    proper = graph.sources != graph.targets
    drop = rank[graph.sources[proper]] - rank[graph.targets[proper]] + 1
    return float(np.maximum(drop, 0).sum())


def brute_force(graph: DiGraph) -> float:
    """The defining linear program: minimise Σ z, z ≥ r(u) − r(v) + 1, z ≥ 0."""
    proper = np.flatnonzero(graph.sources != graph.targets)
    n, m = graph.n_nodes, len(proper)
    if m == 0:
        return 0.0
    rows = np.zeros((m, n + m))
    for row, edge in enumerate(proper):
        rows[row, graph.sources[edge]] += 1
        rows[row, graph.targets[edge]] -= 1
        rows[row, n + row] = -1
    cost = np.concatenate([np.zeros(n), np.ones(m)])
    bounds = [(0, n)] * n + [(0, None)] * m
    return float(linprog(cost, A_ub=rows, b_ub=-np.ones(m), bounds=bounds).fun)


@given(digraphs())
def test_equals_the_linear_program_and_the_ranks_attain_it(graph: DiGraph) -> None:
    result = agony(graph)
    assert result.value == pytest.approx(brute_force(graph), abs=1e-6)
    for rank in (result.lowest, result.highest, result.centred):
        assert agony_of(graph, rank) == result.value
    assert np.all(result.lowest <= result.highest)
    assert result.lowest.min() == 0
    assert result.highest.max() == result.lowest.max()


def test_acyclic_graph_has_no_agony_and_longest_path_ranks() -> None:
    result = agony(DiGraph.from_edges([(0, 1), (1, 2), (0, 2), (3, 2)]))
    assert result.value == 0
    assert result.lowest.tolist() == [0, 1, 2, 0]
    assert result.highest.tolist() == [0, 1, 2, 1]


def test_long_ring() -> None:
    n = 50_000
    nodes = np.arange(n)
    ring = DiGraph.from_codes(nodes, (nodes + 1) % n, n)
    result = agony(ring)
    assert result.value == n
    assert agony_of(ring, result.centred) == n


@pytest.mark.parametrize("edges", [[], [(0, 0)]])
def test_nothing_to_rank(edges: list) -> None:
    result = agony(DiGraph.from_edges(edges))
    assert result.value == 0
    assert result.lowest.tolist() == [0] * len(edges)
