"""`atp reach`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from atpgraph import Reachability
from atpgraph.cli._app import app

EDGES = "app lib\nlib core\ncore lib\ncore libc\nlint app\n"


def atp(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["reach", *map(str, arguments)], input=stdin)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "needs.txt"
    path.write_text(EDGES)
    return path


def test_pairs(graph: Path) -> None:
    told = json.loads(atp(graph, "app", "libc", "libc", "app", "--path", "--json").stdout)
    assert told["pairs"] == [
        {"source": "app", "target": "libc", "path": True, "unknown": [],
         "nodes": ["app", "lib", "core", "libc"]},
        {"source": "libc", "target": "app", "path": False, "unknown": [], "nodes": None},
    ]  # fmt: skip
    text = atp(graph, "app", "libc", "--path").stdout
    assert "app → lib → core → libc" in text
    assert "yes" in text
    assert atp("-", "libc", "app", stdin=EDGES).stdout.split()[-1] == "no"


def test_a_file_of_pairs_marks_unknown_nodes(graph: Path) -> None:
    result = atp(graph, "--pairs", "-", "--json", stdin="core libc\ncore nobody\nlibc core\n")
    rows = json.loads(result.stdout)["pairs"]
    assert [row["path"] for row in rows] == [True, None, False]
    assert rows[1]["unknown"] == ["nobody"]
    assert "1 of 3 pairs name a node that the graph does not have" in result.stderr
    assert atp(graph, "--pairs", "-", stdin="core nobody\n").stdout.count("unknown node") == 1


def test_descendants_and_ancestors(graph: Path) -> None:
    assert atp(graph, "--descendants", "lib", "-q").stdout.split() == ["core", "libc"]
    assert atp(graph, "--ancestors", "lib", "-q").stdout.split() == ["app", "core", "lint"]
    assert atp(graph, "--ancestors", "lib", "--count", "-q").stdout == "3\n"
    told = json.loads(atp(graph, "--descendants", "app", "--json").stdout)
    assert told == {
        "node": "app", "direction": "descendants", "count": 3, "nodes": ["lib", "core", "libc"],
    }  # fmt: skip
    counted = json.loads(atp(graph, "--descendants", "app", "--count", "--json").stdout)
    assert counted == {"node": "app", "direction": "descendants", "count": 3}
    both = atp(graph, "--descendants", "lint", "--descendants", "core", "--count", "--json")
    assert json.loads(both.stdout) == {
        "union_of": ["lint", "core"], "direction": "descendants", "count": 3,
    }  # fmt: skip


def test_an_index_is_written_and_asked(graph: Path, tmp_path: Path) -> None:
    file = tmp_path / "reach.npz"
    assert f"next: atp reach {file} U V" in atp(graph, "-o", file).stdout
    assert Reachability.load(file).indexed
    assert json.loads(atp(file, "app", "libc", "--json").stdout)["pairs"][0]["path"] is True
    file.unlink()
    both = atp(graph, "app", "libc", "-o", file)
    assert "written" in both.stderr
    assert file.exists()
    assert (
        json.loads(atp(graph, "-o", file, "--index", "labels", "--json").stdout)["index"]
        == "labels"
    )
    assert json.loads(atp(file, "app", "libc", "--json").stdout)["pairs"][0]["path"] is True


def test_what_an_index_takes_is_told_first(graph: Path) -> None:
    told = json.loads(atp(graph, "--estimate", "--memory", "1GB", "--json").stdout)
    assert told["nodes"] == 5
    assert told["components"] == 4  # lib and core are one
    assert told["budget"] == 10**9
    assert told["fits"]
    assert 0 < told["memory"] < told["budget"]
    assert told["index"] == "forest"
    assert "the index will be: forest" in atp(graph, "--estimate").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (["{g}"], "Ask for one thing", 2),
        (["{g}", "app", "libc", "--estimate"], "Ask for one thing", 2),
        (["{g}", "app", "libc", "--descendants", "app"], "Ask for one thing", 2),
        (["{g}", "app"], "no partner", 2),
        (["{g}", "app", "nobody"], "no node 'nobody'", 2),
        (["{g}", "--descendants", "nobody"], "no node 'nobody'", 2),
        (["{g}", "--descendants", "app", "--path"], "--path goes with", 2),
        (["{g}", "app", "libc", "--count"], "--count goes with", 2),
        (["-", "--pairs", "-"], "Only one of graph and pairs", 2),
        (["{g}", "-o", "{d}/x.npz", "--index", "forest", "--memory", "10"], "budget is", 3),
        (["{g}", "app", "libc", "--index", "tree"], "'auto', 'forest', 'labels'", 2),
        (["{g}", "-o", "{d}/no/x.npz"], "does not exist", 2),
        (["{d}/none.txt", "a", "b"], "does not exist", 2),
    ],
)
def test_bad_input_gets_a_sentence(
    graph: Path, arguments: list[str], sentence: str, code: int
) -> None:
    result = atp(*(argument.format(g=graph, d=graph.parent) for argument in arguments), "-q")
    assert result.exit_code == code
    assert result.stderr.startswith("atp: error: ")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert list(graph.parent.iterdir()) == [graph]
