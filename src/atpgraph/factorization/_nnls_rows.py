"""Compiled kernels of the paper's method: non-negative least squares for the rows of a forest.

Vectors are padded with zeros to a multiple of 16 components. Of a Gram matrix only the blocks on
and above the diagonal are kept. Several matrices are stacked in one array; `o` and `s` are the rows
at which two of them begin.

A walk visits a closure forest depth first and inherits sums from the parent. It keeps one buffer
for each slot of the forest (see :class:`~atpgraph.closure.ClosureForest`): the last child takes
over its parent's buffer, every other child starts a new one, so there are at most log2(n) + 1 of
them however deep the forest is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atpgraph.closure.forest import path_from_root
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array, Int64Array
from atpgraph.util.jit import fast_kernel, kernel

TILE = 16  # vectors are padded to a multiple of this
PANEL = 48  # rows of a panel: with a Gram matrix of 64 columns it stays in the first-level cache


class Solve(NamedTuple):
    """How rows are solved."""

    n_components: int  # components in use; the others are padding
    shared: FloatArray  # a matrix that is added to that of every row
    observed: float  # weight of the Gram matrix of a row
    regularization: float
    max_inner: int  # sweeps of coordinate descent,
    tolerance: float  # and the relative gain below which they stop


@fast_kernel
def add_row(out: FloatArray, o: int, source: FloatArray, s: int, factor: float) -> None:
    """``out[o] += factor · source[s]``."""
    for c in range(out.shape[1]):
        out[o, c] += factor * source[s, c]


@fast_kernel
def add_panel(
    gram: FloatArray, o: int, source: FloatArray, s: int, panel: FloatArray, depth: int
) -> None:
    """gram[o:] = source[s:] + Σ t tᵀ over the first `depth` rows t of the panel."""
    width = panel.shape[1]
    whole = depth // 4 * 4
    for i in range(width):
        first = i // TILE * TILE
        if o != s:
            for j in range(first, width):
                gram[o + i, j] = source[s + i, j]
        # Four rows at a time: an entry of the Gram matrix is loaded and stored once for them.
        for p in range(0, whole, 4):
            a, b, c, d = panel[p, i], panel[p + 1, i], panel[p + 2, i], panel[p + 3, i]
            for j in range(first, width):
                gram[o + i, j] += (
                    a * panel[p, j] + b * panel[p + 1, j] + c * panel[p + 2, j]
                    + d * panel[p + 3, j]
                )  # fmt: skip
        for p in range(whole, depth):
            a = panel[p, i]
            for j in range(first, width):
                gram[o + i, j] += a * panel[p, j]


@fast_kernel
def add_combination(
    out: FloatArray, factors: FloatArray, a: int, vectors: FloatArray, b: int, depth: int
) -> None:
    """out[0] += Σ_p factors[a + p, 0] · vectors[b + p] over p < depth."""
    for p in range(depth):
        factor = factors[a + p, 0]
        for c in range(out.shape[1]):
            out[0, c] += factor * vectors[b + p, c]


class Forest(NamedTuple):
    """The arrays of a :class:`~atpgraph.closure.ClosureForest`, with levels."""

    order: Int32Array
    parent: Int32Array
    slot: Int32Array
    subtree: Int32Array
    indptr: Int64Array
    extras: Int32Array
    sizes: Int64Array
    levels: Int32Array  # they rise from a node to what it reaches
    highest: Int32Array  # highest level that each node reaches; its own if it reaches nothing


class Room(NamedTuple):
    """Scratch space of one walk: all of the element type of the vectors."""

    grams: FloatArray  # Gram matrices, one per slot
    sums: FloatArray  # sums of vectors by level, one block per slot
    panel: FloatArray  # vectors that are added to a Gram matrix together,
    factors: FloatArray  # and their weights
    right: FloatArray  # for the solve of a row, like the two below
    gradient: FloatArray
    matrix: FloatArray

    @classmethod
    def of(cls, slots: int, n_levels: int, vectors: FloatArray) -> Room:
        """Allocate the space for vectors of one width."""
        width, kind = vectors.shape[1], vectors.dtype
        return cls(
            np.empty((slots * width, width), kind),
            np.empty((slots * (n_levels + 1), width), kind),
            np.empty((PANEL, width), kind),
            np.empty((PANEL, 1), kind),
            np.zeros((1, width), kind),
            np.zeros((2, width), kind),
            np.zeros((width, width), kind),
        )


@kernel
def solve(o: int, ridge: float, x: FloatArray, row: int, how: Solve, room: Room) -> float:
    """Coordinate descent for min xᵀHx − 2 bᵀx, x ≥ 0, from the current x.

    H = observed · grams[o:] + shared + ridge · I and b = ``right[0]``. Stops after `max_inner`
    sweeps, or when a sweep lowers the value by less than `tolerance` · bᵀx. Returns the value
    reached; no step raises it.
    """
    gram, right, matrix, gradient = room.grams, room.right, room.matrix, room.gradient
    width, k, shared = matrix.shape[1], how.n_components, how.shared
    kind = gram.dtype.type
    scale = kind(how.observed)
    for i in range(k):
        for j in range(i // TILE * TILE, width):
            matrix[i, j] = scale * gram[o + i, j] + shared[i, j]
        matrix[i, i] += kind(ridge)
    for i in range(TILE, k):
        for j in range(i // TILE * TILE):
            matrix[i, j] = matrix[j, i]
    for c in range(width):
        gradient[0, c] = -right[0, c]
        d = matrix[c, c] if c < k else kind(0)
        gradient[1, c] = 1 / d if d > 0 else kind(0)
    for c in range(k):
        if x[row, c] != 0:
            add_row(gradient, 0, matrix, c, x[row, c])
    for _ in range(how.max_inner):
        gain = 0.0
        reach = 0.0
        for c in range(k):
            old = x[row, c]
            new = old - gradient[0, c] * gradient[1, c]
            if new < 0 or gradient[1, c] == 0:  # no vector has this component: nor does the row
                new = kind(0)
            step = new - old
            if step != 0:
                x[row, c] = new
                add_row(gradient, 0, matrix, c, step)
                gain += step * step * matrix[c, c]
            reach += right[0, c] * new
        if gain <= how.tolerance * reach:
            break
    value = 0.0
    for c in range(k):
        value += np.float64(x[row, c]) * (np.float64(gradient[0, c]) - np.float64(right[0, c]))
    return value


@kernel
def highest_levels(f: Forest, depth: Int32Array) -> None:
    """Fill ``f.highest``, and the depth of every node in the forest."""
    for i in range(len(f.order)):
        u = f.order[i]
        top = f.levels[u]
        p = f.parent[u]
        depth[u] = 0
        if p >= 0:
            depth[u] = depth[p] + 1
            top = f.highest[p]
            for e in range(f.indptr[u], f.indptr[u + 1]):
                top = max(top, f.levels[f.extras[e]])
        f.highest[u] = top


@kernel
def prepare_level_sums(u: int, p: int, f: Forest, sums: FloatArray, n_levels: int) -> None:
    """Copy the sums by level of R(p) into the buffer of u, with room for what is new in R(u).

    A buffer is valid only for levels above that of its node, up to the highest level in R.
    """
    levels, highest = f.levels, f.highest
    source = f.slot[p] * n_levels
    into = f.slot[u] * n_levels
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
    u: int, leaf: bool, passing: bool, f: Forest, table: FloatArray, vectors: FloatArray, room: Room
) -> None:
    """Compute Gram matrix and right-hand side of R(u) from those of R(p), p and the extras.

    The right-hand side Σ f(Δ) · vector comes from sums of vectors by level: those of u, or, for a
    leaf (which passes nothing on), those of the parent plus the new vectors one by one. It is left
    out for a node that is only `passing` its sums on.
    """
    # Local names: an array taken out of a tuple inside a loop is counted as a reference each time.
    levels, highest, extras, indptr = f.levels, f.highest, f.extras, f.indptr
    grams, sums, panel, factors, right = (
        room.grams, room.sums, room.panel, room.factors, room.right,
    )  # fmt: skip
    p = f.parent[u]
    here = levels[u]
    width = vectors.shape[1]
    n_levels = len(table) + 1
    into = f.slot[u] * width
    source = f.slot[p] * width
    right[0] = 0
    if leaf:
        base = f.slot[p] * n_levels + levels[p] + 1
        add_combination(right, table, levels[p] + 1 - here, sums, base, highest[p] - levels[p])
    else:
        prepare_level_sums(u, p, f, sums, n_levels)
    base = f.slot[u] * n_levels
    depth = 0
    one: Any = sums.dtype.type(1)
    stop = indptr[u + 1]
    for e in range(indptr[u] - 1, stop):
        v = extras[e] if e >= indptr[u] else p
        for c in range(width):
            panel[depth, c] = vectors[v, c]
        if leaf:
            factors[depth, 0] = table[levels[v] - here, 0]
        else:
            add_row(sums, base + levels[v], panel, depth, one)
        depth += 1
        if depth == len(panel) or e == stop - 1:
            add_panel(grams, into, grams, source, panel, depth)
            source = into
            if leaf:
                add_combination(right, factors, 0, panel, 0, depth)
            depth = 0
    if not leaf and not passing:
        add_combination(right, table, 1, sums, base + here + 1, highest[u] - here)


@kernel
def update_rows(
    first: int,
    stop: int,
    f: Forest,
    table: FloatArray,
    vectors: FloatArray,
    x: FloatArray,
    how: Solve,
    room: Room,
) -> float:
    """Solve the rows at the places first … stop − 1 of the preorder; return the sum of values.

    `table`, `room` and all vectors have one element type.
    """
    width = vectors.shape[1]
    path = path_from_root(f.parent[f.order[first]], f.parent)
    total = 0.0
    for i in range(-len(path), stop - first):
        # First the nodes above the first one of the range, to collect what it inherits.
        u = path[i + len(path)] if i < 0 else f.order[first + i]
        into = f.slot[u] * width
        if f.parent[u] < 0:
            if i >= 0:
                x[u] = 0
            if f.subtree[u] > 1:
                room.grams[into : into + width] = 0
            continue
        inherit(u, f.subtree[u] == 1, i < 0, f, table, vectors, room)
        if i >= 0:
            ridge = how.regularization * f.sizes[u]
            total += solve(into, ridge, x, u, how, room)
    return total


@kernel
def multiply(
    f: Forest, table: Float64Array, x: Float64Array, sums: Float64Array, y: Float64Array
) -> None:
    """Compute y = M x, from sums of x by level; `sums` has one column."""
    n_levels = len(table) + 1
    for u in f.order:
        p = f.parent[u]
        y[u] = 0
        if p < 0:
            continue
        prepare_level_sums(u, p, f, sums, n_levels)
        base, here = f.slot[u] * n_levels, f.levels[u]
        sums[base + f.levels[p], 0] += x[p]
        for e in range(f.indptr[u], f.indptr[u + 1]):
            sums[base + f.levels[f.extras[e]], 0] += x[f.extras[e]]
        total = 0.0
        for level in range(here + 1, f.highest[u] + 1):
            total += table[level - here] * sums[base + level, 0]
        y[u] = total
