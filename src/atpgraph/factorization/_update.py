"""Compiled kernels that walk a closure forest depth first, inheriting sums from the parent.

A walk keeps one buffer for each slot of the forest (see :class:`~atpgraph.closure.ClosureForest`):
the last child takes its parent's buffer over, every other child starts a new one, so there are at
most log2(n) + 1 however deep the forest is. ``levels`` rise from a node to what it reaches,
``highest[u]`` is the highest level that u reaches.
"""

from __future__ import annotations

import numpy as np

from atpgraph.factorization._gram import add_combination, add_panel, solve
from atpgraph.factorization._simd import add_row
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel


@kernel
def highest_levels(
    order: Int32Array,
    parent: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    levels: Int32Array,
    highest: Int32Array,
    depth: Int32Array,
) -> None:
    """Highest level that each node reaches (its own if none), and its depth in the forest."""
    for i in range(len(order)):
        u = order[i]
        top = levels[u]
        p = parent[u]
        depth[u] = 0
        if p >= 0:
            depth[u] = depth[p] + 1
            top = highest[p]
            for e in range(indptr[u], indptr[u + 1]):
                top = max(top, levels[extras[e]])
        highest[u] = top


@kernel
def path_from_root(node: int, parent: Int32Array) -> Int32Array:
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
def prepare_level_sums(
    u: int,
    p: int,
    slot: Int32Array,
    levels: Int32Array,
    highest: Int32Array,
    sums: FloatArray,
    n_levels: int,
) -> None:
    """Sums of the vectors of R(p) by level, in the buffer of u, with room for what is new in R(u).

    Only the rows of levels above that of a node and up to its highest are kept valid.
    """
    source = slot[p] * n_levels
    into = slot[u] * n_levels
    if source != into:
        for level in range(levels[p] + 1, highest[p] + 1):
            for c in range(sums.shape[1]):
                sums[into + level, c] = sums[source + level, c]
    for level in range(levels[u] + 1, levels[p] + 1):
        sums[into + level] = 0
    for level in range(highest[p] + 1, highest[u] + 1):
        sums[into + level] = 0


@kernel
def inherit(
    u: int,
    leaf: bool,
    passing: bool,
    parent: Int32Array,
    slot: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    levels: Int32Array,
    highest: Int32Array,
    table: FloatArray,
    vectors: FloatArray,
    grams: FloatArray,
    sums: FloatArray,
    panel: FloatArray,
    factors: FloatArray,
    right: FloatArray,
) -> None:
    """Gram matrix and right-hand side of R(u), from those of R(p), p and the extras.

    The right-hand side Σ f(Δ) · vector comes from sums of vectors by level: those of
    u, or for a leaf, which has nobody to pass its own on to, those of the parent and the new
    vectors one by one. It is left out for a node that is only `passing` its sums on.
    """
    p = parent[u]
    here = levels[u]
    width = vectors.shape[1]
    n_levels = len(table) + 1
    into = slot[u] * width
    source = slot[p] * width
    right[0] = 0
    if leaf:
        base = slot[p] * n_levels + levels[p] + 1
        add_combination(right, 0, table, levels[p] + 1 - here, sums, base, highest[p] - levels[p])
    else:
        prepare_level_sums(u, p, slot, levels, highest, sums, n_levels)
    base = slot[u] * n_levels
    depth = 0
    stop = indptr[u + 1]
    for e in range(indptr[u] - 1, stop):
        v = extras[e] if e >= indptr[u] else p
        for c in range(width):
            panel[depth, c] = vectors[v, c]
        if leaf:
            factors[depth, 0] = table[levels[v] - here, 0]
        else:
            add_row(sums, base + levels[v], panel, depth, sums.dtype.type(1))
        depth += 1
        if depth == len(panel) or e == stop - 1:
            add_panel(grams, into, grams, source, panel, depth)
            source = into
            if leaf:
                add_combination(right, 0, factors, 0, panel, 0, depth)
            depth = 0
    if not leaf and not passing:
        add_combination(right, 0, table, 1, sums, base + here + 1, highest[u] - here)


@kernel
def update_rows(
    first: int,
    stop: int,
    order: Int32Array,
    parent: Int32Array,
    slot: Int32Array,
    subtree: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    sizes: Int64Array,
    levels: Int32Array,
    highest: Int32Array,
    table: FloatArray,
    vectors: FloatArray,
    x: FloatArray,
    n_components: int,
    shared: FloatArray,
    observed: float,
    regularization: float,
    max_inner: int,
    tolerance: float,
    grams: FloatArray,
    sums: FloatArray,
    panel: FloatArray,
    factors: FloatArray,
    work: FloatArray,
) -> float:
    """Solve the rows at the places first … stop − 1 of the preorder; returns the sum of values.

    `table`, `grams`, `sums`, `panel`, `factors`, `work` and all vectors have one element type.
    """
    width = vectors.shape[1]
    right = work[:1]
    gradient = work[1:3]
    matrix = work[3:]
    path = path_from_root(parent[order[first]], parent)
    total = 0.0
    for i in range(-len(path), stop - first):
        # First the nodes above the first one of the range, to get its inheritance together.
        u = path[i + len(path)] if i < 0 else order[first + i]
        into = slot[u] * width
        if parent[u] < 0:
            if i >= 0:
                x[u] = 0
            if subtree[u] > 1:
                grams[into : into + width] = 0
            continue
        inherit(
            u, subtree[u] == 1, i < 0, parent, slot, indptr, extras, levels, highest, table,
            vectors, grams, sums, panel, factors, right,
        )  # fmt: skip
        if i >= 0:
            total += solve(
                grams, into, shared, observed, regularization * sizes[u], n_components, right, x, u,
                matrix, gradient, max_inner, tolerance,
            )  # fmt: skip
    return total


@kernel
def count_differences(
    order: Int32Array,
    parent: Int32Array,
    slot: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    levels: Int32Array,
    highest: Int32Array,
    counts: Int64Array,
    histogram: Int64Array,
) -> None:
    """Number of reachable pairs at every difference of levels."""
    for i in range(len(order)):
        u = order[i]
        p = parent[u]
        if p < 0:
            continue
        into = slot[u]
        for level in range(levels[p] + 1, highest[p] + 1):
            counts[into, level] = counts[slot[p], level]
        for level in range(levels[u] + 1, levels[p] + 1):
            counts[into, level] = 0
        for level in range(highest[p] + 1, highest[u] + 1):
            counts[into, level] = 0
        counts[into, levels[p]] += 1
        for e in range(indptr[u], indptr[u + 1]):
            counts[into, levels[extras[e]]] += 1
        here = levels[u]
        for level in range(here + 1, highest[u] + 1):
            histogram[level - here] += counts[into, level]


@kernel
def multiply(
    order: Int32Array,
    parent: Int32Array,
    slot: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    levels: Int32Array,
    highest: Int32Array,
    table: Float64Array,
    x: Float64Array,
    sums: Float64Array,
    y: Float64Array,
) -> None:
    """y = M x, from sums of x by level."""
    for i in range(len(order)):
        u = order[i]
        p = parent[u]
        y[u] = 0
        if p < 0:
            continue
        into = slot[u]
        if into != slot[p]:
            for level in range(levels[p] + 1, highest[p] + 1):
                sums[into, level] = sums[slot[p], level]
        for level in range(levels[u] + 1, levels[p] + 1):
            sums[into, level] = 0
        for level in range(highest[p] + 1, highest[u] + 1):
            sums[into, level] = 0
        sums[into, levels[p]] += x[p]
        for e in range(indptr[u], indptr[u + 1]):
            sums[into, levels[extras[e]]] += x[extras[e]]
        here = levels[u]
        total = 0.0
        for level in range(here + 1, highest[u] + 1):
            total += table[level - here] * sums[into, level]
        y[u] = total
