"""Do the vectors keep the paths of their graph? Defaults, five seeds, beside another version.

Run: python benchmarks/fidelity.py --parts DIR [--graphs wiki-Vote,grid,…] [--seeds 0,1,2,3,4]
     [--rows atp,pairs,panels] [--old PYTHON] [--refit] [--output benchmarks/results/fidelity.md]

Every graph is made acyclic first, and every row fits the same acyclic graph in a process of its
own, with the kernels compiled before the clock starts. One sample of pairs, four times as large as
that of a fit and from a seed that no fit uses, judges all rows of a graph
(:mod:`atpgraph.embedding.fidelity`). Rows "pairs" and "panels" are the two solvers of 0.2.0, the
first of them its default; PYTHON is an interpreter that has 0.2.0 installed:

    git archive 18187a6 | tar x -C OLD; python -m venv VENV; VENV/bin/pip install OLD

The report of every fit is kept in DIR as a JSON file, so a run can be made graph by graph; the
tables are made of what is there. Seconds are CPU seconds. "bytes" are those of the vectors of a
node. Real graphs are read from the folder that ATP_DATA names.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, data_dir, markdown
from _families import PAIR_SEED, layered, nested_tree

from atpgraph import DiGraph, citation_dag, datasets, random_dag, read_edgelist
from atpgraph.closure import collect_paths
from atpgraph.cycles import break_cycles
from atpgraph.embedding.fidelity import evaluate
from atpgraph.embedding.path_sample import PathSample
from atpgraph.embedding.ranking import pair_scores
from atpgraph.hierarchy import levels

REAL = ("wiki-Vote", "cit-HepPh", "p2p-Gnutella31", "WordNet", "WordNet reversed")
OTHERS = ("gnm-30k",)  # generated, in the paper
NODES = 10_000
# Graphs whose numbers were looked at while constants were chosen, in 0.2.0 or since: p2p before the
# number of rounds was set, the others (of other seeds) for most constants.
SEEN = ("p2p-Gnutella31", "random DAG", "citation", "layered", "tree")
ROWS: dict[str, dict[str, Any]] = {
    "atp": {},
    "pairs": {"closure": "exact"},
    "panels": {"closure": "sketch"},
}
NAMES = {"atp": "**ATP**", "pairs": "0.2.0 `pairs`", "panels": "0.2.0 `panels`"}
EFFORT = 4.0
SHOWN = (
    "edges", "closure", "auc", "auc_sources", "precision_targets", "precision_sources",
    "look_alike_targets", "look_alike_sources", "random_pairs",
    "f1", "threshold_f1", "threshold_edges", "level_correlation",
)  # fmt: skip
DISTANCES = ("edges", "distance_2", "distance_3_to_5", "distance_6_to_10", "distance_above_10")
BINS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


def grid(n: int) -> DiGraph:
    """A square with edges to the right and down."""
    side = int(np.sqrt(n))
    cell = np.arange(side * side)
    right, down = cell[cell % side < side - 1], cell[cell < side * (side - 1)]
    ends = np.concatenate([right, down]), np.concatenate([right + 1, down + side])
    return DiGraph.from_codes(*ends, side * side)


def history(n: int, rng: np.random.Generator) -> DiGraph:
    """Commits and their parents: up to 20 branches that fork, grow and merge."""
    heads, sources, targets = [0], [], []
    for commit in range(1, n):
        at = int(rng.integers(len(heads)))
        sources.append(commit)
        targets.append(heads[at])
        draw = rng.random()
        if draw < 0.15 and len(heads) > 1:
            other = int(rng.integers(len(heads)))
            if other != at:
                sources.append(commit)
                targets.append(heads[other])
                heads.pop(other)
                at -= other < at
            heads[at] = commit
        elif draw < 0.3 and len(heads) < 20:
            heads.append(commit)
        else:
            heads[at] = commit
    return DiGraph.from_codes(sources, targets, n)


def genealogy(n: int, rng: np.random.Generator, generations: int = 12) -> DiGraph:
    """Children with edges to two parents of the generation before, siblings in families."""
    width = n // generations
    sources, targets = [], []
    for g in range(1, generations):
        couples = rng.integers(0, width, (width // 2, 2)) + (g - 1) * width
        family = couples[rng.integers(0, len(couples), width)]
        child = np.arange(width) + g * width
        sources += [child, child]
        targets += [family[:, 0], family[:, 1]]
    return DiGraph.from_codes(np.concatenate(sources), np.concatenate(targets), generations * width)


def generated(n: int) -> dict[str, Callable[[], DiGraph]]:
    """Graphs of eight families, from fixed seeds."""

    def rng() -> np.random.Generator:
        return np.random.default_rng(PAIR_SEED + 1)

    def tree() -> DiGraph:
        child = np.arange(1, n)
        return DiGraph.from_codes(child, (child * rng().random(n - 1)).astype(np.int64), n)

    return {
        "tree": tree,
        "nested tree": lambda: nested_tree(n, rng()),
        "citation": lambda: citation_dag(n, 5 * n, random_state=2),
        "layered": lambda: layered(n, 20, 4, rng()),
        "random DAG": lambda: random_dag(n, 4 * n, random_state=2),
        "grid": lambda: grid(n),
        "git-like history": lambda: history(n, rng()),
        "genealogy": lambda: genealogy(n, rng()),
    }


def load(name: str) -> DiGraph:
    """The acyclic graph of a name."""
    made = generated(NODES)
    if name in made:
        return made[name]()
    if name == "gnm-30k":
        graph = datasets.load("gnm-30k")
    else:
        folder = data_dir()
        if folder is None:
            raise SystemExit(f"{name} needs the folder that ATP_DATA names")
        file = "wordnet-noun-hypernym" if name.startswith("WordNet") else name
        graph = read_edgelist(folder / "graphs" / f"{file}.txt.gz")
    graph = graph.reverse() if name.endswith(" reversed") else graph
    return break_cycles(graph, random_state=0).dag


def fitted(python: str, dag: DiGraph, params: dict[str, Any]) -> dict[str, np.ndarray]:
    """Vectors and cost of a fit in another process."""
    with tempfile.TemporaryDirectory() as folder:
        graph, job, output = (Path(folder) / name for name in ("graph.npz", "job.json", "fit.npz"))
        np.savez(graph, sources=dag.sources, targets=dag.targets, n=dag.n_nodes)
        told = {"graph": str(graph), "params": params, "output": str(output)}
        job.write_text(json.dumps(told), encoding="utf-8")
        script = Path(__file__).with_name("_fit.py")
        subprocess.run([python, str(script), str(job)], check=True, cwd=folder)
        with np.load(output) as held:
            return dict(held)


def calibration(
    sample: PathSample, source: np.ndarray, target: np.ndarray, curve: Any
) -> dict[str, list[tuple[float, float, float]]]:
    """Predicted and observed share of paths by predicted probability, and the share of pairs, for
    all pairs and for paths beside as many look-alikes.
    """
    levels = sample.levels
    n, side = sample.n_nodes, sample.sides[0]
    rng = np.random.default_rng(PAIR_SEED)
    at = rng.integers(0, len(side.rows.nodes), 1_000_000)
    u, v = side.rows.nodes[at], rng.integers(0, n, len(at))
    at, u, v = at[u != v], u[u != v], v[u != v]
    apart = ~side.joined(side.rows.bits[at], v)
    paths = (sample.sides[0].n_pairs + sample.sides[1].n_pairs) / 2
    others = n * (n - 1.0) - paths
    # Paths from their own sample, so that there are enough of them in a sparse closure.
    groups = [
        (side.paths.u, side.paths.v, side.paths.weight * paths / max(side.n_pairs, 1e-9), True),
        (u[apart], v[apart], np.full(apart.sum(), others / max(apart.sum(), 1)), False),
    ]
    hard = [
        (*side.hard_paths, np.ones(side.hard_paths.shape[1]), True),
        (*side.look_alikes, np.ones(side.look_alikes.shape[1]), False),
    ]
    result = {}
    for name, parts, rate in (("all pairs", groups, None), ("look-alikes", hard, 0.5)):
        told, truth, weight = [], [], []
        for a, b, w, joined in parts:
            p = curve(pair_scores(source, target, a, b), rate)
            told.append(np.where(levels[b] > levels[a], p, 0.0))
            truth.append(np.full(len(a), joined, dtype=float))
            weight.append(w)
        p, y, w = map(np.concatenate, (told, truth, weight))
        place = np.clip(np.searchsorted(BINS, p, side="right") - 1, 0, len(BINS) - 2)
        result[name] = [
            (
                float((p * w)[place == b].sum() / w[place == b].sum()),
                float((y * w)[place == b].sum() / w[place == b].sum()),
                float(w[place == b].sum() / w.sum()),
            )
            if (place == b).any()
            else (np.nan, np.nan, 0.0)
            for b in range(len(BINS) - 1)
        ]
    return result


def run(parts: Path, names: Iterable[str], options: Any) -> None:
    """Fit and judge what has no file yet."""
    for name in names:
        todo = [
            (row, seed, parts / f"{name.replace(' ', '-')}.{row}.{seed}.json")
            for seed in options.seeds
            for row in options.rows
        ]
        todo = [each for each in todo if options.refit or not each[2].exists()]
        if not todo:
            continue
        dag = load(name)
        paths = collect_paths(dag, levels(dag))
        sample = PathSample.of(paths, effort=EFFORT, random_state=PAIR_SEED)
        for row, seed, file in todo:
            python = sys.executable if row == "atp" else options.old
            found = fitted(python, dag, ROWS[row] | {"random_state": seed})
            source, target = found["source"], found["target"]
            judged = evaluate(sample, source, target)
            # Calibrate on the sample that a fit uses, judge on the larger one.
            own = evaluate(PathSample.of(paths), source, target)
            kept = {
                "nodes": dag.n_nodes,
                "edges": dag.n_edges,
                "cpu": float(found["cpu"]),
                "peak_mb": float(found["peak"][1]) / 1e3,
                "bytes": int(source[:1].nbytes + target[:1].nbytes),
                "threshold": own.threshold,
                "reliability": calibration(sample, source, target, own.calibration),
                "own": own.fidelity.to_dict(),
                "fidelity": judged.fidelity.to_dict(),
            }
            file.write_text(json.dumps(kept, indent=1), encoding="utf-8")
            print(f"{name}, {row}, seed {seed}: {kept['cpu']:.1f} s; {judged.fidelity}", flush=True)


def mean(found: Sequence[dict[str, Any]], name: str) -> str:
    """Mean over seeds, and the spread where it shows."""
    values = [x for each in found if (x := each["fidelity"][name]) is not None]
    if not values:
        return ""
    spread = max(values) - min(values)
    return f"{np.mean(values):.3f}" + (f" ±{spread / 2:.3f}" if spread >= 0.001 else "")


def tables(parts: Path, names: Iterable[str], report: Report) -> None:
    """Tables of what is there."""
    labels = [name.replace("_", " ") for name in SHOWN]
    for name in names:
        rows, by_distance, curves = [], [], []
        for row in ROWS:
            files = sorted(parts.glob(f"{name.replace(' ', '-')}.{row}.[0-9]*.json"))
            found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
            if not found:
                continue
            cpu = float(np.mean([each["cpu"] for each in found]))
            rows.append(
                [NAMES[row], *(mean(found, x) for x in SHOWN), cpu, found[0]["bytes"], len(found)]
            )
            by_distance.append([NAMES[row], *(mean(found, x) for x in DISTANCES)])
            if row == "atp":
                curves = found
        if not rows:
            continue
        seen = "; seen while constants were chosen" if name in SEEN else ""
        report.add(f"## {name}{seen}")
        report.add(markdown(["row", *labels, "CPU s", "bytes", "seeds"], rows))
        report.add(markdown(["predicted", "1", "2", "3–5", "6–10", "more"], by_distance))
        if curves:
            report.add(reliability(curves))


def reliability(found: Sequence[dict[str, Any]]) -> str:
    """Calibration of ATP over the seeds: predicted → observed."""
    columns = [f"{a:g}–{b:g}" for a, b in pairwise(BINS)]
    rows = []
    for name in ("all pairs", "look-alikes"):
        bins = np.array([each["reliability"][name] for each in found], dtype=np.float64)
        share = np.nanmean(bins[:, :, 2], axis=0)
        weights = bins[:, :, 2]
        total = np.maximum(weights.sum(axis=0), 1e-300)
        told, seen = (np.nansum(bins[:, :, at] * weights, axis=0) / total for at in (0, 1))
        rows.append(
            [
                f"{name}: predicted → observed (share of pairs)",
                *(
                    f"{a:.3f} → {b:.3f} ({s:.2g})" if s else ""
                    for a, b, s in zip(told, seen, share, strict=True)
                ),
            ]
        )
    return "Calibration:\n\n" + markdown(["probability", *columns], rows)


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--parts", type=Path, required=True, help="folder of reports")
    parser.add_argument("--graphs", default=",".join([*REAL, *OTHERS, *generated(10)]))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--old", help="interpreter with atpgraph 0.2.0")
    parser.add_argument("--refit", action="store_true", help="replace reports that are there")
    options = parser.parse_args()
    options.seeds = [int(seed) for seed in options.seeds.split(",") if seed]
    options.rows = [row for row in options.rows.split(",") if row == "atp" or options.old]
    options.parts.mkdir(parents=True, exist_ok=True)
    names = options.graphs.split(",")
    run(options.parts, names, options)
    command = "python benchmarks/fidelity.py"
    report = Report("Fidelity", command, options.output)
    tables(options.parts, names, report)
    report.save()


if __name__ == "__main__":
    main()
