"""Streams that are closed, full or strange, and terminals that are: a sentence, or the result."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from .forked import Outcome, run, unprintable

COMMANDS = {
    "info": "info {w}/model.npz",
    "json": "info {w}/model.npz --json",
    "table": "model top {w}/model.npz 1",
    "file": "levels {w}/graph.txt -m dfs -o -",
    "stats": "qa stats {w}/site",
    "help": "--help",
}


def _to(stream: int, path: str) -> Callable[[], None]:
    def setup() -> None:
        import sys

        os.dup2(os.open(path, os.O_WRONLY), stream)
        if stream == 1:
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115

    return setup


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("name", COMMANDS)
def test_standard_output_is_full(world, name) -> None:
    done = run(*COMMANDS[name].format(w=world).split(), setup=_to(1, "/dev/full"))
    assert (done.code, done.complaint()) == (2, ""), done
    assert "tandard output" in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("name", COMMANDS)
def test_standard_error_is_full(world, name) -> None:
    """Nobody can be told, but the work is done."""
    done = run(*COMMANDS[name].format(w=world).split(), setup=_to(2, "/dev/full"))
    assert (done.code, done.complaint()) == (0, ""), done
    assert done.stdout


def in_a_terminal(arguments: list[str], rows: int, columns: int, **environment: str) -> Outcome:
    """Run a command with a pseudo-terminal for standard output and standard error."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def setup() -> None:
        import sys

        os.environ.pop("NO_COLOR", None)
        os.environ.update(environment)
        os.dup2(theirs, 1)
        os.dup2(theirs, 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115

    done = run(*arguments, setup=setup)
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], 0)[0]:
        try:
            said += os.read(ours, 1 << 16)
        except OSError:
            break
    os.close(ours)
    return Outcome(done.code, said.decode("utf-8", "replace"), done.stderr, 0, done.hung)


@pytest.mark.parametrize(
    ("rows", "columns", "environment"),
    [
        (0, 0, {}),
        (1, 1, {}),
        (24, 80, {"TERM": "dumb"}),
        (24, 80, {"TERM": "no-such-terminal", "COLORTERM": "truecolor"}),
        (24, 80, {"TERM": "", "COLUMNS": "0", "LINES": "-5"}),
        (24, 80, {"COLUMNS": "many", "LANG": "xx_YY.nothing", "LC_ALL": "C"}),
        (60000, 60000, {"FORCE_COLOR": "1"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["table", "file", "json"])
def test_strange_terminals(world, name, rows, columns, environment) -> None:
    done = in_a_terminal(COMMANDS[name].format(w=world).split(), rows, columns, **environment)
    assert done.code == 0, done
    assert not done.hung
    assert "Traceback" not in done.stdout


HOSTILE = "\x1b]0;owned\x07\x9b31mred\u202egnp.exe\x00\x08\r"


def test_labels_do_not_drive_the_terminal(world, tmp_path) -> None:
    """Titles, labels and file names with escapes: what the terminal gets is harmless."""
    folder = tmp_path / "with \x1b[31m\x9b"
    folder.mkdir()
    graph = folder / "a\x1b]0;x\x07.txt"
    label = HOSTILE.replace("\x00", "").replace("\r", "")
    graph.write_text(f'"{label}",b\nb,c\nc,"{label}"\n', encoding="utf-8")
    model = folder / "m.npz"
    sequences = re.compile("\x1b\\[[0-9;?]*[a-zA-Z]")  # what Rich itself sends
    for typed in (
        ["embed", str(graph), "-o", str(model), "--dim", "2", "--max-iter", "1"],
        ["info", str(model)],
        ["model", "top", str(model), "b"],
        ["model", "top", str(model), label],
        ["model", "score", str(model), "b", "no\x1b[5m"],
        ["cycles", str(graph)],
        ["levels", str(folder / "missing\x1b[2J")],
        ["reach", str(graph), "--descendants", "b"],
    ):
        done = in_a_terminal(typed, 24, 80)
        assert done.code in (0, 2), (typed, done)
        left = sequences.sub("", done.stdout)
        bad = [c for c in left if unprintable(c) or c in "\u202e\u2066"]
        assert not bad, (typed, done.stdout)
