"""The estimator ATP."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.exceptions
import sklearn.linear_model
import sklearn.pipeline
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import ATP, BudgetError, InputError
from atpgraph.closure import closure_forests
from atpgraph.graph import DiGraph, generators
from atpgraph.hierarchy import levels
from tests.strategies import digraphs


@pytest.mark.parametrize("model", ["fitted", "links"])
def test_fit_is_the_four_steps_and_a_judgement(model: str, request) -> None:
    fitted = request.getfixturevalue(model)
    n = fitted.graph_.n_nodes
    assert fitted.source_.shape == fitted.target_.shape == (n, 8)
    assert fitted.dag_.n_edges + len(fitted.removed_edges_) == fitted.graph_.n_edges
    assert fitted.levels_.tolist() == levels(fitted.dag_).tolist()
    steps = ["cycles", "hierarchy", "paths", "factorization", "fidelity"]
    assert list(fitted.timings_) == steps
    assert len(fitted.objective_) == fitted.n_iter_
    rows, _ = closure_forests(fitted.dag_)
    # Paths are counted exactly by the paper's method, and on small graphs.
    assert fitted.n_reachable_pairs_ == rows.n_pairs


@pytest.mark.parametrize("model", ["fitted", "links"])
def test_paths_score_above_their_reverses(model: str, request) -> None:
    fitted = request.getfixturevalue(model)
    rows, _ = closure_forests(fitted.dag_)
    u, v = rows.to_sparse(fitted.levels_).nonzero()
    there, back = fitted.score_pairs(u, v), fitted.score_pairs(v, u)
    assert np.mean(there > back) > 0.97


def test_scores_probabilities_and_predictions_agree(fitted: ATP) -> None:
    u, v = np.array([0, 5, 7]), np.array([9, 2, 3])
    scores = fitted.score_pairs(u, v)
    expected = [float(fitted.source_[a] @ fitted.target_[b]) for a, b in zip(u, v, strict=True)]
    assert scores == pytest.approx(expected, rel=1e-2, abs=1e-2)  # those are in half precision
    climbs = fitted.level_difference(u, v)
    assert climbs.tolist() == (fitted.levels_[v] - fitted.levels_[u]).tolist()
    probability = fitted.predict_proba(u, v)
    assert probability.tolist() == np.where(climbs > 0, fitted.calibration_(scores), 0).tolist()
    assert fitted.predict(u, v, 0.7).tolist() == (probability > 0.7).tolist()
    decided = (scores > fitted.threshold_) & (climbs > 0)
    assert fitted.predict(u, v).tolist() == decided.tolist()
    assert fitted.score_pairs(3, [1, 2]).shape == (2,)
    with pytest.raises(InputError, match="threshold"):
        fitted.predict(u, v, 1.4)
    with pytest.raises(InputError, match="base_rate is 0"):
        fitted.predict_proba(u, v, base_rate=0)
    with pytest.raises(InputError, match="no node"):
        fitted.score_pairs([10_000], [1])


def test_labels_go_in_and_come_out() -> None:
    edges = [("a", "b"), ("b", "c"), (("t", 1), "c"), ("c", 2.5)]
    model = ATP(n_components=8).fit(edges)
    assert model.labels_.tolist() == ["a", "b", "c", ("t", 1), 2.5]
    names, scores = model.top_targets("a", 2)
    assert names.tolist() == ["b", "c"]
    assert scores.shape == (2,)
    several, _ = model.top_sources(["c", 2.5], 1)
    assert [names.tolist() for names in several] == [["b"], ["c"]]
    assert "a" not in model.top_targets("a", 10)[0].tolist()


def test_what_follows_comes_nearest_first_and_is_true(fitted: ATP) -> None:
    reach = closure_forests(fitted.dag_)[0].to_sparse(fitted.levels_).toarray() > 0
    nodes = fitted.labels_.tolist()
    for truth, climb, find in (
        (reach, 1, fitted.top_targets),
        (reach.T, -1, fitted.top_sources),
    ):
        for u, names, scores in zip(range(len(nodes)), *find(nodes, 4), strict=True):
            found = fitted.graph_.codes(names.tolist()).astype(int)
            climbs = climb * (fitted.levels_[found] - fitted.levels_[u])
            assert truth[u, found].all()
            assert (climbs > 0).all()
            assert (np.diff(climbs) >= 0).all()
            assert (scores > fitted.threshold_).all()
            ends = (nodes[u], names.tolist())[::climb]
            assert scores == pytest.approx(fitted.score_pairs(*ends), rel=1e-4, abs=1e-6)
            scored = fitted.score_pairs(*(nodes[u], nodes)[::climb]) > fitted.threshold_
            possible = np.flatnonzero(truth[u] & scored)
            assert len(found) == min(len(possible), 4)
            if len(found):  # nothing that could be returned is nearer
                nearest = np.sort(climb * (fitted.levels_[possible] - fitted.levels_[u]))
                assert climbs.tolist() == nearest[: len(found)].tolist()


def test_the_largest_scores_come_first_if_asked_for(fitted: ATP) -> None:
    scores = fitted.source_.astype(float) @ fitted.target_.T.astype(float)
    node = int(np.argmax(fitted.dag_.out_degree))
    label = fitted.labels_[node]
    names, values = fitted.top_targets(label, 6, order="score", threshold=None)
    others = np.delete(np.arange(len(scores)), node)
    best = others[np.argsort(-scores[node, others], kind="stable")[:6]]
    assert names.tolist() == fitted.labels_[best].tolist()
    assert values == pytest.approx(scores[node, best], rel=1e-4)
    names, values = fitted.top_targets(label, 500, order="score")
    assert (np.diff(values) <= 0).all()
    higher = (scores[node] > fitted.threshold_) & (fitted.levels_ > fitted.levels_[node])
    assert sorted(names.tolist()) == sorted(fitted.labels_[higher].tolist())
    few, _ = fitted.top_targets(label, 500, order="score", threshold=1e9)
    assert len(few) == 0
    with pytest.raises(InputError, match="order='score'"):
        fitted.top_targets(label, threshold=None)
    with pytest.raises(InputError, match="order"):
        fitted.top_targets(label, order="farthest")


@pytest.mark.parametrize(
    "build",
    [
        lambda edges: np.array(edges),
        lambda edges: DiGraph.from_edges(edges),
        lambda edges: sp.csr_array((np.ones(3), np.array(edges).T), shape=(4, 4)),
    ],
)
def test_fit_takes_what_the_graph_type_takes(build: object) -> None:
    model = ATP(n_components=2).fit(build([(0, 1), (1, 2), (2, 3)]))
    assert model.levels_.tolist() == [1, 2, 3, 4]


def test_exact_answers_beside_the_scores() -> None:
    model = ATP(n_components=2).fit(
        [("app", "lib"), ("lib", "core"), ("core", "lib"), ("lib", "c")]
    )
    assert model.reaches("core", "c") is True  # also where breaking cycles took the way
    assert model.reaches(["c", "core"], "lib").tolist() == [False, True]
    assert model.reachability_ is model.reachability_
    assert model.reachability_.path("core", "c") == ["core", "lib", "c"]
    before = model.reachability_
    model.fit([("a", "b")])
    assert model.reachability_ is not before
    assert model.reaches("a", "b") is True


def test_transform(fitted: ATP) -> None:
    both = np.concatenate([fitted.source_, fitted.target_], axis=1)
    some = fitted.labels_[[5, 2, 5]]
    assert fitted.transform(some).tolist() == both[[5, 2, 5]].tolist()
    assert fitted.transform(some.tolist()).tolist() == both[[5, 2, 5]].tolist()
    assert fitted.transform(pd.Series(some)).tolist() == both[[5, 2, 5]].tolist()
    assert fitted.transform(fitted.graph_).tolist() == both.tolist()
    assert len(fitted.get_feature_names_out()) == both.shape[1]
    with pytest.raises(InputError, match="no node 'nobody'"):
        fitted.transform(["nobody"])


def test_transform_and_fold_in_take_a_single_label() -> None:
    for a, b, c in (("ab", "bc", "cd"), (1, 2, 3), (("a", 1), ("b", 2), ("c", 3))):
        model = ATP(n_components=4, max_iter=2).fit([(a, b), (b, c)])
        assert model.transform(b).tolist() == model.transform([b]).tolist()
        one, several = model.fold_in(b, a), model.fold_in([b], [a])
        assert [x.tolist() for x in one] == [x.tolist() for x in several]
        found = model.top_targets(a, 2, as_frame=True)
        assert found["source"].tolist() == [a] * len(found)


@pytest.mark.parametrize("edges", [[("a", "b"), ("b", "c")], [[1, 2], [2, 3]], np.array([[1, 2]])])
def test_fit_transform_is_fit_then_transform(edges: object) -> None:
    model = ATP(n_components=2)
    vectors = model.fit_transform(edges)
    assert vectors.tolist() == ATP(n_components=2).fit(edges).transform(edges).tolist()
    tuples = ATP(n_components=2).fit([(("a", 1), ("b", 2))])
    assert tuples.transform([("b", 2)]).shape == (1, 4)


def test_before_a_classifier() -> None:
    graph = generators.noisy_hierarchy(120, 500, 30, random_state=1).graph
    high = graph.out_degree < graph.in_degree
    pipe = sklearn.pipeline.make_pipeline(
        ATP(n_components=8), sklearn.linear_model.LogisticRegression()
    )
    pipe.fit(graph, high)
    assert pipe.score(graph, high) > 0.8
    assert pipe.predict(graph.labels[:3].tolist()).tolist() == pipe.predict(graph)[:3].tolist()


@pytest.mark.parametrize("purpose", ["reachability", "paper"])
@pytest.mark.parametrize(
    "graph",
    [
        DiGraph.from_edges([]),
        DiGraph.from_edges([], nodes=["only"]),
        DiGraph.from_edges([(0, 0)]),
        DiGraph.from_edges([(0, 1)], nodes=[5, 6]),
        DiGraph.from_edges([(0, 1), (2, 3)]),
        DiGraph.from_edges([(0, 1), (1, 0)]),
    ],
)
@pytest.mark.parametrize("k", [1, 7])
def test_no_nan_on_degenerate_graphs(graph: DiGraph, k: int, purpose: str) -> None:
    model = ATP(n_components=k, purpose=purpose).fit(graph)
    assert model.source_.shape == (graph.n_nodes, k)
    assert np.all(np.isfinite(model.source_))
    assert np.all(np.isfinite(model.target_))


@given(
    digraphs(max_nodes=12),
    st.sampled_from(["log", "harmonic", "linear", "constant"]),
    st.sampled_from(["reachability", "paper"]),
)
def test_any_small_graph_embeds(graph: DiGraph, kernel: str, purpose: str) -> None:
    model = ATP(n_components=3, purpose=purpose, kernel=kernel).fit(graph)
    assert np.all(np.isfinite(model.source_))
    assert np.all(np.isfinite(model.target_))


@pytest.mark.parametrize("purpose", ["reachability", "paper"])
def test_same_seed_same_bytes_for_any_number_of_threads(purpose: str, tmp_path: Path) -> None:
    graph = generators.gnm(400, 1600, 0)
    one, two = (
        ATP(n_components=16, purpose=purpose, n_jobs=jobs, random_state=3).fit(graph)
        for jobs in (1, 2)
    )
    assert one.source_.tobytes() == two.source_.tobytes()
    assert one.target_.tobytes() == two.target_.tobytes()
    assert one.fidelity_.to_dict() == two.fidelity_.to_dict()
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    other = ATP(n_components=16, purpose=purpose, random_state=4).fit(graph)
    assert other.source_.tobytes() != one.source_.tobytes()


def test_bad_parameters_get_a_sentence() -> None:
    edges = [(0, 1)]
    for arguments, sentence in [
        ({"purpose": "papers"}, "no purpose 'papers': did you mean 'paper'"),
        ({"kernel": "cubic"}, "no kernel 'cubic'"),
        ({"method": "none"}, "no cycle-breaking method"),
        ({"purpose": "paper", "zero_weight": 2.0}, "zero_weight is 2.0; it must be"),
        ({"zero_weight": 0.5}, "zero_weight is 0.5, but purpose='reachability' has no such weight"),
        ({"regularization": -1.0}, "regularization is -1.0"),
        ({"n_components": 0}, "n_components is 0; it must be at least 1"),
        ({"n_components": -1}, "n_components is -1; it must be at least 1"),
        ({"n_components": "8"}, "n_components is '8'; it must be a whole number"),
        ({"n_components": 2.5}, "n_components is 2.5; it must be a whole number"),
        ({"n_components": None}, "n_components is None; it must be a whole number"),
        ({"n_components": True}, "n_components is True; it must be a whole number"),
        ({"max_iter": 1.5}, "max_iter is 1.5; it must be a whole number"),
        ({"n_jobs": 10**6}, "n_jobs, .* is 1,000,000; it must be at most 1,024"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": "all"}, "n_jobs"),
    ]:
        with pytest.raises(InputError, match=sentence):
            ATP(**arguments).fit(edges)


def test_the_papers_method_says_when_there_are_too_many_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("atpgraph.util.memory.available_bytes", lambda: 1000)
    dag = generators.random_dag(300, 1200, random_state=0)
    with pytest.raises(BudgetError, match=r"needs about .*; the default, purpose='reachability'"):
        ATP(4, purpose="paper").fit(dag)


def test_weights_are_not_ignored_silently(caplog: pytest.LogCaptureFixture) -> None:
    ATP(n_components=1).fit([("a", "b")])
    assert not caplog.records
    weighted = ATP(n_components=1).fit([("a", "b", 2), ("b", "c", 3)])
    assert [record.getMessage() for record in caplog.records] == [
        "The embedding ignores edge weights."
    ]
    plain = ATP(n_components=1).fit([("a", "b"), ("b", "c")])
    assert weighted.source_.tobytes() == plain.source_.tobytes()


def test_auto_weight_of_zeros_is_a_share_of_the_reachable_pairs(links: ATP) -> None:
    n, pairs = links.graph_.n_nodes, links.n_reachable_pairs_
    how = links.settings_
    assert how.zero_weight * (n * (n - 1) - pairs) == pytest.approx(0.02 * pairs)
    assert how.regularization == pytest.approx(min(4 * 8 * n / pairs, 0.3))
    given = ATP(2, purpose="paper", zero_weight=0.5).fit([(0, 1)])
    assert given.settings_.zero_weight == 0.5


def test_callable_kernel() -> None:
    for purpose in ("reachability", "paper"):
        model = ATP(
            n_components=4, purpose=purpose, kernel=lambda delta: 3.0 * delta, regularization=0.0,
            max_iter=50,
        ).fit([(0, 1), (1, 2)])  # fmt: skip
        assert model.score_pairs([0], [2])[0] == pytest.approx(6.0, rel=0.05)


def test_worked_example_of_the_paper() -> None:
    """Cycles among B, C, D, E; the removed edges and the direction of (B, E) are the paper's."""
    edges = [
        ("A", "B"), ("B", "C"), ("B", "D"), ("C", "E"), ("D", "E"), ("B", "E"),
        ("C", "B"), ("D", "B"), ("E", "C"), ("E", "D"),
    ]  # fmt: skip
    model = ATP(n_components=4, purpose="paper", zero_weight=0.1).fit(edges)
    assert set(model.removed_edges_) == {("C", "B"), ("D", "B"), ("E", "C"), ("E", "D")}
    assert dict(zip(model.labels_, model.levels_.tolist(), strict=True))["A"] == 1
    there, back = model.score_pairs(["B", "E"], ["E", "B"])
    assert there > 1.0
    assert back < 0.01


@pytest.mark.parametrize("purpose", ["reachability", "paper"])
def test_weights_beyond_single_precision_are_rejected(purpose):
    chain = [(i, i + 1) for i in range(8)]
    with pytest.raises(InputError, match=r"kernel is 1e\+300 at a difference of 1"):
        ATP(4, purpose=purpose, kernel=lambda delta: delta * 1e300).fit(chain)
    largest = ATP(4, purpose=purpose, kernel=lambda delta: np.full(len(delta), 1e12)).fit(chain)
    assert np.isfinite(largest.score_pairs(0, 8)).all()
    tiny = ATP(4, purpose=purpose, kernel=lambda delta: np.full(len(delta), 1e-9)).fit(chain)
    assert tiny.score_pairs(0, 8)[0] > 0
