"""Rows every table should have: degrees, common neighbours, and the plain SVD."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.factor import singular_factors
from atpgraph.linkpred.protocols.method import EmbeddingMethod, check_components
from atpgraph.util.arrays import FloatArray, IntArray
from atpgraph.util.random import RandomState, generator

_CHUNK = 2**14


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


class CommonNeighbours:
    """Number of nodes w with u → w → v.

    Examples
    --------
    >>> diamond = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 3], 4)
    >>> CommonNeighbours().fit(diamond).score(np.array([0, 3]), np.array([3, 0])).tolist()
    [2.0, 0.0]
    """

    name = "common neighbours"

    def fit(self, graph: DiGraph) -> Self:
        """Keep the adjacency matrix and its transpose."""
        ones = np.ones(graph.n_edges, dtype=np.float32)
        shape = (graph.n_nodes, graph.n_nodes)
        self._out = sp.csr_array((ones, graph.targets, graph.indptr), shape=shape)
        self._in = sp.csr_array(self._out.T)
        return self

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Sizes of the intersections of out(u) and in(v)."""
        scores = np.empty(len(u), dtype=np.float64)
        for low in range(0, len(u), _CHUNK):
            part = slice(low, low + _CHUNK)
            both = self._out[u[part]].multiply(self._in[v[part]])
            scores[part] = np.asarray(both.sum(axis=1)).reshape(-1)
        return scores

    def score_from(self, u: IntArray) -> FloatArray:
        """Rows of A²."""
        rows: FloatArray = (self._out[u] @ self._out).toarray()
        return rows


class AdjacencySVD(EmbeddingMethod):
    """The best rank-k approximation of the adjacency matrix: A ≈ (U√Σ)(V√Σ)ᵀ.

    Parameters
    ----------
    n_components : int
        Dimension of the source and of the target vectors.
    tolerance : float
        Relative accuracy of the singular values.
    random_state : int, Generator or None
        Start vector of the iterative solver.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> svd = AdjacencySVD(n_components=3).fit(graph)
    >>> np.round(abs(svd.score(np.array([0, 1]), np.array([1, 0]))), 6).tolist()
    [1.0, 0.0]
    """

    name = "SVD of A"

    def __init__(
        self, n_components: int = 64, *, tolerance: float = 1e-4, random_state: RandomState = 0
    ) -> None:
        self.n_components = check_components(n_components)
        self.tolerance = tolerance
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Factor the adjacency matrix."""
        A = graph.to_scipy()
        At = sp.csr_array(A.T)
        self.source_, self.target_ = singular_factors(
            graph.n_nodes,
            self.n_components,
            lambda x: A @ x,
            lambda x: At @ x,
            generator(self.random_state),
            self.tolerance,
        )
        return self
