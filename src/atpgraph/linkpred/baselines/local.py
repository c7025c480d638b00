"""Trivial rows that look around the source: paths, cosine of items, PageRank, neighbours."""

from __future__ import annotations

from typing import Self

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Local, PageRank, Walk
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray


class LocalMethod:
    """One column of local evidence times a factor of the target, nothing learned."""

    name: str

    def __init__(self, column: PageRank | Walk) -> None:
        self._evidence = Local([column])

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
    """Σ over targets x of u of cos(in-neighbours of x, in-neighbours of v): item-item filtering.

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

    So it says something on a forest too, where two nodes without an edge rarely have a neighbour
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
