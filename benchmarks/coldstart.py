"""The first minutes: install into an empty environment, then run ``atp embed`` twice.

    python benchmarks/coldstart.py dist/*.whl GRAPH [--output FILE.md]

An environment is made from nothing, the wheel is installed with pip, and the command is run as a
user types it. The wall time of each run is split: *import* is everything outside the command's own
clock (starting Python, imports, exit), *compile* what ``atp embed --json`` says it spent compiling,
and *work* the rest. *CPU* is the processor time of the run on all threads, which other work on the
machine changes less than the clock. What the user sees is written down with its second.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


def run(
    command: list[str], folder: Path | None = None
) -> tuple[float, float, str, list[tuple[float, str]]]:
    """Seconds of the clock and of the processor, what was printed, and notes with their time."""
    seen: list[tuple[float, str]] = []
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")
    }
    before = _processor_seconds()
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )

    def listen() -> None:
        assert process.stderr is not None
        seen.extend((time.perf_counter() - started, line.rstrip()) for line in process.stderr)

    listener = threading.Thread(target=listen)
    listener.start()
    assert process.stdout is not None
    output = process.stdout.read()
    code = process.wait()
    wall = time.perf_counter() - started
    listener.join()
    if code:
        raise SystemExit(f"{' '.join(command)} ended with {code}: {seen}")
    return wall, _processor_seconds() - before, output, seen


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def split(wall: float, cpu: float, told: dict) -> dict[str, float]:
    """Where the wall time went."""
    inside = told["seconds"]["total"]
    compiling = told["compile_seconds"]
    return {
        "import": wall - inside,
        "compile": compiling,
        "work": inside - compiling,
        "wall": wall,
        "CPU": cpu,
    }


def _median(times: list[tuple[float, float]]) -> str:
    wall, cpu = (statistics.median(part) for part in zip(*times, strict=True))
    return f"{wall:.2f} s ({cpu:.2f} s CPU)"


def main() -> None:
    """Measure, and print or write a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made, *_ = run([sys.executable, "-m", "venv", str(root / "venv")])
        bin = root / "venv" / "bin"
        installed, *_ = run(
            [str(bin / "python"), "-m", "pip", "-q", "install", str(options.wheel.resolve())]
        )
        atp = str(bin / "atp")
        shutil.copy(options.graph, root)
        command = [atp, "embed", options.graph.name, "-o", "model.npz", "--json"]
        rows, lines = [], []
        for name in ("first", "second", "third"):
            wall, cpu, output, seen = run(command, root)
            rows.append((name, split(wall, cpu, json.loads(output))))
            if name == "first":
                lines = seen
        helps = [run([atp, "--help"])[:2] for _ in range(5)]
        versions = [run([atp, "--version"])[:2] for _ in range(5)]
    load = os.getloadavg()[0]
    text = [
        "# Cold start",
        "",
        f"`python benchmarks/coldstart.py WHEEL {options.graph.name}`, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores, load average {load:.1f} "
        "(other work was running if it is above 1).",
        "",
        f"An empty environment: {made:.1f} s. `pip install` of the wheel and its six dependencies: "
        f"{installed:.1f} s.",
        "",
        "| `atp embed` | import, s | compile, s | work, s | wall, s | CPU, s |",
        "|---|---|---|---|---|---|",
    ]
    text += [
        f"| {name} run | " + " | ".join(f"{value:.2f}" for value in parts.values()) + " |"
        for name, parts in rows
    ]
    text += [
        "",
        f"Warm, median of 5: `atp --help` {_median(helps)}, `atp --version` {_median(versions)}.",
        "",
        "What the first run says on standard error, and when:",
        "",
        "| second | line |",
        "|---|---|",
        *(f"| {at:.1f} | {line} |" for at, line in lines),
        "",
    ]
    result = "\n".join(text)
    if options.output is None:
        print(result)
    else:
        options.output.write_text(result, encoding="utf-8")
        print(f"{options.output}: written")


if __name__ == "__main__":
    main()
