"""Benchmarks: evaluation against brute force, failures, JSON, and the page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph
from atpgraph.linkpred import PairTest, RankingTest, evaluate, make_split
from atpgraph.linkpred.baselines.trivial import Formula
from atpgraph.linkpred.benchmark import BenchmarkResult, run
from atpgraph.linkpred.registry import Row
from tests.linkpred.helpers import formula, hierarchy


@pytest.fixture(scope="module")
def result() -> BenchmarkResult:
    methods = "trivial,nrp,hope-katz"
    return run(hierarchy(), methods, dim=[8, 4], seeds=3, name="a <graph>")


def test_ranks_against_brute_force() -> None:
    graph = hierarchy()
    split = make_split(graph)
    test = split.tests["ranking"]
    assert isinstance(test, RankingTest)
    method = formula("degree-product").fit(split.train)  # small integers: many ties
    ranks, candidates = test.ranks_among_all(method)
    edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    everyone = np.arange(graph.n_nodes)
    for i, (u, v) in enumerate(zip(test.queries.sources, test.queries.targets, strict=True)):
        scores = method.score(np.full(graph.n_nodes, u), everyone)
        others = [w for w in everyone if w != u and (int(u), int(w)) not in edges]
        above = sum(scores[w] > scores[v] for w in others)
        level = sum(scores[w] == scores[v] for w in others)
        assert ranks[i] == 1 + above + level / 2
        assert candidates[i] == len(others)
    sampled, sizes = test.ranks_in_sample(method)
    # 60 nodes have fewer than 100 non-neighbours: the sample is all of them.
    assert sampled.tolist() == ranks.tolist()
    assert sizes.tolist() == candidates.tolist()


def test_evaluation_uses_the_pairs_of_each_protocol() -> None:
    split = make_split(hierarchy())
    method = formula("preferential").fit(split.train)
    metrics = evaluate(method, split).metrics
    assert metrics["reversed"]["auc"] == 0.5  # blind to direction
    test = split.tests["paper"]
    assert isinstance(test, PairTest)
    degree = split.train.out_degree + split.train.in_degree
    good = degree[test.positives.sources] * degree[test.positives.targets]
    bad = degree[test.negatives.sources] * degree[test.negatives.targets]
    assert metrics["paper"]["auc"] == pytest.approx(auc(good, bad))
    assert metrics["ranking"]["mrr"] <= 1


def test_methods_see_the_training_graph_only() -> None:
    graph = hierarchy()
    seen: list[DiGraph] = []

    class Spy(Formula):
        def fit(self, graph: DiGraph, **given: object) -> Spy:
            seen.append(graph)
            return super().fit(graph)

    run(
        graph,
        [Row("spy", "ours", lambda k, seed: Spy("spy", lambda x: x["in_v"]), False)],
        seeds=[5],
    )
    split = make_split(graph, random_state=5)
    (train,) = seen
    assert train.n_edges == graph.n_edges - len(split.positives)
    assert (train.find_edges(split.positives.sources, split.positives.targets) < 0).all()


def test_a_failing_method_gets_a_row_and_the_rest_goes_on() -> None:
    class Broken(Formula):
        def fit(self, graph: DiGraph, **given: object) -> Broken:
            raise MemoryError("too large")

    made = [
        Row("broken", "ours", lambda k, seed: Broken("broken", lambda x: x["in_v"]), False),
        Row("nan", "ours", lambda k, seed: Formula("nan", lambda x: np.nan * x["in_v"]), False),
        Row("fine", "ours", lambda k, seed: formula("degree-product"), False),
    ]
    found = run(hierarchy(), made, seeds=2)
    broken, nan, fine = found.methods
    assert broken.failure == "MemoryError: too large"
    assert "not a number" in nan.failure
    assert not fine.failure
    assert len(fine.runs) == 2
    assert found.to_json()["methods"]["broken"]["failure"] == broken.failure


def test_json_has_the_promised_shape(result: BenchmarkResult) -> None:
    payload = json.loads(json.dumps(result.to_json(), allow_nan=False))
    pairs, rankings = ["paper", "random", "reversed"], ["ranking", "ranking-100"]
    assert payload["protocols"] == [*pairs, *rankings, "dirlinkbench"]
    row = payload["methods"]["nrp"]["protocols"]["paper"]
    for metric in ("auc", "ap", "hits@100", "seconds"):
        assert row[metric]["low"] <= row[metric]["mean"] <= row[metric]["high"]
    values = row["auc"]["values"]
    assert row["auc"]["mean"] == pytest.approx(np.mean(values))
    assert len(values) == 3
    best = max(
        payload["methods"], key=lambda k: payload["methods"][k]["protocols"]["paper"]["auc"]["mean"]
    )
    for key, entry in payload["methods"].items():
        assert (key == best) == ("against_best" not in entry["protocols"]["paper"])
    assert {entry["dim"] for entry in payload["other_dims"]} == {4}
    assert {"hits@1", "hits@3", "hits@10", "hits@100", "mrr"} <= set(
        payload["methods"]["nrp"]["protocols"]["ranking"]
    )


def test_same_seeds_same_numbers(result: BenchmarkResult) -> None:
    again = run(hierarchy(), "nrp", dim=8, seeds=3)
    first = next(row for row in result.methods if row.key == "nrp" and row.dim == 8)
    assert [r.metrics for r in again.methods[0].runs] == [r.metrics for r in first.runs]


def test_comparison_of_rows(result: BenchmarkResult) -> None:
    same = result.compare("degree-product", "degree-product", "paper", "auc")
    assert same.difference.mean == 0
    with pytest.raises(InputError, match="no result"):
        result.compare("degree-product", "atp", "paper", "auc")


def test_protocols_a_graph_does_not_have() -> None:
    n = 40
    ring = DiGraph.from_codes(
        list(range(n)) * 3, [(i + d) % n for d in (1, 2, 5) for i in range(n)], n
    )
    found = run(ring, "degree-product", ["paper", "random"], seeds=1)
    assert found.protocols == ["random"]
    assert "one direction" in found.unavailable["paper"]
    with pytest.raises(InputError, match="No protocol can be run"):
        run(ring, "degree-product", ["paper"], seeds=1)
