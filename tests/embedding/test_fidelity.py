"""How well vectors keep paths, measured on sampled pairs."""

from __future__ import annotations

import json
import logging
import math

import networkx as nx
import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import ATP
from atpgraph.closure import collect_paths
from atpgraph.embedding.fidelity import Fidelity, evaluate
from atpgraph.embedding.path_sample import DISTANCES, PathSample
from atpgraph.graph import DiGraph, generators
from atpgraph.hierarchy import levels
from tests.dags import chain, closure_matrix, dags


def distances(dag: DiGraph) -> np.ndarray:
    graph = nx.DiGraph(zip(dag.sources.tolist(), dag.targets.tolist(), strict=True))
    graph.add_nodes_from(range(dag.n_nodes))
    found = np.zeros((dag.n_nodes, dag.n_nodes), dtype=int)
    for u, reached in nx.all_pairs_shortest_path_length(graph):
        for v, length in reached.items():
            found[u, v] = length
    return found


def sampled(dag: DiGraph, **options: object) -> PathSample:
    return PathSample.of(collect_paths(dag, levels(dag)), **options)  # type: ignore[arg-type]


@given(dags(max_nodes=60), st.integers(0, 100), st.sampled_from([1.0, 0.02]))
def test_sampled_pairs_are_what_they_say(dag: DiGraph, seed: int, effort: float) -> None:
    sample = sampled(dag, random_state=seed, effort=effort)
    reach, distance, level = closure_matrix(dag), distances(dag), levels(dag)
    assert (distance[*sample.edges] == 1).all()
    for back, side in enumerate(sample.sides):
        truth, away = (reach.T, distance.T) if back else (reach, distance)
        height = -level if back else level
        assert truth[side.paths.u, side.paths.v].all()
        for name, (first, last) in DISTANCES.items():
            u, v, weight = side.by_distance[name]
            assert (away[u, v] >= first).all()
            assert last is None or (away[u, v] <= last).all()
            assert (weight > 0).all()
        assert truth[*side.hard_paths].all()
        u, v = side.look_alikes
        assert not truth[u, v].any()
        assert (height[v] > height[u]).all()
        for rows in (side.rows, side.hard_rows):
            assert (truth[rows.nodes].sum(axis=1) == rows.sizes).all()
            for node, bit in zip(rows.nodes, rows.bits, strict=True):
                every = np.arange(dag.n_nodes)
                assert (side.joined(np.full(dag.n_nodes, bit), every) == truth[node]).all()
        if effort == 1.0:  # small graphs are looked at whole
            assert side.paths.weight.sum() == pytest.approx(reach.sum())
            assert side.paths.weight.sum() == pytest.approx(reach.sum())


def test_the_sample_is_uniform_over_the_closure_whatever_the_degrees() -> None:
    # One hub reaches everything; nearly all other nodes reach a handful.
    rng = np.random.default_rng(0)
    n = 3000
    u, v = rng.integers(0, n - 1, (2, n))
    low, high = np.minimum(u, v), np.maximum(u, v)
    dag = DiGraph.from_codes(
        np.concatenate([np.full(n - 1, n - 1), high[low < high]]),
        np.concatenate([np.arange(n - 1), low[low < high]]),
        n,
    )
    reach, distance = closure_matrix(dag), distances(dag)
    hub = reach[n - 1].sum() / reach.sum()
    far = np.mean(distance[reach] == 2)
    shares, twos, totals = [], [], []
    for seed in range(6):
        sample = sampled(dag, random_state=seed)
        for back, side in enumerate(sample.sides):
            start = side.paths.v if back else side.paths.u
            weight = side.paths.weight
            totals.append(side.paths.weight.sum())
            shares.append(weight[start == n - 1].sum() / weight.sum())
            twos.append(side.by_distance["distance_2"].weight.sum() / reach.sum())
    assert np.mean(totals) == pytest.approx(reach.sum(), rel=0.03)
    assert np.mean(shares) == pytest.approx(hub, abs=0.02)
    assert np.mean(twos) == pytest.approx(far, abs=0.05)


@given(st.integers(0, 2**32 - 1))
def test_the_report_is_what_all_pairs_say(seed: int) -> None:
    dag = generators.random_dag(60, 150, seed)
    sample, level = sampled(dag), levels(dag)
    rng = np.random.default_rng(seed)
    source, target = rng.standard_normal((2, 60, 5)).astype(np.float32)
    found, threshold, _ = evaluate(sample, source, target, 0.3)
    scores = (source @ target.T).astype(np.float64)
    reach, other = closure_matrix(dag), ~closure_matrix(dag)
    np.fill_diagonal(other, False)
    side, back = sample.sides
    good, bad = scores[*side.hard_paths], scores[*side.look_alikes]
    if len(bad):
        truth = np.repeat([1, 0], [len(good), len(bad)])
        auc = sklearn.metrics.roc_auc_score(truth, np.concatenate([good, bad]))
        assert found.auc == pytest.approx(auc, abs=1e-5)
    climbs = level[side.hard_paths[1]] - level[side.hard_paths[0]]
    if np.ptp(climbs):
        expected = scipy.stats.spearmanr(good, climbs).statistic
        assert found.level_correlation == pytest.approx(expected, abs=1e-3)
    assert found.edges == pytest.approx(np.mean(scores[*sample.edges] > 0.3), abs=1e-5)
    assert found.random_pairs == pytest.approx(np.mean(scores[other] > 0.3), abs=1e-5)
    assert found.look_alike_sources == pytest.approx(
        np.mean(scores.T[*back.look_alikes] > 0.3), abs=1e-5
    )
    ranked = np.where(np.eye(60, dtype=bool), -np.inf, scores)
    for name, rows, matrix, truth in (
        ("precision_targets", side.hard_rows, ranked, reach),
        ("precision_sources", back.hard_rows, ranked.T, reach.T),
    ):
        hits = total = 0
        for node in rows.nodes:
            asked = min(5, truth[node].sum())
            hits += truth[node, np.argsort(-matrix[node])[:asked]].sum()
            total += asked
        assert getattr(found, name) == pytest.approx(hits / total, abs=1e-5)
    # Where every row has at most eight descendants, all paths are in the sample.
    if reach.sum(axis=1).max() <= 8 and reach.sum(axis=0).max() <= 8:
        assert found.closure == pytest.approx(np.mean(scores[reach] > 0.3), abs=1e-5)
        f1 = sklearn.metrics.f1_score(reach[reach | other], scores[reach | other] > 0.3)
        assert found.f1 == pytest.approx(f1, abs=1e-5)
        climbing = level[None] > level[:, None]
        decided = (scores > threshold) & climbing
        f1 = sklearn.metrics.f1_score(reach[reach | other], decided[reach | other])
        assert found.threshold_f1 == pytest.approx(f1, abs=1e-5)


def test_a_graph_and_its_reverse_get_the_same_report() -> None:
    dag = generators.citation_dag(2500, 7000, random_state=3)
    rng = np.random.default_rng(0)
    model = ATP(16, max_iter=4).fit(dag)
    source = model.source_ + 0.5 * rng.standard_normal(model.source_.shape).astype(np.float32)
    # Means over several samples, which differ by more than the two directions.
    there, back = [], []
    for seed in range(4):
        ahead = evaluate(sampled(dag, effort=3, random_state=seed), source, model.target_)
        reverse = evaluate(
            sampled(dag.reverse(), effort=3, random_state=seed), model.target_, source
        )
        there.append(ahead.fidelity.to_dict())
        back.append(reverse.fidelity.to_dict())
    for name in ("closure", "distance_2", "random_pairs", "f1", "edges"):
        means = [np.mean([found[name] for found in side]) for side in (there, back)]
        assert means[0] == pytest.approx(means[1], abs=0.02), name
    for pair in ("look_alike", "precision"):
        for one, other in (("targets", "sources"), ("sources", "targets")):
            first = np.mean([found[f"{pair}_{one}"] for found in there])
            second = np.mean([found[f"{pair}_{other}"] for found in back])
            assert first == pytest.approx(second, abs=0.03), (pair, one)


def test_half_precision_is_judged_like_single() -> None:
    model = ATP(16).fit(generators.citation_dag(1500, 4500, random_state=0))
    sample = sampled(model.dag_)
    half = evaluate(sample, model.source_.astype(np.float16), model.target_.astype(np.float16))
    full = evaluate(sample, model.source_, model.target_)
    expected = full.fidelity.to_dict()
    for name, value in half.fidelity.to_dict().items():
        assert value == pytest.approx(expected[name], abs=0.01), name


def test_the_weakest_line_comes_first() -> None:
    values = dict.fromkeys(ATP(4).fit([(0, 1), (1, 2), (3, 2)]).fidelity_.to_dict(), 1.0)
    values |= dict.fromkeys(("look_alike_targets", "look_alike_sources", "random_pairs"), 0.0)
    good = Fidelity.from_dict(values | {"level_auc": 0.6, "pairs": 5000})
    assert not good.is_poor
    assert good.advice() == ""
    weak = Fidelity.from_dict(values | {"level_auc": 0.6, "pairs": 5000, "edges": 0.4, "f1": 0.9})
    assert [line.name for line in weak.lines()[:2]] == ["edges", "f1"]
    assert weak.is_poor
    assert weak.advice().startswith("Weakest: edges predicted (distance 1) 40.0% (goal 97.0%); ")
    assert "purpose='reachability'" in weak.advice("paper")
    assert str(weak).startswith("weakest first: edges predicted")


@pytest.mark.parametrize("purpose", ["reachability", "paper"])
@pytest.mark.parametrize(
    "graph", [DiGraph.from_edges([]), DiGraph.from_edges([(0, 1)]), chain(12)], ids=str
)
def test_graphs_with_little_to_measure(
    graph: DiGraph, purpose: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = ATP(4, purpose=purpose).fit(graph)
    found = model.fidelity_
    assert not caplog.records
    assert not found.is_poor
    assert math.isnan(found.auc)  # no node is out of reach of what is below it
    assert json.loads(json.dumps(found.to_dict()))["auc"] is None
    assert str(Fidelity.from_dict(found.to_dict())) == str(found)
    assert "nan" not in str(found)
    if graph.n_edges:  # a node with one descendant has one best target, not five
        assert found.precision_targets == 1.0
        assert model.predict([0], [1]).tolist() == [True]


def test_poor_vectors_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    graph = generators.citation_dag(3000, 9000, random_state=0)
    with caplog.at_level(logging.WARNING, logger="atpgraph"):
        good = ATP(64).fit(graph)
    assert good.fidelity_.auc > 0.99
    assert good.fidelity_.closure > 0.95
    assert good.fidelity_.look_alike_targets < 0.05
    assert not caplog.records
    with caplog.at_level(logging.WARNING, logger="atpgraph"):
        thin = ATP(3).fit(graph)
    assert thin.fidelity_.is_poor
    (record,) = caplog.records
    assert record.getMessage().startswith("Weakest: ")
    caplog.clear()
    links = ATP(32, purpose="paper", zero_weight="auto").fit(graph)
    assert links.fidelity_.is_poor
    assert not caplog.records  # it was not made for paths


def test_missed_edges_are_not_hidden_by_far_pairs() -> None:
    """A path of 400 nodes on which only the nearest pairs score below 0."""
    dag = chain(400)
    at = np.arange(400.0)
    source = np.stack([-at, np.ones(400)], axis=1)
    target = np.stack([np.ones(400), at - 1.5], axis=1)
    found = evaluate(sampled(dag), source, target).fidelity
    assert found.edges == 0.0
    assert found.closure > 0.98
    assert found.distance_2 == 1.0
    assert found.lines()[0].name == "edges"
    assert found.is_poor


def test_a_tree_takes_few_rounds_and_zero_is_placed_where_false_paths_end() -> None:
    n = 3000
    child = np.arange(1, n)
    parent = (child * np.random.default_rng(2).random(n - 1)).astype(int)
    model = ATP().fit(DiGraph.from_codes(parent, child, n))
    assert model.n_iter_ < 20
    assert model.zero_ > 0
    found = model.fidelity_
    assert min(found.f1, found.edges, found.closure) > 0.99
    assert ATP(max_iter=22).fit(model.graph_).n_iter_ == 22
