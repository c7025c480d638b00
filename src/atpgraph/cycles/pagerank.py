"""PageRank, as a score for breaking cycles."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph
from atpgraph.util.arrays import Float64Array


def pagerank(
    graph: Any, *, damping: float = 0.85, tol: float = 1e-10, max_iter: int = 1000
) -> Float64Array:
    """PageRank of the nodes, by power iteration; it sums to 1.

    Parameters
    ----------
    graph : anything :func:`atpgraph.as_graph` takes
        Edge weights are not used. A node without out-edges jumps anywhere.
    damping : float
        Chance of following an edge.
    tol : float
        Stop once the sum of all changes is below this.
    max_iter : int
        Limit on the iterations.

    Examples
    --------
    >>> pagerank([(0, 1), (1, 0), (2, 0)]).round(3).tolist()
    [0.486, 0.464, 0.05]
    """
    if not 0.0 <= damping < 1.0:
        raise InputError(f"damping is {damping}; it must be in [0, 1).")
    graph = as_graph(graph)
    n = graph.n_nodes
    if n == 0:
        return np.zeros(0)
    out = graph.out_degree
    shape = (n, n)
    reverse = graph.reverse()
    share = 1.0 / np.maximum(out, 1)
    flow = sp.csr_array((share[reverse.targets], reverse.targets, reverse.indptr), shape=shape)
    rank = np.full(n, 1.0 / n)
    for _ in range(max_iter):
        spread = flow @ rank
        updated = damping * spread + (1.0 - damping * spread.sum()) / n
        change = np.abs(updated - rank).sum()
        rank = updated
        if change < tol:
            break
    return np.asarray(rank)
