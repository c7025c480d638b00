"""STRAP: the logarithm of personalized PageRank, forward and on the reversed graph, factored."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Local, PageRank
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.factor import singular_factors
from atpgraph.linkpred.protocols.method import EmbeddingMethod, check_components
from atpgraph.util.arrays import AnyArray
from atpgraph.util.random import RandomState, generator


class STRAP(EmbeddingMethod):
    """Sparse transpose proximity: s_u·t_v ≈ log((π(u, v) + πᵀ(v, u)) · 2 / δ) where it is positive.

    π(u, v) is the personalized PageRank of v from u, πᵀ(v, u) that of u from v on the reversed
    graph. Both are found by local push to within δ / 2, smaller entries are zero, and the sparse
    matrix of logarithms is factored by a truncated SVD.

    Parameters
    ----------
    n_components : int
    alpha : float
        Chance that a walk stops.
    delta : float
        Smallest proximity that counts, δ.
    random_state : int, Generator or None

    References
    ----------
    Yin, Wei: Scalable graph embeddings via sparse transpose proximities. KDD 2019.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 2, 3], [1, 2, 3, 0], 5)
    >>> near, far = STRAP(5).fit(graph).score(np.array([0, 0]), np.array([1, 4]))
    >>> bool(near > far)
    True
    """

    name = "STRAP"

    def __init__(
        self,
        n_components: int = 64,
        *,
        alpha: float = 0.5,
        delta: float = 1e-5,
        random_state: RandomState = 0,
    ) -> None:
        if not 0 < alpha < 1 or not 0 < delta < 1:
            raise InputError(f"alpha is {alpha} and delta {delta}; both must be between 0 and 1.")
        self.n_components = check_components(n_components)
        self.alpha = alpha
        self.delta = delta
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Compute the proximities and factor their logarithms."""
        proximity = self._pagerank(graph, "out") + self._pagerank(graph, "in").T
        matrix = sp.csr_array(proximity)
        matrix.data = np.log(np.maximum(matrix.data * (2.0 / self.delta), 1.0))
        back = sp.csr_array(matrix.T)
        self.source_, self.target_ = singular_factors(
            graph.n_nodes,
            self.n_components,
            lambda x: matrix @ x,
            lambda x: back @ x,
            generator(self.random_state),
            tolerance=1e-3,
        )
        return self

    def _pagerank(self, graph: DiGraph, direction: str) -> sp.csr_array:
        least = self.delta / 2
        column = PageRank(direction, restart=self.alpha, tolerance=least)  # type: ignore[arg-type]

        def visit(_: int, room: Room) -> tuple[AnyArray, AnyArray]:
            values = room.table[room.near, 0]
            return room.near[values >= least].copy(), values[values >= least]

        n = graph.n_nodes
        rows = Local([column]).fit(graph).scan(np.arange(n), visit)
        ends = np.concatenate([[0], np.cumsum([len(nodes) for nodes, _ in rows])])
        nodes, values = (np.concatenate(side) for side in zip(*rows, strict=True))
        return sp.csr_array((values.astype(np.float64), nodes, ends), shape=(n, n))
