"""Harder pairs, other graphs: where do the vectors stop keeping paths?

Run: python benchmarks/harder.py [--graphs wiki-Vote,…] [--nodes 6000] [--dim 64]
     [--output benchmarks/results/harder.md]

The paths are those of benchmarks/fidelity.py, a node u with four descendants. Against them stand
pairs without a path, each kind drawn from what is nearest to a path in another way:

look-alike   a target of other paths, of a higher level than u
level        a node of the very level of the descendant
sibling      a node that shares a predecessor with u's descendant
step         a node with an edge into a descendant of u: one edge turned round, and it were reached
cousin       a node that an ancestor or a predecessor of u leads to, and u does not
reverse      the descendant and u
few          nodes of one to four descendants, which the other kinds leave out, with targets of each
             other's paths

For each, the AUC and the share of such pairs above the threshold of the model, for ATP and for the
singular vectors of the same matrix; the first columns are the same share of the paths, of the edges
and of the paths of "few". "difference of levels" is what nothing learned would get. A kind is left
out where a graph has no 500 such pairs. The generated graphs are none that a constant
was chosen on. Real graphs are read from the folder that ATP_DATA names. One seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from _common import Report, arguments, data_dir, markdown
from _families import PAIR_SEED
from _hard_pairs import ExactPaths, HardPairs

from atpgraph import ATP, DiGraph, random_dag, read_edgelist
from atpgraph.cycles import break_cycles
from atpgraph.embedding.ranking import pair_scores
from atpgraph.evaluation.metrics import auc
from atpgraph.hierarchy import levels
from atpgraph.linkpred.baselines import svdm

KINDS = ("look-alike", "level", "sibling", "step", "cousin", "reverse", "few")
TRUE = ("paths", "edges", "few's paths")
REAL = ("wiki-Vote", "wordnet-noun-hypernym", "cit-HepPh", "p2p-Gnutella31")
ENOUGH, NODES, LEAST = 500, 1500, 5
TRIES = 8

Pairs = tuple[np.ndarray, np.ndarray]


def unseen(n: int) -> dict[str, DiGraph]:
    """Graphs of about n nodes, of kinds that no constant was chosen on."""
    rng = np.random.default_rng(PAIR_SEED)
    half, side = n // 2, int(np.sqrt(n))
    cell = np.arange(side * side)
    right, down = cell[cell % side < side - 1], cell[cell < side * (side - 1)]
    grid = np.concatenate([right, down]), np.concatenate([right + 1, down + side])
    late, early = np.triu_indices(n // 4, 1)
    some = rng.random(len(late)) < 0.05
    popular = np.minimum(rng.zipf(1.3, 5 * n), n) - 1
    follower = rng.integers(0, n, 5 * n)
    strands = np.flatnonzero(np.arange(n - 1) % 500 < 499)
    crossing = rng.integers(0, n - 500, n // 10)
    return {
        "bipartite": DiGraph.from_codes(
            rng.integers(0, half, 5 * n), half + rng.integers(0, half, 5 * n), 2 * half
        ),
        "deep grid": DiGraph.from_codes(*grid, side * side),
        "dense DAG": DiGraph.from_codes(late[some], early[some], n // 4),
        "skewed hubs": DiGraph.from_codes(
            np.maximum(popular, follower)[popular != follower],
            np.minimum(popular, follower)[popular != follower],
            n,
        ),
        "long strands": DiGraph.from_codes(
            np.concatenate([strands, crossing]),
            np.concatenate([strands + 1, crossing + rng.integers(1, 500, len(crossing))]),
            n,
        ),
        "sparse random DAG": random_dag(n, 2 * n, random_state=11),
    }


class Neighbours:
    """A random neighbour of each node, −1 where there is none."""

    def __init__(self, sources: np.ndarray, targets: np.ndarray, n: int) -> None:
        order = np.argsort(sources, kind="stable")
        self.targets = targets[order].astype(np.int64)
        self.first = np.searchsorted(sources[order], np.arange(n + 1))

    def of(self, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One neighbour of each."""
        start, degree = self.first[nodes], self.first[nodes + 1] - self.first[nodes]
        place = start + (rng.random(len(nodes)) * degree).astype(np.int64)
        found = self.targets[np.minimum(place, len(self.targets) - 1)]
        return np.where((nodes >= 0) & (degree > 0), found, -1)


def negatives(dag: DiGraph, paths: ExactPaths, level: np.ndarray) -> dict[str, Pairs]:
    """Pairs joined by a path, under the names in `TRUE`, and every kind of pair without one."""
    rng = np.random.default_rng(PAIR_SEED)
    pairs = HardPairs.of(paths, level, rng)
    u, v = pairs.paths
    after = Neighbours(dag.sources, dag.targets, dag.n_nodes)
    before = Neighbours(dag.targets, dag.sources, dag.n_nodes)
    by_level = np.argsort(level, kind="stable")
    start = np.searchsorted(level[by_level], np.arange(level.max() + 2))

    def same_level(nodes: np.ndarray) -> np.ndarray:
        first, end = start[level[nodes]], start[level[nodes] + 1]
        return by_level[rng.integers(first, end)]

    def descendant(nodes: np.ndarray) -> np.ndarray:
        out = np.full(len(nodes), -1)
        able = np.flatnonzero((nodes >= 0) & (paths.sides[0].sizes[nodes] > 0))
        out[able] = paths.draw(nodes[able].astype(np.int32), 1, np.uint64(rng.integers(1, 2**63)))[
            1
        ]
        return out

    draw: dict[str, Callable[[], np.ndarray]] = {
        "level": lambda: same_level(v),
        "sibling": lambda: after.of(before.of(v, rng), rng),
        "step": lambda: before.of(v, rng),
        "cousin": lambda: descendant(before.of(u, rng)),
    }
    few = rng.permutation(
        np.flatnonzero((paths.sides[0].sizes > 0) & (paths.sides[0].sizes < LEAST))
    )[:NODES]
    few_paths = paths.draw(few.astype(np.int32), LEAST, np.uint64(1))
    edges = rng.permutation(dag.n_edges)[: len(u)]
    found = {
        "paths": (u, v),
        "edges": (dag.sources[edges], dag.targets[edges]),
        "few's paths": few_paths,
        "look-alike": tuple(pairs.others),
        "reverse": (v, u),
    }

    def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        good = (b >= 0) & (b != a)
        good[good] = ~paths.joined(a[good], b[good])
        return np.stack([a[good], b[good]])

    found["few"] = tuple(apart(few_paths[0], rng.permutation(few_paths[1])))
    for kind, other in draw.items():
        kept = [apart(u, other()) for _ in range(TRIES)]
        found[kind] = tuple(np.concatenate(kept, axis=1)[:, : len(u)])
    return found


def table(graph: DiGraph, k: int) -> str:
    """The rows of one graph."""
    dag = break_cycles(graph, random_state=0).dag
    level = levels(dag)
    paths = ExactPaths(dag)
    pairs = negatives(dag, paths, level)
    kinds = [kind for kind in KINDS if len(pairs[kind][0]) >= ENOUGH]
    true = {kind: "few's paths" if kind == "few" else "paths" for kind in kinds}
    rows: list[tuple[str, ...]] = []
    model = ATP(k).fit(dag)
    vectors = {"ATP": (model.source_, model.target_), "SVD of M": svdm(dag, k)}
    for name, sides in vectors.items():
        scores = {kind: pair_scores(*sides, *ends) for kind, ends in pairs.items()}
        ranks = [auc(scores[true[kind]], scores[kind]) for kind in kinds]
        rows.append((f"{name}, AUC", "", "", "", *(f"{x:.3f}" for x in ranks)))
        if name == "ATP":  # an SVD has no threshold
            yes = [np.mean(scores[kind] > model.threshold_) for kind in (*TRUE, *kinds)]
            rows.append((f"{name}, yes", *("" if x != x else f"{x:.3f}" for x in yes)))
    climbs = {kind: (level[b] - level[a]).astype(float) for kind, (a, b) in pairs.items()}
    ranks = [auc(climbs[true[kind]], climbs[kind]) for kind in kinds]
    rows.append(("difference of levels, AUC", "", "", "", *(f"{x:.3f}" for x in ranks)))
    return markdown(("", *TRUE, *kinds), rows)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--graphs", default=",".join(REAL), help="real graphs, by name")
    parser.add_argument("--nodes", type=int, default=6000, help="of the generated graphs; 0: none")
    parser.add_argument("--dim", type=int, default=64)
    options = parser.parse_args()
    command = " ".join(["python benchmarks/harder.py", *sys.argv[1:]])
    report = Report("Harder pairs", command, options.output)
    for name, graph in unseen(options.nodes).items() if options.nodes else ():
        report.add(f"## {name} (generated, {graph.n_nodes:,} nodes, {graph.n_edges:,} edges)")
        report.add(table(graph, options.dim))
        report.save()
    folder = data_dir()
    for name in filter(None, options.graphs.split(",")) if folder else ():
        report.add(f"## {name}")
        report.add(table(read_edgelist(folder / "graphs" / f"{name}.txt.gz"), options.dim))
        report.save()


if __name__ == "__main__":
    main()
