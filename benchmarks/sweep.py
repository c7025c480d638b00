"""How many components are enough? Fidelity by k, and F1 over all pairs of smaller graphs.

Run: python benchmarks/sweep.py [--graphs wiki-Vote,…] [--dims 16,32,64,128,256] [--seeds 3]
     [--nodes 6000] [--output benchmarks/results/sweep.md]

Purpose "reachability" with the defaults but for k, on the hard pairs of benchmarks/fidelity.py;
means over the seeds of the fit, and the largest spread (standard deviation) of a figure of the
table. F1 is over all n (n − 1) pairs at a score of 0, for graphs of at most 10,000 nodes. CPU
seconds are those of the fit. Real graphs are read from the folder that ATP_DATA names.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from _common import Report, arguments, data_dir, markdown
from _families import PAIR_SEED, families
from _hard_pairs import ExactPaths, HardPairs, measure

from atpgraph import ATP, DiGraph, random_dag, read_edgelist
from atpgraph.closure import ClosureForest, closure_forest
from atpgraph.cycles import break_cycles
from atpgraph.hierarchy import levels

REAL = ("wiki-Vote", "wordnet-noun-hypernym", "cit-HepPh", "p2p-Gnutella31")
COLUMNS = ("k", "AUC", "yes, paths", "yes, others", "best five", "levels", "rank", "F1", "CPU s")
FIGURES = ("auc", "true_yes", "false_yes", "precision", "correlation", "effective_rank")
LARGEST = 10_000
BLOCK = 1024


def f1(model: ATP, forest: ClosureForest) -> float:
    """F1 over all pairs of two nodes at the threshold of the model."""
    n = forest.n_nodes
    right = said = 0
    for first in range(0, n, BLOCK):
        yes = model.source_[first : first + BLOCK] @ model.target_.T > model.threshold_
        nodes = np.arange(first, first + len(yes))
        yes[nodes - first, nodes] = False
        said += int(np.count_nonzero(yes))
        right += sum(
            int(np.count_nonzero(yes[u - first, forest.descendants(u)])) for u in nodes.tolist()
        )
    return 2 * right / max(said + int(forest.sizes.sum()), 1)


def table(graph: DiGraph, dims: list[int], seeds: int) -> str:
    """The rows of one graph."""
    dag = break_cycles(graph, random_state=0).dag
    level, forest = levels(dag), closure_forest(dag)
    paths = ExactPaths(dag)
    pairs = HardPairs.of(paths, level, np.random.default_rng(PAIR_SEED))
    rows = []
    spread = 0.0
    for k in dims:
        found = []
        for seed in range(seeds):
            started = time.process_time()
            model = ATP(k, random_state=seed).fit(dag)
            cpu = time.process_time() - started
            judged = measure(pairs, paths, level, model.source_, model.target_, model.threshold_)
            all_pairs = f1(model, forest) if dag.n_nodes <= LARGEST else np.nan
            found.append([*(getattr(judged, name) for name in FIGURES), all_pairs, cpu])
        values = np.array(found)
        if seeds > 1:
            spread = max(spread, float(np.nanmax(values[:, [0, 1, 2, 3, 4, 6]].std(0, ddof=1))))
        *cells, cpu = values.mean(axis=0)
        rows.append((k, *("" if x != x else f"{x:.3f}" for x in cells), cpu))
    note = f"\n\nLargest spread over {seeds} seeds: {spread:.3f}." if seeds > 1 else ""
    return markdown(COLUMNS, rows) + note


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--graphs", default=",".join(REAL), help="real graphs, by name")
    parser.add_argument("--dims", default="16,32,64,128,256")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=6000, help="of the generated graphs; 0: none")
    options = parser.parse_args()
    dims = [int(k) for k in options.dims.split(",")]
    ATP(8).fit(random_dag(50, 100, random_state=0))  # compiles what is timed
    command = " ".join(["python benchmarks/sweep.py", *sys.argv[1:]])
    report = Report("Components", command, options.output)
    folder = data_dir()
    for name in filter(None, options.graphs.split(",")) if folder else ():
        report.add(f"## {name}")
        report.add(table(read_edgelist(folder / "graphs" / f"{name}.txt.gz"), dims, options.seeds))
        report.save()
    for name, graph in families(options.nodes).items() if options.nodes else ():
        report.add(f"## {name} (generated, {graph.n_nodes:,} nodes)")
        report.add(table(graph, dims, options.seeds))
        report.save()


if __name__ == "__main__":
    main()
