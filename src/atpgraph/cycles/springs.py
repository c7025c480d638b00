"""Positions of the nodes by springs that give way: a cheap score for large graphs.

Every edge u → v is a spring that wants v one step above u. Least squares with all springs alike
would let wrong edges pull the order out of shape, so it is solved again a few times, each spring
weaker the more it points down (a Cauchy weight), and weaker the longer it is where it points up
(nobody said that an edge spans one level only). Each solution is a few steps of conjugate
gradients from the one before; a step is one pass over the edges, so all of it costs as much as a
few dozen passes, where social agony needs a flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph._jit import kernel
from atpgraph._threads import checkpoint
from atpgraph._typing import Float64Array
from atpgraph.graph.digraph import DiGraph

ROUNDS = 7
STEPS = 5
ANCHOR = 0.3  # a weak spring from each node to 0


def spring_positions(graph: DiGraph) -> Float64Array:
    """A position for every node; most edges go up.

    Parameters
    ----------
    graph : DiGraph
        Edge weights are not used.

    Examples
    --------
    >>> spring_positions(DiGraph.from_edges([(0, 1), (1, 2), (0, 2)])).round(1).tolist()
    [-0.6, 0.0, 0.6]

    References
    ----------
    De Bacco, Larremore and Moore, "A physical model for efficient ranking in networks", Science
    Advances 2018, has the springs; giving way is ours.
    """
    x = np.zeros(graph.n_nodes)
    strength = np.ones(graph.n_edges, dtype=np.float32)
    total, residual, product, scaled, direction = np.empty((5, graph.n_nodes))
    for _ in range(ROUNDS if graph.n_edges else 0):
        checkpoint()
        begin_solution(graph.indptr, graph.targets, strength, x, ANCHOR, total, residual)
        np.divide(residual, total, out=direction)
        fit = _dot(residual, direction)
        for _ in range(STEPS):
            if fit < 1e-12 * len(x):
                break
            checkpoint()
            apply_springs(graph.indptr, graph.targets, strength, total, direction, product)
            step = fit / _dot(direction, product)
            x += np.multiply(direction, step, out=scaled)
            residual -= np.multiply(product, step, out=scaled)
            np.divide(residual, total, out=scaled)
            before, fit = fit, _dot(residual, scaled)
            direction *= fit / before
            direction += scaled
        give_way(graph.indptr, graph.targets, x, strength)
    return x


def _dot(a: Float64Array, b: Float64Array) -> float:
    """Without BLAS, whose sums depend on the number of its threads."""
    return float(np.einsum("i,i", a, b))


@kernel
def begin_solution(
    indptr: Any, targets: Any, strength: Any, x: Any, anchor: float, total: Any, residual: Any
) -> None:
    """The diagonal of the normal equations, and what is left of their right-hand side at x."""
    for v in range(len(x)):
        total[v] = anchor
        residual[v] = -anchor * x[v]
    for u in range(len(x)):
        for e in range(indptr[u], indptr[u + 1]):
            v, k = targets[e], float(strength[e])
            pull = k * (1.0 + x[u] - x[v])
            total[u] += k
            total[v] += k
            residual[u] -= pull
            residual[v] += pull


@kernel
def apply_springs(
    indptr: Any, targets: Any, strength: Any, total: Any, direction: Any, product: Any
) -> None:
    """The matrix of the normal equations times a vector."""
    for v in range(len(product)):
        product[v] = total[v] * direction[v]
    for u in range(len(product)):
        for e in range(indptr[u], indptr[u + 1]):
            v, k = targets[e], float(strength[e])
            product[u] -= k * direction[v]
            product[v] -= k * direction[u]


@kernel
def give_way(indptr: Any, targets: Any, x: Any, strength: Any) -> None:
    """How much each spring counts in the next round."""
    for u in range(len(x)):
        for e in range(indptr[u], indptr[u + 1]):
            short = x[u] - x[targets[e]] + 1.0
            strength[e] = 1.0 / (1.0 + short * short) if short > 0.0 else 1.0 / (1.0 - short)
