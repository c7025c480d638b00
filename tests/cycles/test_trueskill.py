"""TrueSkill against the package of that name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given

from atpgraph.cycles import trueskill
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from tests.strategies import digraphs

with warnings.catch_warnings():  # its docstrings warn where an installer, as uv, compiles nothing
    warnings.simplefilter("ignore")
    import trueskill as reference


@given(digraphs())
def test_trueskill_equals_the_trueskill_package_on_the_same_matches(graph: DiGraph) -> None:
    ours = trueskill(graph, max_passes=3, target=2.0, random_state=5)
    proper = graph.sources != graph.targets
    losers, winners = graph.sources[proper], graph.targets[proper]
    environment = reference.TrueSkill()
    ratings = [environment.create_rating() for _ in range(graph.n_nodes)]
    rng = np.random.default_rng(5)
    for _ in range(ours.n_passes):
        for match in rng.permutation(len(losers)):
            w, x = winners[match], losers[match]
            ratings[w], ratings[x] = reference.rate_1vs1(ratings[w], ratings[x], env=environment)
    assert ours.mu == pytest.approx([r.mu for r in ratings], abs=1e-5)
    assert ours.sigma == pytest.approx([r.sigma for r in ratings], abs=1e-5)


def test_trueskill_stops_once_the_edges_agree() -> None:
    order = DiGraph.from_edges([(i, j) for i in range(8) for j in range(i + 1, 8)])
    skill = trueskill(order)
    assert skill.n_passes < 15
    assert np.mean(skill.score[order.sources] <= skill.score[order.targets]) >= 0.95
    assert trueskill(order, target=2.0).n_passes == 15


def test_trueskill_survives_certain_upsets() -> None:
    skill = trueskill(DiGraph.from_edges([(0, 1), (1, 0)]), mu=1e6, sigma=1e-3, tau=0.0, beta=1e-3)
    assert np.all(np.isfinite(skill.score))


def test_bad_parameters_get_a_sentence() -> None:
    graph = DiGraph.from_edges([(0, 1)])
    with pytest.raises(InputError, match="draw_probability"):
        trueskill(graph, draw_probability=1.0)
    with pytest.raises(InputError, match="positive"):
        trueskill(graph, beta=0.0)
