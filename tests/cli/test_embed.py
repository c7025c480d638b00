"""`atp embed` and the commands on a model, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from atpgraph import ATP
from atpgraph.cli._app import app
from atpgraph.graph import generators, write_edgelist


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


def test_embed_json(folder: Path) -> None:
    result = atp(
        "embed", folder / "g.txt", "-o", folder / "j.npz", "--dim", 4, "--kernel", "harmonic",
        "--method", "bayes", "--zero-weight", 0.1, "--regularization", 0.2, "--max-iter", 2,
        "--seed", 3, "--memory", "1GB", "--threads", 1, "--json", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert set(told) == {
        "nodes", "edges", "removed", "levels", "reachable_pairs", "extras", "iterations",
        "objective", "seconds", "compile_seconds", "peak_memory_mb",
    }  # fmt: skip
    assert {"read", "cycles", "hierarchy", "closure", "factorization", "save"} < set(
        told["seconds"]
    )
    model = ATP.load(folder / "j.npz")
    assert model.get_params() | {"random_state": 3} == model.get_params()
    assert (model.kernel, model.method, model.zero_weight_) == ("harmonic", "bayes", 0.1)
    assert model.regularization_ == 0.2
    assert told["nodes"] == model.graph_.n_nodes
    assert told["removed"] == len(model.removed_edges_)
    (folder / "j.npz").unlink()


def test_same_command_same_bytes(folder: Path) -> None:
    atp("embed", folder / "g.txt", "-o", folder / "again.npz", "--dim", 8, "--threads", 2)
    assert (folder / "again.npz").read_bytes() != b""
    first, again = ATP.load(folder / "m.npz"), ATP.load(folder / "again.npz")
    assert first.source_.tobytes() == again.source_.tobytes()
    (folder / "again.npz").unlink()


def test_predict_pairs_and_files_agree(folder: Path) -> None:
    named = json.loads(atp("predict", folder / "m.npz", 0, 1, 5, 2, "--json", "-q").stdout)
    (folder / "pairs.txt").write_text("0 1\n5 2\n0 1\n")
    listed = json.loads(
        atp("predict", folder / "m.npz", "--pairs", folder / "pairs.txt", "--json", "-q").stdout
    )
    assert listed["pairs"][:2] == named["pairs"]
    assert listed["pairs"][2] == listed["pairs"][0]
    model = ATP.load(folder / "m.npz")
    assert named["pairs"][1]["score"] == pytest.approx(model.score_pairs([5], [2])[0])
    assert set(named["pairs"][0]) == {"source", "target", "score", "probability", "path"}


@pytest.mark.parametrize("direction", ["targets", "sources"])
def test_neighbors(folder: Path, direction: str) -> None:
    result = atp("neighbors", folder / "m.npz", 7, "--direction", direction, "--top", 3, "--json")
    told = json.loads(result.stdout)
    model = ATP.load(folder / "m.npz")
    find = model.top_targets if direction == "targets" else model.top_sources
    assert [row["node"] for row in told["neighbors"]] == find(7, 3)[0].tolist()
    assert "score" in atp("neighbors", folder / "m.npz", 7).stdout


def test_info_and_export(folder: Path) -> None:
    told = json.loads(atp("info", folder / "m.npz", "--json").stdout)
    assert told["nodes"] == 80
    assert told["params"]["n_components"] == 8
    assert "h-voting" in atp("info", folder / "m.npz").stdout
    for name, count in (("word2vec", 2), ("parquet", 1), ("npy", 3)):
        result = atp("export", folder / "m.npz", "--format", name, "-o", folder / name, "--json")
        files = json.loads(result.stdout)["files"]
        assert len(files) == count
        assert all(Path(file).exists() for file in files)
    vectors = np.load(folder / "npy.source.npy")
    assert vectors.tobytes() == ATP.load(folder / "m.npz").source_.tobytes()


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (["embed", "{g}", "-o", "{d}/no/m.npz"], "does not exist", 2),
        (["embed", "{d}/none.txt", "-o", "{d}/x.npz"], "none.txt", 2),
        (["embed", "{g}", "-o", "{d}/x.npz", "--kernel", "cubic"], "Unknown kernel", 2),
        (["embed", "{g}", "-o", "{d}/x.npz", "--memory", "10"], "lower n_components", 3),
        (["predict", "{m}", "1"], "no partner", 2),
        (["predict", "{m}"], "--pairs", 2),
        (["predict", "{m}", "1", "nobody"], "no node 'nobody'", 2),
        (["predict", "{g}", "1", "2"], "model", 2),
        (["neighbors", "{m}", "12345"], "no node 12345", 2),
        (["neighbors", "{m}", "1", "--direction", "up"], "targets or sources", 2),
        (["export", "{m}", "--format", "csv", "-o", "{d}/x"], "no format", 2),
        (["info", "{d}"], "directory", 2),
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
