"""The search behind the constants of the solver for reachability, on generated graphs.

Run: python benchmarks/search_fidelity.py [--dim 64]
     python benchmarks/search_fidelity.py --rounds 2,4,8,14,32 --nodes 200000
         --families "random recursive tree,citation network,random DAG" [--seed 1]
         [--closure sketch]

Each line is one setting of :class:`~atpgraph.factorization.pairs.Descent`, judged by the mean over
six generated families (two that came later are held out): AUC on hard pairs, "yes" to paths and to
others at a score of 0, rank correlation of score and difference of levels over paths. No real graph
is used. With --rounds, one long fit to each of some families is judged after so many rounds, with
"uniform", a random graph full of cycles, among them; the seed is that of graph and fit.
"""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from _common import Report, arguments, markdown
from _families import LATER, PAIR_SEED, families
from _hard_pairs import HardPairs, measure

from atpgraph import DiGraph, gnm
from atpgraph.closure import hold_closure, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.embedding.purposes import how_to_hold
from atpgraph.embedding.ranking import pair_scores
from atpgraph.embedding.reachability import fit_paths
from atpgraph.factorization import fit_pairs
from atpgraph.factorization.pairs import Descent
from atpgraph.hierarchy import levels

SETTINGS = [
    Descent(),
    Descent(margin=1.0),
    Descent(margin=2.0),
    Descent(margin=3.0),
    Descent(rate=0.1),
    Descent(rate=0.3),
    Descent(negatives=2),
    Descent(negatives=8),
    Descent(clip=1.0),
    Descent(clip=8.0),
]


EDGES = 5000  # looked at
COLUMNS = ("setting", "AUC", "yes, paths", "yes, others", "levels", "yes, edges", "CPU s")


def world(graph: DiGraph, closure: str = "exact") -> Any:
    """A graph with its paths, in a closure forest or through sketches, and its hard pairs."""
    dag = break_cycles(graph, random_state=0).dag
    level = levels(dag)
    held = hold_closure(dag, level, memory="4GB", **how_to_hold(closure, "pairs"))
    pairs = HardPairs.of(held.paths, level, np.random.default_rng(PAIR_SEED + 1))
    table = kernel_table("log", int(level.max()))
    return SimpleNamespace(closure=held, level=level, pairs=pairs, table=table, dag=dag)


def judged(w: Any, source: np.ndarray, target: np.ndarray) -> list[float]:
    """The figures of a row."""
    found = measure(w.pairs, w.closure.paths, w.level, source, target, 0.0)
    edges = np.random.default_rng(PAIR_SEED).integers(0, w.dag.n_edges, EDGES)
    scores = pair_scores(source, target, w.dag.sources[edges], w.dag.targets[edges])
    edges_found = float((scores > 0).mean())
    return [found.auc, found.true_yes, found.false_yes, found.correlation, edges_found]


class Watch:
    """Judges the vectors of a fit after some of its rounds; scores are in another unit there."""

    def __init__(self, w: Any, rounds: list[int], k: int) -> None:
        self.world, self.rounds, self.k = w, rounds, k
        self.rows: list[tuple[object, ...]] = []
        self.started, self.judging = time.process_time(), 0.0

    def state(self) -> None:
        """Nothing to go on from."""

    def keep(self, parts: Any, facts: dict[str, Any], at_once: bool = False) -> None:
        """A round is over."""
        now = time.process_time()
        if (done := len(facts["history"])) in self.rounds:
            held = parts()
            vectors = [held[side][:, : self.k] for side in ("source", "target")]
            shown = [f"{value:.4f}" for value in judged(self.world, *vectors)]
            self.rows.append((f"{done} rounds", *shown, now - self.started - self.judging))
            self.judging += time.process_time() - now


def by_rounds(graph: DiGraph, closure: str, rounds: list[int], k: int, seed: int) -> str:
    """One fit, judged on its way."""
    w = world(graph, closure)
    watch = Watch(w, rounds, k)
    fit_paths(
        w.closure, w.level, w.table, n_components=k, random_state=seed, max_iter=max(rounds),
        tol=0.0, loop=watch,
    )  # fmt: skip
    return f"Closure {w.closure.choice}.\n\n" + markdown(COLUMNS, watch.rows)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--rounds", help="to judge a fit after")
    parser.add_argument("--nodes", type=int, default=6000)
    parser.add_argument("--families", default="citation network", help="for --rounds")
    parser.add_argument("--seed", type=int, default=1, help="for --rounds")
    parser.add_argument("--closure", default="exact", help="for --rounds")
    options = parser.parse_args()
    command = " ".join(["python benchmarks/search_fidelity.py", *sys.argv[1:]])
    report = Report("Search for reachability", command, options.output)
    if options.rounds:
        rounds = [int(x) for x in options.rounds.split(",")]
        some = families(options.nodes, options.seed)
        some["uniform"] = gnm(options.nodes, 5 * options.nodes, random_state=options.seed)
        for name in options.families.split(","):
            report.add(f"## {name}, {some[name].n_nodes:,} nodes, {some[name].n_edges:,} edges")
            report.add(by_rounds(some[name], options.closure, rounds, options.dim, options.seed))
            report.save()
        return
    worlds = [world(g) for name, g in families(options.nodes).items() if name not in LATER]
    rows = []
    for setting in SETTINGS:
        started = time.process_time()
        found = []
        for w in worlds:
            fit = fit_pairs(
                w.closure.paths, w.level, w.table, n_components=options.dim, random_state=0,
                descent=setting,
            )  # fmt: skip
            found.append(judged(w, fit.source, fit.target))
        means = [f"{value:.4f}" for value in np.mean(found, axis=0)]
        rows.append((repr(setting), *means, time.process_time() - started))
    report.add(markdown(COLUMNS, rows))
    report.save()


if __name__ == "__main__":
    main()
