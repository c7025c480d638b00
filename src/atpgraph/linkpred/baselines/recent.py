"""Trivial rows that know times: links that a target got lately."""

from __future__ import annotations

from typing import Self

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.baselines.local import ItemCosine
from atpgraph.linkpred.clock import Clock
from atpgraph.linkpred.evidence import Recency
from atpgraph.linkpred.ranking import Popularity
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray


class RecentPopularity:
    """Links that v got shortly before u chooses; all links if there are no times.

    Parameters
    ----------
    horizon : float
        Share of all edges that are recent.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 2, 3], [4, 4, 5, 5], 7)
    >>> row = RecentPopularity(0.5).fit(graph, times=np.array([0, 1, 2, 3, 0, 0, 4.0]))
    >>> row.score(np.array([6, 6]), np.array([4, 5])).round().tolist()
    [1.0, 3.0]
    """

    uses_times = True

    def __init__(self, horizon: float = 0.02) -> None:
        self.horizon = horizon
        self.name = "recent popularity" if horizon < 1 else "popularity"

    def fit(self, graph: DiGraph, *, times: Float64Array | None = None) -> Self:
        """Sort the links by time."""
        recency = None
        if times is not None and self.horizon < 1:
            recency = Recency(Clock(times, graph), graph).fit(graph)
        self._popularity = Popularity(graph, recency, self.horizon)
        return self

    def score_from(self, u: IntArray) -> FloatArray:
        """Return the counts of all nodes, ties broken by all links so far."""
        return np.stack([self._line(int(source)) for source in u])

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the counts of the targets."""
        sources, at = np.unique(u, return_inverse=True)
        scores = np.empty(len(u))
        for row, source in enumerate(sources.tolist()):
            scores[at == row] = self._line(source)[v[at == row]]
        return scores

    def _line(self, source: int) -> Float64Array:
        recent, ever = (self._popularity.counts(source, h) for h in (self.horizon, 1.0))
        return np.asarray(recent + ever / (ever.max() + 1.0))


class RecentItemCosine(ItemCosine):
    """Item-item cosine times log(1 + recent links of v)."""

    name = "item-item cosine × recent in-degree"
    uses_times = True

    def __init__(self, horizon: float = 0.1) -> None:
        super().__init__()
        self._recent = RecentPopularity(horizon)

    def fit(self, graph: DiGraph, *, times: Float64Array | None = None) -> Self:
        """Keep the adjacency and the times of links."""
        self._recent.fit(graph, times=times)
        return super().fit(graph)

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the products of the pairs."""
        return super().score(u, v) * np.log1p(self._recent.score(u, v))

    def score_from(self, u: IntArray) -> FloatArray:
        """Return the products for all targets."""
        return super().score_from(u) * np.log1p(self._recent.score_from(u))
