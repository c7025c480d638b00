"""LinkPredictor: what it answers, and that its answers can be kept, explained and repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from atpgraph import LinkPredictor, citation_dag
from atpgraph.errors import InputError, NotFittedError
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph
from atpgraph.linkpred import PairTest, make_split
from atpgraph.linkpred.evidence.vectors import SpectralScore
from atpgraph.linkpred.examples import hidden_edges
from atpgraph.linkpred.splits import Split


@pytest.fixture(scope="module")
def split() -> Split:
    codes = citation_dag(400, 3000, random_state=1)
    graph = DiGraph(codes.indptr, codes.targets, np.array([f"p{i}" for i in range(400)], object))
    return make_split(graph, protocols=["random", "reversed"], random_state=3)


@pytest.fixture(scope="module")
def model(split: Split) -> LinkPredictor:
    return LinkPredictor(n_components=8, max_pairs=300).fit(split.train)


def test_hidden_edges_are_found(model: LinkPredictor, split: Split) -> None:
    for protocol, question, least in (("random", "link", 0.9), ("reversed", "direction", 0.9)):
        test = split.tests[protocol]
        assert isinstance(test, PairTest)
        good, bad = (
            model.score_codes(pairs.sources, pairs.targets, question)
            for pairs in (test.positives, test.negatives)
        )
        assert auc(good, bad) > least


def test_probabilities_follow_the_base_rate(model: LinkPredictor, split: Split) -> None:
    labels = model.graph_.labels
    test = split.tests["random"]
    assert isinstance(test, PairTest)
    u, v = labels[test.negatives.sources], labels[test.negatives.targets]
    even, rare = model.predict_proba(u, v), model.predict_proba(u, v, base_rate=0.01)
    odds = even / (1 - even) / 99
    assert np.allclose(rare, odds / (1 + odds))
    with pytest.raises(InputError, match="between 0 and 1"):
        model.predict_proba(u, v, base_rate=1)


def test_recommended_targets_are_new_and_in_order(model: LinkPredictor) -> None:
    graph = model.graph_
    for label in graph.labels[[0, 50, 399]].tolist():
        names, chances = model.recommend(label, 7)
        codes = graph.codes(names)
        assert len(set(names.tolist())) == 7
        assert label not in names
        assert (graph.find_edges(np.full(7, graph.code(label)), codes) < 0).all()
        scores = model.score_pairs(label, names, "target")
        assert (np.diff(scores) <= 1e-9).all()
        assert np.allclose(chances, model.predict_proba(label, names))


def test_candidates_hold_the_best_of_all_nodes(model: LinkPredictor) -> None:
    graph = model.graph_
    for label in graph.labels[[10, 200]].tolist():
        everyone = np.setdiff1d(np.arange(graph.n_nodes), [graph.code(label)])
        u = np.full(len(everyone), graph.code(label))
        free = everyone[graph.find_edges(u, everyone) < 0]
        scores = model.score_codes(np.full(len(free), graph.code(label)), free, "target")
        best = graph.labels[free[np.argsort(-scores, kind="stable")[:5]]]
        assert model.recommend(label, 5)[0].tolist() == best.tolist()


def test_known_links_are_listed_on_request(model: LinkPredictor) -> None:
    busy = model.graph_.labels[int(np.argmax(model.graph_.out_degree))]
    names, _ = model.recommend(busy, 400, exclude_known=False)
    targets = model.graph_.labels[_out(model.graph_, model.graph_.code(busy))]
    assert set(targets) & set(names)
    assert not set(targets) & set(model.recommend(busy, 400)[0])


def test_sources_are_ranked_by_the_link(model: LinkPredictor) -> None:
    names, chances = model.recommend_sources("p5", 5)
    assert len(names) == 5
    assert (np.diff(chances) <= 0).all()
    assert np.allclose(chances, model.predict_proba(names, "p5"))
    known = model.graph_.find_edges(model.graph_.codes(names), model.graph_.codes(["p5"] * 5))
    assert (known < 0).all()


def test_top_links_are_the_best_of_the_recommended(model: LinkPredictor) -> None:
    sources, targets, chances = model.top_links(10)
    assert (np.diff(chances) <= 0).all()
    assert np.allclose(chances, model.predict_proba(sources, targets))
    codes = model.graph_.codes(sources), model.graph_.codes(targets)
    assert (model.graph_.find_edges(*codes) < 0).all()
    assert (model.score_pairs(sources, targets, "direction") >= 0).all()
    for label in model.graph_.labels[::40].tolist():
        (name,), (chance,) = model.recommend(label, 1)
        if model.score_pairs(label, name, "direction")[0] >= 0:
            assert chance <= chances[0] + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 399), st.integers(0, 399))
def test_explanations_name_real_nodes_and_add_up(
    model: LinkPredictor, source: int, target: int
) -> None:
    graph = model.graph_
    u, v = graph.labels[[source, target]].tolist()
    why = model.explain(u, v)
    assert why.probability == pytest.approx(float(model.predict_proba(u, v)[0]))
    assert why.known == (graph.find_edges([source], [target])[0] >= 0)
    usual = model.heads_["link"].score(model.heads_["link"].usual[None])[0]
    total = usual + sum(reason.weight for reason in why.reasons)
    assert total == pytest.approx(float(model.score_pairs(u, v)[0]), abs=1e-6)
    reasons = {reason.kind: reason for reason in why.reasons}
    for between in graph.codes(reasons["paths"].nodes).tolist() if reasons["paths"].nodes else []:
        assert graph.find_edges([source, between], [between, target]).min() >= 0
    for other in graph.codes(reasons["citation"].nodes) if reasons["citation"].nodes else []:
        both_point = graph.find_edges([source, target], [other, other]).min() >= 0
        both_pointed_at = graph.find_edges([other, other], [source, target]).min() >= 0
        assert both_point or both_pointed_at
    edges = len(_out(graph, source))
    assert f"{edges:,} out-edge{'' if edges == 1 else 's'}, " in reasons["degrees"].words
    assert u in str(why)


def test_the_same_seed_gives_the_same_bytes(split: Split, tmp_path: Path) -> None:
    for threads, name in ((1, "one"), (3, "three")):
        made = LinkPredictor(n_components=4, max_pairs=400, n_jobs=threads).fit(split.train)
        made.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()


def test_a_file_keeps_every_answer(model: LinkPredictor, tmp_path: Path) -> None:
    file = tmp_path / "links.npz"
    model.save(file)
    again = LinkPredictor.load(file)
    assert again.get_params() == model.get_params()
    assert again.validation_ == model.validation_
    for mine, theirs in zip(model.recommend("p9", 5), again.recommend("p9", 5), strict=True):
        assert mine.tolist() == theirs.tolist()
    assert str(again.explain("p1", "p2")) == str(model.explain("p1", "p2"))
    folded = (each.fold_in("new", ["p1", "p2"], ["p300"]) for each in (model, again))
    first, second = (each.recommend("new", 5) for each in folded)
    assert first[0].tolist() == second[0].tolist()
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == file.read_bytes()


def test_a_damaged_file_is_refused(model: LinkPredictor, tmp_path: Path) -> None:
    file = tmp_path / "links.npz"
    model.save(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        LinkPredictor.load(file)
    with pytest.raises(InputError, match="does not exist; make one with 'atp links fit'"):
        LinkPredictor.load(tmp_path / "nothing.npz")


def test_a_new_node_is_seen_by_its_edges(model: LinkPredictor) -> None:
    old = model.graph_.n_edges
    folded = model.fold_in("new", ["p1", "p2", "p3"], ["p390"])
    assert (folded.graph_.n_nodes, folded.graph_.n_edges) == (401, old + 4)
    assert model.graph_.n_edges == old
    names, chances = folded.recommend("new", 5)
    assert not {"p1", "p2", "p3", "new"} & set(names)
    assert chances[0] > folded.predict_proba("new", folded.graph_.labels[:400]).mean()
    with pytest.raises(InputError, match="already"):
        model.fold_in("p1", ["p2"])
    with pytest.raises(InputError, match="no node 'nobody'"):
        model.fold_in("new", ["nobody"])


def test_manners_of_an_estimator(model: LinkPredictor) -> None:
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.recommend("p1")
    assert "max_pairs=300" in repr(model)
    with pytest.raises(InputError, match="did you mean 'max_pairs'"):
        fresh.set_params(max_pair=3)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"evidence": ["level"]}, "did you mean 'levels'"),
        ({"fraction": 0}, "fraction is 0"),
        ({"n_candidates": 0}, "n_candidates is 0"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        LinkPredictor(**params).fit([(0, 1), (1, 2)])  # type: ignore[arg-type]


def test_odd_questions_get_a_sentence(model: LinkPredictor) -> None:
    with pytest.raises(InputError, match="did you mean 'target'"):
        model.score_pairs("p1", "p2", "targe")
    with pytest.raises(InputError, match="no node 'x'"):
        model.recommend("x")
    with pytest.raises(InputError, match="k is 0"):
        model.recommend("p1", 0)
    with pytest.raises(InputError, match="too small to learn from"):
        LinkPredictor().fit([(0, 1), (1, 2)])


def test_singular_vectors_that_the_solver_has_to_draw_are_the_same_again() -> None:
    tree = DiGraph.from_codes(np.arange(1, 100), np.arange(1, 100) // 2, 100)
    first, again = (SpectralScore(4).fit(tree) for _ in range(2))
    np.testing.assert_array_equal(first.source_, again.source_)
    np.testing.assert_array_equal(first.target_, again.target_)


def test_a_forest_has_edges_to_hide() -> None:
    tree = DiGraph.from_codes(np.arange(1, 100), np.arange(1, 100) // 2, 100)
    taken = hidden_edges(tree, 0.1, np.random.default_rng(0))
    assert len(taken) == 10
    labels, _ = LinkPredictor(n_components=4, max_pairs=50).fit(tree).recommend(99, 3)
    assert len(labels) == 3


def _out(graph: DiGraph, u: int) -> np.ndarray:
    return graph.targets[graph.indptr[u] : graph.indptr[u + 1]]
