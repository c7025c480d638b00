"""What each evidence adds, whether probabilities are true, whether attributes help, what it costs.

    python benchmarks/links.py ablation --splits ../shared/data/dirlinkbench/cora_ml
    python benchmarks/links.py calibration --splits ../shared/data/dirlinkbench/cora_ml
    python benchmarks/links.py attributes
    python benchmarks/links.py speed --graph cit-hepph

Every section is written to a table of its own beside the other results. The ablation takes the
graphs that the splits observe as graphs of their own and splits them again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, markdown, peak_mb

from atpgraph import DiGraph, LinkPredictor, datasets
from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.comparison import compare
from atpgraph.evaluation.intervals import interval
from atpgraph.evaluation.metrics import auc
from atpgraph.linkpred import PairTest, make_split
from atpgraph.linkpred.dirlinkbench import read_splits
from atpgraph.linkpred.evidence import KINDS
from atpgraph.linkpred.laboratory import run
from atpgraph.linkpred.learned import LearnedLinks
from atpgraph.linkpred.registry import Row

RESULTS = Path(__file__).resolve().parent / "results"
LEFT_OUT = ((), ("atp",), ("levels",), ("atp", "levels"), ("proximity",), ("paths",), ("spectral",))
PROTOCOLS = {"random": "auc", "reversed": "auc", "ranking": "mrr"}


def main() -> None:
    """Run one section."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("section", choices=["ablation", "calibration", "attributes", "speed"])
    parser.add_argument("--splits", type=Path)
    parser.add_argument("--graph", default="wiki-vote")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    output = options.output or RESULTS / f"links-{options.section}.md"
    where = f" --splits {options.splits}" if options.splits else f" --graph {options.graph}"
    where = "" if options.section == "attributes" else where
    command = f"python benchmarks/links.py {options.section}{where} --seeds {options.seeds}"
    report = Report(f"Links: {options.section}", command, output)
    name, graph = _graph(options)
    {"ablation": ablation, "calibration": calibration, "attributes": attributes, "speed": speed}[
        options.section
    ](report, name, graph, options.seeds)
    report.save()


def _graph(options: Any) -> tuple[str, DiGraph]:
    if options.section == "attributes":
        return "planted", DiGraph.from_codes([], [], 0)
    if options.splits:
        return f"{options.splits.name}, observed graph 0", read_splits(options.splits)[0].train
    return options.graph, datasets.load(options.graph)


def ablation(report: Report, name: str, graph: DiGraph, seeds: int) -> None:
    """All evidence, and all but some: paired differences over the seeds."""

    def row(out: tuple[str, ...]) -> Row:
        kinds = [kind for kind in KINDS if kind not in out]
        key = "all" if not out else f"without {' and '.join(out)}"
        return Row(key, "ours", lambda k, seed: LearnedLinks(k, evidence=kinds, random_state=seed))

    rows = [row(out) for out in LEFT_OUT]
    result = run(graph, rows, list(PROTOCOLS), seeds=seeds, max_queries=500, name=name)
    lines = []
    for found in result.main():
        cells: list[object] = [found.key]
        for protocol, metric in PROTOCOLS.items():
            mean = f"{found.interval(protocol, metric).mean:.4f}"
            if found.key != "all":
                gap = result.compare(found.key, "all", protocol, metric).difference
                mean += f" ({gap.mean:+.4f}: {gap.low:+.4f} … {gap.high:+.4f})"
            cells.append(mean)
        lines.append(cells)
    report.add(
        f"{name}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges, {seeds} splits; in brackets "
        "the paired difference to all evidence with its 95 % interval."
    )
    report.add(markdown(["evidence", *(f"{p} {m.upper()}" for p, m in PROTOCOLS.items())], lines))


def calibration(report: Report, name: str, graph: DiGraph, seeds: int) -> None:
    """Stated and observed on held-out edges and as many random pairs."""
    errors, stated, truth = [], [], []
    for seed in range(seeds):
        split = make_split(graph, protocols=["random"], random_state=seed)
        test = split.tests["random"]
        assert isinstance(test, PairTest)
        model = LinkPredictor(random_state=seed).fit(split.train)
        chance = [
            1 / (1 + np.exp(-model.score_codes(pairs.sources, pairs.targets)))
            for pairs in (test.positives, test.negatives)
        ]
        stated.append(np.concatenate(chance))
        truth.append(np.repeat([1.0, 0.0], [len(part) for part in chance]))
        errors.append(reliability(stated[-1], truth[-1], groups=10)["error"])
    pooled = reliability(np.concatenate(stated), np.concatenate(truth), groups=10)
    found = interval(errors, within=(0.0, 1.0))
    report.add(
        f"{name}, {seeds} splits: expected calibration error {found.mean:.4f} "
        f"({found.low:.4f} … {found.high:.4f}) for each split, {pooled['error']:.4f} pooled."
    )
    bins = [[b["questions"], f"{b['stated']:.3f}", f"{b['right']:.3f}"] for b in pooled["bins"]]
    report.add(markdown(["pairs", "stated", "observed"], bins))


def attributes(report: Report, name: str, graph: DiGraph, seeds: int) -> None:
    """Planted attributes, noise, and none."""
    found: dict[str, list[float]] = {"none": [], "informative": [], "noise": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n, topics = 1000, 20
        topic = rng.integers(topics, size=n)
        u, v = rng.integers(n, size=(2, 40 * n))
        keep = ((topic[u] == topic[v]) | (rng.random(40 * n) < 0.02)) & (u != v)
        planted = DiGraph.from_codes(u[keep], v[keep], n)
        known = np.eye(topics)[topic] + 0.3 * rng.standard_normal((n, topics))
        given = {"none": None, "informative": known, "noise": rng.standard_normal(known.shape)}
        split = make_split(planted, protocols=["random"], random_state=seed)
        test = split.tests["random"]
        assert isinstance(test, PairTest)
        for kind, values in given.items():
            model = LinkPredictor(random_state=seed).fit(split.train, values)
            sides = (test.positives, test.negatives)
            good, bad = (model.score_codes(side.sources, side.targets) for side in sides)
            found[kind].append(auc(good, bad))
    lines = []
    for kind, values in found.items():
        gap = compare(values, found["none"]).difference
        told = "" if kind == "none" else f"{gap.mean:+.4f} ({gap.low:+.4f} … {gap.high:+.4f})"
        lines.append([kind, f"{np.mean(values):.4f}", told])
    report.add(
        f"1,000 nodes of 20 topics, links within a topic, {seeds} graphs; AUC against random pairs."
    )
    report.add(markdown(["attributes", "AUC", "difference to none (95 % interval)"], lines))


def speed(report: Report, name: str, graph: DiGraph, seeds: int) -> None:
    """Fit, file, load and recommend."""
    LinkPredictor(n_components=4, max_pairs=50, max_queries=20).fit(graph)  # compiles
    started, used = time.perf_counter(), time.process_time()
    model = LinkPredictor().fit(graph)
    fit, cpu = time.perf_counter() - started, time.process_time() - used
    labels = graph.labels[np.random.default_rng(0).integers(graph.n_nodes, size=200)].tolist()
    times = []
    for label in labels:
        started = time.perf_counter()
        model.recommend(label, 10)
        times.append(1000 * (time.perf_counter() - started))
    columns = ["graph", "fit, s", "fit, CPU s", "peak memory, MB", "recommend, ms (median)", "95 %"]
    numbers = [fit, cpu, peak_mb(), float(np.median(times)), float(np.quantile(times, 0.95))]
    report.add(markdown(columns, [[name, *numbers]]))


if __name__ == "__main__":
    main()
