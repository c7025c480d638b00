"""The score above which a path is predicted, found on pairs of the graph itself."""

from __future__ import annotations

import numpy as np

from atpgraph.closure.swept_paths import SweptPaths as Paths
from atpgraph.util.arrays import Float32Array

_SOURCES = 64
_PAIRS = 1000


def separating_score(paths: Paths, source: Float32Array, target: Float32Array) -> float:
    """The score that best tells pairs joined by a path from others.

    Best is the largest mean of the two shares judged right. Pairs are drawn from a few nodes, up to
    1,000 joined and 1,000 others from each, always the same for the same graph. 0 where either kind
    is missing.

    Examples
    --------
    >>> from atpgraph.closure import collect_paths
    >>> from atpgraph.graph import DiGraph
    >>> edge = DiGraph.from_edges([("a", "b")])
    >>> paths = collect_paths(edge, np.array([1, 2], dtype=np.int32)).oracle
    >>> s, t = np.float32([[2], [1]]), np.float32([[0], [2]])
    >>> separating_score(paths, s, t)
    2.0
    """
    n = len(source)
    joined: list[Float32Array] = []
    others: list[Float32Array] = []
    rng = np.random.default_rng(0)
    asked = rng.permutation(n)[:_SOURCES]
    for u, reached in zip(asked.tolist(), paths.reached(asked), strict=True):
        other = np.ones(n, dtype=np.bool_)
        other[reached] = False
        other[u] = False
        for nodes, scores in ((reached, joined), (np.flatnonzero(other), others)):
            some = nodes if len(nodes) <= _PAIRS else rng.choice(nodes, _PAIRS, replace=False)
            scores.append(target[some] @ source[u])
    return _best_cut(np.concatenate(joined), np.concatenate(others)) if n else 0.0


def _best_cut(high: Float32Array, low: Float32Array) -> float:
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
