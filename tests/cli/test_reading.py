"""The options of every command that reads a graph."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from atpgraph import ATP, read_edgelist
from atpgraph.cli._app import app

TABLE = "when,pkg,needs,cost\n2020,a,b,2\n2021,b,c,3\n2022,c,a,1\n2023,c,d,1\n"
COLUMNS = ["--source", "pkg", "--target", "needs", "--weight", "cost"]


def atp(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "packages.csv"
    path.write_text(TABLE)
    return path


def commands(table: Path) -> list[list[object]]:
    """Every command that reads a graph, on a table that says too little of itself."""
    out = table.parent
    return [
        ["cycles", table],
        ["reach", table, "a", "d"],
        ["embed", table, "-o", out / "model.npz", "--dim", 2],
        ["tune", table, "--dims", "2", "--penalties", "0.1"],
        ["levels", table],
        ["plot", table, "-o", out / "picture.svg", "--kind", "levels"],
        ["links", "fit", table, "-o", out / "links.npz"],
        ["links", "compare", table],
        ["data", "generate", "cycles", "--dag", table, "-o", out / "cycles.txt", "-k", 0],
    ]


@pytest.mark.parametrize("at", range(9))
def test_ambiguous_columns_are_rejected_and_can_be_named(table: Path, at: int) -> None:
    command = commands(table)[at]
    before = sorted(table.parent.iterdir())
    rejected = atp(*command)
    assert rejected.exit_code == 2
    assert "'when', 'pkg', 'needs', 'cost'" in rejected.stderr
    assert "--source and --target" in rejected.stderr
    assert rejected.stderr.count("atp: error:") == 1
    assert sorted(table.parent.iterdir()) == before
    named = atp(*command, *COLUMNS)
    # Four edges are too few for some commands, which then say something else.
    assert "--source" not in named.stderr
    if command[0] not in ("links", "tune", "data"):
        assert named.exit_code == 0, named.stderr


def test_every_option(table: Path) -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    piped = table.with_name("packages.txt")
    piped.write_text("\n".join(TABLE.replace(",", "|").splitlines()[1:]))
    for path, options in (
        (table, COLUMNS),
        (table, ["--source", 2, "--target", 3, "--weight", 4, "--header"]),
        (piped, ["--source", 2, "--target", 3, "--weight", 4, "--delimiter", "|", "--no-header"]),
    ):
        out = table.with_name("dag.csv")
        kept = table.with_name("removed.csv")
        done = atp("cycles", path, "-o", out, "--removed", kept, *options)
        assert done.exit_code == 0, done.stderr
        found = [*read_edgelist(out).edges(), *read_edgelist(kept).edges()]
        assert sorted(found) == edges
        assert read_edgelist(out).weights is not None
    bare = atp("cycles", table, "-o", out, *COLUMNS[:4], "--no-weight")
    assert bare.exit_code == 0
    assert read_edgelist(out).weights is None
    model = table.with_name("model.npz")
    typed = atp("embed", table, "-o", model, "--dim", 2, *COLUMNS[:4], "--type", "when")
    assert typed.exit_code == 0, typed.stderr
    assert ATP.load(model).graph_.type_names == ("2020", "2021", "2022", "2023")
    tabs = table.with_name("tabs.txt")
    tabs.write_text("a b\tb c\n")
    done = atp("levels", tabs, "--delimiter", "tab", "--json")
    assert json.loads(done.stdout)["nodes"] == 2


def test_options_that_do_not_fit(table: Path) -> None:
    for options, says in (
        (["--source", "pkg"], "Name both columns"),
        (["--source", "pkgs", "--target", "needs"], "no column 'pkgs': did you mean 'pkg'?"),
        (["--source", 1, "--target", 9], "no column 9; there are 4"),
        (["--source", 0, "--target", 1], "number from 1 on"),
        (["--source", 2, "--target", 2], "the same column"),
        (["--source", "pkg", "--target", "needs", "--no-header"], "has no header to find 'pkg' in"),
        ([*COLUMNS, "--no-weight"], "exclude each other"),
        (["--delimiter", "ab"], "delimiter"),
    ):
        done = atp("cycles", table, *options)
        assert (done.exit_code, done.stderr.count("error:")) == (2, 1)
        assert says in done.stderr
    model = table.with_name("model.npz")
    assert atp("embed", table, "-o", model, "--dim", 2, *COLUMNS).exit_code == 0
    done = atp("plot", model, "-o", table.with_name("p.svg"), "--source", "a", "--target", "b")
    assert done.exit_code == 2
    assert "not an edge list" in done.stderr


BAD = {
    "few fields": "a,b\nc\n",
    "open quote": 'a,b\n"c,d\n',
    "after a quote": 'a,b\n"c"d,e\n',
    "no weight": "1 2 3\n2 3\n",
    "not a weight": "1 2 3\n2 3 x\n",
    "empty": "",
    "empty id": "a,b\n,c\n",
    "triples": "a is_a b\nb part_of c\n",
    "dates first": "when,pkg,needs\n2020,a,b\n",
    "numbers": "when,citing,cited\n2020,1,2\n",
}


@pytest.mark.parametrize("kind", BAD)
def test_no_message_names_a_python_function(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(BAD[kind])
    done = atp("cycles", path)
    assert done.exit_code == 2
    for word in ("read_edgelist", "as_graph", "DiGraph", "from_edges", "pass "):
        assert word not in done.stderr


def test_a_spreadsheet_is_told_from_files_that_atp_wrote(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "table.xlsx", "w") as sheet:
        sheet.writestr("xl/workbook.xml", "<workbook/>")
    done = atp("levels", tmp_path / "table.xlsx", "-q")
    assert done.exit_code == 2
    assert "save it as CSV or Parquet" in done.stderr
