"""ATP-blend: weights for every protocol, from the training graph alone."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph import ATP
from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph
from atpgraph.linkpred import Pairs, evaluate, make_split
from atpgraph.linkpred import blend as blend_module
from atpgraph.linkpred._weights import Parts, Weights, learn_pairs
from atpgraph.linkpred.atp import PlainATP
from atpgraph.linkpred.blend import ATPBlend
from atpgraph.linkpred.laboratory import run
from atpgraph.linkpred.registry import Row


@pytest.fixture(scope="module")
def blend(graph: DiGraph) -> ATPBlend:
    return ATPBlend(4, random_state=1).fit(make_split(graph).train)


def test_blend_has_weights_for_every_protocol(graph: DiGraph, blend: ATPBlend) -> None:
    assert set(blend.weights_) == {"paper", "random", "reversed", "ranking"}
    assert np.array_equal(blend.source_, blend.under("random").source_)
    split = make_split(graph)
    metrics = evaluate(blend, split).metrics
    for protocol in ("paper", "random", "reversed"):
        test = split.tests[protocol]
        scorer = blend.under(protocol)
        good, bad = (
            scorer.score(pairs.sources, pairs.targets) for pairs in (test.positives, test.negatives)
        )
        assert metrics[protocol]["auc"] == pytest.approx(auc(good, bad))
        assert metrics[protocol]["auc"] > 0.5
    assert (blend.weights_["ranking"].blocks >= 0).all()


def test_blend_is_an_inner_product(blend: ATPBlend) -> None:
    vectors = blend.under("paper")
    u, v = np.array([0, 3, 9]), np.array([5, 1, 100])
    by_hand = (vectors.source_[u] * vectors.target_[v]).sum(axis=1)
    assert np.allclose(vectors.score(u, v), by_hand, rtol=1e-4, atol=1e-5)
    assert vectors.source_.shape[1] <= 4 * 4 + 9


def test_blend_same_seed_same_bytes(graph: DiGraph, blend: ATPBlend) -> None:
    again = ATPBlend(4, random_state=1).fit(make_split(graph).train)
    for protocol in blend.weights_:
        assert np.array_equal(again.under(protocol).source_, blend.under(protocol).source_)


def test_blend_learns_from_edges_the_blocks_did_not_see(
    graph: DiGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights come from blocks fitted without the validation edges; the last fit has them all."""
    fitted: list[DiGraph] = []
    judged: list[Pairs] = []

    class Spy(ATP):
        def fit(self, graph: DiGraph, y: object = None) -> Spy:
            fitted.append(graph)
            return super().fit(graph)

    def learn(parts: Parts, good: Pairs, bad: Pairs, penalty: float) -> Weights:
        judged.append(good)
        return learn_pairs(parts, good, bad, penalty)

    monkeypatch.setattr(blend_module, "ATP", Spy)
    monkeypatch.setattr(blend_module, "learn_pairs", learn)
    ATPBlend(4).fit(graph)
    inner, whole = fitted
    assert whole is graph
    for pairs in judged:
        assert (graph.find_edges(pairs.sources, pairs.targets) >= 0).all()
        assert (inner.find_edges(pairs.sources, pairs.targets) < 0).all()


def test_protocol_without_validation_pairs() -> None:
    n = 40
    ring = [(i, (i + d) % n) for d in (1, 2, 5) for i in range(n)]
    both_ways = DiGraph.from_edges(ring + [(v, u) for u, v in ring])
    blend = ATPBlend(2).fit(both_ways)
    assert "reversed" not in blend.weights_
    assert np.array_equal(blend.under("reversed").source_, blend.source_)
    with pytest.raises(InputError, match="no protocol 'lucky'"):
        blend.under("lucky")


def test_laboratory_asks_for_the_protocol(graph: DiGraph) -> None:
    asked: list[str] = []

    class Spy(PlainATP):
        def under(self, protocol: str) -> Spy:
            asked.append(protocol)
            return self

    row = Row("spy", "ours", lambda k, seed: Spy(k))
    run(graph, [row], ["random", "ranking"], dim=4, seeds=1)
    assert asked == ["random", "ranking"]
