"""The rows of this package: plain ATP, tuned ATP, and the blend."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph import ATP
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.graph.generators import noisy_hierarchy
from atpgraph.linkpred import Pairs, evaluate, make_split
from atpgraph.linkpred import blend as blend_module
from atpgraph.linkpred._weights import Parts, Weights, learn_pairs, learn_ranking, unit_scale
from atpgraph.linkpred.blend import ATPBlend
from atpgraph.linkpred.laboratory import run
from atpgraph.linkpred.metrics import auc
from atpgraph.linkpred.ours import PlainATP
from atpgraph.linkpred.registry import Row, choose
from atpgraph.linkpred.report import render
from atpgraph.linkpred.tuned import SETTINGS, TunedATP


@pytest.fixture(scope="module")
def graph() -> DiGraph:
    return noisy_hierarchy(150, 900, 40, random_state=3).graph


@pytest.fixture(scope="module")
def blend(graph: DiGraph) -> ATPBlend:
    return ATPBlend(4, random_state=1).fit(make_split(graph).train)


@pytest.mark.parametrize("kernel", ["log", "harmonic", "linear", "constant"])
def test_plain_rows_are_atp_with_its_defaults(graph: DiGraph, kernel: str) -> None:
    (row,) = choose(f"atp-{kernel}")
    method = row.make(4, 7).fit(graph)
    wanted = ATP(4, kernel=kernel, random_state=7).fit(graph)
    assert method.name == f"ATP-{kernel}"
    assert isinstance(method, PlainATP)
    assert np.array_equal(method.source_, wanted.source_)
    assert np.array_equal(method.target_, wanted.target_)


@pytest.mark.parametrize("kernel", ["log", "harmonic"])
def test_svdm_rows_use_the_svd(graph: DiGraph, kernel: str) -> None:
    (row,) = choose(f"svdm-{kernel}")
    method = row.make(4, 7).fit(graph)
    wanted = ATP(4, kernel=kernel, solver="svd", random_state=7).fit(graph)
    assert isinstance(method, PlainATP)
    assert np.array_equal(method.source_, wanted.source_)


def test_tuned_takes_the_best_setting_and_sees_its_graph_only(graph: DiGraph) -> None:
    tuned = TunedATP(4, random_state=2).fit(graph)
    assert tuned.setting_ == SETTINGS[int(np.argmax(tuned.validation_auc_))]
    wanted = ATP(4, random_state=2, **tuned.setting_).fit(graph)
    assert np.array_equal(tuned.source_, wanted.source_)


def test_tuned_prefers_what_is_better() -> None:
    chain = noisy_hierarchy(150, 600, 0, random_state=0).graph
    hopeless = {"regularization": 1e9}  # the penalty leaves nothing of the vectors
    tuned = TunedATP(4, settings=[hopeless, {}]).fit(chain)
    assert tuned.setting_ == {}


def test_unit_scale() -> None:
    rng = np.random.default_rng(0)
    source, target = unit_scale(
        rng.random((30, 5), dtype=np.float32), rng.random((30, 5), dtype=np.float32)
    )
    assert np.mean((source @ target.T) ** 2) == pytest.approx(1.0, rel=1e-5)
    nothing = np.zeros((3, 2), dtype=np.float32)
    assert not unit_scale(nothing, nothing)[0].any()


def random_parts(n: int, rng: np.random.Generator) -> Parts:
    blocks = [
        unit_scale(
            rng.standard_normal((n, 3)).astype(np.float32),
            rng.standard_normal((n, 3)).astype(np.float32),
        )
        for _ in range(2)
    ]
    features = np.column_stack([np.ones(n), rng.standard_normal(n)]).astype(np.float32)
    return Parts(blocks, features, popularity=1)


def test_joined_vectors_give_the_weighted_sum() -> None:
    rng = np.random.default_rng(1)
    parts = random_parts(20, rng)
    weights = Weights(np.array([0.5, -2.0]), rng.standard_normal((2, 2)))
    source, target = parts.join(weights)
    wanted = sum(w * (s @ t.T) for w, (s, t) in zip(weights.blocks, parts.blocks, strict=True)) + (
        parts.features @ weights.form @ parts.features.T
    )
    assert np.allclose(source @ target.T, wanted, atol=1e-4)
    assert source.shape == (20, 3 + 3 + 2)
    assert parts.join(Weights(np.array([0.0, 1.0]), weights.form))[0].shape == (20, 3 + 2)


def test_logistic_weights_find_the_block_that_matters() -> None:
    rng = np.random.default_rng(2)
    n = 80
    parts = random_parts(n, rng)
    u, v = rng.integers(n, size=(2, 4000))
    score = parts.inner_products(u, v)[:, 1] + 0.5 * parts.features[v, 1]
    edge = rng.random(4000) < 1 / (1 + np.exp(-3 * score))
    weights = learn_pairs(parts, Pairs(u[edge], v[edge]), Pairs(u[~edge], v[~edge]), 1e-4)
    assert weights.blocks[1] == pytest.approx(3.0, rel=0.15)
    assert abs(weights.blocks[0]) < 0.2
    assert weights.form[0, 1] == pytest.approx(1.5, rel=0.2)


def test_ranking_weights_find_the_block_that_matters() -> None:
    rng = np.random.default_rng(3)
    n = 200
    parts = random_parts(n, rng)
    everyone = parts.blocks[1][0] @ parts.blocks[1][1].T
    np.fill_diagonal(everyone, -np.inf)
    u = np.arange(n)
    v = everyone.argmax(axis=1)
    known = DiGraph.from_codes(u, v, n)
    weights = learn_ranking(parts, Pairs(u, v), known, rng)
    assert weights.blocks.tolist() == [0.0, 1.0]  # alone it ranks every target first
    assert not weights.form.any()


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
    with pytest.raises(InputError, match="No protocol is called 'lucky'"):
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


def test_the_table_says_that_weights_are_per_protocol(graph: DiGraph) -> None:
    found = run(graph, "atp-blend,degree-product", ["random"], dim=4, seeds=1)
    assert "for each protocol" in found.to_json()["methods"]["atp-blend"]["note"]
    assert "note" not in found.to_json()["methods"]["degree-product"]
    assert "for each protocol" in render(found)
