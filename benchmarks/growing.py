"""Growing models against fitting again: fidelity and time, as ratios measured in one run.

Run: python benchmarks/growing.py [--batches 5] [--share 0.05] [--graphs wiki-Vote,…]
     [--output FILE]
     python benchmarks/growing.py --search      how many rounds and passes a batch gets

A share of the edges is held back at random, the model is fitted on the rest, and the share comes
back in batches, `update` (or `add`, where nodes are new) for each. Fidelity is the AUC on hard
pairs of the whole graph: a node and a random descendant against the same node and a node of a
higher level that it does not reach, drawn like the descendants. The row "not grown" scores the
first model on the same pairs, new nodes as zeros. Seconds are CPU seconds. The real graphs are read
from the folder that ATP_DATA names; where there is none, a generated one stands in.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from _common import Report, arguments, data_dir, markdown
from _families import families

from atpgraph import ATP, DiGraph, noisy_hierarchy, read_edgelist
from atpgraph.closure import ClosureForest, closure_forest
from atpgraph.embedding import growing
from atpgraph.evaluation.metrics import auc

NAMES = ("wiki-Vote", "wordnet-noun-hypernym", "cit-HepPh", "p2p-Gnutella31")
NODES, DRAWS, LEAST = 1500, 4, 5
SETTINGS = ((3, 16), (1, 16), (2, 16), (6, 16), (3, 4), (3, 8), (3, 32))


def graphs(names: list[str]) -> Iterator[tuple[str, DiGraph]]:
    """The graphs of the table."""
    folder = data_dir()
    if folder is None:
        yield "generated", noisy_hierarchy(5_000, 20_000, 1_500, random_state=0).graph
        return
    for name in names:
        yield name, read_edgelist(folder / "graphs" / f"{name}.txt.gz")


def hard_pairs(
    model: ATP, forest: ClosureForest, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sources and targets of paths, and of pairs of rising levels without one; node numbers."""
    some = np.flatnonzero(forest.sizes >= LEAST)
    some = rng.choice(some, min(NODES, len(some)), replace=False)
    sources = np.repeat(some, DRAWS)
    targets = np.concatenate([rng.choice(forest.descendants(u), DRAWS) for u in some.tolist()])
    others, wrong = [], []
    wanted = len(sources)
    for _ in range(400):
        u, v = rng.permutation(sources), rng.choice(targets, len(sources))
        good = (model.levels_[v] > model.levels_[u]) & ~forest.reaches(u, v)
        others.append(u[good])
        wrong.append(v[good])
        if sum(map(len, others)) >= wanted:
            break
    return sources, targets, np.concatenate(others)[:wanted], np.concatenate(wrong)[:wanted]


def fidelity(model: ATP, vectors: ATP) -> float:
    """AUC of the vectors of one model on the hard pairs of another, nodes told by labels."""
    pairs = hard_pairs(model, closure_forest(model.dag_), np.random.default_rng(0))
    code = vectors.graph_.codes_or_minus_one(model.labels_)
    zero = np.zeros((1, vectors.source_.shape[1]), dtype=vectors.source_.dtype)
    source, target = (np.concatenate([side, zero]) for side in (vectors.source_, vectors.target_))

    def scores(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", source[code[u]], target[code[v]])

    return auc(scores(*pairs[:2]), scores(*pairs[2:]))


@dataclass(frozen=True, eq=False)
class Late:
    """A graph, a share of whose edges come late."""

    graph: DiGraph
    old: DiGraph
    batches: list[DiGraph]

    @classmethod
    def of(cls, graph: DiGraph, share: float, batches: int) -> Late:
        """Hold back a share of the edges."""
        rng = np.random.default_rng(0)
        late = rng.permutation(graph.n_edges)[: round(share * graph.n_edges)]
        pairs = np.stack([graph.sources, graph.targets], axis=1)
        keep = np.ones(graph.n_edges, dtype=bool)
        keep[late] = False
        parts = [graph.labels[pairs[part]] for part in np.array_split(late, batches)]
        old = DiGraph.from_edges(graph.labels[pairs[keep]])
        return cls(graph, old, [DiGraph.from_edges(part) for part in parts])

    def grow(self, model: ATP) -> tuple[float, ATP]:
        """Mean CPU seconds of a batch, and the model that has them all."""
        started = time.process_time()
        for more in self.batches:
            model = model.add_edges(more)
        return (time.process_time() - started) / len(self.batches), model


def fitted(graph: DiGraph) -> tuple[float, ATP]:
    """CPU seconds of a fit, and the model."""
    started = time.process_time()
    model = ATP(random_state=0).fit(graph)
    return time.process_time() - started, model


def measure(late: Late) -> list[Any]:
    """One row of the table."""
    _, first = fitted(late.old)
    seconds, grown = late.grow(first)
    refit, again = fitted(late.graph)
    return [
        late.graph.n_nodes - late.old.n_nodes, fidelity(again, again), fidelity(grown, grown),
        fidelity(grown, first), refit, seconds, seconds / refit,
    ]  # fmt: skip


def search(share: float, batches: int, nodes: int) -> str:
    """Means over generated graphs, by rounds and passes: what growing costs, and loses."""
    every = [Late.of(graph, share, batches) for graph in families(nodes, seed=7).values()]
    models = [(fitted(late.old)[1], *fitted(late.graph)) for late in every]
    full = [fidelity(again, again) for _, _, again in models]
    rows = []
    for rounds, passes in SETTINGS:
        growing.ROUNDS, growing.PASSES = rounds, passes
        lost, cost = [], []
        for late, (first, refit, _), auc_again in zip(every, models, full, strict=True):
            seconds, grown = late.grow(first)
            lost.append(auc_again - fidelity(grown, grown))
            cost.append(seconds / refit)
        rows.append(
            (rounds, passes, float(np.mean(lost)), float(np.max(lost)), float(np.mean(cost)))
        )
    columns = ("rounds", "passes", "AUC lost, mean", "AUC lost, most", "batch / fit, mean")
    return markdown(columns, rows)


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__.partition("\n")[0])
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--graphs", default=",".join(NAMES))
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--nodes", type=int, default=6000, help="of the graphs of the search")
    options = parser.parse_args()
    command = " ".join(["python benchmarks/growing.py", *sys.argv[1:]])
    report = Report("Growing models", command, options.output)
    tiny = noisy_hierarchy(300, 900, 60, random_state=0).graph
    ATP().fit(tiny).add_edges([(0, 1), ("a", 0)])  # compiles what is timed
    if options.search:
        report.add(search(options.share, options.batches, options.nodes))
        report.save()
        return
    rows = [
        [name, *measure(Late.of(graph, options.share, options.batches))]
        for name, graph in graphs(options.graphs.split(","))
    ]
    columns = ["graph", "new nodes", "AUC, fitted again", "AUC, grown", "AUC, not grown"]
    columns += ["fit, CPU s", "a batch, CPU s", "batch / fit"]
    report.add(markdown(columns, rows))
    report.save()


if __name__ == "__main__":
    main()
