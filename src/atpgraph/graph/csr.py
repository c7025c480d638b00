"""Edges as they come, into sorted rows, and rows of edges reversed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from atpgraph.util.arrays import AnyArray, Float64Array, Int32Array, Int64Array, IntArray

# What sorting takes: both ends of an edge as they come and sorted, and the weights likewise.
BYTES_PER_EDGE = 16
BYTES_PER_WEIGHT = 24
BYTES_PER_NODE = 24


def sorted_rows(
    sources: IntArray, targets: IntArray, n: int, weights: Float64Array | None = None
) -> tuple[Int64Array, Int32Array, Float64Array | None]:
    """Return the edges as CSR arrays; parallel edges become one, with the sum of their weights.

    Examples
    --------
    >>> indptr, targets, _ = sorted_rows(np.array([1, 0, 1]), np.array([0, 1, 0]), 2)
    >>> indptr.tolist(), targets.tolist()
    ([0, 1, 2], [1, 0])
    """
    values = np.ones(len(sources), dtype=np.bool_) if weights is None else weights
    rows = sp.coo_array((values, (sources, targets)), shape=(n, n)).tocsr()
    kept = None if weights is None else rows.data
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False), kept


def row_bounds(ends: Int32Array, n: int) -> Int64Array:
    """Return where the row of each node begins if each of these ends has an entry in its row."""
    return np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])


def turned_rows(
    indptr: Int64Array, targets: Int32Array, values: AnyArray
) -> tuple[Int64Array, Int32Array, Any]:
    """Return the CSR arrays of the reversed edges, and the `values` of the edges in that order.

    Examples
    --------
    >>> edges = np.array([0, 1, 2])
    >>> rows = turned_rows(np.array([0, 2, 3]), np.array([0, 1, 0], "i4"), edges)
    >>> [part.tolist() for part in rows]
    [[0, 2, 3], [0, 1, 0], [0, 2, 1]]
    """
    n = len(indptr) - 1
    bounds = indptr.astype(np.int32) if len(targets) < 2**31 else indptr  # of the targets' type
    rows = sp.csr_array((values, targets, bounds), shape=(n, n)).tocsc()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False), rows.data
