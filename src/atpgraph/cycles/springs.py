"""Positions of the nodes by springs that give way: a cheap score for large graphs.

Every edge u → v is a spring that wants v one step above u. Least squares with all springs alike
would let wrong edges pull the order out of shape, so it is solved again a few times, each spring
weaker the more it points down (a Cauchy weight), and weaker the longer it is where it points up
(nobody said that an edge spans one level only). Each solution is a few steps of conjugate
gradients from the one before; a step is one pass over the edges, so all of it costs as much as a
few dozen passes, where social agony needs a flow.

A large graph waits for memory, so edges are kept in tiles: all those from one block of nodes to
another, few enough that what a pass reads and writes of both fits in a core's own cache. In a pass
every block looks at the tiles of its edges out and in, so that threads only read what they share.
The graph alone decides how the nodes are cut into blocks, and sums are added in their order: the
bytes are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float32Array, Int64Array
from atpgraph.util.jit import fast_kernel, kernel
from atpgraph.util.threads import Workers, checkpoint

ROUNDS = 7
STEPS = 5
ANCHOR = 0.3  # a weak spring from each node to 0
PART = 300_000  # edges of a part of the nodes; starting a task costs as much as a few hundred
MOST_PARTS = 16
BLOCK = 2**16  # nodes of a block at most: 256 KB of a vector, and numbers of two bytes
STREAMS = 8


def spring_positions(graph: DiGraph, *, threads: int | None = None) -> Float32Array:
    """A position for every node; most edges go up.

    Parameters
    ----------
    graph : DiGraph
        Edge weights are not used.
    threads : int, optional
        By default all cores.

    Examples
    --------
    >>> spring_positions(DiGraph.from_edges([(0, 1), (1, 2), (2, 3)])).round(1)
    array([-1. , -0.3,  0.3,  1. ], dtype=float32)

    References
    ----------
    De Bacco, Larremore and Moore, "A physical model for efficient ranking in networks", Science
    Advances 2018, has the springs; giving way is ours.
    """
    x, total, residual, product, direction = np.zeros((5, graph.n_nodes), dtype=np.float32)
    with Workers(threads) as workers:
        cuts, parts = _cut(graph)
        count = len(cuts) - 1
        bounds = np.empty((count, count + 1), dtype=np.int64)
        ends = np.empty((graph.n_edges, 2), dtype=np.uint16)
        strength = np.empty(graph.n_edges, dtype=np.float32)
        tiles = cuts, bounds, ends, strength

        def add_up(work: Callable[..., float], *arguments: Any) -> float:
            """The sum of what `work` gives for the parts."""
            checkpoint()
            if min(len(parts), workers.threads) == 1:
                return sum(work(*part, *arguments) for part in parts)
            return sum(workers.map(lambda part: work(*part, *arguments), parts))

        block = np.repeat(np.arange(count, dtype=np.uint16), np.diff(cuts))
        add_up(fill_tiles, graph.indptr, graph.targets, block, cuts, bounds, ends)
        del block
        for number in range(ROUNDS if graph.n_edges else 0):
            fit = add_up(begin_solution, *tiles, number > 0, x, ANCHOR, total, residual, direction)
            for _ in range(STEPS):
                if fit < 1e-12 * len(x):
                    break
                step = fit / add_up(apply_springs, *tiles, total, direction, product)
                before = fit
                fit = add_up(move, cuts, step, direction, product, total, x, residual)
                add_up(turn, cuts, fit / before, residual, total, direction)
    return x


def _cut(graph: DiGraph) -> tuple[Int64Array, list[tuple[int, int]]]:
    """Where the nodes are cut into blocks, and the blocks into parts with about as many edges."""
    ends = graph.indptr + np.append(0, np.cumsum(graph.in_degree))
    count = min(int(ends[-1]) // (2 * PART) + 1, MOST_PARTS)
    places = np.searchsorted(ends, np.linspace(0, ends[-1], count + 1)[1:-1]).tolist()
    cuts, parts = [0], []
    for stop in [*places, graph.n_nodes]:
        first = len(cuts) - 1
        cuts += [*range(cuts[-1] + BLOCK, stop, BLOCK), stop]
        parts.append((first, len(cuts) - 1))
    return np.array(cuts), parts


@kernel
def fill_tiles(
    first: int, stop: int,
    indptr: Any, targets: Any, block: Any, cuts: Any, bounds: Any, ends: Any,
) -> float:  # fmt: skip
    """Sort the edges from some blocks into tiles: tile t of block b is ``bounds[b, t : t + 2]``,
    and both ends of an edge are numbered within their blocks.

    Neighbours in a row stand `STREAMS` apart: adding to one node twice in succession takes long.
    """
    place = np.empty(len(cuts) - 1, dtype=np.int64)
    for b in range(first, stop):
        place[:] = 0
        for e in range(indptr[cuts[b]], indptr[cuts[b + 1]]):
            place[block[targets[e]]] += 1
        bounds[b, 0] = indptr[cuts[b]]
        for t in range(len(place)):
            bounds[b, t + 1] = bounds[b, t] + place[t]
            place[t] = bounds[b, t]
        for u in range(cuts[b], cuts[b + 1]):
            for e in range(indptr[u], indptr[u + 1]):
                t = block[targets[e]]
                at = place[t]
                ends[at, 0], ends[at, 1] = u - cuts[b], targets[e] - cuts[t]
                at += STREAMS
                if at >= bounds[b, t + 1]:
                    at = bounds[b, t] + (at - bounds[b, t]) % STREAMS + 1
                place[t] = at
    return 0.0


@fast_kernel
def begin_solution(
    first: int, stop: int, cuts: Any, bounds: Any, ends: Any, strength: Any,
    gives_way: bool, x: Any, anchor: float, total: Any, residual: Any, direction: Any,
) -> float:  # fmt: skip
    """The strength of the springs at x, the diagonal of the normal equations, what is left of
    their right-hand side, and the first direction.
    """
    fit = 0.0
    one, hold = np.float32(1.0), np.float32(anchor)
    for b in range(first, stop):
        mine = slice(cuts[b], cuts[b + 1])
        here, weight, left, way = x[mine], total[mine], residual[mine], direction[mine]
        for u in range(len(here)):
            weight[u], left[u] = hold, -hold * here[u]
        for t in range(len(cuts) - 1):
            there = x[cuts[t] : cuts[t + 1]]
            for e in range(bounds[t, b], bounds[t, b + 1]):
                u = ends[e, 1]
                short = there[ends[e, 0]] - here[u] + one
                k = give_way(short) if gives_way else one
                weight[u] += k
                left[u] += k * short
            for e in range(bounds[b, t], bounds[b, t + 1]):
                u = ends[e, 0]
                short = here[u] - there[ends[e, 1]] + one
                k = give_way(short) if gives_way else one
                strength[e] = k
                weight[u] += k
                left[u] -= k * short
        for u in range(len(here)):
            way[u] = left[u] / weight[u]
            fit += float(left[u]) * float(way[u])
    return fit


@kernel
def give_way(short: Any) -> Any:
    """How much a spring counts that is too short by so much."""
    one = np.float32(1.0)
    return one / (one + (short * short if short > 0.0 else -short))


@fast_kernel
def apply_springs(
    first: int, stop: int, cuts: Any, bounds: Any, ends: Any, strength: Any,
    total: Any, direction: Any, product: Any,
) -> float:  # fmt: skip
    """The matrix of the normal equations times a vector, and the vector times that."""
    both = 0.0
    for b in range(first, stop):
        mine = slice(cuts[b], cuts[b + 1])
        here, weight, into = direction[mine], total[mine], product[mine]
        for u in range(len(here)):
            into[u] = weight[u] * here[u]
        for t in range(len(cuts) - 1):
            there = direction[cuts[t] : cuts[t + 1]]
            for e in range(bounds[t, b], bounds[t, b + 1]):
                into[ends[e, 1]] -= strength[e] * there[ends[e, 0]]
            for e in range(bounds[b, t], bounds[b, t + 1]):
                into[ends[e, 0]] -= strength[e] * there[ends[e, 1]]
        for u in range(len(here)):
            both += float(into[u]) * float(here[u])
    return both


@fast_kernel
def move(
    first: int, stop: int, cuts: Any, step: float, direction: Any, product: Any, total: Any,
    x: Any, residual: Any,
) -> float:  # fmt: skip
    """A step; the square of what is left, in the norm of the diagonal."""
    fit, by, mine = 0.0, np.float32(step), slice(cuts[first], cuts[stop])
    here, way, back, left, weight = (
        x[mine],
        direction[mine],
        product[mine],
        residual[mine],
        total[mine],
    )
    for u in range(len(here)):
        here[u] += by * way[u]
        left[u] -= by * back[u]
        fit += float(left[u] * left[u] / weight[u])
    return fit


@kernel
def turn(
    first: int, stop: int, cuts: Any, share: float, residual: Any, total: Any, direction: Any
) -> float:
    """The next direction: down the residual, and a share of the one before."""
    by, mine = np.float32(share), slice(cuts[first], cuts[stop])
    left, weight, way = residual[mine], total[mine], direction[mine]
    for u in range(len(way)):
        way[u] = left[u] / weight[u] + by * way[u]
    return 0.0
