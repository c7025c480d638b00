"""Vectors of a new node from its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.factorization import solve_rows
from atpgraph.graph.digraph import DiGraph, IntArray

Floats = npt.NDArray[np.floating[Any]]


def fold_rows(
    dag: DiGraph,
    rank: npt.NDArray[np.int32],
    table: npt.NDArray[np.float64],
    source: Floats,
    target: Floats,
    out_edges: IntArray,
    in_edges: IntArray,
    *,
    zero_weight: float,
    regularization: float,
) -> tuple[Floats, Floats]:
    """Source and target vector of a node with edges to `out_edges` and from `in_edges`.

    The rank of the new node is one above its highest in-neighbour, 1 if it has none, as peeling
    would give it; what it reaches is at least one rank above it.
    """
    ancestors = reachable(dag.reverse(), in_edges)
    descendants = np.setdiff1d(reachable(dag, out_edges), ancestors)
    here = 1 + int(rank[in_edges].max(initial=0))
    above = np.clip(rank[descendants] - here, 1, None)
    below = here - rank[ancestors]
    # A new node can stand one rank above all others: the table may end one short.
    weight = np.append(table, table[-1:]) if len(table) else np.ones(2)
    if len(table) == 1:
        weight = np.array([0.0, 1.0])
    values = [weight[np.minimum(d, len(weight) - 1)] for d in (above, below)]

    def solve(vectors: Floats, columns: IntArray, entries: Floats) -> Floats:
        (vector,) = solve_rows(
            vectors,
            [0, len(columns)],
            columns,
            entries,
            zero_weight=zero_weight,
            regularization=regularization,
        )
        return np.asarray(vector)

    return solve(target, descendants, values[0]), solve(source, ancestors, values[1])


def reachable(graph: DiGraph, start: IntArray) -> npt.NDArray[np.int64]:
    """The nodes of `start` and all that they reach, ascending.

    Examples
    --------
    >>> reachable(DiGraph.from_codes([0, 1, 3], [1, 2, 2], 4), np.array([1])).tolist()
    [1, 2]
    """
    seen = np.zeros(graph.n_nodes, dtype=np.bool_)
    frontier = np.unique(np.asarray(start, dtype=np.int64))
    while len(frontier):
        seen[frontier] = True
        first, degree = graph.indptr[frontier], graph.out_degree[frontier]
        offset = np.arange(degree.sum()) - np.repeat(np.cumsum(degree) - degree, degree)
        following = np.unique(graph.targets[np.repeat(first, degree) + offset])
        frontier = following[~seen[following]].astype(np.int64)
    return np.flatnonzero(seen)
