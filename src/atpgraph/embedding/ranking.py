"""Scores of pairs and exact nearest neighbours by inner product, in blocks."""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float64Array, FloatArray, Int64Array

_PAIRS = 1 << 16
_BLOCK = 1 << 21  # scores taken at a time, few enough for a cache;
_LARGEST = 1 << 24  # up to so many, where a block would be but a few queries
_FEW = 16


def pair_scores(left: FloatArray, right: FloatArray, u: Int64Array, v: Int64Array) -> Float64Array:
    """⟨left[u], right[v]⟩ for every pair."""
    scores = np.empty(len(u))
    for start in range(0, len(u), _PAIRS):
        part = slice(start, start + _PAIRS)
        scores[part] = np.einsum(
            "ij,ij->i", left[u[part]].astype(np.float64), right[v[part]].astype(np.float64)
        )
    return scores


def top_by_product(
    queries: FloatArray, vectors: FloatArray, k: int, skip: Int64Array | None = None
) -> tuple[Int64Array, Float64Array]:
    """The k rows of `vectors` with the largest inner product with each query, best first.

    Ties go to the smaller row index, so the answer does not depend on the blocks. `skip` names
    one row per query to leave out (−1: none).

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
    # NumPy multiplies half precision one number at a time.
    queries, vectors = (
        x.astype(np.float32, copy=False) if x.dtype == np.float16 else x for x in (queries, vectors)
    )
    step = max(1, _BLOCK // n, min(_FEW, _LARGEST // n))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        product = part @ vectors.T
        if skip is not None:
            left_out = skip[start : start + step]
            known = np.flatnonzero(left_out >= 0)
            product[known, left_out[known]] = -np.inf
        lines, columns = _candidates(product, k)
        values = product[lines, columns]
        # By line, then by score; as the sort is stable and columns ascend, ties by column.
        order = np.lexsort([-values, lines])
        first = np.searchsorted(lines, np.arange(len(part)))
        best = order[first[:, None] + np.arange(k)]
        rows[start : start + step], scores[start : start + step] = columns[best], values[best]
    return rows, scores


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
