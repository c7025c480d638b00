"""The sampler against the posterior, summed over all orders of a small graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from atpgraph.cycles.ordering import downward_probability
from atpgraph.graph import DiGraph


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
    )
    assert sampled == pytest.approx(down / total, abs=0.02)
    assert position == pytest.approx(mean / total, abs=0.02)
