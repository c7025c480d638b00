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
    steps = ["cycles", "hierarchy", "closure", "factorization", "fidelity"]
    assert list(fitted.timings_) == steps
    assert len(fitted.objective_) == fitted.n_iter_
    rows, _ = closure_forests(fitted.dag_)
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
    assert scores == pytest.approx(expected, rel=1e-5)
    probability = fitted.predict_proba(u, v)
    assert probability == pytest.approx(1 / (1 + np.exp(-scores)))
    assert fitted.predict(u, v, 0.7).tolist() == (probability > 0.7).tolist()
    assert fitted.score_pairs(3, [1, 2]).shape == (2,)
    with pytest.raises(InputError, match="threshold"):
        fitted.predict(u, v, 0.4)
    with pytest.raises(InputError, match="no node"):
        fitted.score_pairs([10_000], [1])


def test_labels_go_in_and_come_out() -> None:
    edges = [("a", "b"), ("b", "c"), (("t", 1), "c"), ("c", 2.5)]
    model = ATP(n_components=2).fit(edges)
    assert model.labels_.tolist() == ["a", "b", "c", ("t", 1), 2.5]
    names, scores = model.top_targets("a", 2)
    assert set(names.tolist()) <= {"b", "c", 2.5}
    assert scores[0] >= scores[1]
    several, _ = model.top_sources(["c", 2.5], 1)
    assert several.shape == (2, 1)
    assert "a" not in model.top_targets("a", 10)[0].tolist()


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


@pytest.mark.parametrize("solver", ["pairs", "nnls", "svd"])
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
def test_no_nan_on_degenerate_graphs(graph: DiGraph, k: int, solver: str) -> None:
    model = ATP(n_components=k, solver=solver).fit(graph)
    assert model.source_.shape == (graph.n_nodes, k)
    assert np.all(np.isfinite(model.source_))
    assert np.all(np.isfinite(model.target_))


@given(
    digraphs(max_nodes=12),
    st.sampled_from(["log", "harmonic", "linear", "constant"]),
    st.sampled_from(["reachability", "links", "paper"]),
)
def test_any_small_graph_embeds(graph: DiGraph, kernel: str, purpose: str) -> None:
    model = ATP(n_components=3, purpose=purpose, kernel=kernel).fit(graph)
    assert np.all(np.isfinite(model.source_))
    assert np.all(np.isfinite(model.target_))


@pytest.mark.parametrize("purpose", ["reachability", "links"])
def test_same_seed_same_bytes_for_any_number_of_threads(purpose: str, tmp_path: Path) -> None:
    graph = generators.gnm(400, 1600, 0)
    one, two = (
        ATP(n_components=16, purpose=purpose, n_jobs=jobs, random_state=3).fit(graph)
        for jobs in (1, 2)
    )
    assert one.source_.tobytes() == two.source_.tobytes()
    assert one.target_.tobytes() == two.target_.tobytes()
    assert one.fidelity_ == two.fidelity_
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    other = ATP(n_components=16, purpose=purpose, random_state=4).fit(graph)
    assert other.source_.tobytes() != one.source_.tobytes()


def test_bad_parameters_get_a_sentence() -> None:
    edges = [(0, 1)]
    for arguments, sentence in [
        ({"purpose": "link"}, "no purpose 'link': did you mean 'links'"),
        ({"solver": "sgd"}, "no solver 'sgd'"),
        ({"kernel": "cubic"}, "no kernel 'cubic'"),
        ({"method": "none"}, "no cycle-breaking method"),
        ({"purpose": "links", "zero_weight": 2.0}, "zero_weight is 2.0; it must be between"),
        ({"zero_weight": 0.5}, "zero_weight is 0.5, but the solver 'pairs' has no such weight"),
        ({"regularization": -1.0}, "regularization is -1.0"),
        ({"memory": "lots"}, "memory budget"),
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
    with pytest.raises(BudgetError, match="lower n_components"):
        ATP(memory=100).fit(edges)


def test_weights_are_not_ignored_silently(caplog: pytest.LogCaptureFixture) -> None:
    ATP(n_components=1).fit([("a", "b")])
    assert not caplog.records
    weighted = ATP(n_components=1).fit([("a", "b", 2), ("b", "c", 3)])
    assert [record.getMessage() for record in caplog.records] == [
        "Edge weights are not used: to the embedding an edge is an edge."
    ]
    plain = ATP(n_components=1).fit([("a", "b"), ("b", "c")])
    assert weighted.source_.tobytes() == plain.source_.tobytes()


def test_auto_weight_of_zeros_is_a_share_of_the_reachable_pairs(links: ATP) -> None:
    n, pairs = links.graph_.n_nodes, links.n_reachable_pairs_
    assert links.zero_weight_ * (n * (n - 1) - pairs) == pytest.approx(0.02 * pairs)
    assert links.regularization_ == pytest.approx(min(4 * 8 * n / pairs, 0.3))
    assert ATP(2, purpose="links", zero_weight=0.5).fit([(0, 1)]).zero_weight_ == 0.5


def test_callable_kernel() -> None:
    for purpose in ("reachability", "links"):
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
    model = ATP(n_components=4, purpose="links", zero_weight=0.1).fit(edges)
    assert set(model.removed_edges_) == {("C", "B"), ("D", "B"), ("E", "C"), ("E", "D")}
    assert dict(zip(model.labels_, model.levels_.tolist(), strict=True))["A"] == 1
    there, back = model.score_pairs(["B", "E"], ["E", "B"])
    assert there > 1.0
    assert back < 0.01


@pytest.mark.parametrize("purpose", ["reachability", "links", "paper"])
def test_weights_beyond_single_precision_are_rejected(purpose):
    chain = [(i, i + 1) for i in range(8)]
    with pytest.raises(InputError, match=r"c is 1e\+200; it must be finite and from"):
        ATP(4, purpose=purpose, c=1e200).fit(chain)
    with pytest.raises(InputError, match=r"kernel is 1e\+300 at a difference of 1"):
        ATP(4, purpose=purpose, kernel=lambda delta: delta * 1e300).fit(chain)
    largest = ATP(4, purpose=purpose, kernel=lambda delta: np.full(len(delta), 1e12)).fit(chain)
    assert np.isfinite(largest.score_pairs(0, 8)).all()
    assert ATP(4, purpose=purpose, memory=1e300).fit(chain).n_reachable_pairs_ == 36
