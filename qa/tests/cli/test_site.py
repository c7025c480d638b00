from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from atpgraph.cli._app import app

runner = CliRunner()


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cqa")
    made = run(
        *(
            "data",
            "generate",
            "community",
            "-o",
            folder / "dump",
            "--users",
            120,
            "--questions",
            400,
        ),
        *("--bounties", 0.2, "--seed", 4, "--json", "-q"),
    )
    assert json.loads(made)["questions"] == 400
    found = json.loads(run("qa", "ingest", folder / "dump", "-o", folder / "site", "--json", "-q"))
    assert found["rows"]["questions"] == 400
    assert found["missing"] == {}
    return folder / "site"


def test_stats(site):
    found = json.loads(run("qa", "stats", site, "--json", "-q"))
    assert (found["questions"], found["tags"], found["self_loops"]) == (400, 40, 0)
    assert sum(found["edge_types"].values()) >= found["edges"]
    gained = json.loads(run("qa", "stats", site, "--ega", "consecutive", "--json", "-q"))
    assert gained["edges"] > found["edges"]
    assert "questions with bounty" in run("qa", "stats", site, "-q")


def test_difficulty(site):
    options = ("--evaluate", "--bootstrap", 20, "-q")
    found = json.loads(run("qa", "difficulty", site, *options, "--json"))
    assert set(found["methods"]) >= {"number-of-answers", "trueskill", "qdee"}
    for row in found["methods"].values():
        assert row["accuracy"]["low"] <= row["accuracy"]["mean"] <= row["accuracy"]["high"]
        assert {"accuracy_skip_ties", "accuracy_ties_right"} <= set(row)
    assert "Test half" in run("qa", "difficulty", site, *options, "--methods", "qdee")


def test_difficulty_of_every_question(site, tmp_path):
    options = ("--methods", "number-of-answers,qdee", "-o", tmp_path / "all.csv", "--top", 3, "-q")
    shown = run("qa", "difficulty", site, *options)
    assert "hardest by number-of-answers" in shown
    assert "easiest by qdee" in shown
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "question,number-of-answers,qdee"
    assert len(lines) == 401


def test_errors_are_one_sentence(site, tmp_path):
    for arguments in (
        ("qa", "ingest", tmp_path / "none", "-o", tmp_path / "site"),
        ("qa", "stats", tmp_path),
        ("qa", "difficulty", site, "--evaluate", "--methods", "magic"),
        ("qa", "difficulty", site, "--evaluate", "-o", tmp_path / "all.csv"),
        ("qa", "difficulty", site, "-o", tmp_path / "all.txt"),
        ("data", "generate", "community", "-o", site, "--users", 5, "--questions", 5),
    ):
        said = run(*arguments, "-q", code=2)
        assert said.startswith("atp: error: ")
        assert said.count("\n") == 1
