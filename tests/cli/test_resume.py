"""Runs with --work that are killed: the same command resumes them and writes the same bytes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from atpgraph.util import checkpoints
from tests.attack.forked import command, freeze, run, settle

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")

PURPOSES = ("reachability", "paper")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("graph") / "graph.txt"
    typed = f"data generate cycles -o {path} --nodes 40 --edges 90 --planted 9 --quiet"
    assert not command(typed.split())
    settle()
    yield path
    freeze()  # without what the children needed


def often() -> None:
    """Save the state of every iteration, not one in 30 seconds."""
    checkpoints.SECONDS = 0.0


@pytest.mark.parametrize("purpose", PURPOSES)
def test_killed_before_every_file_operation(purpose: str, graph: Path, tmp_path: Path) -> None:
    def embed(folder: Path, *others: object) -> list[object]:
        typed = ["embed", graph, "-o", folder / "model.npz", "--purpose", purpose]
        return [*typed, "--dim", 4, "--max-iter", 2, "--json", "--quiet", *others]

    assert not command([*map(str, embed(tmp_path))])  # in this process: compiles for all children
    expected = (tmp_path / "model.npz").read_bytes()
    counted = tmp_path / "counted"
    counted.mkdir()
    whole = run(*embed(counted, "--work", counted / "work"), within=counted, setup=often)
    assert whole.code == 0, whole.stderr
    assert whole.operations > 30

    for point in range(1, whole.operations + 1):
        folder = tmp_path / f"point-{point}"
        folder.mkdir()
        typed = embed(folder, "--work", folder / "work")
        killed = run(*typed, within=folder, kill_at=point, setup=often)
        assert killed.code == -signal.SIGKILL, (point, killed)
        resumed = run(*typed)
        assert resumed.code == 0, (point, resumed.stderr)
        assert (folder / "model.npz").read_bytes() == expected, point
        assert not list(folder.rglob(".*")), point


@pytest.mark.parametrize("name", ["diary.txt", ".diary.txt"])
def test_a_folder_with_other_files_is_refused(name: str, graph: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / name).write_text("mine")
    refused = run("embed", graph, "-o", tmp_path / "model.npz", "--work", work)
    assert refused.code == 2
    assert f"{work} is not empty; choose a new or empty directory." in refused.stderr
    assert [path.name for path in work.iterdir()] == [name]
