"""Box and order embeddings beside ATP: who keeps the paths at equal numbers for each node?

Run: python benchmarks/boxes.py [--graphs wiki-Vote,…] [--kinds boxes,…] [--numbers 128]
     [--paths 96] [--nodes 1000] [--output benchmarks/results/boxes.md]
     python benchmarks/boxes.py --search        how the rivals' learning rates were chosen

The pairs are those of benchmarks/fidelity.py. A row has as many numbers for each node as ATP with
half as many components: 128 are 64 dimensions of boxes, 32 of boxes with temperatures of their own,
128 of order embeddings (benchmarks/_boxes.py). Thresholds of the rivals are the best for hard pairs
of another seed, ATP's is 0 as ever. Generated graphs are small enough to ask for every pair: F1.
Seconds are CPU seconds of the training, one thread for the rivals. Needs torch.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from _boxes import KINDS, Training, train
from _common import Report, arguments, data_dir, markdown
from _families import LATER, PAIR_SEED, families
from _hard_pairs import ExactPaths, Fidelity, HardPairs, judge

from atpgraph import ATP, DiGraph, read_edgelist
from atpgraph.cycles import break_cycles
from atpgraph.hierarchy import levels

REAL = ("wiki-Vote", "wordnet-noun-hypernym", "cit-HepPh", "p2p-Gnutella31")
COLUMNS = ("row", "AUC", "yes, paths", "yes, others", "best five", "levels", "F1", "CPU s", "× ATP")
ASKED, TOP = 60, 5
CHOSEN = {
    "boxes": Training(rate=0.1, batch=256, spread=0.1),
    "t-boxes": Training(rate=0.03, batch=256, spread=0.1),
    "order embeddings": Training(rate=0.1, batch=256, spread=0.1),
}

Row = Callable[[int], np.ndarray]


def world(graph: DiGraph) -> SimpleNamespace:
    """The acyclic graph, its paths and its pairs: to be judged by, and to find thresholds on."""
    dag = break_cycles(graph, random_state=0).dag
    level = levels(dag)
    paths = ExactPaths(dag)
    pairs, other = (
        HardPairs.of(paths, level, np.random.default_rng(PAIR_SEED + i)) for i in range(2)
    )
    return SimpleNamespace(dag=dag, level=level, paths=paths, pairs=pairs, other=other)


def judged(w: Any, scores: Callable[..., np.ndarray], row: Row, threshold: float) -> Fidelity:
    """Fidelity of anything that scores pairs, and a node with all nodes."""
    some = w.pairs.nodes[:: max(len(w.pairs.nodes) // ASKED, 1)]
    best = np.empty((len(some), TOP), dtype=np.int64)
    for i, node in enumerate(some.tolist()):
        values = row(node).astype(np.float64)
        values[node] = -np.inf
        best[i] = np.argpartition(-values, TOP)[:TOP]
    return judge(
        w.pairs, w.paths, w.level, scores(*w.pairs.paths), scores(*w.pairs.others), (some, best),
        threshold,
    )  # fmt: skip


def f1(w: Any, row: Row, threshold: float) -> float:
    """F1 over all pairs of two nodes."""
    right = said = 0
    for node in range(w.dag.n_nodes):
        yes = row(node) > threshold
        yes[node] = False
        said += int(yes.sum())
        right += int(yes[w.paths.forest.descendants(node)].sum())
    return 2 * right / max(said + int(w.paths.sides[0].sizes.sum()), 1)


def best_threshold(scores: Callable[..., np.ndarray], pairs: HardPairs) -> float:
    """The score that tells most of these pairs apart."""
    good, bad = scores(*pairs.paths), scores(*pairs.others)
    values = np.concatenate([good, bad])
    order = np.argsort(-values, kind="stable")
    share = np.where(np.arange(len(values)) < len(good), 1 / len(good), -1 / max(len(bad), 1))
    at = int(np.argmax(np.cumsum(share[order])))
    return float(values[order[at : at + 2]].mean())


def table(
    graph: DiGraph, kinds: list[str], numbers: int, lengths: list[int], every_pair: bool
) -> str:
    """The rows of one graph."""
    w = world(graph)
    n = w.dag.n_nodes
    started = time.process_time()
    atp = ATP(numbers // 2).fit(w.dag)
    ours = time.process_time() - started

    def atp_scores(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", atp.source_[u], atp.target_[v])

    rows = []

    def add(name: str, seconds: float, scores: Any, row: Row, threshold: float) -> None:
        found = judged(w, scores, row, threshold)
        shown = [found.auc, found.true_yes, found.false_yes, found.precision, found.correlation]
        cells = [f"{x:.3f}" for x in shown]
        cells.append(f"{f1(w, row, threshold):.3f}" if every_pair else "")
        rows.append((name, *cells, seconds, seconds / ours))

    add("**reachability**", ours, atp_scores, lambda u: atp.target_ @ atp.source_[u], 0.0)
    for kind, drawn in itertools.product(kinds, lengths):
        fit = train(kind, w.paths, numbers, replace(CHOSEN[kind], paths=drawn))
        name = f"{kind}, {drawn} paths a node"
        threshold = best_threshold(fit.scores, w.other)
        add(name, fit.seconds, fit.scores, lambda u, fit=fit: fit.row(u, n), threshold)
    return markdown(COLUMNS, rows)


def search(kinds: list[str], rates: list[float], numbers: int) -> str:
    """AUC of settings on validation graphs: the families that ATP's constants were chosen on."""
    worlds = [world(graph) for name, graph in families(1000, seed=7).items() if name not in LATER]
    rows = []
    for kind, spread, batch, rate in itertools.product(kinds, (1.0, 0.1), (256, 1024), rates):
        found, seconds = [], 0.0
        for w in worlds:
            fit = train(kind, w.paths, numbers, Training(rate, batch, spread))
            seconds += fit.seconds
            found.append(judged(w, fit.scores, lambda u, w=w: np.arange(w.dag.n_nodes), 0).auc)
        rows.append((kind, spread, batch, rate, f"{np.mean(found):.4f}", seconds))
    return markdown(("rival", "spread", "batch", "rate", "mean AUC", "CPU s"), rows)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--graphs", default=",".join(REAL), help="real graphs, by name")
    parser.add_argument("--numbers", type=int, default=128, help="for each node")
    parser.add_argument("--paths", default="96", help="to train on, for each node; or several")
    parser.add_argument("--nodes", type=int, default=1000, help="of the generated graphs; 0: none")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--rates", default="0.03,0.1,0.3,1.0", help="of the search")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    lengths = [int(x) for x in options.paths.split(",")]
    torch.set_num_threads(1)
    ATP(8).fit(families(200)["random DAG"])  # compiles what is timed
    command = " ".join(["python benchmarks/boxes.py", *sys.argv[1:]])
    report = Report("Box and order embeddings", command, options.output)
    if options.search:
        report.add(search(kinds, [float(x) for x in options.rates.split(",")], options.numbers))
        report.save()
        return
    folder = data_dir()
    for name in filter(None, options.graphs.split(",")) if folder else ():
        graph = read_edgelist(folder / "graphs" / f"{name}.txt.gz")
        report.add(f"## {name}, {options.numbers} numbers for each node")
        report.add(table(graph, kinds, options.numbers, lengths, every_pair=False))
        report.save()
    for name, graph in families(options.nodes).items() if options.nodes else ():
        report.add(f"## {name} (generated, {graph.n_nodes:,} nodes)")
        report.add(table(graph, kinds, options.numbers, lengths, every_pair=True))
        report.save()


if __name__ == "__main__":
    main()
