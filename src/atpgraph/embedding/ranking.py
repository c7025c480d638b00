"""Scores of pairs, and exact search for the largest scores or the nearest nodes, in blocks.

Vectors may be stored in half precision: they are multiplied as float32, a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
)

ORDERS = ("nearest", "score")
Ranked = tuple[Int64Array, Float64Array]  # rows and their scores

_PAIRS = 1 << 14
_ROWS = 1 << 13  # vectors converted at a time, few enough for a cache
_BLOCK = 1 << 22  # scores taken at a time,
_LARGEST = 1 << 25  # up to so many, where a block would be but a few queries
_FEW = 32


def pair_scores(left: FloatArray, right: FloatArray, u: Int64Array, v: Int64Array) -> Float64Array:
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

    "nearest" orders by level and then by product, "score" by product. Rows need a larger product
    than the threshold, and a higher level than the row that `skip` names for the query, which is
    left out; without a threshold all rows are taken.

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
    """Return the first k of the rows, and their scores, that a path leads to from the node.

    The rows are sorted by level: the search stays below the level of those that are checked.
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
    """Return the places of the k smallest, by the last key first; ties go to the smaller place."""
    places = np.arange(len(keys[0]))
    if 0 < k < len(places):  # sort only what can be among them
        places = np.flatnonzero(keys[-1] <= np.partition(keys[-1], k - 1)[k - 1])
    return places[np.lexsort([key[places] for key in keys])[:k]]


def _single(vectors: FloatArray) -> FloatArray:
    return vectors.astype(np.float32) if vectors.dtype == np.float16 else vectors


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
