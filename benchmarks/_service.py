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
    return sum(
        int(Path(f"/proc/{each}/smaps_rollup").read_text().partition("Pss:")[2].split()[0]) / 1024
        for each in _family(pid)
    )


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and its children."""
    total = 0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[int]:
    """Return a process and its children, whichever thread started them."""
    told = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    return [pid, *map(int, " ".join(told).split())]


def small_model(folder: Path) -> Path:
    """A simulated community of 60 people."""
    from atpgraph_qa import Advisor, Site, ingest, simulate_community, write_dump

    community = simulate_community(60, 300, n_topics=3, years=1.0, random_state=1)
    write_dump(community, folder / "dump", random_state=1)
    ingest(folder / "dump", folder / "site")
    return Advisor.fit(Site(folder / "site")).save(folder / "model")
