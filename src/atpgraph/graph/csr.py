"""Edges as they come, into sorted rows: two counting sorts, no comparison, linear time.

The first sort is by target, the second, stable, by source: rows have ascending targets, and
parallel edges stand beside each other in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atpgraph.util.arrays import AnyArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.jit import kernel

_NONE: Float64Array = np.empty(0)

# What the sorts take beside their input: entries in two orders, and three counters for a node.
BYTES_PER_EDGE = 8
BYTES_PER_WEIGHT = 16
BYTES_PER_NODE = 24


def sorted_rows(
    pieces: list[Int32Array],
    n: int,
    weights: list[Float64Array] | None = None,
    done: Callable[[], None] = lambda: None,
) -> tuple[Int64Array, Int32Array, Float64Array | None]:
    """Return CSR arrays of edges that come in pieces; weights of parallel edges are added up.

    A piece has a row of source and target for each edge. Both lists are empty afterwards, so that
    what nobody else holds is freed as soon as it is sorted in. `done` is called between two steps,
    so that somebody can interrupt.

    Examples
    --------
    >>> [part.tolist() for part in sorted_rows([np.array([[1, 0], [0, 1], [1, 0]], "i4")], 2)[:2]]
    [[0, 1, 2], [1, 0]]
    """
    total = sum(map(len, pieces))
    heavy = total if weights is not None else 0
    by_target, by_source = np.zeros((2, n + 1), dtype=np.int64)
    for piece in pieces:
        count_ends(piece, by_source, by_target)
    indptr = np.cumsum(by_source)
    np.cumsum(by_target, out=by_target)
    cursor = by_target[:-1].copy()
    sources, source_weights = np.empty(total, dtype=np.int32), np.empty(heavy)
    pieces.reverse()
    if weights is not None:
        weights.reverse()
    while pieces:
        piece = pieces.pop()
        scatter(piece, weights.pop() if weights else _NONE, cursor, sources, source_weights)
        done()
    del cursor
    targets, target_weights = np.empty(total, dtype=np.int32), np.empty(heavy)
    by_source[:] = indptr
    turn(by_target, sources, source_weights, by_source, targets, target_weights)
    done()
    del sources, source_weights
    m = merge(indptr, targets, target_weights)
    if m < total:
        targets, target_weights = targets[:m].copy(), target_weights[: m if heavy else 0].copy()
    return indptr, targets, None if weights is None else target_weights


def row_bounds(ends: Int32Array, n: int) -> Int64Array:
    """Return where the row of each node begins if each of these ends has an entry in its row."""
    return np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])


def turned_rows(
    indptr: Int64Array, targets: Int32Array, values: AnyArray | None = None
) -> tuple[Int64Array, Int32Array, Any]:
    """Return the CSR arrays of the reversed edges, and the `values` of the edges in that order.

    Examples
    --------
    >>> edges = np.array([0, 1, 2])
    >>> rows = turned_rows(np.array([0, 2, 3]), np.array([0, 1, 0], "i4"), edges)
    >>> [part.tolist() for part in rows]
    [[0, 2, 3], [0, 1, 0], [0, 2, 1]]
    """
    bounds = row_bounds(targets, len(indptr) - 1)
    given = _NONE if values is None else values
    sources, turned = np.empty_like(targets), np.empty_like(given)
    turn(indptr, targets, given, bounds[:-1].copy(), sources, turned)
    return bounds, sources, None if values is None else turned


@kernel
def count_ends(codes: Any, by_source: Any, by_target: Any) -> None:
    """Add the degrees of these edges, each at the entry after its node."""
    for i in range(len(codes)):
        by_source[codes[i, 0] + 1] += 1
        by_target[codes[i, 1] + 1] += 1


@kernel
def scatter(codes: Any, weights: Any, cursor: Any, sources: Any, source_weights: Any) -> None:
    """Put the source of each edge at the place that its target has next."""
    for i in range(len(codes)):
        place = cursor[codes[i, 1]]
        cursor[codes[i, 1]] = place + 1
        sources[place] = codes[i, 0]
        if len(weights) > 0:
            source_weights[place] = weights[i]


@kernel
def turn(
    by_target: Any, sources: Any, source_weights: Any, cursor: Any, targets: Any, weights: Any
) -> None:
    """From rows of targets to rows of sources."""
    for target in range(len(by_target) - 1):
        for i in range(by_target[target], by_target[target + 1]):
            place = cursor[sources[i]]
            cursor[sources[i]] = place + 1
            targets[place] = target
            if len(source_weights) > 0:
                weights[place] = source_weights[i]


@kernel
def merge(indptr: Any, targets: Any, weights: Any) -> int:
    """Keep one of parallel edges, with the sum of their weights; the number of edges left."""
    kept = 0
    begin = 0
    for u in range(len(indptr) - 1):
        end = indptr[u + 1]
        first = kept
        for i in range(begin, end):
            if kept > first and targets[kept - 1] == targets[i]:
                if len(weights) > 0:
                    weights[kept - 1] += weights[i]
            else:
                targets[kept] = targets[i]
                if len(weights) > 0:
                    weights[kept] = weights[i]
                kept += 1
        begin = end
        indptr[u + 1] = kept
    return kept
