"""`atp tune`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from atpgraph.cli._app import app
from atpgraph.graph import generators, write_edgelist


def atp(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune") / "g.txt"
    write_edgelist(generators.noisy_hierarchy(300, 900, 60, random_state=0).graph, path)
    return path


def test_fidelity_decides(graph: Path) -> None:
    told = atp("tune", graph, "--dims", "2,16,32", "--penalties", "auto,10", "--json", "-q")
    assert told.exit_code == 0, told.stderr
    found = json.loads(told.stdout)
    assert [(trial["components"], trial["penalty"]) for trial in found["trials"]] == [
        (2, "auto"), (2, 10.0), (16, "auto"), (16, 10.0), (32, "auto"), (32, 10.0),
    ]  # fmt: skip
    most = max(trial["auc"] for trial in found["trials"])
    near = [trial for trial in found["trials"] if trial["auc"] >= most - 0.002]
    assert found["best"] in near
    assert found["best"]["components"] == min(trial["components"] for trial in near)
    assert found["best"]["penalty"] == "auto"  # such a penalty leaves nothing of the vectors
    shown = atp("tune", graph, "--dims", "16", "--penalties", "0.05", "-q").stdout
    assert "-p reachability --dim 16 --regularization 0.05" in shown


def test_held_out_edges_decide_for_links(graph: Path) -> None:
    arguments = ("--purpose", "paper", "--dims", "4,8", "--penalties", "auto", "--json", "-q")
    found = json.loads(atp("tune", graph, *arguments).stdout)
    assert found["purpose"] == "paper"
    assert 0.7 < found["best"]["auc"] < 1
    other = json.loads(atp("tune", graph, "--protocol", "random", *arguments).stdout)
    assert other["best"]["auc"] != found["best"]["auc"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--dims", "8,many"), "dims got 'many'; it takes whole numbers"),
        (("--dims", "0"), "dims got '0'; it takes whole numbers from 1"),
        (("--penalties", "auto,-1"), "penalties got '-1'; it takes auto and numbers"),
        (("--purpose", "path"), "There is no purpose 'path'"),
        (("-p", "paper", "--protocol", "ranking"), "it does not compare pairs"),
    ],
)
def test_what_cannot_be_tried(graph: Path, arguments: tuple[str, ...], sentence: str) -> None:
    result = atp("tune", graph, *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_graph_with_nothing_to_ask(tmp_path: Path) -> None:
    (tmp_path / "chain.txt").write_text("a b\nb c\n")
    found = json.loads(atp("tune", tmp_path / "chain.txt", "--dims", "2,4", "--json").stdout)
    assert found["best"]["auc"] is None
    assert found["best"]["components"] == 2


def test_the_next_command_reads_the_file_in_the_same_way(tmp_path: Path) -> None:
    file = tmp_path / "my graph.csv"
    file.write_text("when;who;whom\n1;a;b\n2;b;c\n")
    typed = ["--source", "who", "--target", "whom", "--method", "dfs"]
    shown = atp("tune", file, *typed, "--dims", "4", "--penalties", "auto", "-q").stdout
    assert f"atp embed '{file}' --source who --target whom -o" in shown
    assert "--dim 4 --method dfs" in shown
