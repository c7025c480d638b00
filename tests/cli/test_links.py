"""`atp links`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from atpgraph.cli._app import app

pytest.importorskip("sklearn")


def atp(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links")
    made = atp(
        "data", "generate", "citation", "-o", folder / "g.txt", "--nodes", 300, "--edges", 1500
    )
    assert made.exit_code == 0, made.output
    fitted = atp("links", "fit", folder / "g.txt", "-o", folder / "m.npz", "--quiet")
    assert fitted.exit_code == 0, fitted.output
    return folder / "m.npz"


def test_predict_marks_known_edges_and_unknown_nodes(model: Path, tmp_path: Path) -> None:
    first = next(
        line.split()
        for line in (model.parent / "g.txt").read_text().splitlines()
        if line[:1].isdigit()
    )
    pairs = tmp_path / "pairs.txt"
    pairs.write_text(f"{first[0]} {first[1]}\n{first[0]} nobody\n")
    rows = json.loads(atp("links", "score", model, "--pairs", pairs, "--json").stdout)["pairs"]
    assert rows[0]["known"] is True
    assert 0 < rows[0]["probability"] < 1
    assert rows[1]["unknown"] == ["nobody"]
    assert rows[1]["probability"] is None


def test_a_rarer_link_is_less_likely(model: Path) -> None:
    told = [
        json.loads(atp("links", "score", model, 250, 3, "--base-rate", rate, "--json").stdout)
        for rate in (0.5, 0.01)
    ]
    assert told[1]["pairs"][0]["probability"] < told[0]["pairs"][0]["probability"]


def test_recommendations_are_new_and_explained(model: Path) -> None:
    result = atp("links", "recommend", model, 250, "--top", 3, "--explain")
    assert result.exit_code == 0
    assert result.stdout.count("250 → ") == 3
    lines = (model.parent / "g.txt").read_text().splitlines()
    edges = {tuple(line.split()) for line in lines if line[:1].isdigit()}
    found = json.loads(atp("links", "top", model, "--top", 5, "--json").stdout)["links"]
    assert len(found) == 5
    assert not edges & {(str(row["source"]), str(row["target"])) for row in found}


def test_bad_requests_are_one_sentence(model: Path) -> None:
    for arguments in (
        ("links", "score", model, 1),
        ("links", "score", model),
        ("links", "recommend", model, "nobody"),
    ):
        result = atp(*arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output
