"""Do the vectors keep the paths of their graph? ATP's purposes and other embeddings on hard pairs.

Run: python benchmarks/fidelity.py [--seeds 5] [--graphs wiki-Vote,…] [--dim 64]
     [--output benchmarks/results/fidelity.md]

Every row is fitted on the acyclic graph and judged on the same pairs: a node and a random
descendant against the same node and a target of other paths, of a higher level, that it does not
reach (:mod:`atpgraph.embedding.fidelity`). The pairs are drawn with a seed that no fit uses.
Purpose "reachability" runs once for every seed, with the spread beside the mean; the other rows
once. "yes" is the share above the threshold of the model; rows without a threshold have none.
Seconds are CPU seconds of the fit. Real graphs are read from the folder that ATP_DATA names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import Report, arguments, data_dir, markdown
from _families import PAIR_SEED, families

from atpgraph import ATP, DiGraph, random_dag, read_edgelist
from atpgraph.closure import collect_paths
from atpgraph.cycles import break_cycles
from atpgraph.embedding.fidelity import Fidelity, HardPairs, measure
from atpgraph.hierarchy import levels
from atpgraph.linkpred.baselines import HOPE, LINE, NRP, SVDM

REAL = ("wiki-Vote", "wordnet-noun-hypernym", "cit-HepPh", "p2p-Gnutella31")
COLUMNS = ("row", "AUC", "yes, paths", "yes, others", "best five", "levels", "rank", "CPU s")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def table(graph: DiGraph, k: int, seeds: int, rivals: bool) -> str:
    """The rows of one graph."""
    dag = break_cycles(graph, random_state=0).dag
    level = levels(dag)
    paths = collect_paths(dag, level).oracle
    pairs = HardPairs.of(paths, level, np.random.default_rng(PAIR_SEED))

    def judged(model: Any, threshold: float = np.nan) -> Fidelity:
        return measure(pairs, paths, level, model.source_, model.target_, threshold)

    rows: list[tuple[object, ...]] = []
    every = []
    for seed in range(seeds):
        cpu, model = timed(lambda seed=seed: ATP(k, random_state=seed).fit(dag))
        every.append((judged(model, model.threshold_), cpu))
    names = ("auc", "true_yes", "false_yes", "precision", "correlation", "effective_rank")
    values = np.array([[getattr(found, name) for name in names] for found, _ in every])
    spread = values.std(axis=0, ddof=1) if seeds > 1 else np.zeros(len(names))
    cells = [f"{mean:.3f} ± {s:.3f}" for mean, s in zip(values.mean(axis=0), spread, strict=True)]
    rows.append(("**reachability**", *cells, float(np.mean([cpu for _, cpu in every]))))
    others: dict[str, Callable[[], Any]] = {
        "`links` (0.1.0)": lambda: ATP(k, purpose="paper", zero_weight="auto").fit(dag),
        "`paper`": lambda: ATP(k, purpose="paper").fit(dag),
        "SVD of M": lambda: SVDM(k).fit(dag),
    }
    if rivals:
        others |= {
            "HOPE-Katz": lambda: HOPE(k, "katz").fit(dag),
            "NRP": lambda: NRP(k).fit(dag),
            "LINE": lambda: LINE(k).fit(dag),
        }
    for name, fit in others.items():
        cpu, model = timed(fit)
        rows.append((name, *shown(judged(model, getattr(model, "threshold_", np.nan))), cpu))
    rows.append(("difference of levels", f"{every[0][0].level_auc:.3f}", *[""] * 6))
    return markdown(COLUMNS, rows)


def shown(found: Fidelity) -> list[str]:
    yes = [found.true_yes, found.false_yes]
    if not any(yes):  # no threshold
        yes = [np.nan, np.nan]
    numbers = [found.auc, *yes, found.precision, found.correlation, found.effective_rank]
    return ["" if x != x else f"{x:.3f}" for x in numbers]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--graphs", default=",".join(REAL), help="real graphs, by name")
    parser.add_argument("--no-rivals", action="store_true")
    options = parser.parse_args()
    ATP(8).fit(random_dag(50, 100, random_state=0))  # compiles what is timed
    command = " ".join(["python benchmarks/fidelity.py", *sys.argv[1:]])
    report = Report("Fidelity", command, options.output)
    folder = data_dir()
    for name in options.graphs.split(",") if folder else ():
        graph = read_edgelist(folder / "graphs" / f"{name}.txt.gz")
        report.add(f"## {name}, k = {options.dim}")
        report.add(table(graph, options.dim, options.seeds, not options.no_rivals))
        report.save()
    for name, graph in families(6000).items():
        report.add(f"## {name} (generated, {graph.n_nodes:,} nodes), k = {options.dim}")
        report.add(table(graph, options.dim, min(options.seeds, 3), rivals=False))
        report.save()


if __name__ == "__main__":
    main()
