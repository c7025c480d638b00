"""Models of sketches do what models of closure forests do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atpgraph import ATP, InputError, gnm

GRAPH = gnm(1500, 4500, random_state=1)


@pytest.fixture(scope="module", params=["reachability", "links", "paper"])
def model(request) -> ATP:
    return ATP(24, purpose=request.param, closure="sketch").fit(GRAPH)


def test_it_is_as_faithful_as_the_exact_one(model: ATP) -> None:
    exact = ATP(24, purpose=model.purpose, closure="exact").fit(GRAPH)
    assert (exact.closure_.kind, model.closure_.kind) == ("exact", "sketch")
    assert abs(model.n_reachable_pairs_ / exact.n_reachable_pairs_ - 1) < 0.15
    assert abs(model.fidelity_.auc - exact.fidelity_.auc) < 0.02
    assert abs(model.fidelity_.level_auc - exact.fidelity_.level_auc) < 0.03
    labels = GRAPH.labels
    u, v = np.random.default_rng(0).integers(0, 1500, (2, 3000))
    u, v = labels[u], labels[v]
    same = model.predict(u, v) == exact.predict(u, v)
    assert same.mean() > (0.95 if model.purpose == "reachability" else 0.85)


def test_threads_do_not_matter(model: ATP) -> None:
    again = ATP(24, purpose=model.purpose, closure="sketch", n_jobs=3).fit(GRAPH)
    assert again.source_.tobytes() == model.source_.tobytes()
    assert again.target_.tobytes() == model.target_.tobytes()
    assert again.fidelity_ == model.fidelity_


def test_it_is_saved_and_loaded(model: ATP, tmp_path: Path) -> None:
    model.save(tmp_path / "model.npz")
    loaded = ATP.load(tmp_path / "model.npz")
    assert loaded.closure_ == model.closure_
    assert loaded.get_params()["closure"] == "sketch"
    assert loaded.source_.tobytes() == model.source_.tobytes()


def test_nodes_fold_in(model: ATP) -> None:
    exact = ATP(24, purpose=model.purpose, closure="exact").fit(GRAPH)
    into = GRAPH.labels[np.argsort(model.levels_)[600:603]].tolist()
    found = [each.source_ @ each.fold_in(in_edges=into)[1] for each in (model, exact)]
    reach = [each.threshold_ < score for each, score in zip((model, exact), found, strict=True)]
    assert (reach[0] == reach[1]).mean() > 0.85


def test_it_grows(model: ATP) -> None:
    grown = model.add([("x", int(GRAPH.labels[7])), (int(GRAPH.labels[8]), "x"), ("x", "y")])
    assert grown.closure_.kind == "sketch"
    assert len(grown.labels_) == 1502
    assert abs(grown.fidelity_.auc - model.fidelity_.auc) < 0.05
    assert grown.score_pairs(["x"], ["y"])[0] > grown.score_pairs(["y"], ["x"])[0]


def test_auto_says_why() -> None:
    graph = gnm(3000, 9000, random_state=0)
    found = ATP(8, memory="500kB", max_iter=2).fit(graph)
    assert found.closure_.kind == "sketch"
    assert found.closure_.reason == "the closure forest exceeds the memory budget"
    assert ATP(8, max_iter=2).fit(graph).closure_.kind == "exact"


def test_singular_vectors_need_the_exact_closure() -> None:
    with pytest.raises(InputError, match="svd"):
        ATP(8, solver="svd", closure="sketch").fit(GRAPH)
