"""Restore removed edges that close no cycle, and find a cycle for each of the others.

An edge u → v closes a cycle with the edges that stay if and only if these have a path from v to u.
The search for it runs from both ends, level by level, so it finds a shortest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import TwoWayRows, meet, peel
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.util.jit import kernel
from atpgraph.util.threads import checkpoint

_SLICE = 256  # edges between two checks for an interrupt
_MANY = 10_000  # edges that are tried one by one; more are restored in bulk first
_FEWEST = 32  # tries for which it pays to prepare the search
_TRIES = 10**13  # most tries × nodes², below a second: a try takes about 60 ms at a million nodes


def restore(graph: DiGraph, removed: BoolArray, edges: IntArray) -> None:
    """Put back removed edges that close no cycle, in the order given; changes `removed`.

    Without the removed edges the graph must be acyclic. With tens of thousands of nodes on cycles
    and thousands of removed edges, some at the end of the order may stay removed needlessly.
    """
    # Many edges at once: those that agree with an order of the nodes close no cycle together.
    least, tries = _SLICE, _TRIES // max(graph.n_nodes, 1) ** 2
    for latest in (False, True, False, True):
        if len(edges) <= min(_MANY, max(tries, _SLICE)):
            break
        least = 0  # once an order of the nodes has decided, a few more tries change little
        rank = _ranks(graph.keep_edges(~removed), latest)
        agree = rank[graph.sources[edges]] < rank[graph.targets[edges]]
        removed[edges[agree]] = False
        edges = edges[~agree]
    tried = edges[: max(tries if tries >= _FEWEST else 0, least)]
    if not len(tried):
        return
    for _ in _searched(graph, removed, tried, True):
        pass


def _ranks(dag: DiGraph, latest: bool) -> Int32Array:
    """Return each node's place in a topological order, as late or as early as possible."""
    order = peel(dag.reverse())[0][::-1] if latest else peel(dag)[0]
    rank = np.empty(dag.n_nodes, dtype=np.int32)
    rank[order] = np.arange(dag.n_nodes, dtype=np.int32)
    return rank


def closing_cycles(graph: DiGraph, removed: BoolArray, edges: IntArray) -> list[Int32Array]:
    """Return the nodes of a shortest cycle that each of these edges closes, from its target on.

    Empty if the edge closes no cycle with the edges that stay.

    Examples
    --------
    >>> graph = DiGraph.from_edges([(0, 1), (1, 2), (2, 0)])
    >>> [cycle.tolist() for cycle in closing_cycles(graph, np.array([False, False, True]), [2])]
    [[0, 1, 2]]
    """
    return [
        cycle
        for ends, nodes in _searched(graph, removed, edges, False)
        for cycle in np.split(nodes, ends[:-1])
    ]


def _searched(
    graph: DiGraph, removed: BoolArray, edges: IntArray, restoring: bool
) -> Iterator[tuple[Int64Array, Int32Array]]:
    level = peel(graph.keep_edges(~removed))[1]
    rows = TwoWayRows.of(graph)
    for at in range(0, len(edges), _SLICE):
        checkpoint()
        some = np.asarray(edges[at : at + _SLICE], dtype=np.int64)
        yield _search(rows, graph.sources, removed, level, some, restoring)


@kernel
def _search(rows: Any, sources: Any, removed: Any, level: Any, edges: Any, restoring: bool) -> Any:
    """Search for the cycles of the edges; restore edges without one, or write the cycles."""
    n = len(level)
    scratch = np.zeros((4, n + 1), dtype=np.int32)
    waiting = np.zeros(n, dtype=np.bool_)
    ends = np.empty(len(edges), dtype=np.int64)
    nodes = np.empty(16 * len(edges), dtype=np.int32)
    total = 0
    for k in range(len(edges)):
        u, v = sources[edges[k]], rows.targets[edges[k]]
        found, _ = meet(rows, v, u, removed, level, scratch, k + 1)
        if restoring and not found:
            removed[edges[k]] = False
            _raise_levels(rows, removed, level, u, v, scratch[3], waiting)
        node = v if found and not restoring else -1
        while node >= 0:
            if total == len(nodes):
                nodes = np.append(nodes, nodes)
            nodes[total] = node
            total += 1
            node = -1 if node == u else scratch[1, node]
        ends[k] = total
    return ends, nodes[:total]


@kernel
def _raise_levels(
    rows: Any, removed: Any, level: Any, u: int, v: int, queue: Any, waiting: Any
) -> None:
    """Raise levels along the edge u → v, and along all edges reachable from there.

    Nodes wait in a queue: with a stack, nodes with many paths to them would be visited again and
    again.
    """
    if level[v] > level[u]:
        return
    level[v] = level[u] + 1
    size = len(queue)
    queue[0], head, count = v, 0, 1
    while count > 0:
        x = queue[head]
        head = (head + 1) % size
        count -= 1
        waiting[x] = False
        for i in range(rows.indptr[x], rows.indptr[x + 1]):
            y = rows.targets[i]
            if not removed[i] and level[y] <= level[x]:
                level[y] = level[x] + 1
                if not waiting[y]:
                    waiting[y] = True
                    queue[(head + count) % size] = y
                    count += 1
