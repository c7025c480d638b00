"""The sampler against the posterior, summed over all orders of a small graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from atpgraph.cycles.ordering import _count_gaps, _sweep, downward_probability, sift, spread_out
from atpgraph.graph import DiGraph, gnm
from atpgraph.graph.traversal import TwoWayRows


@pytest.mark.parametrize("coldness", [0.5, 2.0])
def test_probabilities_are_those_of_all_orders(coldness: float) -> None:
    graph = DiGraph.from_codes([0, 1, 2, 3, 0, 4], [1, 2, 0, 1, 3, 2], 5)
    down = np.zeros(graph.n_edges)
    mean = np.zeros(5)
    total = 0.0
    for order in itertools.permutations(range(5)):
        place = np.array(order)  # of node i among five uniform positions
        against = place[graph.sources] > place[graph.targets]
        weight = np.exp(-coldness * np.count_nonzero(against))
        down += weight * against
        mean += weight * (place + 1) / 6  # expected order statistics
        total += weight
    sampled, position = downward_probability(
        graph,
        np.ones(graph.n_edges),
        np.zeros(5),
        np.random.default_rng(0),
        coldness=coldness,
        n_chains=4,
        burn_in=200,
        n_samples=20_000,
        learn=False,
    )
    assert sampled == pytest.approx(down / total, abs=0.02)
    assert position == pytest.approx(mean / total, abs=0.02)


def test_an_edge_points_down_as_far_as_its_odds_say() -> None:
    rows = TwoWayRows.of(DiGraph.from_codes([0], [1], 2))
    excess = np.array([1.0, -0.5])  # beyond the coldness, for gaps below and above a half
    position, state = np.array([0.2, 0.6]), np.array([7], dtype=np.uint64)
    gaps = np.zeros(2)
    for _ in range(40_000):
        _sweep(rows, np.ones(1), position, 1.0, excess, state)
        _count_gaps(rows, position, gaps)
    # Of all pairs of positions, half point up, 3/8 down by less than a half, 1/8 by more.
    mass = np.array([0.375, 0.125]) * np.exp(-1.0 - excess)
    assert gaps / 40_000 == pytest.approx(mass / (0.5 + mass.sum()), abs=0.015)


def test_sifting_never_makes_an_order_worse() -> None:
    """Dense enough for many pairs of opposite edges, between which there is no place."""
    graph, rng = gnm(60, 1800, 0), np.random.default_rng(0)
    weights = rng.random(graph.n_edges)
    position, cost = spread_out(rng.permutation(60)), np.inf
    for _ in range(10):
        position = sift(graph, weights, position, rng, 1)
        down = float(weights[position[graph.sources] >= position[graph.targets]].sum())
        assert down <= cost + 1e-9
        cost = down
