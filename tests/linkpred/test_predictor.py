"""LinkPredictor: what it answers, and that its answers can be kept, explained and repeated."""

from __future__ import annotations

import copy
import json
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
from atpgraph.linkpred import PairTest, Split, make_split
from atpgraph.linkpred.evidence.parts import Settings, SpectralScore
from atpgraph.linkpred.learning import hide


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
    with pytest.raises(InputError, match="between 0 and 1"):
        model.recommend(u[0], base_rate=0)


def test_recommended_targets_are_new_and_in_order(model: LinkPredictor) -> None:
    graph = model.graph_
    for label in graph.labels[[0, 50, 399]].tolist():
        names, _ = model.recommend(label, 7)
        codes = graph.codes(names)
        assert len(set(names.tolist())) == 7
        assert label not in names
        assert (graph.find_edges(np.full(7, graph.code(label)), codes) < 0).all()
        scores = model.score_pairs(label, names, "target")
        assert (np.diff(scores) <= 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 399), st.integers(1, 60), st.sampled_from([None, 0.5, 1e-4]))
def test_the_number_shown_never_rises(
    model: LinkPredictor, node: int, k: int, base_rate: float | None
) -> None:
    label = model.graph_.labels[node]
    for known in (True, False):
        _, rates = model.recommend(label, k, exclude_known=known, base_rate=base_rate)
        assert (np.diff(rates) <= 0).all()
        assert ((rates >= 0) & (rates <= 1)).all()
    _, chances = model.recommend_sources(label, min(k, 5), base_rate=base_rate)
    assert (np.diff(chances) <= 0).all()


@pytest.mark.parametrize("k", [1, 7, 300])
def test_the_number_of_top_links_never_rises(model: LinkPredictor, k: int) -> None:
    sources, targets, rates = model.top_links(k)
    assert len(sources) == len(targets) == len(rates) == k
    assert (np.diff(rates) <= 0).all()
    rare = model.top_links(k, base_rate=1e-5)
    assert rare[0].tolist() == sources.tolist()
    assert (rare[2] <= rates).all()
    assert (np.diff(rare[2]) <= 0).all()


def test_a_batch_is_its_single_lists(model: LinkPredictor) -> None:
    some = model.graph_.labels[::23]
    for recommend in (model.recommend, model.recommend_sources):
        for batch in (some, some.tolist()):
            lists = recommend(batch, 4)
            assert len(lists) == len(some)
            for label, (names, rates) in zip(some.tolist(), lists, strict=True):
                alone = recommend(label, 4)
                assert alone[0].tolist() == names.tolist()
                assert alone[1].tolist() == rates.tolist()
        table = recommend(some, 4, as_frame=True)
        assert table.iloc[:, 0].tolist() == np.repeat(some, [len(x) for x, _ in lists]).tolist()
        assert table.iloc[:, 1].tolist() == np.concatenate([names for names, _ in lists]).tolist()


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
    assert np.allclose(chances, model.predict_proba(names, "p5", model.density_))
    known = model.graph_.find_edges(model.graph_.codes(names), model.graph_.codes(["p5"] * 5))
    assert (known < 0).all()


def test_top_links_are_new_and_the_best_of_the_lists(model: LinkPredictor) -> None:
    sources, targets, rates = model.top_links(10)
    codes = model.graph_.codes(sources), model.graph_.codes(targets)
    assert (model.graph_.find_edges(*codes) < 0).all()
    assert (model.score_pairs(sources, targets, "direction") >= 0).all()
    for label in model.graph_.labels[::40].tolist():
        (name,), (rate,) = model.recommend(label, 1)
        if model.score_pairs(label, name, "direction")[0] >= 0:
            assert rate <= rates[0] + 1e-9


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
    total = why.base + sum(reason.weight for reason in why.reasons)
    assert total == pytest.approx(why.score, abs=1e-6)
    assert why.score == pytest.approx(float(model.score_pairs(u, v, "target")[0]), abs=1e-5)
    back = model.explain(u, v, order="sources")
    assert back.base + sum(r.weight for r in back.reasons) == pytest.approx(back.score, abs=1e-6)
    assert back.score == pytest.approx(float(model.score_pairs(u, v, "link")[0]), abs=1e-5)
    reasons = {reason.kind: reason for reason in why.reasons}
    for reason in why.reasons:  # what is not there is no reason
        assert " 0 " not in f" {reason.words} "
        assert "no edge" not in reason.words
    near = reasons.get("neighborhood")
    for other in graph.codes(near.nodes).tolist() if near and near.nodes else []:
        assert (
            graph.find_edges([source, other], [other, target]).min() >= 0
            or graph.find_edges([source, target], [other, other]).min() >= 0
            or graph.find_edges([other, other], [source, target]).min() >= 0
        )
    assert u in str(why)
    assert why.to_dict()["reasons"][0]["kind"] in reasons


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 399), st.sampled_from(["targets", "sources"]))
def test_explanations_decompose_the_order_shown(
    model: LinkPredictor, node: int, order: str
) -> None:
    label = model.graph_.labels[node]
    if order == "targets":
        names, rates = model.recommend(label, 8)
        told = [model.explain(label, name) for name in names.tolist()]
    else:
        names, rates = model.recommend_sources(label, 8)
        told = [model.explain(name, label, order="sources") for name in names.tolist()]
    assert (np.diff(rates) <= 0).all()
    assert (np.diff([why.score for why in told]) <= 1e-6).all()


def test_what_was_hidden_is_reported_both_ways(model: LinkPredictor) -> None:
    told = model.validation_
    assert set(told) == {"link", "connected", "direction", "order", "hits"}
    assert set(told["link"]["errors"]) == {"0.5", "0.01", "0.001"}
    ranks = told["hits"]["ranks"]
    assert [row["rank"] for row in ranks] == list(range(1, 11))
    assert all(0 <= row["stated"] <= 1 and 0 <= row["right"] <= 1 for row in ranks)


def test_hit_rates_are_those_of_hidden_edges() -> None:
    """Averaged over nodes, rates shown at a rank are near the share of suggestions that hit."""
    graph = citation_dag(1500, 12000, random_state=5)
    rest = hide(graph, 0.1, np.random.default_rng(9))
    model = LinkPredictor(n_components=8).fit(rest.rest)
    hidden = rest.left()
    nodes = np.arange(0, 1500, 2)
    lists = model.recommend(nodes, 10)
    shown = np.array([rates for _, rates in lists])
    right = np.array(
        [hidden.find_edges(np.full(10, u), names) >= 0
         for u, (names, _) in zip(nodes, lists, strict=True)]
    )  # fmt: skip
    assert np.abs(shown.mean(axis=0) - right.mean(axis=0)).max() < 0.05


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
    edges = [("new", "p1"), ("new", "p2"), ("p300", "new")]
    folded = (each.add_edges(edges) for each in (model, again))
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


def test_new_nodes_are_seen_by_their_edges(model: LinkPredictor) -> None:
    old = model.graph_.n_edges
    edges = [("new", "p1"), ("new", "p2"), ("new", "p3"), ("p390", "new"), ("newer", "new")]
    larger = model.add_edges(edges, ["bare", "p1"])
    assert (larger.graph_.n_nodes, larger.graph_.n_edges) == (403, old + 5)
    assert model.graph_.n_edges == old
    names, _ = larger.recommend("new", 5)
    assert not {"p1", "p2", "p3", "new"} & set(names)
    scores = larger.predict_proba("new", larger.graph_.labels[:400])
    assert larger.predict_proba("new", names[0]) > scores.mean()
    assert [larger.is_cold(node) for node in ("bare", "newer")] == [True, False]
    assert "new" not in larger.recommend("newer", 5)[0]
    # What is learned one after another equals what is learned at once.
    twice = model.add_edges(edges[:4]).add_edges(edges[4:], ["bare"])
    at = ["new", "newer", "bare"], ["p7", "p9", "p11"]
    assert np.allclose(twice.score_pairs(*at), larger.score_pairs(*at))


def test_vectors_of_many_new_nodes_are_those_of_one_after_another() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.random((2, 200, 6)).astype(np.float32)
    ends = rng.integers(230, size=(2, 900))
    graph = DiGraph.from_codes(*ends, 230)
    at_once = SpectralScore(Settings()).use(*vectors).grown(graph, Settings())
    source, target = vectors
    for node in range(200, 230):
        out, into = _out(graph, node), _out(graph.reverse(), node)
        old = source.astype(float), target.astype(float)
        sides = [
            side[near[near < node]].sum(axis=0) / (side**2).sum(axis=0)
            for side, near in zip(old, (into, out), strict=True)
        ]
        source, target = np.vstack([source, sides[1]]), np.vstack([target, sides[0]])
    assert np.allclose(at_once.source_, source, rtol=1e-4)
    assert np.allclose(at_once.target_, target, rtol=1e-4)


def test_new_edges_are_the_newest() -> None:
    graph = citation_dag(200, 1200, random_state=1)
    model = LinkPredictor(n_components=4, max_pairs=300).fit(graph, times=np.arange(200.0))
    rare = int(np.argmin(graph.in_degree))
    for name in "ab":  # the second time as well
        model = model.add_edges([(f"{name}{at}", rare) for at in range(30)], [name])
        assert model.recommend(name, 1)[0].tolist() == [rare]
    counts = model.evidence_.part("recency").pairs(*(model.graph_.codes([x]) for x in ("b", rare)))
    assert counts[0, 3] == model.graph_.in_degree[rare]


def test_edges_between_known_nodes_are_known_at_once(model: LinkPredictor) -> None:
    other = copy.copy(model)
    first = other.recommend("p9", 1)[0][0]
    assert other.add_edges([("p9", first)], inplace=True) is other
    assert [each.explain("p9", first).known for each in (other, model)] == [True, False]
    assert first not in other.recommend("p9", 5)[0]


def test_old_names_warn(model: LinkPredictor) -> None:
    u, v = np.array([0, 1]), np.array([5, 7])
    with pytest.warns(DeprecationWarning, match="score_codes"):
        scores = model.score_all(u, v)
    np.testing.assert_array_equal(scores[:, 0], model.score_codes(u, v, next(iter(model.heads_))))
    with pytest.warns(DeprecationWarning, match="add_edges"):
        folded = model.fold_in("new", ["p1", "p2"], ["p300"])
    same = model.add_edges([("new", "p1"), ("new", "p2"), ("p300", "new")])
    assert folded.recommend("new", 3)[0].tolist() == same.recommend("new", 3)[0].tolist()


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
    first, again = (SpectralScore(Settings(2)).fit(tree) for _ in range(2))
    np.testing.assert_array_equal(first.source_, again.source_)
    np.testing.assert_array_equal(first.target_, again.target_)


def test_explanations_hold_plain_values(model: LinkPredictor) -> None:
    graph = DiGraph.from_codes(model.graph_.sources, model.graph_.targets, model.graph_.n_nodes)
    numbered = LinkPredictor(n_components=4, max_pairs=100).fit(graph)
    best = numbered.recommend(np.int64(9), 1)[0][0]
    assert json.loads(json.dumps(numbered.explain(np.int64(9), best).to_dict()))["source"] == 9


def test_a_small_graph_displays_itself() -> None:
    model = LinkPredictor(n_components=4).fit(citation_dag(15, 20, random_state=0))
    assert model.validation_["link"]["auc"] is None  # too few hidden edges
    assert "not measured" in model._repr_html_()


def test_one_source_is_enough_to_learn_from() -> None:
    graph = citation_dag(60, 200, random_state=0)
    for seed in range(4):
        LinkPredictor(n_components=4, max_pairs=1, random_state=seed).fit(graph)


def test_a_forest_has_edges_to_hide() -> None:
    tree = DiGraph.from_codes(np.arange(1, 100), np.arange(1, 100) // 2, 100)
    assert len(hide(tree, 0.1, np.random.default_rng(0), keep_connected=True).edges) == 10
    labels, _ = LinkPredictor(n_components=4, max_pairs=50).fit(tree).recommend(99, 3)
    assert len(labels) == 3


def test_a_source_without_edges_gets_popular_nodes() -> None:
    codes = citation_dag(200, 1200, random_state=1)
    graph = DiGraph.from_codes(codes.sources, codes.targets, 201)
    times = np.arange(201.0)
    plain = LinkPredictor(n_components=4, max_pairs=300).fit(graph)
    timed = LinkPredictor(n_components=4, max_pairs=300).fit(graph, times=times)
    assert plain.is_cold(200)
    assert not plain.is_cold(150)
    names, rates = plain.recommend(200, 5)
    assert (np.diff(graph.in_degree[names]) <= 0).all()
    assert graph.in_degree[names[0]] == graph.in_degree.max()
    assert (np.diff(rates) <= 0).all()
    why = plain.explain(200, int(names[0]))
    assert why.reasons[0].weight == pytest.approx(why.score)
    assert "nothing is known of the source" in str(why)
    recent, _ = timed.recommend(200, 5)
    assert len(set(recent.tolist())) == 5


def test_times_of_nodes_and_edges(tmp_path: Path) -> None:
    graph = citation_dag(200, 1200, random_state=1)
    times = np.arange(200.0)
    model = LinkPredictor(n_components=4, max_pairs=300)
    nodes = clone(model).fit(graph, times=times)
    assert "recency" in nodes.evidence_.kinds
    told = [str(nodes.explain(199, v)) for v in range(0, 190, 10)]
    assert not any(" 0 links" in each for each in told)  # what is not there is no reason
    same = clone(model).fit(graph, times=dict(enumerate(times)))
    assert np.array_equal(same.recommend(199)[0], nodes.recommend(199)[0])
    edges = clone(model).fit(graph, times=times[graph.sources])
    edges.save(tmp_path / "timed.npz")
    again = LinkPredictor.load(tmp_path / "timed.npz")
    assert again.recommend(199)[0].tolist() == edges.recommend(199)[0].tolist()
    first, second = (each.add_edges([(200, 1), (200, 2)]) for each in (again, edges))
    assert first.recommend(200, 3)[0].tolist() == second.recommend(200, 3)[0].tolist()
    with pytest.raises(InputError, match="7 times for 200 nodes"):
        LinkPredictor().fit(graph, times=np.ones(7))
    with pytest.raises(InputError, match="No time is a finite number"):
        LinkPredictor().fit(graph, times=np.full(200, np.nan))


def _out(graph: DiGraph, u: int) -> np.ndarray:
    return graph.targets[graph.indptr[u] : graph.indptr[u + 1]]


_ODD = {
    "star": ([(0, leaf) for leaf in range(1, 300)], 0),
    "star, inward": ([(leaf, 0) for leaf in range(1, 200)], 1),
    "complete": ([(u, v) for u in range(25) for v in range(25) if u != v], 0),
    "matching": ([(2 * i, 2 * i + 1) for i in range(100)], 1),
    "self-loops": ([(u, u) for u in range(30)] + [(u, u + 1) for u in range(29)], 1),
}


@pytest.mark.parametrize(("edges", "most"), _ODD.values(), ids=_ODD)
def test_odd_graphs_give_lists_that_can_be_saved(
    edges: list[tuple[int, int]], most: int, tmp_path: Path
) -> None:
    model = LinkPredictor().fit(edges)
    labels, rates = model.recommend(0)
    assert len(labels) == len(rates) >= most
    assert most or not len(labels)
    assert ((rates >= 0) & (rates <= 1)).all()
    sources, targets, _ = model.top_links(20)
    assert not set(zip(sources.tolist(), targets.tolist(), strict=True)) & set(edges)
    model.save(tmp_path / "odd.npz")
    again = LinkPredictor.load(tmp_path / "odd.npz")
    assert again.recommend(0)[0].tolist() == labels.tolist()
