"""Scores of pairs, and exact search for the largest scores or the nearest nodes, in blocks.

Vectors may be stored in half precision: they are multiplied as float32, a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.util.arrays import (
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
)

ORDERS = ("nearest", "score")

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
) -> list[tuple[Int64Array, Float64Array]]:
    """Return up to k rows of `vectors` for each query, and their inner products with it.

    Parameters
    ----------
    queries, vectors : float arrays
    k : int
    levels : integer array
        Level of every row.
    order : {"nearest", "score"}
        Lowest level first and then largest product, or largest product first.
    threshold : float, optional
        Rows need a larger product, and a higher level than the row that `skip` names for the query;
        None takes all rows.
    skip : int64 array, optional
        The row that a query stands for, which is left out.

    Examples
    --------
    >>> vectors, levels = np.array([[1.0], [3.0], [2.0], [3.0]]), np.array([1, 3, 2, 2])
    >>> how = {"levels": levels, "order": "nearest", "threshold": 1.5}
    >>> [rows.tolist() for rows, _ in ranked(np.ones((1, 1)), vectors, 3, **how)]
    [[3, 2, 1]]
    """
    if threshold is None:
        if order == "nearest":
            raise InputError("order='nearest' needs a threshold; use order='score' without one.")
        rows, scores = top_by_product(queries, vectors, k, skip)
        return list(zip(rows, scores, strict=True))
    result = []
    for part, product in _products(queries, vectors, skip):
        likely = product > threshold
        if skip is not None:
            likely &= levels > levels[skip[part], None]
        for values, some in zip(product, likely, strict=True):
            rows = np.flatnonzero(some)
            rows = _first(rows, levels[rows] if order == "nearest" else None, values[rows], k)
            result.append((rows, values[rows].astype(np.float64)))
    return result


def first_reached(
    dag: DiGraph,
    levels: Int32Array,
    node: int,
    ranked_rows: tuple[Int64Array, Float64Array],
    k: int,
) -> tuple[Int64Array, Float64Array]:
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


def _first(rows: Int64Array, keys: Int32Array | None, values: FloatArray, k: int) -> Int64Array:
    """Return the k rows with the smallest keys, then largest values, then smallest row."""
    if len(rows) > k:
        least = -values if keys is None else keys
        kept = least <= np.partition(least, k - 1)[k - 1]
        rows, values = rows[kept], values[kept]
        keys = None if keys is None else keys[kept]
    order = np.lexsort([-values] if keys is None else [-values, keys])
    return rows[order[:k]]


def top_by_product(
    queries: FloatArray, vectors: FloatArray, k: int, skip: Int64Array | None = None
) -> tuple[Int64Array, Float64Array]:
    """Return the k rows of `vectors` with the largest inner product with each query, best first.

    Ties go to the smaller row index. `skip` names one row per query to leave out (−1: none).

    Examples
    --------
    >>> top_by_product(np.ones((1, 1)), np.array([[1.0], [3.0], [3.0], [2.0]]), 3)[0].tolist()
    [[1, 2, 3]]
    """
    n = len(vectors)
    k = min(k, n if skip is None else n - int(np.any(skip >= 0)))
    rows = np.empty((len(queries), max(k, 0)), dtype=np.int64)
    scores = np.empty((len(queries), max(k, 0)))
    if k <= 0:
        return rows, scores
    for part, product in _products(queries, vectors, skip):
        lines, columns = _candidates(product, k)
        values = product[lines, columns]
        # By line, then by score; as the sort is stable and columns ascend, ties by column.
        order = np.lexsort([-values, lines])
        first = np.searchsorted(lines, np.arange(len(product)))
        best = order[first[:, None] + np.arange(k)]
        rows[part], scores[part] = columns[best], values[best]
    return rows, scores


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
            known = np.flatnonzero(skip[part] >= 0)
            product[known, skip[part][known]] = -np.inf
        yield part, product


def _candidates(product: FloatArray, k: int) -> tuple[Int64Array, Int64Array]:
    """Row and column of at least the k largest entries of every row, and few others; ascending.

    They are in the runs of a row whose maximum is not below the k-th largest of those maxima, or
    left over at the end: one pass, where a partition takes many.
    """
    lines, n = product.shape
    runs = min(max(8 * k, int(np.sqrt(n))), n)
    length = n // runs
    maxima = product[:, : runs * length].reshape(lines, runs, length).max(axis=2)
    bounds = np.partition(maxima, runs - k, axis=1)[:, runs - k]
    line, run = np.nonzero(maxima >= bounds[:, None])
    inside = (run * length)[:, None] + np.arange(length)
    at, _ = high = np.nonzero(product[line[:, None], inside] >= bounds[line, None])
    rest, end = np.nonzero(product[:, runs * length :] >= bounds[:, None])
    row = np.concatenate([line[at], rest])
    column = np.concatenate([inside[high], end + runs * length])
    order = np.argsort(row, kind="stable")
    return row[order], column[order]
