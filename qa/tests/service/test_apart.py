"""Work in a copy of the process: done, failed, hung, and orphaned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from atpgraph_qa.service.apart import run_apart

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")


def test_the_copy_works_and_the_parent_stays_as_it_was(tmp_path: Path) -> None:
    seen: list[int] = []
    held = os.open(tmp_path, os.O_RDONLY)  # stands for a port, a connection, a lock

    def work() -> None:
        seen.append(1)
        mine = [fd for fd in os.listdir("/proc/self/fd") if fd == str(held)]
        ignored = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        (tmp_path / "said").write_text(f"{os.getpid()} {mine} {ignored} {threading.active_count()}")

    assert run_apart(work)
    os.close(held)
    pid, *said = (tmp_path / "said").read_text().split()
    assert int(pid) != os.getpid()
    assert said == ["[]", "True", "1"]
    assert seen == []


def test_a_copy_that_fails_or_hangs() -> None:
    assert not run_apart(lambda: 1 / 0)
    assert not run_apart(lambda: time.sleep(60), patience_s=0.1)


def test_a_copy_ends_with_its_parent(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    program = (
        "import os, time, pathlib\nfrom atpgraph_qa.service.apart import run_apart\n"
        "def work():\n"
        f"    pathlib.Path({str(tmp_path / 'new')!r}).write_text(str(os.getpid()))\n"
        f"    os.rename({str(tmp_path / 'new')!r}, {str(file)!r})\n"
        "    time.sleep(60)\n"
        "run_apart(work)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    until = time.monotonic() + 60
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    copy = Path(f"/proc/{file.read_text()}/stat")
    while time.monotonic() < until:
        if not copy.exists() or copy.read_text().rpartition(")")[2].split()[0] == "Z":
            return  # gone, or waiting for whoever inherits it to notice
        time.sleep(0.02)
    pytest.fail("the copy outlived its parent")
