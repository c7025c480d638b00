"""Positions of the nodes by springs that give way: a cheap score for large graphs.

Every edge u → v is a spring that wants v one step above u. Least squares with all springs alike
would let wrong edges pull the order out of shape, so it is solved again a few times, each spring
weaker the more it points down (a Cauchy weight), and weaker the longer it is where it points up
(nobody said that an edge spans one level only). Each solution is a few steps of conjugate gradients
from the one before; a step is one pass over the edges, so all of it costs as much as a few dozen
passes, where social agony needs a flow.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import TwoWayRows
from atpgraph.util.arrays import Float64Array
from atpgraph.util.jit import kernel
from atpgraph.util.threads import checkpoint

ROUNDS = 7
STEPS = 5
ANCHOR = 0.3  # a weak spring from each node to 0


def spring_positions(graph: DiGraph, weights: Float64Array | None = None) -> Float64Array:
    """Return a position for every node; most edges go up.

    Parameters
    ----------
    graph : DiGraph
    weights : float64 array, optional
        Strength of the spring of each edge, by default 1.

    Examples
    --------
    >>> spring_positions(DiGraph.from_edges([(0, 1), (1, 2), (2, 3)])).round(1)
    array([-1. , -0.3,  0.3,  1. ])

    References
    ----------
    De Bacco, Larremore and Moore, "A physical model for efficient ranking in networks", Science
    Advances 2018, has the springs; giving way is ours.
    """
    n, rows = graph.n_nodes, TwoWayRows.of(graph)
    out = np.ones(graph.n_edges) if weights is None else weights
    stiffness = out, out[rows.rev_edges]
    strength = np.empty(graph.n_edges), np.empty(graph.n_edges)
    x, diagonal, force = np.zeros(n), np.empty(n), np.empty(n)
    for number in range(ROUNDS if graph.n_edges else 0):
        checkpoint()
        _give_way(rows, stiffness, x, number > 0, strength, diagonal, force)
        matvec = partial(_product, rows, strength, diagonal)
        laplacian = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
        scaling = sp.diags_array(1.0 / diagonal)
        x, _ = cg(laplacian, force, x, rtol=1e-6, maxiter=STEPS, M=scaling)
    return np.asarray(x)


_Both = tuple[Float64Array, Float64Array]  # for the edges in the order of their sources, of targets


@kernel
def _give_way(
    rows: TwoWayRows,
    stiffness: _Both,
    x: Float64Array,
    gives: bool,
    strength: _Both,
    diagonal: Float64Array,
    force: Float64Array,
) -> None:
    """Set the strength of every spring, and of every node the diagonal and the right-hand side."""
    for u in range(len(x)):
        total, pull = ANCHOR, 0.0
        for e in range(rows.indptr[u], rows.indptr[u + 1]):
            short = x[u] - x[rows.targets[e]] + 1.0
            give = 1.0 + (short * short if short > 0.0 else -short) if gives else 1.0
            s = strength[0][e] = stiffness[0][e] / give
            total += s
            pull -= s
        for e in range(rows.rev_indptr[u], rows.rev_indptr[u + 1]):
            short = x[rows.rev_targets[e]] - x[u] + 1.0
            give = 1.0 + (short * short if short > 0.0 else -short) if gives else 1.0
            s = strength[1][e] = stiffness[1][e] / give
            total += s
            pull += s
        diagonal[u], force[u] = total, pull


@kernel
def _product(
    rows: TwoWayRows, strength: _Both, diagonal: Float64Array, x: Float64Array
) -> Float64Array:
    """Multiply the Laplacian matrix of the springs by x, without building it."""
    result = np.empty(len(x))
    for u in range(len(x)):
        total = diagonal[u] * x[u]
        # Only reads at random: both ends of an edge are written when it is their turn.
        for e in range(rows.indptr[u], rows.indptr[u + 1]):
            total -= strength[0][e] * x[rows.targets[e]]
        for e in range(rows.rev_indptr[u], rows.rev_indptr[u + 1]):
            total -= strength[1][e] * x[rows.rev_targets[e]]
        result[u] = total
    return result
