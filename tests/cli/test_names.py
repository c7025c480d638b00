"""Names of commands: what can be guessed, what is old, and what is mistyped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atpgraph import ATP, LinkPredictor, Reachability, random_dag, write_edgelist
from atpgraph.cli._app import app
from atpgraph.cli.commands import OLD_NAMES


def atp(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="atp")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "needs.txt"
    path.write_text("app lib\nlib core\ncore lib\ncore libc\n")
    return path


def test_a_file_alone_is_described(graph: Path) -> None:
    told = json.loads(atp(graph, "--json", "-q").stdout)
    assert (told["kind"], told["nodes"], told["edges"]) == ("graph", 4, 4)
    assert (told["nodes_on_cycles"], told["edges_on_cycles"], told["levels"]) == (2, 2, 3)
    assert (told["roots"], told["leaves"]) == (1, 1)
    shown = atp(graph, "-q").stdout
    assert f"atp reach {graph} app lib" in shown
    missing = atp(graph.with_name("none.txt"))
    assert missing.exit_code == 2
    assert "none.txt does not exist" in missing.stderr


def test_a_graph_on_standard_input_is_described(graph: Path) -> None:
    done = CliRunner().invoke(app, ["-", "-q"], input=graph.read_text(), prog_name="atp")
    assert done.exit_code == 0, done.stderr
    assert "standard input" in done.stdout
    assert "atp embed - -o graph.npz" in done.stdout


def test_info_knows_every_file(graph: Path, tmp_path: Path) -> None:
    ATP(n_components=2).fit(graph).save(tmp_path / "m.npz")
    Reachability(graph).save(tmp_path / "r.npz")
    write_edgelist(random_dag(60, 200, random_state=0), tmp_path / "dag.txt")
    LinkPredictor().fit(tmp_path / "dag.txt").save(tmp_path / "l.npz")
    kinds = {"m": "model", "r": "reachability", "l": "links"}
    for name, kind in kinds.items():
        assert json.loads(atp(tmp_path / f"{name}.npz", "--json", "-q").stdout)["kind"] == kind
    # Every line of the table has a name of its own.
    shown = atp("model", "info", tmp_path / "m.npz", "-q").stdout.partition("fidelity")[0]
    names = [line.split("  ")[1] for line in shown.splitlines()[3:] if line.strip()]
    assert len(set(names)) == len(names)


def test_reach_takes_a_model_and_others_say_what_it_is(graph: Path, tmp_path: Path) -> None:
    ATP(n_components=2).fit(graph).save(tmp_path / "m.npz")
    rows = json.loads(atp("reach", tmp_path / "m.npz", "app", "libc", "--json", "-q").stdout)
    assert rows["pairs"][0]["path"] is True
    refused = atp("cycles", tmp_path / "m.npz")
    assert refused.exit_code == 2
    assert "is not an edge list; 'atp info" in refused.stderr


def test_old_names_work_and_say_the_new_one(graph: Path) -> None:
    done = atp("hierarchy", graph, "--json")
    assert json.loads(done.stdout)["levels"] >= 2
    assert "'atp hierarchy' is now 'atp levels'" in done.stderr
    assert "is now" not in atp("hierarchy", graph, "-q").stderr
    shown = atp("--help").stdout
    assert not [name for name in OLD_NAMES if f"│ {name} " in shown]
    for new in OLD_NAMES.values():
        assert atp(*new.split(), "--help").exit_code == 0


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["embed", "--bogus"], "No such option: --bogus"),
        (["embed"], "Missing argument 'GRAPH'"),
        (["cycle", "x"], "Did you mean 'cycles'?"),
        (["embed", "x", "--dim", "many"], "--dim"),
        (["model", "tip"], "Did you mean 'top'?"),
    ],
)
def test_wrong_usage_is_one_sentence(typed: list[str], sentence: str) -> None:
    done = atp(*typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("atp: error: ")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr
    assert "--help'." in done.stderr


def test_all_needs_the_order_by_score() -> None:
    done = atp("model", "top", "m.npz", "a", "--all")
    assert (done.exit_code, done.stderr) == (2, "atp: error: --all goes with --order score.\n")


def test_help_shows_no_type_after_flags_and_arguments() -> None:
    for command in ([], ["embed"], ["model", "top"]):
        shown = atp(*command, "--help").stdout
        assert not [word for word in ("<bool>", "<path>", "<str>", "<list") if word in shown]


def test_suggestions_read_the_file_as_it_was_read(tmp_path: Path) -> None:
    file = tmp_path / "cites.csv"
    file.write_text("when;citing paper;cited paper\n2020;a;b\n2021;b;c\n")
    typed = ["--source", "citing paper", "--target", "cited paper"]
    suggested = atp(file, *typed).stdout
    assert "--source 'citing paper' --target 'cited paper'" in " ".join(suggested.split())
    assert atp("levels", file, *typed).exit_code == 0


def test_a_first_line_that_looks_like_a_header_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    file.write_text("parent,term\nanimal,cat\nanimal,dog\n")
    assert "the first line, parent,term, is read as an edge" in atp(file).stderr
    assert "as an edge" not in atp(file, "--header").stderr
    file.write_text("animal,cat\nanimal,dog\n")
    assert "as an edge" not in atp(file).stderr


def test_a_mistyped_node_gets_a_suggestion(graph: Path) -> None:
    assert "no node 'libx'; did you mean 'lib" in atp("reach", graph, "app", "libx").stderr


def test_suggestions_and_counts_of_odd_graphs(tmp_path: Path) -> None:
    file = tmp_path / "odd.txt"
    file.write_text("-1 -1\n-1 -2\n")
    assert f"atp reach {file} -- -1 -1" in atp(file, "-q").stdout
    assert atp("reach", file, "--", "-1", "-2").exit_code == 0
    told = json.loads(atp(file, "--json", "-q").stdout)
    assert (told["nodes_on_cycles"], told["edges_on_cycles"]) == (1, 1)
