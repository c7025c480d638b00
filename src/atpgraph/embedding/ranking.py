"""Score pairs, and find the nodes with the largest scores or the nearest ones.

Vectors may be stored in half precision: they are multiplied as float32, a block at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
    IntArray,
    UInt16Array,
    UInt32Array,
)
from atpgraph.util.checks import unknown_name, whole_number
from atpgraph.util.jit import kernel
from atpgraph.util.progress import stage

log = logging.getLogger(__name__)

DIRECTIONS = ("targets", "sources")
ORDERS = ("nearest", "score")
Ranked = tuple[Int64Array, Float64Array]  # rows and their scores

_PAIRS = 1 << 14
_ROWS = 1 << 16  # vectors converted at a time
_BLOCK = 1 << 22  # scores taken at a time,
_LARGEST = 1 << 25  # up to so many, where a block would be but a few queries
_FEW = 32


class View(NamedTuple):
    """A model seen from one end of its paths; levels rise along them."""

    near: FloatArray
    far: FloatArray
    levels: Int32Array
    dag: DiGraph


def view_of(model: Any, direction: str) -> View:
    """Return the view of a model that finds targets or sources."""
    if direction not in DIRECTIONS:
        raise unknown_name("direction", direction, DIRECTIONS)
    if direction == "targets":
        return View(model.source_, model.target_, model.levels_, model.dag_)
    return View(model.target_, model.source_, -model.levels_, model.dag_.reverse())


def pair_scores(left: FloatArray, right: FloatArray, u: IntArray, v: IntArray) -> Float64Array:
    """Return ⟨left[u], right[v]⟩ for every pair."""
    scores = np.empty(len(u))
    for start in range(0, len(u), _PAIRS):
        part = slice(start, start + _PAIRS)
        a, b = (_single(vectors[at]) for vectors, at in ((left, u[part]), (right, v[part])))
        scores[part] = np.einsum("ij,ij->i", a, b, dtype=np.float64)
    return scores


def ranked(
    queries: FloatArray,
    vectors: FloatArray,
    k: int,
    levels: Int32Array,
    *,
    order: str,
    threshold: float | None,
    skip: Int64Array | None = None,
) -> list[Ranked]:
    """Return up to k rows of `vectors` for each query, and their inner products with it.

    "nearest" orders by level and then by product, "score" by product. `skip` names a row to leave
    out for each query. Results have a product above the threshold and a higher level than that row;
    without a threshold, all rows count.

    Examples
    --------
    >>> vectors, levels = np.array([[1.0], [3.0], [2.0], [3.0]]), np.array([1, 3, 2, 2])
    >>> how = {"levels": levels, "order": "nearest", "threshold": 1.5}
    >>> [rows.tolist() for rows, _ in ranked(np.ones((1, 1)), vectors, 3, **how)]
    [[3, 2, 1]]
    """
    if threshold is None and order == "nearest":
        raise InputError("order='nearest' needs a threshold; use order='score' without one.")
    least = -np.inf if threshold is None else threshold
    result = []
    for part, product in _products(queries, vectors, skip):
        likely: BoolArray = product > least
        if threshold is not None and skip is not None:
            likely &= levels > levels[skip[part], None]
        for values, some in zip(product, likely, strict=True):
            rows = np.flatnonzero(some)
            keys = [-values[rows]]
            if order == "nearest":
                keys.append(levels[rows])
            rows = rows[_smallest(keys, k)]
            result.append((rows, values[rows].astype(np.float64)))
    return result


def top_by_product(
    queries: FloatArray, vectors: FloatArray, k: int, skip: Int64Array | None = None
) -> tuple[Int64Array, Float64Array]:
    """Return the k rows of `vectors` with the largest inner product with each query, best first.

    Ties go to the smaller row index. `skip` names one row per query to leave out.

    Examples
    --------
    >>> top_by_product(np.ones((1, 1)), np.array([[1.0], [3.0], [3.0], [2.0]]), 3)[0].tolist()
    [[1, 2, 3]]
    """
    k = max(min(k, len(vectors) - (skip is not None)), 0)
    no_levels = np.zeros(len(vectors), dtype=np.int32)
    found = ranked(queries, vectors, k, no_levels, order="score", threshold=None, skip=skip)
    rows = np.array([rows for rows, _ in found], dtype=np.int64).reshape(len(found), k)
    return rows, np.array([scores for _, scores in found]).reshape(len(found), k)


def listed(graph: DiGraph, found: list[Ranked], several: bool) -> tuple[Any, Any]:
    """Return the labels and the scores: two lists, or two arrays for one query."""
    labels, scores = [graph.labels[rows] for rows, _ in found], [values for _, values in found]
    return (labels, scores) if several else (labels[0], scores[0])


def first_reached(
    dag: DiGraph, levels: Int32Array, node: int, ranked_rows: Ranked, k: int
) -> Ranked:
    """Return the first k of the rows that the node reaches, and their scores.

    The rows are sorted by level, so the search need not go beyond the level of the row it checks.
    """
    rows, scores = ranked_rows
    count = 2 * k
    while True:
        some = rows[:count]
        highest = levels[some[-1]] if len(some) else 0
        reached = reachable(dag, np.array([node]), within=levels <= highest)
        found = np.flatnonzero(np.isin(some, reached))
        if len(found) >= k or len(some) == len(rows):
            return rows[found[:k]], scores[found[:k]]
        count *= 4


def _smallest(keys: list[AnyArray], k: int) -> Int64Array:
    """Return the positions of the k smallest, by the last key first; ties go to the first."""
    places = np.arange(len(keys[0]))
    if 0 < k < len(places):  # sort only what can be among them
        places = np.flatnonzero(keys[-1] <= np.partition(keys[-1], k - 1)[k - 1])
    return places[np.lexsort([key[places] for key in keys])[:k]]


def _single(vectors: FloatArray) -> FloatArray:
    """Convert finite half-precision vectors to single precision, faster than NumPy does."""
    if vectors.dtype != np.float16:
        return vectors
    single = np.empty(vectors.shape, dtype=np.float32)
    _widen(np.ascontiguousarray(vectors).view(np.uint16), single.view(np.uint32))
    single *= np.float32(2.0**112)
    return single


@kernel
def _widen(half: UInt16Array, single: UInt32Array) -> None:
    """Move sign, exponent and fraction to their places in single precision.

    Read as single numbers they are too small by a factor of 2¹¹², because the exponent of a half
    counts from 15 and that of a single from 127.
    """
    for i in range(half.shape[0]):
        for c in range(half.shape[1]):
            h = np.uint32(half[i, c])
            sign = (h & np.uint32(0x8000)) << np.uint32(16)
            single[i, c] = sign | (h & np.uint32(0x7FFF)) << np.uint32(13)


def _products(
    queries: FloatArray, vectors: FloatArray, skip: Int64Array | None
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the inner products of some queries with all vectors, −inf where one is skipped."""
    n = max(len(vectors), 1)
    step = max(1, _BLOCK // n, min(_FEW, _LARGEST // n))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        some = _single(queries[part])
        product = np.empty((len(some), len(vectors)), dtype=some.dtype)
        for first in range(0, len(vectors), _ROWS):
            block = slice(first, first + _ROWS)
            product[:, block] = some @ _single(vectors[block]).T
        if skip is not None:
            product[np.arange(len(some)), skip[part]] = -np.inf
        yield part, product


LEAST_RECALL = 0.95  # below this the search is exact
SAMPLE = 200  # nodes on which the recall is measured
_TRAINING = 50  # vectors for each list
_SPARE = 8  # more than are asked for, as some are not on a higher level


class NeighborIndex:
    """Find nodes with large inner products without comparing all of them.

    The vectors are split into about √n lists around centers (Faiss's inverted lists, in half
    precision), and a query searches the lists whose centers have the largest inner products with
    it. Nodes without in-edges are never targets and are not in the index; in a taxonomy, these are
    most nodes. How many lists a query searches is chosen when the index is built: the fewest that
    find 95% of the ten best answers above the threshold of the model, on sampled nodes. If
    searching half of the lists would not be enough, every search compares all nodes, and a warning
    says so.

    The index is built on one thread, so that the same vectors give the same index.

    Parameters
    ----------
    model : ATP
        A fitted model.
    direction : {"targets", "sources"}
        Whether to find nodes that a node leads to, or nodes that lead to it.

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
        view = view_of(model, direction)
        try:
            import faiss
        except ImportError:
            raise MissingDependencyError("faiss-cpu", "ann", "An approximate index") from None
        self._graph, self._threshold = model.graph_, model.threshold_
        self._queries, self._vectors, self._levels, dag = view
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

        Like :meth:`ATP.top_targets` with ``order="score"``. Without a threshold (None), the search
        is exact.
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

    def _exact(self, codes: Int64Array, k: int, threshold: float | None) -> list[Ranked]:
        return ranked(
            self._queries[codes], self._vectors, k, self._levels, order="score",
            threshold=threshold, skip=codes,
        )  # fmt: skip

    def _search(self, codes: Int64Array, k: int, threshold: float) -> list[Ranked]:
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


def _recall(exact: list[Ranked], found: list[Ranked]) -> float:
    """Return the share of the exact answers that were found, counting equal scores as found."""
    hits = 0
    for (rows, best), (_, scores) in zip(exact, found, strict=True):
        if len(rows):
            hits += min(int(np.sum(scores >= best[-1] - 1e-5 * max(abs(best[-1]), 1.0))), len(rows))
    return hits / max(sum(len(rows) for rows, _ in exact), 1)
