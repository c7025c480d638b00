"""``atp data generate`` as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import networkx as nx
import pytest
from typer.testing import CliRunner

from atpgraph import read_edgelist
from atpgraph.cli._app import app

runner = CliRunner()


def run(*arguments: object):
    return runner.invoke(app, ["data", "generate", *map(str, arguments)])


def test_cycles_with_truth_as_typed(tmp_path):
    graph, truth = tmp_path / "g.txt", tmp_path / "truth.csv.gz"
    command = [
        sys.executable,
        "-m",
        "atpgraph",
        "data",
        "generate",
        "cycles",
        "-n",
        "80",
        "-m",
        "240",
    ]
    command += ["-k", "20", "--max-length", "3", "-o", str(graph), "--truth", str(truth), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["edges"] == 260
    assert report["planted"] == 20
    edges, planted = set(read_edgelist(graph).edges()), set(read_edgelist(truth).edges())
    assert len(edges) == 260
    assert len(planted) == 20
    assert planted < edges
    assert nx.is_directed_acyclic_graph(nx.DiGraph(edges - planted))


@pytest.mark.parametrize("model", ["dag", "citation", "gnm"])
def test_same_seed_same_bytes(tmp_path, model):
    files = [tmp_path / f"{seed}-{turn}.txt.gz" for seed in (1, 2) for turn in (1, 2)]
    for file in files:
        result = run(model, "-n", 60, "-m", 120, "-o", file, "--seed", file.name[0], "-q")
        assert result.exit_code == 0
        assert "60 nodes, 120 edges" in result.stdout
        assert result.stderr == ""
    first, again, other, _ = (file.read_bytes() for file in files)
    assert first == again
    assert first != other


def test_planting_into_a_given_dag(tmp_path):
    base, out = tmp_path / "dag.txt", tmp_path / "out.txt"
    base.write_text("a b\nb c\n")
    assert run("cycles", "--dag", base, "-k", 3, "-o", out).exit_code == 0
    assert read_edgelist(out).n_edges == 5
    result = run("cycles", "--dag", base, "-k", 4, "-o", tmp_path / "none.txt")
    assert result.exit_code == 2
    assert "only 3 pairs" in result.stderr
    assert not (tmp_path / "none.txt").exists()


def test_a_bad_line_is_named_and_exits_2(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("1 2\n3\n")
    result = run("cycles", "--dag", bad, "-o", tmp_path / "out.txt", "--json", "-q")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"atp: error: {bad}, line 2: one field")


def test_first_compilation_is_announced_once_per_installation(tmp_path):
    command = [sys.executable, "-m", "atpgraph", "data", "generate", "cycles", "-n", "9", "-m", "9"]
    command += ["-k", "2", "-o", str(tmp_path / "g.txt")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    notices = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stderr.count("compiling kernels")
        for _ in range(2)
    ]
    assert notices == [1, 0]


def test_impossible_requests_are_one_sentence(tmp_path):
    out = tmp_path / "g.txt"
    for arguments in (
        ["dag", "-n", 3, "-m", 4, "-o", out],
        ["gnm", "-n", 3, "-m", 7, "-o", out],
        ["citation", "-n", 3, "-m", 3, "-o", out],
        ["dag", "-n", 3, "-m", 1, "-o", tmp_path / "no-folder" / "g.txt"],
        ["dag", "-n", 3, "-m", 1, "-o", tmp_path],
        ["cycles", "--dag", tmp_path / "missing", "-o", out],
        ["cycles", "-o", out, "--truth", out],
        ["cycles", "-o", out, "--truth", tmp_path / "no-folder" / "t.txt"],
    ):
        result = run(*arguments, "-q")
        assert result.exit_code == 2, arguments
        assert result.stderr.startswith("atp: error: ")
        assert result.stderr.count("\n") == 1
        assert not out.exists()


def test_a_graph_on_standard_output_is_called_so():
    done = run("gnm", "-n", 5, "-m", 4, "-o", "-")
    assert len(done.stdout.splitlines()) == 4
    assert "standard output: 5 nodes, 4 edges" in done.stderr
