"""The shell of the command line: what every command gets from its session."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
from typing import Annotated

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from atpgraph import __version__
from atpgraph.cli._app import app
from atpgraph.cli.console import json_ready, session, table
from atpgraph.cli.options import Json, Quiet, Seed
from atpgraph.errors import BudgetError, InputError
from atpgraph.util.progress import BarDisplay, LineDisplay, stage

runner = CliRunner()


def run_real(*arguments: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "atpgraph", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)


def invoke(body, *arguments: str):
    """Run `body(out)` as the only command of a small application."""
    small = typer.Typer()

    @small.command()
    def command(
        json: Json = False,
        quiet: Quiet = False,
        seed: Seed = 0,
        extra: Annotated[int, typer.Option()] = 0,
    ) -> None:
        with session(json=json, quiet=quiet) as out:
            body(out)

    return runner.invoke(small, list(arguments))


def test_help_lists_the_commands_and_loads_no_numerics():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "generate" in result.output
    code = (
        "import sys, atpgraph.cli._app; "
        "print([m for m in ('numpy', 'scipy', 'numba') if m in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


def test_version_and_help_as_typed():
    result = run_real("--version")
    assert (result.returncode, result.stdout) == (0, f"atp {__version__}\n")
    result = run_real("-h")
    assert result.returncode == 0
    assert "Usage: atp" in result.stdout
    assert "\x1b" not in result.stdout
    assert run_real("no-such-command").returncode == 2


def test_result_is_text_or_one_json_object():
    def body(out):
        out.result({"auc": np.float64("nan"), "n": np.int64(3)}, "three nodes", table(["n"], [[3]]))

    text = invoke(body)
    assert text.stdout.startswith("three nodes\n")
    assert json.loads(invoke(body, "--json").stdout) == {"auc": None, "n": 3}


def test_json_ready_has_no_nan_and_refuses_the_unknown():
    value = {"a": [1.5, math.inf], "b": np.array([[1, 2]]), "c": np.bool_(True), "d": None}
    assert json_ready(value) == {"a": [1.5, None], "b": [[1, 2]], "c": True, "d": None}
    with pytest.raises(TypeError):
        json_ready({"a": object()})


def test_table_is_not_cut_when_piped(capsys):
    long = "x" * 300
    result = invoke(lambda out: out.result({}, table(["name", "count"], [[long, 1234567]])))
    assert long in result.stdout
    assert "1,234,567" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(("error", "code"), [(InputError("No such."), 2), (BudgetError("Big."), 3)])
def test_errors_are_one_sentence(error, code):
    def body(out):
        out.result({"half": True}, "half a result")
        raise error

    result = invoke(body)
    assert result.exit_code == code
    assert result.stderr == f"atp: error: {error}\n"
    assert result.stdout == ""


def test_too_little_memory_is_no_bug():
    def body(out):
        raise MemoryError("Unable to allocate 7 GiB")

    result = invoke(body)
    assert result.exit_code == 3
    assert "not enough memory (Unable to allocate 7 GiB)" in result.stderr


def test_a_bug_is_named_as_one(monkeypatch):
    def body(out):
        raise KeyError("what\nelse")

    monkeypatch.delenv("ATP_DEBUG", raising=False)
    result = invoke(body)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "KeyError" in result.stderr
    assert "ATP_DEBUG=1" in result.stderr
    monkeypatch.setenv("ATP_DEBUG", "1")
    assert isinstance(invoke(body).exception, KeyError)


def test_stages_are_log_lines_elsewhere_and_nothing_when_quiet(monkeypatch):
    def body(out):
        with stage("counting", total=2) as step:
            step.advance()
        out.note("done")

    assert invoke(body).stderr.splitlines() == ["atp: counting …", "atp: done"]
    monkeypatch.setattr(LineDisplay, "pause", 0.0)
    lines = invoke(body).stderr.splitlines()
    assert lines == ["atp: counting …", "atp: counting: 50%", "atp: done"]
    assert invoke(body, "--quiet").stderr == ""


def test_threads_left_behind_by_an_interrupt_show_nothing(capsys):
    bars, lines = BarDisplay(), LineDisplay()
    bars.console = Console(file=io.StringIO(), force_terminal=True)
    for reporter in (bars, lines):
        first = reporter.start("cut short", 2)
        reporter.close()
        shown = bars.console.file.getvalue(), capsys.readouterr().err
        reporter.advance(first, 1)
        reporter.finish(first)
        reporter.finish(reporter.start("begun by a thread that nobody waits for", None))
        assert (bars.console.file.getvalue(), capsys.readouterr().err) == (shown[0], "")
    assert shown[0].rfind("\x1b[?25h") > shown[0].rfind("\x1b[?25l") >= 0
    assert shown[1] == "atp: cut short …\n"


@pytest.mark.usefixtures("interruptible")
def test_interrupt_exits_130():
    def body(out):
        os.kill(os.getpid(), signal.SIGINT)
        with stage("never finished"):
            pass

    result = invoke(body)
    assert result.exit_code == 130
    assert result.stderr.endswith("atp: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_broken_pipe_is_quiet():
    code = (
        "import typer; from atpgraph.cli.console import session\n"
        "def command() -> None:\n"
        "    with session() as out:\n"
        "        out.result({}, *['x' * 1000] * 1000)\n"
        "typer.run(command)\n"
    )
    piped = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert piped.stdout is not None
    assert piped.stderr is not None
    piped.stdout.read(10)
    piped.stdout.close()
    errors = piped.stderr.read()
    piped.stderr.close()
    assert piped.wait(timeout=600) == 141
    assert errors == b""


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_progress_bar_on_a_terminal_leaves_stdout_alone():
    import pty

    code = (
        "import typer; from atpgraph.cli.console import session\n"
        "from atpgraph.util.progress import stage\n"
        "def command() -> None:\n"
        "    with session() as out:\n"
        "        with stage('counting', 10) as step: step.advance(5)\n"
        "        out.result({}, 'the result')\n"
        "typer.run(command)\n"
    )
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=slave, env=environment
    )
    os.close(slave)
    shown = os.read(master, 100_000)
    os.close(master)
    assert done.stdout == b"the result\n"
    assert b"\x1b" in shown
