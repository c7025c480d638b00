"""Models that grow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph import ATP, InputError, levels
from atpgraph.closure import closure_forests
from atpgraph.graph import DiGraph, generators


@pytest.fixture(scope="module")
def fitted() -> ATP:
    graph = generators.noisy_hierarchy(150, 700, 40, random_state=1).graph
    return ATP(n_components=16, random_state=0).fit(graph)


def pairs_of(graph: DiGraph) -> list[tuple]:
    return list(graph.edges())


def check(model: ATP) -> None:
    """What holds of every model."""
    n = model.graph_.n_nodes
    assert model.source_.shape == model.target_.shape == (n, model.n_components)
    assert np.all(np.isfinite(model.source_))
    assert np.all(np.isfinite(model.target_))
    assert model.levels_.tolist() == levels(model.dag_).tolist()
    assert model.n_reachable_pairs_ >= model.dag_.n_edges
    assert len(model.kernel_table_) >= model.levels_.max(initial=1)


def separation(model: ATP) -> float:
    """Share of paths that score above their reverses."""
    rows, _ = closure_forests(model.dag_)
    u, v = (model.labels_[side] for side in rows.to_sparse(model.levels_).nonzero())
    return float(np.mean(model.score_pairs(u, v) > model.score_pairs(v, u)))


def test_add_returns_a_model_that_has_them(fitted: ATP) -> None:
    low, high = (
        int(fitted.labels_[at]) for at in (fitted.levels_.argmin(), fitted.levels_.argmax())
    )
    before = fitted.source_.copy(), fitted.graph_, fitted.levels_.copy()
    grown = fitted.add_edges([(low, "x"), ("x", "y"), ("y", high), (high, "z")], nodes=["alone"])
    check(grown)
    assert grown.labels_.tolist() == [*fitted.labels_.tolist(), "x", "y", "z", "alone"]
    assert grown.reaches("x", high)
    there = grown.score_pairs([low, "x", low, low], [high, "y", "y", "z"])
    back = grown.score_pairs([high, "y", "y", "z"], [low, "x", low, low])
    assert np.all(there > back)
    names = grown.labels_[:-1].tolist()
    assert np.all(grown.score_pairs(["alone"] * len(names), names) <= 0)
    assert np.array_equal(fitted.source_, before[0])
    assert fitted.graph_ is before[1]
    assert np.array_equal(fitted.levels_, before[2])


def test_what_does_not_change_keeps_its_vectors(fitted: ATP) -> None:
    leaf = int(fitted.labels_[np.argmin(np.where(fitted.levels_ > 1, fitted.levels_, 999))])
    grown = fitted.add_edges([(leaf, "new")])
    touched = set(grown.reachability_.ancestors("new").tolist()) | {"new"}
    rest = [label for label in fitted.labels_.tolist() if label not in touched]
    assert rest
    codes = fitted.graph_.codes(rest)
    # Only the bias of nodes without paths may change: it follows the largest of the other side.
    bias = fitted.n_components - 2
    fixed = np.ones((len(codes), fitted.n_components), dtype=bool)
    fixed[fitted.dag_.out_degree[codes] == 0, bias] = False
    assert np.array_equal(grown.source_[codes][fixed], fitted.source_[codes][fixed])
    others = fitted.graph_.codes(fitted.labels_)
    assert np.array_equal(grown.target_[others], fitted.target_[others])


def test_edges_between_known_nodes_in_place() -> None:
    graph = generators.noisy_hierarchy(150, 700, 40, random_state=2).graph
    late = np.random.default_rng(0).permutation(graph.n_edges)[:35]
    model = ATP(n_components=16).fit(graph.without_edges(late))
    more = list(zip(*(side.tolist() for side in graph.edge_labels(late)), strict=True))
    known = [pair for pair in more if min(model.graph_.codes_or_minus_one(list(pair))) >= 0]
    assert model.add_edges(known, inplace=True) is model
    check(model)
    assert set(model.graph_.edges()) == set(graph.without_edges(late).edges()) | set(known)
    refitted = ATP(n_components=16).fit(model.graph_)
    assert separation(model) > separation(refitted) - 0.02


def test_branches_that_come_back_are_kept_as_by_a_refit() -> None:
    # Whole branches of a tree are cut off and come back: what hangs below reaches much that is new.
    n = 1500
    child = np.arange(1, n)
    parent = (child * np.random.default_rng(0).random(n - 1)).astype(int)
    edges = list(zip(child.tolist(), parent.tolist(), strict=True))
    late = np.random.default_rng(1).permutation(n - 1)[:75]
    rest = [edge for at, edge in enumerate(edges) if at not in set(late.tolist())]
    first = grown = ATP(32).fit(rest)
    for part in np.array_split(late, 3):
        grown = grown.add_edges([edges[at] for at in part.tolist()])
    check(grown)
    again = ATP(32).fit(edges)
    assert grown.graph_.n_nodes == n > first.graph_.n_nodes
    assert grown.fidelity_.auc > again.fidelity_.auc - 0.01
    below = [node for node in grown.labels_.tolist() if node != 0]
    assert np.mean(grown.predict(below, [0] * len(below))) > 0.95


def test_edges_that_are_there_change_nothing(fitted: ATP) -> None:
    again = fitted.add_edges(pairs_of(fitted.graph_)[:5])
    assert np.array_equal(again.source_, fitted.source_)
    assert again.removed_edges_ == fitted.removed_edges_
    assert again.graph_.n_edges == fitted.graph_.n_edges


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=15),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=15),
)
def test_any_small_graph_grows(old: list, new: list) -> None:
    grown = ATP(n_components=3).fit(old).add_edges(new)
    check(grown)
    assert set(grown.graph_.edges()) == set(old) | set(new)


def test_a_grown_model_is_saved_and_grows_on(fitted: ATP, tmp_path: Path) -> None:
    top = int(fitted.labels_[fitted.levels_.argmax()])
    grown = fitted.add_edges([(top, "a"), ("a", "b")])
    assert len(grown.kernel_table_) > len(fitted.kernel_table_)
    grown.save(tmp_path / "m.npz")
    loaded = ATP.load(tmp_path / "m.npz")
    assert np.array_equal(
        loaded.add_edges([("b", "c")]).source_, grown.add_edges([("b", "c")]).source_
    )
    function = ATP(n_components=2, kernel=np.sqrt).fit([(0, 1), (1, 2)])
    function.save(tmp_path / "f.npz")
    check(ATP.load(tmp_path / "f.npz").add_edges([(2, 3), (3, 4)]))


def test_fold_in_keeps_its_solver_until_the_vectors_change(fitted: ATP) -> None:
    model = ATP(n_components=4).fit(fitted.graph_)
    node = fitted.labels_[:1].tolist()
    model.fold_in(node)
    solver = model._folding
    model.fold_in([], node)
    assert model._folding is solver
    model.fit(fitted.graph_)
    model.fold_in(node)
    assert model._folding is not solver


def test_top_for_a_vector(fitted: ATP) -> None:
    node = int(fitted.labels_[3])
    vector = fitted.source_[3]
    by_score = {"order": "score", "threshold": None}
    names, scores = fitted.top_targets(vector=vector, k=5, **by_score)
    every = fitted.target_.astype(np.float32) @ vector.astype(np.float32)
    expected = np.argsort(-every, kind="stable")[:5]
    assert names.tolist() == fitted.labels_[expected].tolist()
    assert scores == pytest.approx(every[expected], rel=1e-5)
    rows, _ = fitted.top_sources(vector=fitted.target_[[3, 4]], k=2, **by_score)
    assert [len(row) for row in rows] == [2, 2]
    near, scores = fitted.top_targets(vector=vector)
    assert (scores > fitted.threshold_).all()
    assert (np.diff(fitted.levels_[fitted.graph_.codes(near.tolist())]) >= 0).all()
    for arguments in ({}, {"u": node, "vector": vector}):
        with pytest.raises(InputError, match="not both"):
            fitted.top_targets(**arguments)
    with pytest.raises(InputError, match="16 components"):
        fitted.top_targets(vector=[1.0, 2.0])
    with pytest.raises(InputError, match="k is 0"):
        fitted.top_targets(node, 0)


def test_the_papers_method_does_not_grow() -> None:
    model = ATP(n_components=2, purpose="paper").fit([(0, 1), (1, 2)])
    with pytest.raises(InputError, match="cannot take new edges; fit the grown graph"):
        model.add_edges([(2, 3)])


def test_old_names_warn() -> None:
    model = ATP(n_components=3).fit([(0, 1), (1, 2)])
    with pytest.warns(DeprecationWarning, match="use add_edges"):
        assert model.add([(2, 3)]).graph_.n_edges == 3
    with pytest.warns(DeprecationWarning, match="inplace=True"):
        assert model.update([(2, 3)]) is model
    assert model.graph_.n_edges == 3
