"""Any size: a million nodes, growth, unit costs.

python benchmarks/scale.py --sections large --runs pycleora,nrp,reachability --output …
git archive 614ac2e src | tar -x -C OLD
python benchmarks/scale.py --sections before --before OLD/src --output …

Results of a section replace those of the same section in the file; the others stay. Every run is a
process of its own, after a small one that compiles its kernels. 614ac2e is the last commit of
0.1.0. `pycleora` (PyPI) is needed for its rows only.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _common import markdown
from _scale import STAGES, embed, options_of, rmat, run, show, staged, uniform

from atpgraph import levels, random_dag
from atpgraph.closure import collect_paths, kernel_table
from atpgraph.factorization import Options, fit_panels

PROTOCOLS = ["paper", "random", "reversed"]
Told = Iterator[tuple[str, str]]


def large(options: Any) -> Told:
    """From file to model, at one size, the rivals in the same run."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = uniform(options.folder or folder, options.nodes, options.edges)
        small = uniform(folder, 100, 300)
        measured: list[tuple[str, dict[str, Any], dict[str, float]]] = []
        for given in options.runs.split(","):
            kind, _, rounds = given.partition(":")
            if kind == "nrp" or kind.startswith("pycleora"):
                script, output = str(Path(__file__).with_name("_rival.py")), folder / "rival.npz"
                commands = [
                    [sys.executable, script, kind, str(file), str(output)]
                    for file in (small, graph)
                ]
            else:
                more = ["--purpose", kind, "--method", options.method]
                more += ["--memory", options.memory] if options.memory else []
                more += ["--threads", str(options.threads)] if options.threads else []
                more += ["--max-iter", rounds] if rounds else []
                model = folder / "model.npz"
                warm = [*more, "--method", "springs"]
                commands = [embed(small, model, *warm), embed(graph, model, *more)]
            run(commands[0])
            measured.append((given, *run(commands[1])))
            print(measured[-1], file=sys.stderr, flush=True)
    unit = next((spent for given, _, spent in measured if given == "pycleora"), None)
    rows = []
    for given, told, spent in measured:
        ratio = "" if unit is None else f"{spent['cpu'] / unit['cpu']:.1f}"
        fidelity = told.get("fidelity") or {}
        rows.append(
            [given, told.get("method", ""), told.get("iterations", ""),
             *staged(told), f"{spent['wall']:.0f}", f"{spent['cpu']:.0f}", ratio,
             f"{spent['peak']:.2f}", fidelity.get("auc", "")]
        )  # fmt: skip
    columns = ["run", "cycles by", "iterations", *STAGES]
    columns += ["wall s", "CPU s", "CPU, × pycleora", "peak GB", "fidelity, AUC"]
    memory = f", `--memory {options.memory}`" if options.memory else ""
    text = f"Uniform random graph, {options.nodes:,} nodes, {options.edges:,} edges, from the file "
    text += "to the saved model, 512 bytes of vectors a node, pycleora with 64 components and 4 "
    text += f"iterations{memory}; wall seconds "
    text += "by stage:\n\n" + markdown(columns, rows)
    yield f"large: {options.nodes:,} nodes, {options.edges:,} edges", text


def before(options: Any) -> Told:
    """An R-MAT graph, whose closure forest fits, against the last commit of 0.1.0."""
    if options.before is None:
        raise SystemExit("--before names the folder src of 0.1.0")
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        graph = rmat(options.folder or folder, options.scale, options.edges)
        small = uniform(folder, 100, 300)
        old = {"env": os.environ | {"PYTHONPATH": str(options.before)}}
        ways = {
            "0.1.0": ([], old),
            "links, h-voting": (["--purpose", "links", "--method", "h-voting"], {}),
            "links": (["--purpose", "links"], {}),
            "defaults": ([], {}),
        }
        first: float | None = None
        for way in options.ways.split(","):
            more, env = ways[way]
            more = [*more, "--threads", str(options.threads)] if options.threads else more
            run(embed(small, folder / "model.npz", *more), **env)
            told, spent = run(embed(graph, folder / "model.npz", *more), **env)
            print(way, told, spent, file=sys.stderr, flush=True)
            first = first or spent["cpu"]
            rows.append(
                [way, told.get("closure", "exact"), *staged(told), f"{spent['wall']:.0f}",
                 f"{spent['cpu']:.0f}", f"{spent['cpu'] / first:.2f}", f"{spent['peak']:.2f}"]
            )  # fmt: skip
            size = f"{told['nodes']:,} nodes, {told['edges']:,} edges"
    columns = ["run", "closure", *STAGES, "wall s", "CPU s", "CPU, ratio", "peak GB"]
    text = f"R-MAT 2^{options.scale}, {size}; wall seconds by stage:\n\n" + markdown(columns, rows)
    yield f"before: R-MAT 2^{options.scale}", text


def growth(options: Any) -> Told:
    """Seconds for ten times the edges."""
    rows = []
    before: list[float] | None = None
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        more = ["--method", options.method, "--purpose", options.purpose]
        more += ["--max-iter", str(options.rounds), "--threads", "1"]
        run(embed(uniform(folder, 100, 300), folder / "model.npz", *more))
        for edges in (int(float(x)) for x in options.sizes.split(",")):
            graph = uniform(options.folder or folder, edges // 5, edges)
            told, spent = run(embed(graph, folder / "model.npz", *more))
            print(told, spent, file=sys.stderr, flush=True)
            numbers = [told["seconds"][stage] for stage in STAGES]
            numbers += [spent["cpu"], 1000 * spent["peak"]]
            ratio = [f"{a:.2f}" for a in numbers]
            if before is not None:
                ratio = [f"{a:.1f} (× {a / b:.1f})" for a, b in zip(numbers, before, strict=True)]
            before = numbers
            rows.append([edges, *ratio])
    text = f"Uniform random graphs, five edges a node, {options.purpose}, {options.rounds} "
    text += f"iterations, one thread, `--method {options.method}`; wall seconds by "
    text += "stage, and how many times the line above:"
    columns = ["edges", *STAGES, "CPU s", "peak MB"]
    yield f"growth: {options.purpose}", f"{text}\n\n" + markdown(columns, rows)


def units(options: Any) -> Told:
    """CPU seconds of the parts that sketches are made for, without cycles, by number of edges."""
    rows = []
    for edges in (int(float(x)) for x in options.sizes.split(",")):
        dag = random_dag(edges // 5, edges, random_state=0)
        level = levels(dag)
        table = kernel_table("log", int(level.max()))
        spent = [time.process_time()]
        paths = collect_paths(dag, level)
        spent.append(time.process_time())
        fit_panels(paths, table, Options(max_iter=1, random_state=0))
        spent.append(time.process_time())
        rows.append([edges, paths.n_pairs, *(f"{x:.1f}" for x in np.diff(spent))])
    columns = ["edges", "reachable pairs, about", "sketches of 16, both sides"]
    columns += ["first vectors and one round"]
    text = "Random acyclic graphs, five edges a node, k = 128; CPU seconds, compiling included:"
    yield "units", f"{text}\n\n" + markdown(columns, rows)


SECTIONS: dict[str, Callable[[Any], Told]] = {
    "large": large,
    "before": before,
    "growth": growth,
    "units": units,
}


def main() -> None:
    """Run the sections asked for."""
    parser = options_of(__doc__ or "", SECTIONS)
    parser.add_argument("--memory", help="budget of the large runs; by default that of atp")
    parser.add_argument("--threads", type=int, help="of the large runs; by default all cores")
    parser.add_argument(
        "--runs",
        default="pycleora,pycleora-whitened,nrp,reachability",
        help="for large: a rival, a purpose, or purpose:rounds",
    )
    parser.add_argument("--before", type=Path, help="the folder src of 0.1.0")
    parser.add_argument("--ways", default="0.1.0,links,defaults", help="for before")
    parser.add_argument("--scale", type=int, default=20, help="for before: 2^SCALE nodes")
    parser.add_argument("--sizes", default="1e5,1e6,1e7", help="edges, for growth and units")
    parser.add_argument("--purpose", default="reachability", help="for growth")
    parser.add_argument("--rounds", type=int, default=3, help="for growth")
    show("Any size", SECTIONS, parser.parse_args())


if __name__ == "__main__":
    main()
