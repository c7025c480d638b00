"""Rows every table should have: degrees, levels, neighbors, PageRank, and what is popular."""

from __future__ import annotations

from typing import Self

import numpy as np

from atpgraph.cycles import CycleBreaker
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.evidence import Local, PageRank, Recency, Walk
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import BUDGET, HUB
from atpgraph.linkpred.evidence.times import Clock
from atpgraph.linkpred.protocols.method import EmbeddingMethod
from atpgraph.linkpred.ranking import Popularity
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray


class LevelDifference(EmbeddingMethod):
    """level(v) − level(u) in the graph with its cycles broken: steps 1 and 2 of ATP alone.

    Written as an inner product, (−level(u), 1) · (1, level(v)).

    Parameters
    ----------
    random_state : int

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1, 2], [1, 2, 0], 4).without_edges([2])
    >>> LevelDifference().fit(chain).score(np.array([0, 2]), np.array([2, 0])).tolist()
    [2.0, -2.0]
    """

    name = "difference of levels"

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Break cycles and find the levels."""
        broken = CycleBreaker(graph, self.random_state).run("h-voting")
        level = levels(broken.dag).astype(np.float64)
        one = np.ones(len(level))
        self.source_ = np.column_stack([-level, one])
        self.target_ = np.column_stack([one, level])
        return self


class DegreeProduct(EmbeddingMethod):
    """out-degree(u) · in-degree(v): preferential attachment that knows the direction.

    Examples
    --------
    >>> star = DiGraph.from_codes([0, 0, 1], [1, 2, 2], 3)
    >>> DegreeProduct().fit(star).score(np.array([0, 2]), np.array([2, 0])).tolist()
    [4.0, 0.0]
    """

    name = "out × in degree"

    def fit(self, graph: DiGraph) -> Self:
        """Count degrees."""
        self.source_ = graph.out_degree.astype(np.float64)[:, None]
        self.target_ = graph.in_degree.astype(np.float64)[:, None]
        return self


class PreferentialAttachment(EmbeddingMethod):
    """degree(u) · degree(v) with in- and out-edges counted alike; blind to direction.

    References
    ----------
    Liben-Nowell, Kleinberg: The link-prediction problem for social networks. 2007.

    Examples
    --------
    >>> star = DiGraph.from_codes([0, 0, 1], [1, 2, 2], 3)
    >>> PreferentialAttachment().fit(star).score(np.array([0, 2]), np.array([2, 0])).tolist()
    [4.0, 4.0]
    """

    name = "preferential attachment"

    def fit(self, graph: DiGraph) -> Self:
        """Count degrees."""
        degree = (graph.out_degree + graph.in_degree).astype(np.float64)[:, None]
        self.source_ = self.target_ = degree
        return self


class LocalMethod:
    """One column of local evidence times a factor of the target, nothing learned."""

    name: str

    def __init__(self, column: PageRank | Walk, hub: int = HUB, budget: int = BUDGET) -> None:
        self._evidence = Local([column], hub=hub, budget=budget)

    def fit(self, graph: DiGraph) -> Self:
        """Keep the adjacency and the factors."""
        self._evidence.fit(graph)
        self._factor = self._factors(graph)
        self._extra = np.zeros(graph.n_nodes)
        return self

    def _factors(self, graph: DiGraph) -> Float64Array:
        return np.ones(graph.n_nodes)

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the evidence of the pairs, times the factor of the target."""
        return self._evidence.pairs(u, v)[:, 0] * self._factor[v] + self._extra[v]

    def score_from(self, u: IntArray) -> FloatArray:
        """Return the same for all targets."""

        def visit(_: int, room: Room) -> FloatArray:
            return room.table[:, 0] * self._factor + self._extra

        return np.stack(self._evidence.scan(u, visit))


class CommonNeighbours(LocalMethod):
    """Number of nodes w with u → w → v.

    Examples
    --------
    >>> diamond = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 3], 4)
    >>> CommonNeighbours().fit(diamond).score(np.array([0, 3]), np.array([3, 0])).tolist()
    [2.0, 0.0]
    """

    name = "common neighbours"

    def __init__(self) -> None:
        super().__init__(Walk(">>", damping=(0.0,)), hub=2**31, budget=2**62)


class ThreeSteps(LocalMethod):
    """A D⁻¹ Aᵀ A: u → x ← y → v, by the in-degree of x. Who points where u points, points to v.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 1], [2, 2, 3], 4)
    >>> ThreeSteps().fit(graph).score(np.array([0]), np.array([3])).tolist()
    [0.5]
    """

    name = "path u → x ← y → v"

    def __init__(self) -> None:
        super().__init__(Walk("><>", damping=(1.0, 0.0)))


class ItemCosine(LocalMethod):
    """Σ over targets x of u of cos(in-neighbors of x, in-neighbors of v): item-item filtering.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 1], [2, 2, 3], 4)
    >>> ItemCosine().fit(graph).score(np.array([0]), np.array([3])).round(4).tolist()
    [0.7071]
    """

    name = "item-item cosine"

    def __init__(self) -> None:
        super().__init__(Walk("><>", damping=(0.5, 0.0), arrival=0.5))


class Proximity(LocalMethod):
    """Personalized PageRank on the graph without directions.

    Parameters
    ----------
    by_degree : bool
        Multiply by log(1 + in-degree of v).

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> near, far = Proximity().fit(graph).score(np.array([0, 0]), np.array([1, 2]))
    >>> bool(near > far > 0)
    True
    """

    def __init__(self, by_degree: bool = False) -> None:
        super().__init__(PageRank("both"))
        self.by_degree = by_degree
        self.name = "PageRank × log in-degree" if by_degree else "personalized PageRank"

    def _factors(self, graph: DiGraph) -> Float64Array:
        return np.log1p(graph.in_degree) if self.by_degree else super()._factors(graph)


class AnyNeighbours(LocalMethod):
    """Nodes next to both, whatever the direction; ties by the in-degree of v.

    So it says something on a forest too, where two nodes without an edge rarely have a neighbor
    in common.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 3], [2, 2, 4], 5)
    >>> AnyNeighbours().fit(graph).score(np.array([0, 0, 0]), np.array([1, 4, 3])).tolist()
    [1.0, 0.25, 0.0]
    """

    name = "common neighbours, any direction"

    def __init__(self) -> None:
        super().__init__(Walk(">>", damping=(0.0,)))

    def fit(self, graph: DiGraph) -> Self:
        """Forget directions, but for the in-degrees."""
        ends = np.concatenate([graph.sources, graph.targets])
        others = np.concatenate([graph.targets, graph.sources])
        self._evidence.fit(DiGraph.from_codes(ends, others, graph.n_nodes))
        self._factor = np.ones(graph.n_nodes)
        self._extra = graph.in_degree / (2.0 * max(int(graph.in_degree.max(initial=0)), 1))
        return self


class RecentPopularity:
    """Links that v got shortly before u chooses, within a share of all edges, the horizon.

    All links count if there are no times.

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
