"""Ranks of an acyclic graph: peel the nodes without in-edges, layer by layer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atpgraph._jit import kernel
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph


def levels(dag: DiGraph) -> npt.NDArray[np.int32]:
    """Rank of every node: 1 + the number of edges of the longest path into it.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles (and without self-loops).

    Returns
    -------
    int32 array of n entries
        Ranks from 1. Along every edge u → v the rank rises: ``levels[u] < levels[v]``.

    Raises
    ------
    InputError
        If the graph has a cycle; the message names a node on one, or below one.

    Examples
    --------
    >>> levels(DiGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c")])).tolist()
    [1, 2, 3]
    """
    waiting = dag.in_degree.copy()
    rank = np.ones(dag.n_nodes, dtype=np.int32)
    if _peel(dag.indptr, dag.targets, waiting, rank) < dag.n_nodes:
        stuck = dag.labels[np.argmax(waiting > 0)]
        stuck = stuck.item() if isinstance(stuck, np.generic) else stuck
        raise InputError(
            f"The graph has a cycle (node {stuck!r} is on one or reachable from one); "
            "break the cycles first."
        )
    return rank


@kernel
def _peel(
    indptr: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int32],
    waiting: npt.NDArray[np.int64],
    rank: npt.NDArray[np.int32],
) -> int:
    """Fill `rank`; the number of nodes peeled is n iff there is no cycle."""
    n = len(rank)
    queue = np.empty(n, dtype=np.int32)
    end = 0
    for u in range(n):
        if waiting[u] == 0:
            queue[end] = u
            end += 1
    done = 0
    while done < end:
        u = queue[done]
        done += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = targets[e]
            rank[v] = max(rank[v], rank[u] + 1)
            waiting[v] -= 1
            if waiting[v] == 0:
                queue[end] = v
                end += 1
    return done
