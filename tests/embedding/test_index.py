"""The approximate index against the exact search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from atpgraph import ATP, InputError, noisy_hierarchy
from atpgraph.cli._app import app

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def model() -> ATP:
    return ATP(16, max_iter=4, random_state=0).fit(
        noisy_hierarchy(400, 2000, 60, random_state=0).graph
    )


@pytest.mark.parametrize("direction", ["targets", "sources"])
def test_the_index_finds_nearly_what_the_exact_search_finds(model: ATP, direction: str) -> None:
    index = model.index(direction)
    nodes = model.labels_[:50].tolist()
    find = model.top_targets if direction == "targets" else model.top_sources
    labels, scores = index.top(nodes, 10)
    exact, exact_scores = find(nodes, 10)
    shared = [len(set(a) & set(b)) for a, b in zip(labels.tolist(), exact.tolist(), strict=True)]
    assert np.mean(shared) >= 9
    assert np.all(np.diff(scores, axis=1) <= 0)
    assert scores[:, 0] == pytest.approx(exact_scores[:, 0], rel=1e-4, abs=1e-4)
    assert all(node not in row for node, row in zip(nodes, labels.tolist(), strict=True))
    assert index.recall_ >= 0.9


def test_an_index_that_misses_too_much_searches_exactly(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    taxonomy = [(i, (i - 1) // 3) for i in range(1, 1500)]
    model = ATP(16, max_iter=8, random_state=0).fit(taxonomy)
    index = model.index("targets")
    nodes = model.labels_[::10].tolist()
    found, exact = index.top(nodes, 10)[1], model.top_targets(nodes, 10)[1]
    assert np.mean(found >= exact[:, -1:] - 1e-5) >= 0.9
    assert index.exact_
    assert index.recall_ == 1.0
    assert index.approximate_recall_ < 0.9
    assert "searching exactly" in caplog.text
    model.save(tmp_path / "model.npz")
    command = ["neighbors", str(tmp_path / "model.npz"), "700", "--approximate", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["exact"]
    assert "searching exactly" in done.stderr


def test_the_same_vectors_give_the_same_answers(model: ATP) -> None:
    first, second = (model.index().top(model.labels_[:20], 5) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    one, scores = model.index().top(int(model.labels_[0]), 5)
    assert one.shape == scores.shape == (5,)


def test_all_that_there_are(model: ATP) -> None:
    labels, _ = model.index().top([int(model.labels_[3])], 10_000)
    assert sorted([*labels[0].tolist(), int(model.labels_[3])]) == sorted(model.labels_.tolist())


def test_what_cannot_be_asked(model: ATP) -> None:
    with pytest.raises(InputError, match="direction"):
        model.index("sideways")
    with pytest.raises(InputError, match="no node"):
        model.index().top("nobody")
    with pytest.raises(InputError, match="fitted"):
        ATP().index()
