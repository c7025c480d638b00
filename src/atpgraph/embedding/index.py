"""An approximate index over the vectors of many nodes: Faiss, an optional library."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from atpgraph.embedding.ranking import top_by_product
from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.util.arrays import AnyArray, Float32Array, FloatArray, Int64Array
from atpgraph.util.checks import whole_number
from atpgraph.util.progress import stage
from atpgraph.util.registry import unknown_name

if TYPE_CHECKING:
    from atpgraph.embedding.base import Embedding

LINKS = 32  # of each node in the graph that is searched
BUILD, SEARCH = 80, 256  # candidates held while building, and while searching
SAMPLE = 200  # nodes on which the recall is measured
LEAST_RECALL = 0.9  # below this the search is exact

log = logging.getLogger(__name__)


class NeighborIndex:
    """Find the nodes with the largest inner product, approximately, in time that hardly grows.

    A navigable graph (HNSW) over the vectors, each with one more component that gives all of them
    the same length: then the nearest by distance is the one with the largest inner product. Built
    on one thread, so that the same vectors give the same index.

    The recall is measured when the index is built. If it is below 0.9, as for many taxonomies,
    the graph is dropped, a warning says so, and every search compares with all nodes instead.

    Parameters
    ----------
    model : ATP
        A fitted model.
    direction : {"targets", "sources"}
        Whether to look for what nodes lead to, or for what leads to them.

    Attributes
    ----------
    exact_ : bool
        Whether searches compare with all nodes, because the approximate search misses too much.
    recall_ : float
        Share of the ten exact answers that :meth:`top` finds, on 200 nodes drawn at random.
    approximate_recall_ : float
        The same for the approximate search, whether it is used or not.
    """

    def __init__(self, model: Embedding, direction: str = "targets") -> None:
        if direction not in ("targets", "sources"):
            raise unknown_name("direction", direction, ("targets", "sources"))
        try:
            import faiss
        except ImportError:
            raise MissingDependencyError("faiss-cpu", "ann", "An approximate index") from None
        self._graph = model.graph_
        near, far = model.source_, model.target_
        if direction == "sources":
            near, far = far, near
        self._queries: FloatArray = near
        self._vectors: FloatArray = far
        length = np.einsum("ij,ij->i", far, far, dtype=np.float64)
        lift = np.sqrt(np.maximum(length.max(initial=0.0) - length, 0.0))
        with stage("building the index"):
            self._index: Any = faiss.IndexHNSWFlat(far.shape[1] + 1, LINKS, faiss.METRIC_L2)
            self._index.hnsw.efConstruction = BUILD
            before = faiss.omp_get_max_threads()
            faiss.omp_set_num_threads(1)
            try:
                self._index.add(_columns(far, lift))
            finally:
                faiss.omp_set_num_threads(before)
        self._index.hnsw.efSearch = SEARCH
        self.approximate_recall_ = self._recall()
        self.exact_ = self.approximate_recall_ < LEAST_RECALL
        self.recall_ = 1.0 if self.exact_ else self.approximate_recall_
        if self.exact_:
            self._index = None
            log.warning(
                "the approximate search for %s finds only %.0f%% of the ten best on a sample; "
                "searching exactly instead",
                direction, 100 * self.approximate_recall_,
            )  # fmt: skip

    def top(self, nodes: Any, k: int = 10) -> tuple[AnyArray, FloatArray]:
        """The k best for each node, and the scores; one node gives arrays of k entries."""
        whole_number("k", k)
        codes = self._graph.codes(nodes).astype(np.int64)
        best, scores = self._search(codes, min(k, len(self._vectors) - 1))
        labels = self._graph.labels[best]
        several = isinstance(nodes, (list, np.ndarray))
        return (labels, scores) if several else (labels[0], scores[0])

    def _search(self, codes: Int64Array, k: int) -> tuple[Int64Array, FloatArray]:
        if k < 1:
            raise InputError("The model has one node; there is no other to find.")
        queries = self._queries[codes]
        if self._index is None:
            return top_by_product(queries, self._vectors, k, codes)
        self._index.hnsw.efSearch = max(SEARCH, 2 * k)
        _, found = self._index.search(_columns(queries, np.zeros(len(codes))), k + 1)
        best = np.empty((len(codes), k), dtype=np.int64)
        scores = np.empty((len(codes), k))
        for row, (code, near) in enumerate(zip(codes.tolist(), found, strict=True)):
            others = near[(near != code) & (near >= 0)]
            if len(others) < k:  # a graph that cannot be searched from here: ask everybody
                others = top_by_product(queries[row : row + 1], self._vectors, k, codes[[row]])[0][
                    0
                ]
            exact = self._vectors[others].astype(np.float64) @ queries[row].astype(np.float64)
            order = np.argsort(-exact, kind="stable")[:k]
            best[row], scores[row] = others[order], exact[order]
        return best, scores

    def _recall(self) -> float:
        """Answers as good as the tenth exact one count, so that ties cannot be missed."""
        n = len(self._vectors)
        k = min(10, n - 1)
        if k < 1:
            return 1.0
        rng = np.random.default_rng(0)
        codes = np.sort(rng.choice(n, min(n, SAMPLE), replace=False)).astype(np.int64)
        _, exact = top_by_product(self._queries[codes], self._vectors, k, codes)
        _, found = self._search(codes, k)
        slack = 1e-5 * np.maximum(np.abs(exact[:, -1:]), 1e-6)
        return float(np.mean(found >= exact[:, -1:] - slack))


def _columns(vectors: FloatArray, more: FloatArray) -> Float32Array:
    return np.column_stack([vectors, more]).astype(np.float32)
