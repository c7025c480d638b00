"""Any size: sketches against the exact closure, a million nodes, growth, kills, Dask.

ATP_DATA=FOLDER python benchmarks/scale.py --sections quality --output benchmarks/results/scale.md

Results of a section replace those of the same section in the file; the others stay. Times are CPU
seconds, of all processes, where the machine is shared.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, markdown
from search_atp import load

from atpgraph import ATP, gnm, levels, random_dag, write_edgelist
from atpgraph.closure import hold_closure, kernel_table
from atpgraph.evaluation.metrics import auc
from atpgraph.factorization import factorize, fit_pairs
from atpgraph.linkpred import PairTest, make_split

PROTOCOLS = ["paper", "random", "reversed"]
STAGES = ("read", "cycles", "hierarchy", "closure", "factorization", "fidelity", "save")


def quality(options: Any) -> str:
    """AUC of links, and fidelity of reachability, exact and by sketches."""
    rows: list[list[object]] = []
    hard: list[list[object]] = []
    for name in options.graphs.split(","):
        graph = load(name)
        found: dict[tuple[str, str], list[float]] = {}
        for seed in range(options.seeds):
            split = make_split(graph, protocols=PROTOCOLS, random_state=seed)
            labels = split.train.labels
            for closure in ("exact", "sketch"):
                model = ATP(purpose="links", closure=closure, random_state=seed).fit(split.train)
                for protocol in PROTOCOLS:
                    test = split.tests[protocol]
                    assert isinstance(test, PairTest)
                    good, bad = (
                        model.score_pairs(labels[pairs.sources], labels[pairs.targets])
                        for pairs in (test.positives, test.negatives)
                    )
                    found.setdefault((protocol, closure), []).append(auc(good, bad))
                assert model.fidelity_ is not None
                found.setdefault(("hard pairs", closure), []).append(model.fidelity_.auc)
        for protocol in [*PROTOCOLS, "hard pairs"]:
            exact, sketch = (np.array(found[protocol, kind]) for kind in ("exact", "sketch"))
            gap = sketch - exact
            rows.append(
                [name, protocol, f"{exact.mean():.4f}", f"{sketch.mean():.4f}",
                 f"{gap.mean():+.4f}", f"{np.abs(gap).max():.4f}"]
            )  # fmt: skip
        for closure in ("exact", "sketch"):
            if options.hard:
                model = ATP(closure=closure).fit(graph)
                told = model.fidelity_
                assert told is not None
                hard.append(
                    [name, closure, f"{told.auc:.4f}", f"{told.true_yes:.3f}",
                     f"{told.false_yes:.3f}", f"{told.precision:.3f}"]
                )  # fmt: skip
    text = f'`purpose="links"`, k = 64, {options.seeds} test splits, AUC:\n\n' + markdown(
        ["graph", "negatives", "exact", "sketch", "mean difference", "largest difference"], rows
    )
    if hard:
        text += '\n\n`purpose="reachability"`, k = 64, hard pairs of the whole graph:\n\n'
        columns = ["graph", "closure", "AUC", "yes, paths", "yes, others", "best five"]
        text += markdown(columns, hard)
    return text


def run(command: list[str], **more: Any) -> tuple[dict[str, Any], float, float]:
    """What a command prints as JSON, its CPU seconds with its children's, and its wall seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **more)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), cpu, wall


def embed(graph: Path, model: Path, *more: str) -> list[str]:
    """A command that embeds a graph."""
    program = [sys.executable, "-m", "atpgraph", "embed", str(graph), "-o", str(model)]
    return [*program, "--json", "--quiet", *more]


def uniform(folder: Path, nodes: int, edges: int) -> Path:
    """The file of a uniform random graph."""
    path = folder / f"uniform-{nodes}-{edges}.txt"
    if not path.exists():
        write_edgelist(gnm(nodes, edges, random_state=0), path)
    return path


def staged(told: dict[str, Any]) -> list[object]:
    """Wall seconds of the stages."""
    return [f"{told['seconds'].get(stage, 0):.1f}" for stage in STAGES]


def large(options: Any) -> str:
    """From file to model, at one size."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = uniform(options.folder or folder, options.nodes, options.edges)
        rows = []
        for given in options.runs.split(","):
            purpose, _, rounds = given.partition(":")
            more = ["--purpose", purpose, "--method", options.method, "--memory", options.memory]
            more += ["--max-iter", rounds] if rounds else []
            told, cpu, wall = run(embed(graph, folder / "model.npz", *more))
            fidelity = told["fidelity"] or {}
            rows.append(
                [given, told["closure"], told["iterations"], *staged(told), f"{wall:.0f}",
                 f"{cpu:.0f}", f"{told['peak_memory_mb'] / 1000:.2f}", fidelity.get("auc")]
            )  # fmt: skip
    columns = ["purpose:iterations", "closure", "iterations", *STAGES]
    columns += ["wall s", "CPU s", "peak GB", "fidelity, AUC"]
    told_size = f"Uniform random graph, {options.nodes:,} nodes, {options.edges:,} edges, "
    told_size += f"`--method {options.method} --memory {options.memory}`; wall seconds by stage:"
    return f"{told_size}\n\n" + markdown(columns, rows)


def growth(options: Any) -> str:
    """CPU seconds for ten times the edges."""
    rows = []
    before: list[float] | None = None
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for edges in (int(float(x)) for x in options.sizes.split(",")):
            graph = uniform(options.folder or folder, edges // 5, edges)
            more = ["--closure", "sketch", "--method", options.method, "--purpose", "links"]
            told, cpu, _ = run(embed(graph, folder / "model.npz", *more, "--threads", "1"))
            numbers = [told["seconds"][stage] for stage in STAGES] + [cpu, told["peak_memory_mb"]]
            ratio = [f"{a:.1f}" for a in numbers]
            if before is not None:
                ratio = [f"{a:.1f} (× {a / b:.1f})" for a, b in zip(numbers, before, strict=True)]
            before = numbers
            rows.append([edges, *ratio])
    text = "Uniform random graphs, five edges a node, links, sketches, one thread, "
    text += (
        f"`--method {options.method}`; wall seconds by stage, and how many times the line above:"
    )
    return f"{text}\n\n" + markdown(["edges", *STAGES, "CPU s", "peak MB"], rows)


def units(options: Any) -> str:
    """CPU seconds of the parts that sketches are made for, without cycles, by number of edges."""
    rows = []
    for edges in (int(float(x)) for x in options.sizes.split(",")):
        dag = random_dag(edges // 5, edges, random_state=0)
        level = levels(dag)
        table = kernel_table("log", int(level.max()))
        spent = [time.process_time()]
        held = hold_closure(dag, level, "sketch")
        assert held.choice.kind == "sketch"
        spent.append(time.process_time())
        paths, back = held.pair_sources()
        fit_pairs(paths, level, table, max_iter=1, random_state=0, back=back)
        spent.append(time.process_time())
        rows_held, columns_held = held.sides
        factorize(rows_held, columns_held, level, table, max_iter=1, random_state=0)
        spent.append(time.process_time())
        rows.append([edges, held.n_pairs, *(f"{x:.1f}" for x in np.diff(spent))])
    columns = ["edges", "reachable pairs, about", "sketches of 64, both sides"]
    columns += ["one round of pairs", "one iteration of least squares"]
    text = "Random acyclic graphs, five edges a node, k = 64; CPU seconds, compiling included:"
    return f"{text}\n\n" + markdown(columns, rows)


def kills(options: Any) -> str:
    """Whole jobs killed at random moments, then resumed."""
    rng = random.Random(0)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = uniform(folder, 20_000, 60_000)
        for closure in ("sketch", "exact"):
            for purpose, rounds in (("links", "3"), ("reachability", "6")):
                more = ["--closure", closure, "--purpose", purpose, "--max-iter", rounds]
                _, _, wall = run(embed(graph, folder / "whole.npz", *more))
                work = folder / f"work-{closure}-{purpose}"
                killed = 0
                for _ in range(options.kills):
                    command = embed(graph, folder / "model.npz", *more, "--work", str(work))
                    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                    try:
                        child.wait(timeout=rng.uniform(0.3, 1.0) * wall)
                    except subprocess.TimeoutExpired:
                        os.kill(child.pid, signal.SIGKILL)
                        killed += 1
                        child.wait()
                run(embed(graph, folder / "model.npz", *more, "--work", str(work)))
                same = (folder / "model.npz").read_bytes() == (folder / "whole.npz").read_bytes()
                rows.append([closure, purpose, killed, "yes" if same else "NO"])
    text = (
        "20,000 nodes, 60,000 edges; `kill -9` at random moments of the run, then once to its end:"
    )
    return f"{text}\n\n" + markdown(["closure", "purpose", "kills", "same bytes"], rows)


def dask(options: Any) -> str:
    """A cluster on this machine against threads."""
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = uniform(options.folder or folder, options.nodes, options.edges)
        first = None
        ways = {"threads": [], "local:1": ["local:1"], "local:2": ["local:2"]}
        for way, cluster in ways.items():
            more = ["--purpose", "links", "--closure", "sketch", "--method", options.method]
            if cluster:
                more += ["--work", str(folder / way.replace(":", "")), "--scheduler", *cluster]
            told, cpu, wall = run(embed(graph, folder / "model.npz", *more))
            model = (folder / "model.npz").read_bytes()
            first = first or model
            rows.append(
                [way, *staged(told), f"{wall:.0f}", f"{cpu:.0f}", "yes" if model == first else "NO"]
            )
    text = f"Uniform random graph, {options.nodes:,} nodes, {options.edges:,} edges, links, "
    text += f"sketches, `--method {options.method}`; wall seconds by stage:"
    return f"{text}\n\n" + markdown(["way", *STAGES, "wall s", "CPU s", "same bytes"], rows)


SECTIONS: dict[str, Callable[[Any], str]] = {
    "quality": quality,
    "large": large,
    "growth": growth,
    "units": units,
    "kills": kills,
    "dask": dask,
}


def main() -> None:
    """Run the sections asked for."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sections", default="quality,large,growth,units,kills,dask")
    parser.add_argument("--graphs", default="wiki-vote,cit-hepph,p2p-gnutella31,gnm-30k")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hard", action="store_true", help="fit reachability as well")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--method", default="h-voting")
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--runs", default="reachability,links", help="purpose or purpose:rounds")
    parser.add_argument("--sizes", default="1e5,1e6,1e7", help="edges, for growth")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="where large files go; graphs stay there")
    options = parser.parse_args()
    report = Report("Any size", f"python benchmarks/scale.py {' '.join(sys.argv[1:])}", None)
    header = report.parts[-1]
    for name in options.sections.split(","):
        told = SECTIONS[name](options)
        report.add(told)
        if options.output is not None:
            _store(options.output, name, f"{header}\n\n{told}")


def _store(path: Path, name: str, text: str) -> None:
    """Put a section into the file, in place of what was there under its name."""
    old = path.read_text(encoding="utf-8") if path.exists() else "# Any size\n"
    parts = re.split(r"(?m)^## ", old)
    kept = {part.partition("\n")[0].strip(): part.partition("\n")[2].strip() for part in parts[1:]}
    kept[name] = text.strip()
    names = [*SECTIONS, *(other for other in kept if other not in SECTIONS)]
    body = "\n\n".join(f"## {name}\n\n{kept[name]}" for name in names if name in kept)
    path.write_text(f"{parts[0].rstrip()}\n\n{body}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
