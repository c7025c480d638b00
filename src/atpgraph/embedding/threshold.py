"""The score above which a path is predicted, found on pairs of the graph itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import breadth_first_order

from atpgraph.graph.digraph import DiGraph

_SOURCES = 64
_EDGES = 20_000_000
_PAIRS = 1000


def separating_score(
    dag: DiGraph, source: npt.NDArray[np.float32], target: npt.NDArray[np.float32]
) -> float:
    """The score that best tells pairs joined by a path from others.

    Best is the largest mean of the two shares judged right. Pairs are drawn from a few nodes, up to
    1,000 joined and 1,000 others from each, always the same for the same graph. 0 where either kind
    is missing.

    Examples
    --------
    >>> dag = DiGraph.from_edges([("a", "b")])
    >>> s, t = np.float32([[2], [1]]), np.float32([[0], [2]])
    >>> separating_score(dag, s, t)
    2.0
    """
    n = dag.n_nodes
    joined: list[npt.NDArray[np.float32]] = []
    others: list[npt.NDArray[np.float32]] = []
    rng = np.random.default_rng(0)
    matrix = dag.to_scipy()
    few = max(4, min(_SOURCES, _EDGES // max(dag.n_edges + n, 1)))
    for u in rng.permutation(n)[:few].tolist():
        reached = breadth_first_order(matrix, u, return_predecessors=False)[1:]
        other = np.ones(n, dtype=np.bool_)
        other[reached] = False
        other[u] = False
        for found, scores in ((reached, joined), (np.flatnonzero(other), others)):
            some = found if len(found) <= _PAIRS else rng.choice(found, _PAIRS, replace=False)
            scores.append(target[some] @ source[u])
    return _best_cut(np.concatenate(joined), np.concatenate(others)) if n else 0.0


def _best_cut(high: npt.NDArray[np.float32], low: npt.NDArray[np.float32]) -> float:
    """The number with the largest share of `high` above it plus share of `low` not above it."""
    if not len(high) or not len(low):
        return 0.0
    values = np.unique(np.concatenate([high, low])).astype(np.float64)
    above = 1.0 - np.searchsorted(np.sort(high), values, side="right") / len(high)
    below = np.searchsorted(np.sort(low), values, side="right") / len(low)
    best = int(np.argmax(above + below))
    if best + 1 == len(values):
        return float(values[best])
    return float((values[best] + values[best + 1]) / 2)
