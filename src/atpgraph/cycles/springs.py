"""Positions of the nodes by springs that give way: a cheap score for large graphs.

Every edge u → v is a spring that wants v one step above u. Least squares with all springs alike
would let wrong edges pull the order out of shape, so it is solved again a few times, each spring
weaker the more it points down (a Cauchy weight), and weaker the longer it is where it points up
(nobody said that an edge spans one level only). Each solution is a few steps of conjugate gradients
from the one before; a step is one pass over the edges, so all of it costs as much as a few dozen
passes, where social agony needs a flow.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array
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
    n, u, v = graph.n_nodes, graph.sources, graph.targets
    stiffness = np.ones(graph.n_edges) if weights is None else weights
    x = np.zeros(n)
    for number in range(ROUNDS if graph.n_edges else 0):
        checkpoint()
        short = x[u] - x[v] + 1.0
        give = 1.0 + np.where(short > 0.0, short * short, -short) if number else 1.0
        strength = stiffness / give
        pull, push = np.bincount(v, strength, n), np.bincount(u, strength, n)
        diagonal = ANCHOR + pull + push
        springs = sp.csr_array((strength, v, graph.indptr), shape=(n, n))

        laplacian = sp.diags_array(diagonal, format="csr") - springs - springs.T
        x, _ = cg(
            laplacian, pull - push, x,
            rtol=1e-6, maxiter=STEPS, M=sp.diags_array(1.0 / diagonal),
        )  # fmt: skip
    return np.asarray(x)
