"""`atp embed` and the commands on a model, as a user types them."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from atpgraph import ATP
from atpgraph.cli._app import app
from atpgraph.graph import generators, read_edgelist, write_edgelist


def atp(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph and its model."""
    path = tmp_path_factory.mktemp("embed")
    write_edgelist(generators.noisy_hierarchy(80, 300, 20, random_state=0).graph, path / "g.txt")
    result = atp("embed", path / "g.txt", "-o", path / "m.npz", "--dim", 8, "-q")
    assert result.exit_code == 0, result.stderr
    return path


def test_an_estimate_starts_nothing(folder: Path) -> None:
    result = atp("embed", folder / "g.txt", "--estimate")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"needs about .* of memory \(.* are free\) and \d+ seconds", result.stdout)
    told = json.loads(atp("embed", folder / "g.txt", "--estimate", "--json", "-q").stdout)
    assert told["memory"] > 0 < told["seconds"]
    refused = atp("embed", folder / "g.txt")
    assert refused.exit_code == 2
    assert "--output FILE; or --estimate" in refused.stderr


def test_embed_json(folder: Path) -> None:
    result = atp(
        "embed", folder / "g.txt", "-o", folder / "j.npz", "--dim", 4, "--kernel", "harmonic",
        "--purpose", "paper", "--method", "bayes", "--zero-weight", 0.1, "--regularization", 0.2,
        "--max-iter", 2, "--seed", 3, "--memory", "1GB", "--threads", 1, "--json", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert set(told) == {
        "purpose", "method", "nodes", "edges", "removed", "levels", "reachable_pairs",
        "iterations", "objective", "zero_weight", "regularization", "threshold", "fidelity",
        "seconds", "compile_seconds", "peak_memory_mb",
    }  # fmt: skip
    assert {"read", "cycles", "hierarchy", "paths", "factorization", "save"} < set(told["seconds"])
    model = ATP.load(folder / "j.npz")
    assert model.get_params() | {"random_state": 3} == model.get_params()
    assert (model.kernel, model.method, model.settings_.zero_weight) == ("harmonic", "bayes", 0.1)
    assert model.settings_.regularization == 0.2
    assert told["nodes"] == model.graph_.n_nodes
    assert told["removed"] == len(model.removed_edges_)
    (folder / "j.npz").unlink()


def test_how_good_the_vectors_are_is_told(folder: Path) -> None:
    write_edgelist(generators.citation_dag(2000, 6000, 0), folder / "c.txt")
    good = atp("embed", folder / "c.txt", "-o", folder / "c.npz", "--dim", 24)
    assert re.search(r"AUC, paths against look-alike targets +(1|1\.0+|0\.9\d*)", good.stdout)
    assert "edges predicted (distance 1)" in good.stdout
    assert "Weakest" not in good.stderr
    poor = atp("embed", folder / "c.txt", "-o", folder / "c.npz", "--dim", 8, "-p", "paper")
    assert "use purpose='reachability' to keep paths." in poor.stdout
    thin = atp("embed", folder / "c.txt", "-o", folder / "c.npz", "--dim", 1)
    assert "Weakest: " in thin.stderr
    told = json.loads(atp("info", folder / "c.npz", "--json").stdout)
    assert told["fidelity"] == ATP.load(folder / "c.npz").fidelity_.to_dict()
    assert told["fidelity"]["auc"] < 0.9
    shown = atp("info", folder / "c.npz").stdout
    assert "paths predicted, uniform over the closure" in shown
    assert "missed" in shown


def test_same_command_same_bytes(folder: Path) -> None:
    atp("embed", folder / "g.txt", "-o", folder / "again.npz", "--dim", 8, "--threads", 2)
    assert (folder / "again.npz").read_bytes() == (folder / "m.npz").read_bytes()
    (folder / "again.npz").unlink()


def test_predict_pairs_and_files_agree(folder: Path) -> None:
    named = json.loads(atp("model", "score", folder / "m.npz", 0, 1, 5, 2, "--json", "-q").stdout)
    (folder / "pairs.txt").write_text("0 1\n5 2\n0 1\n")
    listed = json.loads(
        atp(
            "model", "score", folder / "m.npz", "--pairs", folder / "pairs.txt", "--json", "-q"
        ).stdout
    )
    assert listed["pairs"][:2] == named["pairs"]
    assert listed["pairs"][2] == listed["pairs"][0]
    model = ATP.load(folder / "m.npz")
    assert named["pairs"][1]["score"] == pytest.approx(model.score_pairs([5], [2])[0])
    assert set(named["pairs"][0]) == {
        "source", "target", "path", "predicted", "score", "probability", "unknown",
    }  # fmt: skip
    assert [row["path"] for row in named["pairs"]] == model.reaches([0, 5], [1, 2]).tolist()
    assert [row["predicted"] for row in named["pairs"]] == model.predict([0, 5], [1, 2]).tolist()


def test_predict_says_what_is_in_the_graph(folder: Path) -> None:
    (folder / "deps.txt").write_text("app lib\nlib core\ncore lib\ncore libc\n")
    atp("embed", folder / "deps.txt", "-o", folder / "deps.npz", "--dim", 2, "-q")
    told = atp("model", "score", folder / "deps.npz", "app", "libc").stdout
    assert told.startswith("app → libc: path in the graph: yes; predicted: ")
    assert re.fullmatch(r".*predicted: (yes|no), 0\.\d\d\n", told)
    (folder / "pairs.txt").write_text("app libc\nlibc nobody\nlibc app\nme you\n")
    result = atp("model", "score", folder / "deps.npz", "--pairs", folder / "pairs.txt", "--json")
    rows = json.loads(result.stdout)["pairs"]
    assert [row["path"] for row in rows] == [True, None, False, None]
    assert [row["unknown"] for row in rows] == [[], ["nobody"], [], ["me", "you"]]
    assert rows[1]["score"] is rows[1]["predicted"] is None
    assert "2 of 4 pairs name a node that the graph does not have" in result.stderr
    table = atp("model", "score", folder / "deps.npz", "--pairs", folder / "pairs.txt", "-q").stdout
    assert table.count("unknown node") == 2


def test_integers_and_text_are_the_same_node(folder: Path) -> None:
    ATP(n_components=1).fit([(1, "b"), ("b", "2")]).save(folder / "mixed.npz")
    rows = json.loads(atp("model", "score", folder / "mixed.npz", 1, 2, "b", 2, "--json").stdout)[
        "pairs"
    ]
    assert [(row["source"], row["target"]) for row in rows] == [(1, "2"), ("b", "2")]


@pytest.mark.parametrize("name", ["²", "1_0", "٣", "+1", "1.0", "0x1", "1e0"])
def test_only_plain_digits_are_a_number(folder: Path, name: str) -> None:
    refused = atp("model", "score", folder / "m.npz", "--", name, 3)
    assert refused.exit_code == 2
    assert f"no node '{name}'; its nodes are integers" in refused.stderr
    (folder / "odd.csv").write_text(f"source,target\n{name},3\n1,3\n10,3\n3,11\n")
    assert read_edgelist(folder / "odd.csv").n_nodes == 5


def test_weights_get_one_note(folder: Path) -> None:
    (folder / "w.txt").write_text("a b 2\nb c 3\n")
    told = atp("embed", folder / "w.txt", "-o", folder / "w.npz", "--dim", 2)
    assert told.stderr.count("atp: The embedding ignores edge weights") == 1
    assert "weights" not in atp("embed", folder / "w.txt", "-o", folder / "w.npz", "-q").stderr
    assert not logging.getLogger("atpgraph").handlers


def test_standard_input_and_output(folder: Path) -> None:
    graph, pairs = (folder / "g.txt").read_bytes(), b"0 1\n5 2\n"
    run = CliRunner().invoke
    made = run(app, ["embed", "-", "-o", "-", "--dim", "8"], input=graph)
    assert made.stdout_bytes[:2] == b"PK"
    assert "next: atp model top" in made.stderr
    assert "reading standard input" in made.stderr
    (folder / "piped.npz").write_bytes(made.stdout_bytes)
    piped, saved = ATP.load(folder / "piped.npz"), ATP.load(folder / "m.npz")
    assert piped.source_.tobytes() == saved.source_.tobytes()
    told = run(
        app, ["model", "score", str(folder / "m.npz"), "--pairs", "-", "--json"], input=pairs
    )
    assert len(json.loads(told.stdout)["pairs"]) == 2
    table = run(
        app, ["model", "export", str(folder / "m.npz"), "--format", "csv", "-o", "-", "--quiet"]
    )
    assert table.stdout.startswith("node,level,source_0,")
    assert table.stderr == ""
    assert len(table.stdout.splitlines()) == 81
    dag = run(app, ["cycles", "-", "-o", "-"], input=graph)
    assert "removed" in dag.stderr
    again = run(app, ["cycles", "-", "--json", "-q"], input=dag.stdout_bytes)
    assert json.loads(again.stdout)["methods"]["sift"]["removed"] == 0
    assert "standard input is empty" in run(app, ["embed", "-", "-o", "-"], input=b"").stderr


@pytest.mark.parametrize("direction", ["targets", "sources"])
def test_neighbors(folder: Path, direction: str) -> None:
    result = atp(
        "model", "top", folder / "m.npz", 7, "--direction", direction, "--top", 3, "--json"
    )
    told = json.loads(result.stdout)
    model = ATP.load(folder / "m.npz")
    find = model.top_targets if direction == "targets" else model.top_sources
    assert told["direction"] == direction
    (only,) = told["nodes"]
    assert only["node"] == 7
    assert [row["node"] for row in only["neighbors"]] == find(7, 3)[0].tolist()
    several = json.loads(
        atp(
            "model", "top", folder / "m.npz", 9, 7, "--direction", direction, "--top", 3, "--json"
        ).stdout
    )
    assert [row["node"] for row in several["nodes"]] == [9, 7]
    names = [row["node"] for row in several["nodes"][1]["neighbors"]]
    assert names == [row["node"] for row in only["neighbors"]]
    text = atp("model", "top", folder / "m.npz", 9, 7).stdout
    assert "targets of 9" in text
    assert "targets of 7" in text


def test_info_and_export(folder: Path) -> None:
    told = json.loads(atp("info", folder / "m.npz", "--json").stdout)
    assert told["nodes"] == 80
    assert told["params"]["n_components"] == 8
    assert "sift" in atp("info", folder / "m.npz").stdout
    for name, count in (("word2vec", 2), ("csv", 1), ("parquet", 1), ("npy", 3)):
        result = atp(
            "model", "export", folder / "m.npz", "--format", name, "-o", folder / name, "--json"
        )
        files = json.loads(result.stdout)["files"]
        assert len(files) == count
        assert all(Path(file).exists() for file in files)
    for file in ("v.csv", "v.parquet"):  # the name says what it is
        told = json.loads(
            atp("model", "export", folder / "m.npz", "-o", folder / file, "--json").stdout
        )
        assert told["format"] == Path(file).suffix[1:]
        assert (folder / file).is_file()
    vectors = np.load(folder / "npy" / "source.npy")
    assert vectors.tobytes() == ATP.load(folder / "m.npz").source_.tobytes()


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (["embed", "{g}", "-o", "{d}/no/m.npz"], "does not exist", 2),
        (["embed", "{d}/none.txt", "-o", "{d}/x.npz"], "none.txt", 2),
        (["embed", "{g}", "-o", "{d}/x.npz", "--kernel", "cubic"], "no kernel 'cubic'", 2),
        (["embed", "{g}", "-o", "{d}/x.npz", "--zero-weight", "x"], "from 0 to 1, or auto", 2),
        (["model", "score", "{m}", "1"], "no partner", 2),
        (["model", "score", "{m}"], "--pairs", 2),
        (["model", "score", "{m}", "1", "nobody"], "no node 'nobody'", 2),
        (["model", "score", "{g}", "1", "2"], "model", 2),
        (["model", "top", "{m}", "12345"], "no node 12345", 2),
        (["model", "top", "{m}", "1", "--direction", "up"], "not one of 'targets', 'sources'", 2),
        (["model", "top", "{m}", "1", "12345"], "no node 12345", 2),
        (["model", "export", "{m}", "--format", "xlsx", "-o", "{d}/x"], "no format", 2),
        (["model", "export", "{m}", "--format", "npy", "-o", "-"], "several files", 2),
        (["info", "{d}"], "neither a graph nor", 2),
    ],
)
def test_bad_input_gets_a_sentence_and_leaves_nothing(
    folder: Path, arguments: list[str], sentence: str, code: int
) -> None:
    before = sorted(folder.iterdir())
    names = {"g": folder / "g.txt", "m": folder / "m.npz", "d": folder}
    result = atp(*(argument.format(**names) for argument in arguments), "-q")
    assert result.exit_code == code
    assert result.stderr.startswith("atp: error: ")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(("old", "new"), [("1 2\n2 3\n", "3 new\n"), ("a 1\n1 2\n", "2 9\n")])
def test_new_edges_find_their_nodes_as_text_or_numbers(tmp_path: Path, old: str, new: str) -> None:
    graph, more, model = (tmp_path / name for name in ("old.txt", "new.txt", "m.npz"))
    graph.write_text(old)
    more.write_text(new)
    assert atp("embed", graph, "-o", model, "--dim", 4, "-q").exit_code == 0
    told = json.loads(atp("model", "add", model, more, "-o", model, "--json", "-q").stdout)
    assert (told["nodes"], told["added_nodes"]) == (4, 1)
    grown = ATP.load(model)
    assert grown.reaches(grown.labels_[0], grown.labels_[3])
    again = ATP(n_components=2, max_iter=1).fit(graph).add_edges(more)
    assert again.labels_.tolist() == grown.labels_.tolist()
