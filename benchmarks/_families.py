"""Generated families of graphs on which fidelity is measured, and constants chosen."""

from __future__ import annotations

import numpy as np
from scipy.spatial import Delaunay

from atpgraph import DiGraph, citation_dag, gnm, noisy_hierarchy, random_dag

PAIR_SEED = 20261117
LATER = ("nested tree", "Price citation graph")  # not among those that constants were chosen on


def families(n: int, seed: int = 1) -> dict[str, DiGraph]:
    """One graph of about n nodes of each family; edges lead from children to parents."""
    rng = np.random.default_rng(PAIR_SEED - 1 + seed)
    child = np.arange(1, n)
    parent = (child * rng.random(n - 1)).astype(np.int64)
    return {
        "random recursive tree": DiGraph.from_codes(child, parent, n),
        "balanced tree": DiGraph.from_codes(child, (child - 1) // 3, n),
        "citation network": citation_dag(n, 5 * n, random_state=seed),
        "layered DAG": layered(n, 20, 4, rng),
        "random DAG": random_dag(n, 4 * n, random_state=seed),
        "noisy hierarchy": noisy_hierarchy(n, 4 * n, n // 20, random_state=seed).graph,
        "nested tree": nested_tree(n, rng),
        "Price citation graph": price(n, 4, rng),
    }


def layered(n: int, layers: int, degree: int, rng: np.random.Generator) -> DiGraph:
    """Layers of one size; every node has edges to `degree` nodes of the next layer."""
    width = n // layers
    node = np.repeat(np.arange((layers - 1) * width), degree)
    above = (node // width + 1) * width + rng.integers(0, width, len(node))
    return DiGraph.from_codes(node, above, layers * width)


def nested_tree(n: int, rng: np.random.Generator, depth: int = 8, fresh: float = 4.0) -> DiGraph:
    """The nested Chinese restaurant process: visitors walk down a tree of tables.

    At each table a visitor goes on to one of those below it, as likely as its visitors are many,
    or opens a new one with the weight `fresh`; the tree is what n tables make of it.
    """
    parent = [-1]
    below: list[list[int]] = [[]]  # for each table one entry for each visitor who went on from it
    while len(parent) < n:
        at = 0
        for _ in range(depth):
            went = below[at]
            pick = rng.random() * (len(went) + fresh)
            if pick < len(went):
                at_next = went[int(pick)]
            elif len(parent) < n:
                at_next = len(parent)
                parent.append(at)
                below.append([])
            else:
                break
            went.append(at_next)
            at = at_next
    return DiGraph.from_codes(np.arange(1, n), np.array(parent[1:]), n)


def price(n: int, citations: int, rng: np.random.Generator) -> DiGraph:
    """Price's model: papers cite earlier ones, as likely as those are cited, and one more."""
    cited = np.empty(2 * citations * n + 1, dtype=np.int64)  # once for itself, once a citation
    cited[0] = 0
    filled = 1
    sources, targets = [], []
    for paper in range(1, n):
        chosen = np.unique(cited[rng.integers(0, filled, citations)])
        sources.append(np.full(len(chosen), paper))
        targets.append(chosen)
        cited[filled : filled + len(chosen)] = chosen
        filled += len(chosen)
        cited[filled] = paper
        filled += 1
    return DiGraph.from_codes(np.concatenate(sources), np.concatenate(targets), n)


def relative(name: str, rng: np.random.Generator) -> DiGraph:
    """Draw a graph of the family and size that the name of a FASP benchmark says.

    The names end with nodes and edges; those of small worlds have the share of edges that were
    rewired before them, in percent.
    """
    family, _, *share, n, m = name.split("-")
    n, m = int(n), int(m)
    if family.startswith("random"):
        return gnm(n, m, rng)
    if family == "tournament":
        pairs = np.stack(np.triu_indices(n, 1), axis=1)
    else:
        points = rng.random((n, 3 if family == "delaunay3d" else 2))
        corners = Delaunay(points).simplices
        size = corners.shape[1]
        every = [corners[:, [i, j]] for i in range(size) for j in range(i)]
        pairs = np.unique(np.sort(np.concatenate(every), axis=1), axis=0)
    pairs = np.where(rng.random((len(pairs), 1)) < 0.5, pairs, pairs[:, ::-1])
    rewired = rng.random(len(pairs)) < int(share[0] if share else 0) / 100
    pairs[rewired, 1] = rng.integers(0, n, np.count_nonzero(rewired))
    return DiGraph.from_codes(*pairs[pairs[:, 0] != pairs[:, 1]].T, n)
