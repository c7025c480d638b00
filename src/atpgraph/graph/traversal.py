"""Walks over a graph: topological order, longest paths, and what can be reached."""

from __future__ import annotations

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.util.jit import kernel
from atpgraph.util.prefetch import FAR, NEAR, prefetch


def peel(graph: DiGraph) -> tuple[Int32Array, Int32Array]:
    """Take away the nodes without in-edges, again and again, until none is left.

    Parameters
    ----------
    graph : DiGraph
        A graph without cycles (and without self-loops).

    Returns
    -------
    order : int32 array of n entries
        The nodes in a topological order.
    level : int32 array of n entries
        1 + the number of edges of the longest path into each node.

    Raises
    ------
    InputError
        If the graph has a cycle; the message names a node on one, or below one.

    Examples
    --------
    >>> order, level = peel(DiGraph.from_codes([2, 0], [0, 1], 3))
    >>> order.tolist(), level.tolist()
    ([2, 0, 1], [2, 3, 1])
    """
    waiting, level = np.zeros((2, graph.n_nodes), dtype=np.int32)
    order = np.empty(graph.n_nodes + 1, dtype=np.int32)
    if _peel(graph.indptr, graph.targets, waiting, order, level) < graph.n_nodes:
        stuck = graph.labels[np.argmax(waiting > 0)]
        stuck = stuck.item() if isinstance(stuck, np.generic) else stuck
        raise InputError(
            f"The graph has a cycle (node {stuck!r} is on one or reachable from one); "
            "break the cycles first."
        )
    return order[:-1], level


def reachable(graph: DiGraph, start: IntArray, within: BoolArray | None = None) -> Int64Array:
    """The nodes of `start` and all that they reach, ascending.

    Parameters
    ----------
    graph : DiGraph
    start : integer array
        Node indices.
    within : bool array of n entries, optional
        Nodes that may be entered, `start` included; by default all.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 3], [1, 2, 2], 4)
    >>> reachable(graph, np.array([1])).tolist()
    [1, 2]
    """
    seen = np.zeros(graph.n_nodes, dtype=np.int32)
    if within is not None:
        seen[~within] = 1
    first = np.unique(np.asarray(start, dtype=np.int64))
    first = first[seen[first] == 0]
    seen[first] = 1
    queue = np.empty(graph.n_nodes, dtype=np.int32)
    queue[: len(first)] = first
    count, _ = breadth_first(graph.indptr, graph.targets, len(first), graph.n_nodes, seen, 1, queue)
    return np.sort(queue[:count]).astype(np.int64)


@kernel
def _peel(
    indptr: Int64Array,
    targets: Int32Array,
    waiting: Int32Array,
    order: Int32Array,
    level: Int32Array,
) -> int:
    """Fill `order` and `level`; the number of nodes peeled is n iff there is no cycle.

    Nodes are peeled level by level. Whether one is free is no branch, which would wait for memory:
    it is put at the end of the order, which has room for one more, and stays there if it is.
    """
    for v in targets:
        waiting[v] += 1
    end = 0
    for u in range(len(level)):
        order[end] = u
        end += waiting[u] == 0
    done, height = 0, 0
    while done < end:
        stop = end
        height += 1
        while done < stop:
            if done + FAR < end:
                prefetch(indptr, order[done + FAR])
                prefetch(targets, indptr[order[done + NEAR]])
            u = order[done]
            done += 1
            level[u] = height
            for e in range(indptr[u], indptr[u + 1]):
                v = targets[e]
                waiting[v] -= 1
                order[end] = v
                end += waiting[v] == 0
    return done


@kernel
def breadth_first(
    indptr: Int64Array,
    targets: Int32Array,
    count: int,
    steps: int,
    seen: Int32Array,
    stamp: int,
    queue: Int32Array,
) -> tuple[int, int]:
    """Search from the first `count` nodes of the queue, at most `steps` edges deep.

    Nodes in the queue are marked with the stamp in `seen`, and nodes so marked are not entered.
    Returns the length of the queue and the number of edges looked at.
    """
    start = 0
    visits = 0
    for _ in range(steps):
        end = count
        for at in range(start, end):
            u = queue[at]
            visits += indptr[u + 1] - indptr[u]
            for edge in range(indptr[u], indptr[u + 1]):
                v = targets[edge]
                if seen[v] != stamp:
                    seen[v] = stamp
                    queue[count] = v
                    count += 1
        if count == end:
            break
        start = end
    return count, visits
