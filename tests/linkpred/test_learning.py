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
from atpgraph.linkpred.evidence.candidates import choices
from atpgraph.linkpred.evidence.collection import Settings
from atpgraph.linkpred.logit import fit_choice, fit_pairs
from atpgraph.linkpred.negatives import Pairs
from tests.linkpred.helpers import hierarchy


def test_planted_weights_of_pairs_are_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 3)) * [1, 10, 1]
    x = np.column_stack([x, np.ones(len(x))])  # a term that never varies gets no weight
    truth = rng.random(len(x)) < 1 / (1 + np.exp(-(x @ [1.0, 0.1, 0.0, 0.0])))
    head = fit_pairs(x[truth], x[~truth])
    assert head.weights == pytest.approx([1.0, 0.1, 0.0, 0.0], abs=0.06)
    assert head.weights[3] == 0


def test_a_choice_is_the_minimum_of_its_loss() -> None:
    rng = np.random.default_rng(1)
    starts = np.arange(0, 4000, 8)
    terms = rng.standard_normal((4000, 2))
    weight = np.log(rng.integers(1, 20, 4000).astype(float))
    utility = (terms @ [1.5, -0.5] + weight + rng.gumbel(size=4000)).reshape(-1, 8)
    best = utility.argmax(axis=1)
    for row, chosen in enumerate(best):  # the chosen one comes first
        swap = starts[row] + np.array([0, chosen])
        terms[swap], weight[swap] = terms[swap[::-1]], weight[swap[::-1]]
    head = fit_choice(terms, starts, weight, ridge=1.0)
    assert head.weights == pytest.approx([1.5, -0.5], abs=0.2)

    def loss(w: np.ndarray) -> float:
        score = (((terms - terms.mean(axis=0)) / terms.std(axis=0)) @ w + weight).reshape(-1, 8)
        return float((np.logaddexp.reduce(score, axis=1) - score[:, 0]).sum() + w @ w / 2)

    slow = minimize(loss, np.zeros(2)).x / terms.std(axis=0)
    assert head.weights == pytest.approx(slow, abs=1e-3)


def test_candidates_stand_for_all_nodes() -> None:
    graph = hierarchy()
    evidence = Collection(["paths", "degrees"], Settings(4)).fit(graph)
    some = np.array([0, 40, 80])
    queries = Pairs(graph.sources[some].astype(np.int64), graph.targets[some].astype(np.int64))
    rng = np.random.default_rng(0)
    found = choices(graph, evidence, queries.sources, queries.targets, rng)
    u, v, starts, weight, terms = found
    assert np.array_equal(terms, evidence.terms(u, v))
    for at, first in enumerate(starts):
        last = starts[at + 1] if at + 1 < len(starts) else len(u)
        assert (u[first], v[first]) == (queries.sources[at], queries.targets[at])
        others = v[first + 1 : last]
        assert len(set(others.tolist())) == len(others)
        assert (graph.find_edges(np.full(len(others), u[first]), others) < 0).all()
        free = graph.n_nodes - 1 - graph.out_degree[u[first]]
        loops = graph.find_edges([u[first]], [u[first]])[0] >= 0
        assert np.exp(weight[first + 1 : last]).sum() == pytest.approx(free + loops)


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
