"""Ctrl-C at any moment: exit code 130, the cursor back, nothing left behind."""

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
import time

import numpy as np
import pytest

from .forked import Outcome, command, forked
from .world import WRITERS

MOMENTS = 3


def in_a_terminal(typed: list[str], press_after: float) -> tuple[Outcome, bytes]:
    """Run a command on a terminal and press Ctrl-C; what the terminal was sent."""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 1 << 16):
                shown.append(part)
        except OSError:  # the other end is closed
            pass

    def setup() -> None:
        os.dup2(theirs, 1)
        os.dup2(theirs, 2)
        os.close(theirs)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115

    def work() -> int:
        timer = threading.Timer(press_after, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        try:
            timer.start()
            return command(typed)
        except KeyboardInterrupt:  # before or after what the command itself watches
            return 130
        finally:
            timer.cancel()

    reader = threading.Thread(target=read)
    reader.start()
    done = forked(work, setup=setup)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return done, b"".join(shown)


@pytest.mark.parametrize("name", ["embed", "cycles", "links", "ingest", "train"])
def test_ctrl_c_at_random_moments(world, tmp_path, name) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    start = time.monotonic()
    done, _ = in_a_terminal(WRITERS[name].typed(world, whole), 600)
    assert done.code == 0, done
    spent = time.monotonic() - start
    rng = np.random.default_rng(0)
    for number, moment in enumerate([0.001, *(rng.random(MOMENTS) * spent)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        done, shown = in_a_terminal(WRITERS[name].typed(world, folder), moment)
        assert done.code == 130 or (done.code == 0 and number), (done, shown)
        assert not done.hung
        assert b"Traceback" not in shown, shown
        assert shown.rfind(b"\x1b[?25h") >= shown.rfind(b"\x1b[?25l"), shown
        left = {path.name for path in folder.iterdir()}
        assert left <= set(WRITERS[name].outputs), left
        assert not list(folder.rglob(".*")), "litter"
