"""The approximate index against the exact search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from atpgraph import ATP, InputError, noisy_hierarchy, random_dag
from atpgraph.cli._app import app
from atpgraph.graph import DiGraph

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def model() -> ATP:
    return ATP(16, max_iter=4, random_state=0).fit(
        noisy_hierarchy(400, 2000, 60, random_state=0).graph
    )


@pytest.fixture(scope="module")
def taxonomy() -> ATP:
    """Thousands of leaves, siblings in groups of 20 with nearly equal vectors."""
    child = np.arange(1, 6000)
    return ATP(32, max_iter=16).fit(DiGraph.from_codes(child, (child - 1) // 20, 6000))


def recall(model: ATP, direction: str, nodes: list[int]) -> float:
    """Share of the exact answers that the index finds, by their scores."""
    find = model.top_targets if direction == "targets" else model.top_sources
    _, exact = find(nodes, 10, order="score")
    _, found = model.index(direction).top(nodes, 10)
    good = sum(
        np.sum(some >= best[-1] - 1e-4)
        for best, some in zip(exact, found, strict=True)
        if len(best)
    )
    return good / sum(map(len, exact))


@pytest.mark.parametrize("direction", ["targets", "sources"])
def test_the_index_finds_nearly_what_the_exact_search_finds(model: ATP, direction: str) -> None:
    nodes = model.labels_[:100].tolist()
    index = model.index(direction)
    assert recall(model, direction, nodes) >= 0.9
    assert index.recall_ >= 0.95
    climb = 1 if direction == "targets" else -1
    for node, names, scores in zip(nodes, *index.top(nodes, 10), strict=True):
        assert (np.diff(scores) <= 0).all()
        assert (scores > model.threshold_).all()
        ends = ([node] * len(names), names.tolist())[::climb]
        assert (model.level_difference(*ends) > 0).all()
        assert scores == pytest.approx(model.score_pairs(*ends), abs=1e-4)


@pytest.mark.parametrize("direction", ["targets", "sources"])
def test_a_taxonomy_is_searched_well(taxonomy: ATP, direction: str) -> None:
    nodes = taxonomy.labels_[:300].tolist()
    assert recall(taxonomy, direction, nodes) >= 0.93
    assert taxonomy.index(direction).recall_ >= 0.95


def test_an_index_that_misses_too_much_searches_exactly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    model = ATP(16, max_iter=2).fit(random_dag(2000, 8000, random_state=0))
    monkeypatch.setattr("atpgraph.embedding.ranking.LEAST_RECALL", 1.01)  # out of reach
    index = model.index()
    assert index.exact_
    assert index.recall_ == 1.0
    assert index.approximate_recall_ <= 1.0
    assert "searching exactly" in caplog.text
    nodes = model.labels_[:50].tolist()
    found, exact = index.top(nodes, 10)[0], model.top_targets(nodes, 10, order="score")[0]
    assert [x.tolist() for x in found] == [x.tolist() for x in exact]
    model.save(tmp_path / "model.npz")
    command = ["model", "top", str(tmp_path / "model.npz"), "7", "--approximate", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["exact"]
    assert "searching exactly" in done.stderr


def test_the_same_vectors_give_the_same_answers(model: ATP) -> None:
    first, second = (model.index().top(model.labels_[:20], 5) for _ in range(2))
    assert [x.tolist() for x in first[0]] == [x.tolist() for x in second[0]]
    node = model.graph_.labels[int(np.argmax(model.dag_.out_degree))]
    one, scores = model.index().top(int(node), 5)
    assert one.shape == scores.shape == (5,)


def test_without_a_threshold_all_nodes_are_returned(model: ATP) -> None:
    node = int(model.labels_[3])
    labels, _ = model.index().top([node], 10_000, threshold=None)
    assert sorted([*labels[0].tolist(), node]) == sorted(model.labels_.tolist())


def test_what_cannot_be_asked(model: ATP) -> None:
    with pytest.raises(InputError, match="direction"):
        model.index("sideways")
    with pytest.raises(InputError, match="no node"):
        model.index().top("nobody")
    with pytest.raises(InputError, match="fitted"):
        ATP().index()
    lonely = ATP(2).fit(DiGraph.from_edges([], nodes=["a"]))
    assert len(lonely.index().top("a")[0]) == 0
