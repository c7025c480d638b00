"""``atp cycles`` and ``atp levels`` as a user types them."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

from atpgraph import break_cycles, noisy_hierarchy, read_edgelist, write_edgelist
from atpgraph.cli._app import app
from atpgraph.cycles import METHODS
from atpgraph.cycles.methods import AUTO

runner = CliRunner()
ROW = ["removed", "weight", "lower_bound", "proved", "precision", "recall", "f1", "seconds"]


def run(*arguments: object):
    return runner.invoke(app, [*map(str, arguments)])


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Path]:
    """Files of a noisy hierarchy with a self-loop, and of the edges that should go."""
    graph, edges = noisy_hierarchy(80, 320, 25, random_state=3)
    listed = list(graph.edges())
    names = [f"n{u}\tn{v}" for u, v in listed]
    (tmp_path / "graph.txt").write_text("\n".join([*names, "n1\tn1"]) + "\n")
    (tmp_path / "truth.txt").write_text("\n".join([*(names[e] for e in edges), "n1\tn1"]) + "\n")
    return tmp_path / "graph.txt", tmp_path / "truth.txt"


def test_all_methods_with_truth_as_json(planted: tuple[Path, Path]) -> None:
    graph, truth = planted
    done = run("cycles", graph, "--all", "--truth", truth, "--json", "--quiet")
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert list(report) == ["graph", "agony", "methods"]
    assert report["graph"] == {"nodes": 80, "edges": 346, "self_loops": 1}
    assert isinstance(report["agony"], int)
    assert list(report["methods"]) == list(METHODS)
    for row in report["methods"].values():
        assert list(row) == ROW
        assert row["removed"] == row["weight"] >= 1
        assert row["seconds"] >= 0
        hits = row["precision"] * row["removed"]
        assert hits == pytest.approx(round(hits))
        assert hits == pytest.approx(row["recall"] * 26)
        assert row["f1"] == pytest.approx(2 * hits / (row["removed"] + 26))
    assert report["methods"]["bayes"]["f1"] > report["methods"]["dfs"]["f1"]


def test_without_truth_the_measures_are_null(planted: tuple[Path, Path]) -> None:
    report = json.loads(run("cycles", planted[0], "--json", "-q").stdout)
    row = report["methods"][AUTO]
    assert list(row) == ROW
    assert row["precision"] is row["recall"] is row["f1"] is None
    text = run("cycles", planted[0], "-m", "sa-g", "-q").stdout
    assert "80 nodes, 346 edges, 1 self-loops, agony " in text
    assert "sa-g" in text
    assert "precision" not in text


def test_the_minimum_with_weights_and_edges_to_keep(tmp_path: Path) -> None:
    graph, keep = tmp_path / "graph.csv", tmp_path / "keep.csv"
    graph.write_text("source,target,weight\na,b,1\nb,c,5\nc,a,1\na,c,2\nd,d,1\n")
    keep.write_text("source,target\nc,a\n")
    arguments = ["cycles", graph, "-m", "minimum", "--weights", "--keep", keep]
    report = json.loads(run(*arguments, "--json", "-q").stdout)
    row = report["methods"]["minimum"]
    assert (row["removed"], row["weight"], row["lower_bound"], row["proved"]) == (3, 4, 4, True)
    edges = {(e["source"], e["target"]): e for e in report["removed_edges"]}
    assert edges["a", "b"]["cycle"] == ["a", "b", "c"]
    assert edges["a", "c"]["cycle"] == ["a", "c"]
    assert edges["d", "d"] == {"source": "d", "target": "d", "confidence": None, "cycle": ["d"]}
    text = run(*arguments, "-q", "--reverse", "-o", tmp_path / "dag.txt").stdout
    assert "a → b → c → a" in text
    assert set(read_edgelist(tmp_path / "dag.txt").edges()) == {
        ("c", "a"), ("b", "a"), ("b", "c")
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".tsv.gz"])
def test_the_two_files_are_the_graph_taken_apart(planted: tuple[Path, Path], suffix: str) -> None:
    graph, truth = planted
    dag, gone = graph.with_name(f"dag{suffix}"), graph.with_name(f"gone{suffix}")
    arguments = ["cycles", graph, "-m", "bayes", "-o", dag, "--removed", gone, "--seed", 5]
    result = run(*arguments, "--truth", truth, "-q")
    assert result.exit_code == 0
    assert f"{dag}: written" in result.stdout
    assert "precision" in result.stdout
    left, removed = read_edgelist(dag), read_edgelist(gone)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(left.edges())))
    assert set(left.edges()) | set(removed.edges()) == set(read_edgelist(graph).edges())
    assert not set(left.edges()) & set(removed.edges())
    assert removed.weights is not None
    loop = list(removed.edges()).index(("n1", "n1"))
    assert removed.weights.argmax() == loop
    first = dag.read_bytes(), gone.read_bytes()
    assert run(*arguments, "-q").exit_code == 0
    assert (dag.read_bytes(), gone.read_bytes()) == first


def test_levels_in_a_spreadsheet_are_no_formulas(tmp_path: Path) -> None:
    graph = tmp_path / "g.csv"
    graph.write_text('source,target\n=1+1,@x\n@x,"b\rc"\n')
    plain = ["=1+1", "@x", "b\rc"]
    quoted = ["'=1+1", "'@x", "b\rc"]
    for name, expected in (("l.csv", quoted), ("l.tsv", plain), ("l.csv.gz", quoted)):
        assert run("levels", graph, "-o", tmp_path / name, "-q").exit_code == 0
        opener = gzip.open if name.endswith(".gz") else open
        with opener(tmp_path / name, "rt", newline="") as file:
            rows = list(csv.reader(file, delimiter="," if ".csv" in name else "\t"))
        assert rows == [["node", "level"], *([n, str(i)] for i, n in enumerate(expected, start=1))]


def test_hierarchy_levels_rise_along_the_edges_that_stay(planted: tuple[Path, Path]) -> None:
    graph, _ = planted
    file, dag = graph.with_name("levels.csv"), graph.with_name("dag.txt")
    report = json.loads(run("levels", graph, "-o", file, "--json", "-q").stdout)
    assert run("cycles", graph, "-o", dag, "-q").exit_code == 0
    with file.open(encoding="utf-8", newline="") as lines:
        level = {row["node"]: int(row["level"]) for row in csv.DictReader(lines)}
    assert len(level) == report["nodes"] == 80
    assert all(level[u] < level[v] for u, v in read_edgelist(dag).edges())
    sizes = [sum(value == at for value in level.values()) for at in range(1, report["levels"] + 1)]
    assert report["sizes"] == sizes
    assert report["widest_size"] == max(sizes)
    assert sizes[report["widest_level"] - 1] == max(sizes)
    text = run("levels", graph, "-q").stdout
    assert f"{report['levels']} levels" in text


def test_a_dag_stays_as_it_is(tmp_path: Path) -> None:
    path, out, gone = tmp_path / "dag.txt", tmp_path / "out.txt", tmp_path / "gone.txt"
    write_edgelist([("a", "b"), ("b", "c")], path)
    result = run("cycles", path, "--all", "--json", "-q")
    assert all(row["removed"] == 0 for row in json.loads(result.stdout)["methods"].values())
    assert run("cycles", path, "-o", out, "--removed", gone, "-q").exit_code == 0
    assert out.read_text() == path.read_text()
    assert gone.read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["GRAPH", "-m", "h_voting"], "did you mean 'h-voting'?"),
        (["GRAPH", "-m", "magic"], "There is no cycle-breaking method 'magic'"),
        (["GRAPH", "--truth", "OTHER"], "lists the edge x → y, which is not in the graph"),
        (["GRAPH", "--truth", "MISSING"], "does not exist"),
        (["GRAPH", "--all"], "--all compares methods"),
        (["GRAPH", "--keep", "GRAPH"], "The edges to keep form the cycle"),
        (["GRAPH", "--keep", "OTHER"], "lists the edge x → y, which is not in the graph"),
        (["GRAPH", "--weights"], "The graph has no edge weights"),
        (["GRAPH", "--removed", "OUT"], "name two files"),
        (["GRAPH", "--removed", "NOWHERE"], "does not exist"),
        (["DIRECTORY"], "is a directory"),
        (["MISSING"], "does not exist"),
        (["EMPTY"], "is empty"),
        (["SHORT"], ", line 3: one field"),
        (["WEIGHT"], ", line 2"),
        (["BINARY"], ", line 1: not UTF-8 text"),
        (["TRUNCATED"], "is a truncated gzip file"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_no_file(
    planted: tuple[Path, Path], arguments: list[str], said: str
) -> None:
    folder = planted[0].parent
    files = {
        "OTHER": b"x y\n",
        "EMPTY": b"",
        "SHORT": b"# a comment\n1 2\n3\n",
        "WEIGHT": b"1,2,0.5\n2,1,nan\n",
        "BINARY": bytes(range(128, 256)) * 20,
        "TRUNCATED": gzip.compress(b"1 2\n2 1\n" * 1000)[:-20],
    }
    names = {"GRAPH": planted[0], "OUT": folder / "out.txt", "DIRECTORY": folder}
    names["NOWHERE"] = folder / "nowhere" / "gone.txt"
    names["MISSING"] = folder / "missing.txt"
    for name, content in files.items():
        names[name] = folder / f"{name.lower()}{'.gz' if name == 'TRUNCATED' else '.csv'}"
        names[name].write_bytes(content)
    before = sorted(folder.iterdir())
    typed = [names.get(argument, argument) for argument in arguments]
    commands = [["cycles", *typed, "-o", names["OUT"]]]
    if len(typed) == 1 or "-m" in typed:
        commands.append(["levels", *typed, "-o", names["OUT"]])
    for command in commands:
        result = run(*command, "--json", "-q")
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("atp: error: ")
        assert result.stderr.count("\n") == 1
        assert said in result.stderr
        assert sorted(folder.iterdir()) == before


def test_numbers_in_one_file_may_be_text_in_the_other(tmp_path: Path) -> None:
    """A file of integers, about a graph that also has words."""
    graph, some = tmp_path / "graph.txt", tmp_path / "some.txt"
    graph.write_text("a 1\n1 2\n2 1\n2 b\n")
    some.write_text("1 2\n")
    told = json.loads(run("cycles", graph, "--keep", some, "--truth", some, "--json", "-q").stdout)
    assert [(e["source"], e["target"]) for e in told["removed_edges"]] == [("2", "1")]
    assert break_cycles(graph, keep=some).removed_edges == [("2", "1")]
