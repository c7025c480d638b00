"""Manners in a terminal: completion, exit codes, colors, Ctrl-C, next steps."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atpgraph import noisy_hierarchy, random_dag, write_edgelist
from atpgraph.cli import options
from atpgraph.cli._app import app
from atpgraph.closure import KERNELS
from atpgraph.cycles import METHODS
from atpgraph.embedding.files import FORMATS
from atpgraph.embedding.settings import PURPOSES
from atpgraph.plot import KINDS
from tests.attack.forked import run

POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX terminals and signals")
ATP = [sys.executable, "-m", "atpgraph"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("manners")
    write_edgelist(noisy_hierarchy(60, 200, 20, random_state=0).graph, path / "g.txt")
    return path


def complete(line: str) -> list[str]:
    words = line.split(" ")
    environment = {
        **os.environ,
        "_ATP_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(ATP, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


def test_names_to_complete_are_those_of_the_library() -> None:
    for known, completed in (
        ([*METHODS, "auto"], options.METHODS),
        (KERNELS, options.KERNELS),
        (PURPOSES, options.PURPOSES),
        (FORMATS, options.FORMATS),
        (KINDS, options.KINDS),
    ):
        assert tuple(known) == completed


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("atp em", ["embed"]),
        ("atp qa tr", ["train"]),
        ("atp cycles --method sa-", ["sa-g", "sa-f", "sa-b", "sa-voting"]),
        ("atp plot --kind h", ["hierarchy"]),
    ],
)
def test_shell_completion(line, expected) -> None:
    assert complete(line) == expected


@POSIX
def test_completion_installs_itself(tmp_path) -> None:
    # From a shell, whose name it looks up; the second command keeps bash from replacing itself.
    script = f"'{sys.executable}' -m atpgraph --install-completion; true"
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert "completion installed" in done.stdout
    installed = (tmp_path / ".bash_completions" / "atp.sh").read_text()
    assert "complete -o default -F _atp_completion atp" in installed
    assert "atp.sh" in (tmp_path / ".bashrc").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["cycles", "{d}/g.txt", "-q"], 0),
        (["no-such-command"], 2),
        (["embed"], 2),
        (["embed", "{d}/g.txt", "-o", "{d}/m.npz", "--dim", "none"], 2),
        (["embed", "{d}/none.txt", "-o", "{d}/m.npz"], 2),
        (["cycles", "{d}/g.txt", "--method", "magic"], 2),
        (["levels", "{d}/none.txt"], 2),
        (["model", "score", "{d}/none.npz", "1", "2"], 2),
        (["model", "top", "{d}/none.npz", "1"], 2),
        (["info", "{d}/none.txt"], 2),
        (["model", "export", "{d}/none.npz", "-o", "{d}/x"], 2),
        (["plot", "{d}/none.txt", "-o", "{d}/x.png"], 2),
        (["links", "compare", "{d}/none.txt"], 2),
        (["data", "path", "nothing"], 2),
        (["data", "generate", "dag", "-o", "{d}/no/such.txt"], 2),
        (["qa", "stats", "{d}/none"], 2),
        (["qa", "ingest", "{d}/none", "-o", "{d}/site"], 2),
        (["qa", "route", "{d}/none", "--title", "x"], 2),
        (["reach", "{d}/g.txt", "-o", "{d}/m.npz", "--index", "forest", "--memory", "10"], 3),
    ],
)
def test_exit_codes(folder, arguments, code) -> None:
    before = sorted(folder.iterdir())
    typed = [argument.format(d=folder) for argument in arguments]
    done = CliRunner().invoke(app, typed)
    assert done.exit_code == code, done.stderr
    assert sorted(folder.iterdir()) == before
    if code:
        assert done.stdout == ""
        assert done.stderr.strip()
        assert "Traceback" not in done.stderr
        assert "bug in atpgraph" not in done.stderr


def test_help_tells_the_exit_codes() -> None:
    text = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    for part in ("0 done", "1 a bug", "2 bad input", "3 too large", "130 interrupted"):
        assert part in text


def in_terminal(command: list[str], until: bytes = b"", **environment: str) -> tuple[int, bytes]:
    """Run a command on a pseudo-terminal; press Ctrl-C once `until` is on the screen."""
    import pty

    master, slave = pty.openpty()
    started = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    )  # fmt: skip
    os.close(slave)
    shown, pressed, give_up = b"", not until, time.monotonic() + 600
    try:
        while time.monotonic() < give_up:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    part = os.read(master, 1 << 16)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                shown += part
            if not pressed and until in shown:
                pressed = True
                started.send_signal(signal.SIGINT)
        return started.wait(timeout=60), shown
    finally:
        if started.poll() is None:
            started.kill()
            started.wait()
        os.close(master)


@POSIX
@pytest.mark.usefixtures("interruptible")
def test_interrupt_in_a_terminal_ends_clean(tmp_path) -> None:
    write_edgelist(random_dag(30_000, 150_000, random_state=0), tmp_path / "g.txt")
    command = [*ATP, "embed", str(tmp_path / "g.txt"), "-o", str(tmp_path / "m.npz")]
    code, shown = in_terminal(command, until=b"factori")
    assert code == 130
    # Nothing half-written; the bar is wiped, the cursor is back, and one line says what happened.
    assert [path.name for path in tmp_path.iterdir()] == ["g.txt"]
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l")
    end = shown[shown.rfind(b"\x1b[2K") :]
    text = re.sub(rb"\x1b\[[?0-9;]*[a-zA-Z]|\r", b"", end)
    assert text == b"atp: interrupted\n"
    assert b"Traceback" not in shown


@POSIX
def test_where_interrupts_are_ignored_the_command_runs_to_its_end(tmp_path) -> None:
    # As a shell starts a background job: Ctrl-C is meant for somebody else.
    write_edgelist(random_dag(3_000, 15_000, random_state=0), tmp_path / "g.txt")
    ignoring = ["bash", "-c", "trap '' INT\nexec \"$@\"", "bash"]
    embed = [*ATP, "embed", str(tmp_path / "g.txt"), "-o", str(tmp_path / "m.npz")]
    code, shown = in_terminal([*ignoring, *embed], until=b"reading")
    assert code == 0
    assert (tmp_path / "m.npz").exists()
    assert b"interrupted" not in shown


COLOR = re.compile(rb"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-7])(;[0-9;]*)?m")


@POSIX
def test_colors_only_where_wanted(folder) -> None:
    command = [*ATP, "cycles", str(folder / "g.txt"), "--method", "h-voting"]
    code, shown = in_terminal(command)
    assert code == 0
    assert COLOR.search(shown)
    code, shown = in_terminal(command, NO_COLOR="1")
    assert code == 0
    assert not COLOR.search(shown)
    piped = run(*command[len(ATP) :])
    assert piped.code == 0
    assert "\x1b" not in piped.stdout + piped.stderr
    help_piped = subprocess.run([*ATP, "--help"], capture_output=True, check=True)
    assert b"\x1b" not in help_piped.stdout


def test_messages_name_the_next_step(folder, tmp_path) -> None:
    def said(*arguments: object) -> str:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return done.stdout + done.stderr

    graph, model = folder / "g.txt", tmp_path / "m.npz"
    assert "next: atp embed" in said("cycles", graph, "-o", tmp_path / "dag.txt")
    assert "next: atp model top" in said("embed", graph, "-o", model, "--dim", 2)
    assert "other kinds: " in said("plot", model, "-o", tmp_path / "p.svg")
    assert "make one with 'atp embed'" in said("model", "top", tmp_path / "none.npz", 1)
    assert "did you mean 'h-voting'" in said("cycles", graph, "-m", "hvoting")


def test_after_ctrl_c_nobody_waits_for_memory_to_be_taken_apart() -> None:
    script = """
import atexit, sys
from atpgraph import cli

class Large:
    def __del__(self):
        print("taken apart")

def main():
    held = Large()
    sys.exit(130)

cli.main = main
atexit.register(print, "cleaned up")
cli.run()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "cleaned up\n"), done.stderr
