"""How well vectors keep paths, and what is said about it."""

from __future__ import annotations

import json
import logging
import math

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import ATP
from atpgraph.closure._positions import Positions
from atpgraph.closure.swept_paths import SweptPaths
from atpgraph.embedding.fidelity import Fidelity, HardPairs, effective_rank, measure
from atpgraph.graph import DiGraph, generators
from atpgraph.hierarchy import levels
from tests.dags import chain, closure_matrix, dags


def hard_pairs(dag: DiGraph, seed: int = 0) -> tuple[HardPairs, SweptPaths, np.ndarray]:
    level = levels(dag)
    paths = SweptPaths(Positions.of(dag.reverse()), closure_matrix(dag).sum(axis=1))
    return HardPairs.of(paths, level, np.random.default_rng(seed)), paths, level


@given(dags(max_nodes=60), st.integers(0, 100))
def test_hard_pairs_are_what_they_say(dag: DiGraph, seed: int) -> None:
    pairs, _, level = hard_pairs(dag, seed)
    reach = closure_matrix(dag)
    assert reach[*pairs.paths].all()
    assert not reach[*pairs.others].any()
    u, v = pairs.others
    assert (level[v] > level[u]).all()
    assert set(u) <= set(pairs.paths[0]) <= set(pairs.nodes)
    assert set(v) <= set(pairs.paths[1])
    assert pairs.others.shape[1] <= pairs.paths.shape[1]
    many = reach.sum(axis=1)
    assert (many[pairs.nodes] >= (5 if many.max(initial=0) >= 5 else 1)).all()


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_measures_are_those_of_others(seed: int, ties: bool) -> None:
    dag = generators.random_dag(60, 150, seed)
    pairs, paths, level = hard_pairs(dag)
    rng = np.random.default_rng(seed)
    source, target = rng.standard_normal((2, 60, 5))
    if ties:
        source, target = np.round(source), np.round(target)
    found = measure(pairs, paths, level, source, target, 0.3)
    scores = source @ target.T
    good, bad = scores[*pairs.paths], scores[*pairs.others]
    truth = np.repeat([1, 0], [len(good), len(bad)])
    auc = sklearn.metrics.roc_auc_score(truth, np.concatenate([good, bad]))
    assert found.auc == pytest.approx(auc, abs=1e-5)
    climbs = level[pairs.paths[1]] - level[pairs.paths[0]]
    assert found.correlation == pytest.approx(
        scipy.stats.spearmanr(good, climbs).statistic, abs=1e-5
    )
    assert found.true_yes == pytest.approx(np.mean(good > 0.3), abs=1e-5)
    assert found.false_yes == pytest.approx(np.mean(bad > 0.3), abs=1e-5)
    if not ties:
        np.fill_diagonal(scores, -np.inf)
        best = np.argsort(-scores[pairs.nodes], axis=1)[:, :5]
        right = closure_matrix(dag)[np.repeat(pairs.nodes, 5), best.ravel()]
        assert found.precision == pytest.approx(right.mean(), abs=1e-5)


def test_effective_rank_counts_axes() -> None:
    rng = np.random.default_rng(0)
    for rank in (1, 2, 7):
        axes = rng.standard_normal((2, rank, 12))
        source, target = (rng.standard_normal((2000, rank)) @ side for side in axes)
        assert effective_rank(source, target) <= rank + 0.01
    many = rng.standard_normal((4000, 10))
    assert effective_rank(many, many[::-1]) > 9.5
    biases = np.stack([rng.standard_normal(50), np.ones(50)], axis=1)
    assert effective_rank(biases, biases[:, ::-1]) == 0
    assert effective_rank(np.zeros((0, 3)), np.zeros((0, 3))) == 0
    assert effective_rank(np.zeros((5, 3)), np.zeros((5, 3))) == 0


@pytest.mark.parametrize("purpose", ["reachability", "paper"])
@pytest.mark.parametrize(
    "graph", [DiGraph.from_edges([]), DiGraph.from_edges([(0, 1)]), chain(12)], ids=str
)
def test_graphs_with_little_to_ask(
    graph: DiGraph, purpose: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = ATP(4, purpose=purpose).fit(graph).fidelity_
    assert not caplog.records
    assert not found.is_poor
    assert math.isnan(found.auc)  # no node is out of reach of what is below it
    assert json.loads(json.dumps(found.to_dict()))["auc"] is None
    assert str(Fidelity.from_dict(found.to_dict())) == str(found)
    assert "nan" not in str(found)
    if graph.n_edges:  # a node with one descendant has one best target, not five
        assert found.precision == 1.0


def test_vectors_that_are_worth_little_are_told(caplog: pytest.LogCaptureFixture) -> None:
    graph = generators.citation_dag(3000, 9000, random_state=0)
    good = ATP(32).fit(graph)
    assert good.fidelity_.auc > 0.99
    assert good.fidelity_.true_yes > 0.97
    assert good.fidelity_.false_yes < 0.05
    assert good.fidelity_.effective_rank > 10
    assert not caplog.records
    with caplog.at_level(logging.WARNING, logger="atpgraph"):
        thin = ATP(1).fit(graph)
    assert thin.fidelity_.is_poor
    (record,) = caplog.records
    assert record.getMessage().endswith("use more components or a larger max_iter.")
    caplog.clear()
    links = ATP(32, purpose="paper", zero_weight="auto").fit(graph)
    assert links.fidelity_.is_poor
    assert not caplog.records  # it was not made for paths
    assert "purpose='reachability'" in links.fidelity_.advice("paper")


def test_one_axis_is_told_of_small_graphs_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="atpgraph"):
        thin = ATP(1).fit(generators.random_dag(300, 900, random_state=0))
        path = ATP(1).fit(chain(300))  # one axis is all there is to a path
    assert thin.fidelity_.is_poor
    assert not path.fidelity_.is_poor
    assert len(caplog.records) == 1
