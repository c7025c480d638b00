"""An approximate index over the vectors of many nodes: Faiss, an optional library."""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np

from atpgraph.embedding.ranking import Ranked, listed, ranked
from atpgraph.errors import MissingDependencyError
from atpgraph.util.arrays import Float32Array, FloatArray, Int64Array
from atpgraph.util.checks import whole_number
from atpgraph.util.progress import stage
from atpgraph.util.registry import unknown_name

LEAST_RECALL = 0.95  # below this the search is exact
SAMPLE = 200  # nodes on which the recall is measured
_TRAINING = 50  # vectors for each list
_ROWS = 1 << 16
_SPARE = 8  # more than are asked for, as some are not on a higher level

log = logging.getLogger(__name__)
Found = list[Ranked]


class NeighborIndex:
    """Find nodes with large inner products without comparing all of them.

    The vectors are split into about √n lists around centers (Faiss's inverted lists, in half
    precision), and a query looks into the lists whose centers have the largest inner products with
    it. Nodes without in-edges are no target of anything, and not in the index; in a taxonomy those
    are most nodes. How many lists a query looks into is chosen when the index is built: the fewest
    that find 95 % of the ten best answers above the threshold of the model, on sampled nodes. Where
    half of the lists would not do, every search compares all nodes instead, and a warning says so.

    Built on one thread, so that the same vectors give the same index.

    Parameters
    ----------
    model : ATP
        A fitted model.
    direction : {"targets", "sources"}
        Whether to look for what nodes lead to, or for what leads to them.

    Attributes
    ----------
    exact_ : bool
        Whether searches compare all nodes.
    recall_ : float
        Share of the ten best answers that :meth:`top` finds, on up to 200 sampled nodes.
    approximate_recall_ : float
        The same for the approximate search, whether it is used or not.
    """

    def __init__(self, model: Any, direction: str = "targets") -> None:
        if direction not in ("targets", "sources"):
            raise unknown_name("direction", direction, ("targets", "sources"))
        try:
            import faiss
        except ImportError:
            raise MissingDependencyError("faiss-cpu", "ann", "An approximate index") from None
        self._graph, self._threshold = model.graph_, model.threshold_
        dag = model.dag_ if direction == "targets" else model.dag_.reverse()
        self._queries, self._vectors, self._levels = model.source_, model.target_, model.levels_
        if direction == "sources":
            self._queries, self._vectors = self._vectors, self._queries
            self._levels = -self._levels
        self._nodes = np.flatnonzero(dag.in_degree > 0)
        self._index: Any = None
        self.approximate_recall_ = 1.0
        with stage("building the index"):
            before = faiss.omp_get_max_threads()
            faiss.omp_set_num_threads(1)
            try:
                self._build(faiss, np.flatnonzero(dag.out_degree > 0))
            finally:
                faiss.omp_set_num_threads(before)
        self.exact_ = self._index is None
        self.recall_ = 1.0 if self.exact_ else self.approximate_recall_
        if self.approximate_recall_ < LEAST_RECALL:
            log.warning(
                "the index finds only %.0f%% of the ten best %s on a sample; searching exactly",
                100 * self.approximate_recall_,
                direction,
            )

    def top(
        self, nodes: Any, k: int = 10, *, threshold: float | Literal["auto"] | None = "auto"
    ) -> tuple[Any, Any]:
        """Find up to k nodes for each node, largest score first; return their labels and scores.

        As :meth:`ATP.top_targets` with ``order="score"``. Without a threshold (None) the search is
        exact.
        """
        whole_number("k", k)
        codes = self._graph.codes(nodes).astype(np.int64)
        least = self._threshold if threshold == "auto" else threshold
        if least is None or self.exact_:
            found = self._exact(codes, k, least)
        else:
            found = self._search(codes, k, least)
        return listed(self._graph, found, self._graph.several(nodes) is not None)

    def _build(self, faiss: Any, able: Int64Array) -> None:
        n, width, rng = len(self._nodes), self._vectors.shape[1], np.random.default_rng(0)
        lists = int(np.sqrt(n))
        asked = np.sort(rng.choice(able, min(len(able), SAMPLE), replace=False)).astype(np.int64)
        best = self._exact(asked, 10, self._threshold)
        if lists < 4 or not sum(len(rows) for rows, _ in best):
            return
        index = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(width), width, lists, faiss.ScalarQuantizer.QT_fp16,
            faiss.METRIC_INNER_PRODUCT,
        )  # fmt: skip
        index.by_residual = False
        index.cp.niter, index.cp.min_points_per_centroid = 8, 1
        index.train(self._single(rng.choice(n, min(n, _TRAINING * lists), replace=False)))
        for first in range(0, n, _ROWS):
            index.add(self._single(np.arange(first, min(first + _ROWS, n))))
        self._index, index.nprobe = index, 1
        while True:
            self.approximate_recall_ = _recall(best, self._search(asked, 10, self._threshold))
            if self.approximate_recall_ >= LEAST_RECALL:
                return
            index.nprobe *= 2
            if 2 * index.nprobe > lists:
                self._index = None
                return

    def _single(self, rows: Int64Array) -> Float32Array:
        return np.asarray(self._vectors[self._nodes[rows]], dtype=np.float32)

    def _exact(self, codes: Int64Array, k: int, threshold: float | None) -> Found:
        return ranked(
            self._queries[codes], self._vectors, k, self._levels, order="score",
            threshold=threshold, skip=codes,
        )  # fmt: skip

    def _search(self, codes: Int64Array, k: int, threshold: float) -> Found:
        queries: FloatArray = self._queries[codes].astype(np.float32)
        _, found = self._index.search(queries, min(2 * k + _SPARE, len(self._nodes)))
        result = []
        for code, query, rows in zip(codes.tolist(), queries, found, strict=True):
            nodes = self._nodes[rows[rows >= 0]]
            nodes = nodes[self._levels[nodes] > self._levels[code]]
            scores = self._vectors[nodes].astype(np.float64) @ query.astype(np.float64)
            order = np.argsort(-scores, kind="stable")[:k]
            order = order[scores[order] > threshold]
            result.append((nodes[order], scores[order]))
        return result


def _recall(exact: Found, found: Found) -> float:
    """Share of the exact answers that are as good in what was found, so that ties do not matter."""
    hits = 0
    for (rows, best), (_, scores) in zip(exact, found, strict=True):
        if len(rows):
            hits += min(int(np.sum(scores >= best[-1] - 1e-5 * max(abs(best[-1]), 1.0))), len(rows))
    return hits / max(sum(len(rows) for rows, _ in exact), 1)
