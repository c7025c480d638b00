"""``atp links compare`` and ``atp data`` as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from atpgraph.cli._app import app
from atpgraph.graph.edgelist import write_edgelist
from atpgraph.graph.generators import gnm

runner = CliRunner()


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "graph.txt"
    write_edgelist(gnm(80, 700, random_state=1), file)
    return file


def test_json_and_report_as_typed(graph, tmp_path):
    command = [sys.executable, "-m", "atpgraph", "links", "compare", str(graph), "--seeds", "2"]
    command += ["--methods", "trivial,hope-cn", "--dim", "8", "--protocol", "random,ranking"]
    command += ["--json", "--report", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    payload = json.loads(done.stdout)
    assert payload["edges"] == 700
    assert payload["protocols"] == ["random", "ranking", "ranking-100"]
    row = payload["methods"]["hope-cn"]["protocols"]["random"]
    assert 0 <= row["auc"]["mean"] <= 1
    assert {"ap", "hits@100", "seconds"} <= set(row)
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "HOPE-CN" in page
    assert "atp links compare" in page
    assert "report written" in done.stderr


def test_table(graph):
    done = runner.invoke(
        app,
        ["links", "compare", str(graph), "--methods", "svd", "--seeds", "2", "--dim", "4", "-q"],
    )
    assert done.exit_code == 0
    assert "SVD of A" in done.stdout
    assert "±" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere.txt"], "neither a file nor a dataset"),
        (["GRAPH", "--methods", "magic"], "no method 'magic'"),
        (["GRAPH", "--protocol", "lucky"], "no protocol 'lucky'"),
        (["GRAPH", "--dim", "many"], "--dim got 'many'"),
        (["GRAPH", "--fraction", "2"], "between 0 and 1"),
    ],
)
def test_bad_input_is_one_sentence(graph, arguments, reason):
    typed = [str(graph) if part == "GRAPH" else part for part in arguments]
    done = runner.invoke(app, ["links", "compare", *typed, "-q"])
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("ATP_DATA", str(tmp_path))
    listed = runner.invoke(app, ["data", "list", "--json"])
    names = [entry["name"] for entry in json.loads(listed.stdout)["datasets"]]
    assert names[0] == "wiki-Vote"
    assert "GNM-30K" in names
    assert "wiki-Vote" in runner.invoke(app, ["datasets"]).stdout
    file = tmp_path / "email-Eu-core.txt.gz"
    file.write_bytes(b"1 2\n")
    found = runner.invoke(app, ["data", "path", "email-eu-core"])
    assert found.stdout.strip() == str(file)
    missing = runner.invoke(app, ["data", "path", "GNM-30K"])
    assert missing.exit_code == 2
    assert "generated" in missing.stderr


def test_standard_input(graph):
    typed = ["links", "compare", "-", "--methods", "levels", "--protocol", "random", "--seeds", "1"]
    done = runner.invoke(app, [*typed, "--json", "-q"], input=graph.read_text())
    assert json.loads(done.stdout)["edges"] == 700


def test_a_fraction_of_the_newest_sources(graph, tmp_path):
    times = tmp_path / "times.txt"
    times.write_text("".join(f"{node} {node}\n" for node in range(80)))
    typed = ["links", "compare", str(graph), "--methods", "popularity", "--seeds", "1", "--json"]
    hidden = [
        json.loads(runner.invoke(app, [*typed, "--times", str(times), *more]).stdout)["test_edges"]
        for more in ([], ["--fraction", "0.05"], ["--fraction", "0.3"])
    ]
    assert hidden[0] == hidden[1] < hidden[2] / 3
