"""The search behind the constants of the solver for reachability, on generated graphs.

Run: python benchmarks/search_fidelity.py [--dim 64]

Each line is one setting of :class:`~atpgraph.factorization.pairs.Descent`, judged by the mean over
six generated families (two that came later are held out): AUC on hard pairs, "yes" to paths and to
others at a score of 0, rank correlation of score and difference of levels over paths. No real graph
is used.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
from _common import Report, arguments, markdown
from _families import LATER, PAIR_SEED, families

from atpgraph.closure import PathSampler, closure_forest, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.embedding.fidelity import HardPairs, measure
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


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--dim", type=int, default=64)
    options = parser.parse_args()
    report = Report(
        "Search for reachability", "python benchmarks/search_fidelity.py", options.output
    )
    worlds = []
    for name, graph in families(6000).items():
        if name in LATER:
            continue
        dag = break_cycles(graph, random_state=0).dag
        level = levels(dag)
        paths = PathSampler(closure_forest(dag))
        pairs = HardPairs.of(paths, level, np.random.default_rng(PAIR_SEED + 1))
        table = kernel_table("log", int(level.max()))
        worlds.append(SimpleNamespace(level=level, paths=paths, pairs=pairs, table=table))
    rows = []
    for setting in SETTINGS:
        started = time.process_time()
        found = []
        for world in worlds:
            fit = fit_pairs(
                world.paths, world.level, world.table,
                n_components=options.dim, random_state=0, descent=setting,
            )  # fmt: skip
            judged = measure(world.pairs, world.paths, world.level, fit.source, fit.target, 0.0)
            found.append([judged.auc, judged.true_yes, judged.false_yes, judged.correlation])
        means = [f"{value:.4f}" for value in np.mean(found, axis=0)]
        rows.append((repr(setting), *means, time.process_time() - started))
    columns = ("setting", "AUC", "yes, paths", "yes, others", "levels", "CPU s")
    report.add(markdown(columns, rows))
    report.save()


if __name__ == "__main__":
    main()
