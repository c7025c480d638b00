"""The approximate index against the exact search: recall, time to build, time to ask.

    python benchmarks/index.py [--graphs WordNet,…] [--output benchmarks/results/index.md]

"recall" is that of the ten best answers above the threshold, on 500 nodes that the index did not
choose its settings on; an answer as good as the tenth exact one counts as found. "own" is the
recall that the index states. Real graphs are read from the folder that ATP_DATA names.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from _common import Report, arguments, data_dir, markdown

from atpgraph import ATP, DiGraph, random_dag, read_edgelist
from atpgraph.cycles import break_cycles
from atpgraph.embedding.ranking import NeighborIndex

GRAPHS = ("WordNet", "WordNet reversed", "cit-HepPh", "uniform")
FILES = {"WordNet": "wordnet-noun-hypernym", "WordNet reversed": "wordnet-noun-hypernym"}
ASKED, EXACT, K = 500, 100, 10


def load(name: str, nodes: int) -> DiGraph:
    """The acyclic graph of a name."""
    if name == "uniform":
        return random_dag(nodes, 5 * nodes, random_state=0)
    folder = data_dir()
    if folder is None:
        raise SystemExit(f"{name} needs the folder that ATP_DATA names")
    graph = read_edgelist(folder / "graphs" / f"{FILES.get(name, name)}.txt.gz")
    return break_cycles(graph.reverse() if name.endswith("reversed") else graph).dag


def measure(model: ATP, direction: str) -> list[object]:
    """One row of the table: nodes, then what the index costs and finds."""
    started = time.process_time()
    index = NeighborIndex(model, direction)
    built = time.process_time() - started
    dag = model.dag_ if direction == "targets" else model.dag_.reverse()
    able = np.flatnonzero(dag.out_degree > 0)
    asked = np.random.default_rng(1).choice(able, min(ASKED, len(able)), replace=False)
    labels = model.labels_[asked]
    exact_top = model.top_targets if direction == "targets" else model.top_sources
    started = time.perf_counter()
    _, best = exact_top(labels[:EXACT], K, order="score")
    exact = (time.perf_counter() - started) / len(labels[:EXACT]) * 1e3
    _, rest = exact_top(labels[EXACT:], K, order="score")
    started = time.perf_counter()
    _, found = index.top(labels, K)
    each = (time.perf_counter() - started) / len(labels) * 1e3
    hits = total = 0
    for good, scores in zip([*best, *rest], found, strict=True):
        if len(good):
            floor = good[-1] - 1e-5 * max(abs(good[-1]), 1.0)
            hits += min(int(np.sum(scores >= floor)), len(good))
            total += len(good)
    kind = "exact" if index.exact_ else "approximate"
    return [direction, kind, index.recall_, hits / max(total, 1), built, exact, each]


def main() -> None:
    parser = arguments((__doc__ or "").split("\n")[0])
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the uniform graph")
    options = parser.parse_args()
    command = " ".join(["python benchmarks/index.py", *sys.argv[1:]])
    report = Report("An approximate index", command, options.output)
    rows: list[list[object]] = []
    for name in options.graphs.split(","):
        dag = load(name, options.nodes)
        started = time.process_time()
        model = ATP().fit(dag)
        fit = time.process_time() - started
        for direction in ("targets", "sources"):
            rows.append([f"{name} ({dag.n_nodes:,})", *measure(model, direction), fit])
            print(rows[-1], flush=True)
    columns = ["graph (nodes)", "asked for", "search", "own", "recall", "build, CPU s"]
    columns += ["exact, ms each", "index, ms each", "fit, CPU s"]
    report.add(markdown(columns, rows))
    report.save()


if __name__ == "__main__":
    main()
