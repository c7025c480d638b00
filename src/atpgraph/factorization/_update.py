"""Compiled kernels that walk a closure forest depth first, inheriting sums from the parent.

A walk keeps one buffer for each slot of the forest (see :class:`~atpgraph.closure.ClosureForest`):
the last child takes its parent's buffer over, every other child starts a new one, so there are at
most log2(n) + 1 however deep the forest is. ``rank`` rises from a node to what it reaches,
``highest[u]`` is the highest rank that u reaches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph._jit import kernel
from atpgraph.factorization._gram import add_outer_products, solve
from atpgraph.factorization._simd import TILE, add_row, tile1

Floats = npt.NDArray[np.floating[Any]]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@kernel
def highest_ranks(
    order: I32, parent: I32, indptr: I64, extras: I32, rank: I32, highest: I32
) -> None:
    """Highest rank among the nodes that each node reaches, its own if there are none."""
    for i in range(len(order)):
        u = order[i]
        top = rank[u]
        p = parent[u]
        if p >= 0:
            top = highest[p]
            for e in range(indptr[u], indptr[u + 1]):
                top = max(top, rank[extras[e]])
        highest[u] = top


@kernel
def path_from_root(node: int, parent: I32) -> I32:
    """The nodes from the root of the forest down to `node`; empty for −1."""
    depth = 0
    u = node
    while u >= 0:
        depth += 1
        u = parent[u]
    path = np.empty(depth, dtype=np.int32)
    u = node
    while u >= 0:
        depth -= 1
        path[depth] = u
        u = parent[u]
    return path


@kernel
def inherit_level_sums(
    u: int,
    parent: I32,
    slot: I32,
    indptr: I64,
    extras: I32,
    rank: I32,
    highest: I32,
    vectors: Floats,
    sums: Floats,
    n_levels: int,
) -> None:
    """Sums of the vectors of R(u) by rank, from those of R(p).

    Only the rows of ranks above that of u and up to its highest are kept valid.
    """
    p = parent[u]
    if p < 0:
        return
    source = slot[p] * n_levels
    into = slot[u] * n_levels
    if source != into:
        for level in range(rank[p] + 1, highest[p] + 1):
            for c in range(sums.shape[1]):
                sums[into + level, c] = sums[source + level, c]
    for level in range(rank[u] + 1, rank[p] + 1):
        sums[into + level] = 0
    for level in range(highest[p] + 1, highest[u] + 1):
        sums[into + level] = 0
    one = sums.dtype.type(1)
    add_row(sums, into + rank[p], vectors, p, one)
    for e in range(indptr[u], indptr[u + 1]):
        add_row(sums, into + rank[extras[e]], vectors, extras[e], one)


@kernel
def right_side(
    u: int,
    parent: I32,
    slot: I32,
    indptr: I64,
    extras: I32,
    sizes: I64,
    rank: I32,
    highest: I32,
    table: Floats,
    vectors: Floats,
    sums: Floats,
    n_levels: int,
    right: Floats,
) -> None:
    """Σ f(rank difference) · vector over R(u), from the sums of the parent by rank."""
    for c in range(right.shape[1]):
        right[0, c] = 0
    p = parent[u]
    here = rank[u]
    levels = highest[p] - rank[p]
    if sizes[p] >= levels:
        base = slot[p] * n_levels + rank[p] + 1
        for j in range(0, right.shape[1], TILE):
            tile1(right, 0, right, 0, j, table, rank[p] + 1 - here, 0, sums, base, levels)
    q = u
    while q >= 0:
        for e in range(indptr[q], indptr[q + 1]):
            v = extras[e]
            add_row(right, 0, vectors, v, table[rank[v] - here, 0])
        above = parent[q]
        if above >= 0:
            add_row(right, 0, vectors, above, table[rank[above] - here, 0])
        # Few nodes spread over many ranks are cheaper one by one, all the way to the root.
        q = above if sizes[p] < levels else -1


@kernel
def update_rows(
    first: int,
    stop: int,
    order: I32,
    parent: I32,
    slot: I32,
    subtree: I32,
    indptr: I64,
    extras: I32,
    sizes: I64,
    rank: I32,
    highest: I32,
    table: Floats,
    vectors: Floats,
    x: Floats,
    n_components: int,
    shared: Floats,
    observed: float,
    regularization: float,
    max_inner: int,
    tolerance: float,
    grams: Floats,
    sums: Floats,
    panel: Floats,
    work: Floats,
) -> float:
    """Solve the rows at the places first … stop − 1 of the preorder; returns the sum of values.

    `table`, `grams`, `sums`, `panel`, `work` and all vectors have one element type.
    """
    width = vectors.shape[1]
    n_levels = len(table) + 1
    right = work[:1]
    gradient = work[1:3]
    matrix = work[3:]
    path = path_from_root(parent[order[first]], parent)
    total = 0.0
    for i in range(-len(path), stop - first):
        # First the nodes above the first one of the range, to get its inheritance together.
        u = path[i + len(path)] if i < 0 else order[first + i]
        p = parent[u]
        into = slot[u] * width
        if p < 0:
            if i >= 0:
                x[u] = 0
            if subtree[u] > 1:
                grams[into : into + width] = 0
            continue
        if i >= 0:
            right_side(
                u, parent, slot, indptr, extras, sizes, rank, highest, table, vectors, sums,
                n_levels, right,
            )  # fmt: skip
        add_outer_products(
            grams, into, grams, slot[p] * width, vectors, p, extras, indptr[u], indptr[u + 1], panel
        )
        if subtree[u] > 1:
            inherit_level_sums(
                u, parent, slot, indptr, extras, rank, highest, vectors, sums, n_levels
            )
        if i >= 0:
            total += solve(
                grams, into, shared, observed, regularization * sizes[u], n_components, right, x, u,
                matrix, gradient, max_inner, tolerance,
            )  # fmt: skip
    return total


@kernel
def count_differences(
    order: I32,
    parent: I32,
    slot: I32,
    indptr: I64,
    extras: I32,
    rank: I32,
    highest: I32,
    counts: I64,
    histogram: I64,
) -> None:
    """Number of reachable pairs at every rank difference."""
    for i in range(len(order)):
        u = order[i]
        p = parent[u]
        if p < 0:
            continue
        into = slot[u]
        for level in range(rank[p] + 1, highest[p] + 1):
            counts[into, level] = counts[slot[p], level]
        for level in range(rank[u] + 1, rank[p] + 1):
            counts[into, level] = 0
        for level in range(highest[p] + 1, highest[u] + 1):
            counts[into, level] = 0
        counts[into, rank[p]] += 1
        for e in range(indptr[u], indptr[u + 1]):
            counts[into, rank[extras[e]]] += 1
        here = rank[u]
        for level in range(here + 1, highest[u] + 1):
            histogram[level - here] += counts[into, level]


@kernel
def multiply(
    order: I32,
    parent: I32,
    slot: I32,
    indptr: I64,
    extras: I32,
    rank: I32,
    highest: I32,
    table: F64,
    x: F64,
    sums: F64,
    y: F64,
) -> None:
    """y = M x, from sums of x by rank."""
    for i in range(len(order)):
        u = order[i]
        p = parent[u]
        y[u] = 0
        if p < 0:
            continue
        into = slot[u]
        if into != slot[p]:
            for level in range(rank[p] + 1, highest[p] + 1):
                sums[into, level] = sums[slot[p], level]
        for level in range(rank[u] + 1, rank[p] + 1):
            sums[into, level] = 0
        for level in range(highest[p] + 1, highest[u] + 1):
            sums[into, level] = 0
        sums[into, rank[p]] += x[p]
        for e in range(indptr[u], indptr[u + 1]):
            sums[into, rank[extras[e]]] += x[extras[e]]
        here = rank[u]
        total = 0.0
        for level in range(here + 1, highest[u] + 1):
            total += table[level - here] * sums[into, level]
        y[u] = total
