"""Standard output that is full, closed or gone, and text that would steer the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atpgraph import DiGraph, write_edgelist
from atpgraph.util.progress import visible
from tests.attack.forked import run

POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX shells and devices")
ATP = f"{sys.executable} -m atpgraph"
QUERY = "levels g.csv -q"


def shell(script: str, folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=folder, timeout=300
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("streams")
    nodes = [f"evil\x1b[2J{i}\x9b\u202e" for i in range(40)]
    edges = [(nodes[i], nodes[j]) for i in range(40) for j in range(i + 1, min(i + 6, 40))]
    write_edgelist(DiGraph.from_edges([*edges, (nodes[5], nodes[1])]), path / "g.csv")
    typed = ["embed", path / "g.csv", "-o", path / "m.npz", "--dim", "4", "-q"]
    assert run(*typed).code == 0
    return path


@POSIX
@pytest.mark.parametrize(
    ("redirected", "code", "says"),
    [
        (">/dev/full", 2, "atp: error: Cannot write to standard output: No space left on device."),
        (">&-", 2, "atp: error: Cannot write to standard output: it is closed."),
        ("--json >&-", 2, "atp: error: Cannot write to standard output: it is closed."),
        ("2>&-", 0, ""),
        ("2>/dev/full", 0, ""),
    ],
)
def test_output_that_goes_nowhere(folder, redirected, code, says) -> None:
    """Interpreters started that way; what they do then is tested in tests/attack/test_streams."""
    ended, _, stderr = shell(f"{ATP} {QUERY} {redirected}", folder)
    assert (ended, stderr.strip()) == (code, says)


@POSIX
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_went_away(folder, options) -> None:
    # As after "| head -1", but certain: nobody reads from the first byte on.
    reader, writer = os.pipe()
    os.close(reader)
    typed = [sys.executable, "-m", "atpgraph", "cycles", "g.csv", "--all", "-q", *options]
    done = subprocess.run(typed, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=folder)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@POSIX
@pytest.mark.parametrize("command", ["--help", "--version"])
def test_help_into_a_full_disk(folder, command) -> None:
    ended, _, stderr = shell(f"{ATP} {command} >/dev/full", folder)
    assert ended in (0, 2)
    assert "Traceback" not in stderr


@POSIX
@pytest.mark.parametrize(
    "typed",
    [
        ("levels", "g.csv"),
        ("info", "m.npz"),
        ("model", "score", "m.npz", "a\x1b[31m", "b"),
        ("embed", "no\x1bfile", "-o", "m2.npz"),
        ("cycles", "g.csv"),
        ("model", "top", "m.npz", "--top", "3", "evil\x1b[2J3\x9b\u202e"),
    ],
    ids=lambda typed: typed[0],
)
def test_nothing_steers_the_terminal(folder, typed) -> None:
    done = run(*typed, setup=lambda: os.chdir(folder))
    assert done.stdout + done.stderr
    for character in ("\x1b", "\x9b", "\u202e"):
        assert character not in done.stdout + done.stderr


def test_visible_keeps_ordinary_text() -> None:
    assert visible("Größe, 日本, emoji 🙂") == "Größe, 日本, emoji 🙂"
    assert visible("\ud800") == r"\ud800"


@POSIX
def test_standard_input_that_is_closed_is_empty(folder) -> None:
    ended, _, stderr = shell(f"{ATP} levels - -q <&-", folder)
    assert (ended, stderr) == (
        2, "atp: error: standard input is empty; give a file with one edge per line.\n",
    )  # fmt: skip
