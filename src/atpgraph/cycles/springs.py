"""Positions of the nodes by springs that give way: a cheap score for large graphs.

Every edge u → v is a spring that wants v one step above u. Least squares with all springs alike
would let wrong edges pull the order out of shape, so it is solved again a few times, each spring
weaker the more it points down (a Cauchy weight), and weaker the longer it is where it points up
(nobody said that an edge spans one level only). Each solution is a few steps of conjugate
gradients from the one before; a step is one pass over the edges, so all of it costs as much as a
few dozen passes, where social agony needs a flow.

In a pass every node looks at its edges in and out, so that threads only read what they share. The
graph alone decides how the nodes are cut into parts, and sums of parts are added in their order:
the bytes are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from atpgraph._jit import kernel
from atpgraph._threads import Workers, checkpoint
from atpgraph._typing import Float32Array, Int64Array
from atpgraph.graph.digraph import DiGraph

ROUNDS = 7
STEPS = 5
ANCHOR = 0.3  # a weak spring from each node to 0
PART = 300_000  # edges of a part of the nodes; starting a task costs as much as a few hundred
MOST_PARTS = 16


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
    >>> spring_positions(DiGraph.from_edges([(0, 1), (1, 2), (0, 2)])).round(1)
    array([-0.6,  0. ,  0.6], dtype=float32)

    References
    ----------
    De Bacco, Larremore and Moore, "A physical model for efficient ranking in networks", Science
    Advances 2018, has the springs; giving way is ours.
    """
    x, total, residual, product, direction = np.zeros((5, graph.n_nodes), dtype=np.float32)
    back = replace(graph).reverse()  # a graph keeps its reverse: this one is soon gone
    up, down = np.empty((2, graph.n_edges), dtype=np.float32)
    rows = graph.indptr, graph.targets, up, back.indptr, back.targets, down
    parts = _parts(graph.indptr + back.indptr)
    with Workers(threads) as workers:

        def add_up(work: Callable[..., float], *arguments: Any) -> float:
            """The sum of what `work` gives for the parts."""
            checkpoint()
            if len(parts) == 1:
                return work(*parts[0], *arguments)
            return sum(workers.map(lambda part: work(*part, *arguments), parts))

        for number in range(ROUNDS if graph.n_edges else 0):
            fit = add_up(begin_solution, *rows, number > 0, x, ANCHOR, total, residual, direction)
            for _ in range(STEPS):
                if fit < 1e-12 * len(x):
                    break
                step = fit / add_up(apply_springs, *rows, total, direction, product)
                before, fit = fit, move(step, direction, product, total, x, residual)
                turn(fit / before, residual, total, direction)
    return x


def _parts(ends: Int64Array) -> list[tuple[int, int]]:
    """Ranges of nodes with about the same number of ends of edges; `ends` is their running sum."""
    count = min(int(ends[-1]) // (2 * PART) + 1, MOST_PARTS)
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], count + 1)[1:-1]).tolist()
    return list(zip([0, *cuts], [*cuts, len(ends) - 1], strict=True))


@kernel
def begin_solution(
    first: int, stop: int,
    indptr: Any, targets: Any, up: Any, bounds: Any, sources: Any, down: Any,
    gives_way: bool, x: Any, anchor: float, total: Any, residual: Any, direction: Any,
) -> float:  # fmt: skip
    """The strength of the springs at x, into `up` for those that leave a node and `down` for those
    that end at it; the diagonal of the normal equations, what is left of their right-hand side, and
    the first direction.
    """
    fit = 0.0
    one, hold = np.float32(1.0), np.float32(anchor)
    for u in range(first, stop):
        here = x[u]
        weight, left = hold, -hold * here
        for e in range(indptr[u], indptr[u + 1]):
            short = here - x[targets[e]] + one
            k = give_way(short) if gives_way else one
            up[e] = k
            weight += k
            left -= k * short
        for e in range(bounds[u], bounds[u + 1]):
            short = x[sources[e]] - here + one
            k = give_way(short) if gives_way else one
            down[e] = k
            weight += k
            left += k * short
        total[u], residual[u] = weight, left
        direction[u] = left / weight
        fit += float(left) * float(direction[u])
    return fit


@kernel
def give_way(short: Any) -> Any:
    """How much a spring counts that is too short by so much."""
    one = np.float32(1.0)
    return one / (one + short * short) if short > 0.0 else one / (one - short)


@kernel
def apply_springs(
    first: int, stop: int,
    indptr: Any, targets: Any, up: Any, bounds: Any, sources: Any, down: Any,
    total: Any, direction: Any, product: Any,
) -> float:  # fmt: skip
    """The matrix of the normal equations times a vector, and the vector times that."""
    both = 0.0
    for u in range(first, stop):
        value = total[u] * direction[u]
        for e in range(indptr[u], indptr[u + 1]):
            value -= up[e] * direction[targets[e]]
        for e in range(bounds[u], bounds[u + 1]):
            value -= down[e] * direction[sources[e]]
        product[u] = value
        both += float(value) * float(direction[u])
    return both


@kernel
def move(step: float, direction: Any, product: Any, total: Any, x: Any, residual: Any) -> float:
    """A step; the square of what is left, in the norm of the diagonal."""
    fit, by = 0.0, np.float32(step)
    for u in range(len(direction)):
        x[u] += by * direction[u]
        residual[u] -= by * product[u]
        fit += float(residual[u]) * float(residual[u]) / float(total[u])
    return fit


@kernel
def turn(share: float, residual: Any, total: Any, direction: Any) -> None:
    """The next direction: down the residual, and a share of the one before."""
    by = np.float32(share)
    for u in range(len(direction)):
        direction[u] = residual[u] / total[u] + by * direction[u]
