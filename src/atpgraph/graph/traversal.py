"""Walks over a graph: topological order, longest paths, and reachable nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.util.jit import FAR, NEAR, kernel, prefetch


class TwoWayRows(NamedTuple):
    """A graph in both directions, for kernels; `rev_edges` are the indices of the edges."""

    indptr: Int64Array
    targets: Int32Array
    rev_indptr: Int64Array
    rev_targets: Int32Array
    rev_edges: Int64Array

    @classmethod
    def of(cls, graph: DiGraph) -> TwoWayRows:
        """Return the rows of a graph."""
        back = graph.incoming(np.arange(graph.n_edges))
        return cls(graph.indptr, graph.targets, *back)


def peel(graph: DiGraph) -> tuple[Int32Array, Int32Array]:
    """Return the nodes in a topological order, and the level of each node.

    Nodes without in-edges are removed repeatedly until none is left; the level is 1 + the number of
    edges of the longest path into a node. A graph with a cycle raises an InputError that names a
    node on a cycle or reachable from one.

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
    """Return the nodes of `start` and all nodes that they reach, ascending.

    The search enters only nodes where `within` is true; this also applies to `start`.

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
def _peel(indptr: Any, targets: Any, waiting: Any, order: Any, level: Any) -> int:
    """Fill `order` and `level`; the number of nodes peeled is n iff there is no cycle.

    Nodes are peeled level by level. A branch on whether a node is free would wait for memory. So
    the node is always written to the end of the order, which has room for one more, and the end
    moves only if the node is free.
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
    indptr: Any, targets: Any, count: int, steps: int, seen: Any, stamp: int, queue: Any
) -> tuple[int, int]:
    """Search from the first `count` nodes of the queue, at most `steps` edges deep.

    Nodes in the queue are marked with the stamp in `seen`, and nodes so marked are not entered.
    Returns the length of the queue and the number of edges examined.
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


@kernel
def sweep(
    order: Any, indptr: Any, neighbors: Any, before: Any, bits: Any, first: int, stop: int
) -> None:
    """Give every node, in this order, the bits of its neighbors, in the words first … stop.

    `before` has the bits of the neighbors; if it is `bits` itself, the bits propagate along the
    order.
    """
    for u in order:
        for e in range(indptr[u], indptr[u + 1]):
            for w in range(first, stop):
                bits[u, w] |= before[neighbors[e], w]


@kernel
def meet(
    rows: Any, source: int, target: int, removed: Any, rank: Any, scratch: Any, stamp: int
) -> Any:
    """Find a shortest path by breadth-first searches from both ends, the shorter frontier first.

    Returns whether there is one and the number of edges examined; ``scratch[1]`` then has the next
    node of each node on the path. `removed` marks edges that are not there; it may be empty. The
    rank of a node never falls along an edge, so nodes outside the ranks of the two ends are
    skipped. `scratch` has four rows: the end that reached a node, as ±stamp, its neighbor on the
    way there, its distance, and the two queues, one from the front and one from the back.
    """
    seen, near, distance, queue = scratch[0], scratch[1], scratch[2], scratch[3]
    n = len(rank)
    seen[source], distance[source], near[source] = stamp, 0, -1
    if source == target:
        return True, 0
    seen[target], distance[target], near[target] = -stamp, 0, -1
    low, high = rank[source], rank[target]
    if low > high:
        return False, 0
    queue[0], queue[n - 1] = source, target
    head, tail, rear, front = 0, 1, n - 1, n - 2
    work = 0
    while head < tail and rear > front:
        best, meeting, other = 2 * n, -1, -1
        forward = tail - head <= rear - front
        side = stamp if forward else -stamp
        for _ in range(tail - head if forward else rear - front):
            x = queue[head] if forward else queue[rear]
            begin = rows.indptr[x] if forward else rows.rev_indptr[x]
            end = rows.indptr[x + 1] if forward else rows.rev_indptr[x + 1]
            work += end - begin
            for i in range(begin, end):
                y = rows.targets[i] if forward else rows.rev_targets[i]
                if len(removed) > 0 and removed[i if forward else rows.rev_edges[i]]:
                    continue
                if seen[y] == side or rank[y] < low or rank[y] > high:
                    continue
                if seen[y] == -side:
                    if distance[y] < best:
                        best, meeting, other = distance[y], y, x
                    continue
                seen[y], distance[y], near[y] = side, distance[x] + 1, x
                if forward:
                    queue[tail] = y
                    tail += 1
                else:
                    queue[front] = y
                    front -= 1
            if forward:
                head += 1
            else:
                rear -= 1
        if meeting >= 0:
            # Join the two halves: reverse the links from the meeting edge back to the source.
            node, link = (other, meeting) if forward else (meeting, other)
            while node >= 0:
                follow = near[node]
                near[node] = link
                node, link = follow, node
            return True, work
    return False, work
