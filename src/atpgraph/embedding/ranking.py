"""Scores of pairs and exact nearest neighbours by inner product, in blocks."""

from __future__ import annotations

import numpy as np

from atpgraph._typing import Float64Array, FloatArray, Int64Array

_PAIRS = 1 << 16
_BLOCK = 1 << 24  # scores held at a time


def pair_scores(left: FloatArray, right: FloatArray, u: Int64Array, v: Int64Array) -> Float64Array:
    """⟨left[u], right[v]⟩ for every pair."""
    scores = np.empty(len(u))
    for start in range(0, len(u), _PAIRS):
        part = slice(start, start + _PAIRS)
        scores[part] = np.einsum("ij,ij->i", left[u[part]], right[v[part]], dtype=np.float64)
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
    step = max(1, _BLOCK // max(n, 1))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        product = part @ vectors.T
        if skip is not None:
            left_out = skip[start : start + step]
            known = np.flatnonzero(left_out >= 0)
            product[known, left_out[known]] = -np.inf
        for i, (line, bound) in enumerate(zip(product, _bounds(product, k), strict=True)):
            candidates = np.flatnonzero(line >= bound)
            best = candidates[np.argsort(-line[candidates], kind="stable")[:k]]
            rows[start + i], scores[start + i] = best, line[best]
    return rows, scores


def _bounds(product: FloatArray, k: int) -> FloatArray:
    """For each row a bound that at least its k largest entries reach, and few others.

    The k-th largest of the maxima of runs of entries: one pass, where a partition takes many.
    """
    lines, n = product.shape
    runs = min(max(8 * k, int(np.sqrt(n))), n)
    length = n // runs
    # What is left over at the end of a row cannot lower the bound.
    maxima = product[:, : runs * length].reshape(lines, runs, length).max(axis=2)
    return np.asarray(np.partition(maxima, runs - k, axis=1)[:, runs - k])
