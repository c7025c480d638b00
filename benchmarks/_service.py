"""A service that benchmarks talk to: a process of its own, and a small site."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from _common import ROOT

WIDE = {
    "LIMITS_PER_SECOND": "1000000", "LIMITS_BURST": "1000000",
    "POLICY_INACTIVE_DAYS": "100000", "LOG_LEVEL": "warning",
}  # fmt: skip


@contextlib.contextmanager
def service(model: Path, folder: Path, **settings: str) -> Iterator[tuple[int, str, str]]:
    """The service as a process: its process id, address and admin token."""
    given = {f"ATP_SERVE_{name}": value for name, value in {**WIDE, **settings}.items()}
    command = [sys.executable, "-m", "atpgraph", "server", "run", str(model),
               "--folder", str(folder), "--port", "0", "--json", "--quiet"]  # fmt: skip
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'qa' / 'src'}",
        **given,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start compiles every module
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        yield process.pid, said["url"], said["token"]
    finally:
        process.terminate()
        process.wait()


def memory_mb(pid: int) -> float:
    """Return the memory of a process and its children: shared pages count for each in part."""
    found = [text.partition("Pss:")[2].split()[0] for text in _of_family(pid, "smaps_rollup")]
    return sum(map(int, found)) / 1024


def cpu_s(pid: int) -> tuple[float, float]:
    """Return the processor time of a process, and that of its children."""
    fields = [text.rpartition(")")[2].split() for text in _of_family(pid, "stat")]
    own, *others = ((int(each[11]) + int(each[12])) / os.sysconf("SC_CLK_TCK") for each in fields)
    return own, sum(others)


def _of_family(pid: int, file: str) -> list[str]:
    """Return what the system tells about a process and its children, whose thread is any."""
    found = []
    told = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    for each in (str(pid), *" ".join(told).split()):
        with contextlib.suppress(OSError):  # it has ended since
            found.append(Path(f"/proc/{each}/{file}").read_text(encoding="utf-8"))
    return [text for text in found if text]


def small_model(folder: Path) -> Path:
    """A simulated community of 60 people."""
    from atpgraph_qa import Advisor, Site, ingest, simulate_community, write_dump

    community = simulate_community(60, 300, n_topics=3, years=1.0, random_state=1)
    write_dump(community, folder / "dump", random_state=1)
    ingest(folder / "dump", folder / "site")
    return Advisor.fit(Site(folder / "site")).save(folder / "model")
