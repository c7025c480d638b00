"""What the benchmark scripts share: the machine, tables, measured subprocesses, real data."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import atpgraph
from atpgraph import DiGraph, PlantedCycles, plant_cycles

ROOT = Path(__file__).resolve().parent.parent


def data_dir() -> Path | None:
    """The folder of real graphs that ``ATP_DATA`` names, if there is one."""
    named = os.environ.get("ATP_DATA")
    if not named:
        return None
    if not (Path(named) / "graphs").is_dir():
        raise SystemExit(f"ATP_DATA is {named}, which has no folder 'graphs'")
    return Path(named)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; floats with three significant digits."""

    def cell(value: object) -> str:
        if isinstance(value, float):
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return "\n".join(lines)


def banded(n: int, degree: int, width: int, k: int, max_length: int, seed: int) -> PlantedCycles:
    """Nodes in a line, edges that span at most `width` positions; k cycles of a few edges."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, n - width, n * degree)
    name = rng.permutation(n)
    high = low + rng.integers(1, width + 1, n * degree)
    return plant_cycles(DiGraph.from_codes(name[low], name[high], n), k, max_length, rng)


class Report:
    """Markdown that is printed as it is made, and written to a file at the end."""

    def __init__(self, title: str, command: str, output: Path | None) -> None:
        self.output = output
        self.parts: list[str] = []
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        load = f", load average {os.getloadavg()[0]:.1f} at the start" if os.name == "posix" else ""
        self.add(f"# {title}")
        self.add(
            f"`{command}`, atpgraph {atpgraph.__version__}, {now}; Python "
            f"{platform.python_version()}, {os.cpu_count()} cores ({cpu_model()}){load}."
        )

    def add(self, text: str) -> None:
        """Print a part and keep it."""
        print(text, end="\n\n", flush=True)
        self.parts.append(text)

    def save(self) -> None:
        """Write the parts to the file, if one was asked for."""
        if self.output is not None:
            self.output.parent.mkdir(parents=True, exist_ok=True)
            self.output.write_text("\n\n".join(self.parts) + "\n", encoding="utf-8")


def cpu_model() -> str:
    """The name of the processor, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def best_of(repeats: int, work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Least wall seconds and least CPU seconds over the repeats, and the last result."""
    wall, cpu, result = float("inf"), float("inf"), None
    for _ in range(repeats):
        started, used = time.perf_counter(), time.process_time()
        result = work()
        wall = min(wall, time.perf_counter() - started)
        cpu = min(cpu, time.process_time() - used)
    return wall, cpu, result


def peak_mb() -> float:
    """Largest memory this process has held, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def in_subprocess(script: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run ``script --job JSON`` in a process of its own; it prints one JSON object."""
    command = [sys.executable, script, "--job", json.dumps(job)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def arguments(description: str) -> argparse.ArgumentParser:
    """The options of every benchmark."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, help="also write the report to this Markdown file")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    return parser
