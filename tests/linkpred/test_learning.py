"""The models that weigh evidence: recovered weights, and attributes that help or are left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from atpgraph import LinkPredictor
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph
from atpgraph.linkpred import PairTest, make_split
from atpgraph.linkpred.evidence import Collection
from atpgraph.linkpred.evidence.parts import Settings
from atpgraph.linkpred.learning import Compared, draw_sample, fit_pairs, hide
from atpgraph.linkpred.ranking import fit_curve, fit_log_ratio
from atpgraph.util.conditional_logit import Choices, fit_logit
from tests.linkpred.helpers import hierarchy


def test_planted_weights_of_pairs_are_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 3)) * [1, 10, 1]
    x = np.column_stack([x, np.ones(len(x))])  # a term that never varies gets no weight
    truth = rng.random(len(x)) < 1 / (1 + np.exp(-(x @ [1.0, 0.1, 0.0, 0.0])))
    head = fit_pairs(Compared(x, truth, np.ones(len(x))))
    assert head.weights == pytest.approx([1.0, 0.1, 0.0, 0.0], abs=0.06)
    assert head.weights[3] == 0


def test_a_choice_is_the_minimum_of_its_loss() -> None:
    rng = np.random.default_rng(1)
    starts = np.arange(0, 4000, 8)
    terms = rng.standard_normal((4000, 2))
    weight = np.log(rng.integers(1, 20, 4000).astype(float))
    utility = (terms @ [1.5, -0.5] + weight + rng.gumbel(size=4000)).reshape(-1, 8)
    best = utility.argmax(axis=1)
    choices = Choices(terms, np.repeat(np.arange(500), 8), starts + best, weight)
    found = fit_logit(choices, 1.0)
    assert found.raw_weight == pytest.approx([1.5, -0.5], abs=0.2)

    def loss(w: np.ndarray) -> float:
        z = (terms - terms.mean(axis=0)) / terms.std(axis=0)
        score = (z @ w + weight).reshape(-1, 8)
        chosen = score[np.arange(500), best]
        return float((np.logaddexp.reduce(score, axis=1) - chosen).sum() + w @ w / 2)

    slow = minimize(loss, np.zeros(2)).x
    assert found.weight == pytest.approx(slow, abs=1e-3)


def test_weights_of_choices_count_them_several_times() -> None:
    rng = np.random.default_rng(2)
    x, group = rng.standard_normal((60, 3)), np.repeat(np.arange(10), 6)
    chosen = np.arange(0, 60, 6) + rng.integers(6, size=10)
    twice = np.concatenate([chosen, chosen[:4]])
    weight = np.where(np.arange(10) < 4, 2.0, 1.0)
    a = fit_logit(Choices(x, group, twice, np.zeros(60)), 1.0)
    b = fit_logit(Choices(x, group, chosen, np.zeros(60), weight), 1.0)
    assert np.allclose(a.weight, b.weight, atol=1e-6)
    odd = np.arange(10) % 2 == 1
    part = Choices(x, group, twice, np.zeros(60)).part(odd)
    assert part.n_groups == 5
    assert np.array_equal(part.x[part.chosen], x[twice[odd[group[twice]]]])


def test_candidates_stand_for_all_nodes() -> None:
    graph = hierarchy()
    hidden = hide(graph, 0.1, np.random.default_rng(0))
    evidence = Collection(["paths", "degrees"], Settings(4)).fit(hidden.rest)
    everyone = np.ones(graph.n_nodes, dtype=bool)
    sample = draw_sample(hidden, evidence, everyone, np.random.default_rng(1))
    choices = sample.choices
    other = np.ones(len(choices.x), dtype=bool)
    other[choices.chosen] = False
    stands = np.bincount(choices.group, np.exp(choices.offset) * other)
    out = np.log1p(hidden.rest.out_degree)
    column = evidence.term_names.index("log out-degree of u")
    for group in range(choices.n_groups):  # all nodes but itself and its targets, hidden or not
        u = choices.x[choices.group == group][0, column]
        nodes = np.flatnonzero(np.isclose(out, u))
        loops = graph.find_edges(nodes, nodes) >= 0
        free = graph.n_nodes - 1 - graph.out_degree[nodes] + loops
        assert np.isclose(stands[group], free).any()


def test_curves_never_fall_and_follow_the_truth() -> None:
    rng = np.random.default_rng(0)
    x = rng.random(5000)
    curve = fit_curve(x, (rng.random(5000) < x**2).astype(float), np.ones(5000))
    assert (np.diff(curve.y) >= 0).all()
    at = np.linspace(0.1, 0.9, 9)
    assert np.abs(curve(at) - at**2).max() < 0.08
    good, bad = rng.normal(1, 1, 4000), rng.normal(-1, 1, 4000)
    both = np.concatenate([good, bad])
    ratio = fit_log_ratio(both, np.arange(8000) < 4000, np.ones(8000))
    at = np.linspace(-1.5, 1.5, 7)
    assert np.abs(ratio(at) - 2 * at).max() < 0.5  # log of N(1, 1) / N(−1, 1)
    assert (np.diff(ratio.y) >= 0).all()


def planted(n: int, seed: int) -> tuple[DiGraph, np.ndarray]:
    """Nodes link within their topic; the topic is in the attributes."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(8, size=n)
    u = rng.integers(n, size=12 * n)
    v = rng.integers(n, size=12 * n)
    keep = (topic[u] == topic[v]) | (rng.random(12 * n) < 0.02)
    attributes = np.eye(8)[topic] + 0.3 * rng.standard_normal((n, 8))
    return DiGraph.from_codes(u[keep & (u != v)], v[keep & (u != v)], n), attributes


@pytest.mark.parametrize("informative", [True, False])
def test_attributes_help_or_are_left_out(informative: bool) -> None:
    graph, attributes = planted(500, 0)
    if not informative:
        attributes = np.random.default_rng(5).standard_normal(attributes.shape)
    split = make_split(graph, protocols=["random"], random_state=2)
    test = split.tests["random"]
    assert isinstance(test, PairTest)
    found = []
    for given in (None, attributes):
        model = LinkPredictor(["proximity", "degrees"], max_pairs=400).fit(split.train, given)
        good, bad = (
            model.score_codes(pairs.sources, pairs.targets)
            for pairs in (test.positives, test.negatives)
        )
        found.append(auc(good, bad))
    without, with_them = found
    if informative:
        assert with_them > without + 0.05
        assert "alike" in str(model.explain(graph.labels[0], graph.labels[1]))
    else:
        assert with_them >= without - 0.01
