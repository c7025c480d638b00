"""What the benchmarks of large graphs share: graphs as files, measured commands, kept sections."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments

from atpgraph import DiGraph, gnm, write_edgelist

STAGES = ("read", "cycles", "hierarchy", "paths", "factorization", "fidelity", "save")


def uniform(folder: Path, nodes: int, edges: int) -> Path:
    """The file of a uniform random graph, made if it is not there."""
    path = folder / f"uniform-{nodes}-{edges}.txt"
    if not path.exists():
        # Spaces, because that is what pycleora takes for the ends of one edge.
        write_edgelist(gnm(nodes, edges, random_state=0), path, delimiter=" ")
    return path


def rmat(folder: Path, scale: int, edges: int) -> Path:
    """The file of an R-MAT graph of 2^scale possible nodes, a = .57, b = c = .19, d = .05."""
    path = folder / f"rmat-{scale}-{edges}.txt"
    if not path.exists():
        rng = np.random.default_rng(0)
        ends = np.zeros((2, edges), dtype=np.int64)
        for _ in range(scale):
            quarter = np.searchsorted([0.57, 0.76, 0.95], rng.random(edges), side="right")
            ends = 2 * ends + np.stack([quarter >> 1, quarter & 1])
        graph = DiGraph.from_codes(ends[0], ends[1], 2**scale)
        write_edgelist(graph.without_edges(graph.sources == graph.targets), path, delimiter=" ")
    return path


def embed(graph: Path, model: Path, *more: str) -> list[str]:
    """A command that embeds a graph."""
    program = [sys.executable, "-m", "atpgraph", "embed", str(graph), "-o", str(model)]
    return [*program, "--json", "--quiet", *more]


def run(command: list[str], **more: Any) -> tuple[dict[str, Any], dict[str, float]]:
    """What a command prints as JSON; its wall seconds, CPU seconds of it and of its children that
    it waited for, and the peak in GB of the largest of them.
    """
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    peak = used.ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
    spent = {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": peak}
    return json.loads(printed), spent


def staged(told: dict[str, Any]) -> list[object]:
    """Wall seconds of the stages."""
    return [f"{told['seconds'].get(stage, 0):.1f}" for stage in STAGES]


def options_of(description: str, sections: dict[str, Any]) -> argparse.ArgumentParser:
    """The options that both scripts have."""
    parser = arguments(description)
    parser.add_argument("--sections", default=",".join(sections))
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--folder", type=Path, help="where large files go; graphs stay there")
    return parser


def show(title: str, sections: dict[str, Any], options: argparse.Namespace) -> None:
    """Run the sections asked for; each replaces what the file has under its name."""
    command = f"python {Path(sys.argv[0]).parent.name}/{Path(sys.argv[0]).name}"
    report = Report(title, f"{command} {' '.join(sys.argv[1:])}", None)
    header = report.parts[-1]
    for section in options.sections.split(","):
        for name, told in sections[section](options):
            report.add(told)
            if options.output is not None:
                _store(options.output, title, name, f"{header}\n\n{told}")


def _store(path: Path, title: str, name: str, text: str) -> None:
    """Put a section into the file, in place of what was there under its name."""
    old = path.read_text(encoding="utf-8") if path.exists() else f"# {title}\n"
    parts = re.split(r"(?m)^## ", old)
    kept = {part.partition("\n")[0].strip(): part.partition("\n")[2].strip() for part in parts[1:]}
    kept[name] = text.strip()
    body = "\n\n".join(f"## {name}\n\n{kept[name]}" for name in sorted(kept))
    path.write_text(f"{parts[0].rstrip()}\n\n{body}\n", encoding="utf-8")
