"""Compiled kernels of one row: its Gram matrix and its non-negative least squares.

Vectors are padded with zeros to a multiple of 16 components. Of a Gram matrix only the blocks on
and above the diagonal are kept. Matrices of a stack lie below each other in one array; `o`, `s`
are the rows at which they begin.
"""

from __future__ import annotations

import numpy as np

from atpgraph.factorization._simd import TILE, add_row, tile1, tile1_wide, tile4
from atpgraph.util.arrays import FloatArray, Int32Array
from atpgraph.util.jit import kernel

PANEL = 48  # rows of a panel: with a Gram matrix of 64 columns it stays in the first-level cache


@kernel
def add_panel(
    gram: FloatArray, o: int, source: FloatArray, s: int, panel: FloatArray, depth: int
) -> None:
    """gram[o:] = source[s:] + Σ t tᵀ over the first `depth` rows t of the panel."""
    width = panel.shape[1]
    for i in range(0, width, 4):
        for j in range(i // TILE * TILE, width, TILE):
            tile4(gram, o + i, source, s + i, j, panel, 0, i, panel, 0, depth)


@kernel
def add_combination(
    out: FloatArray, o: int, factors: FloatArray, a: int, vectors: FloatArray, b: int, depth: int
) -> None:
    """out[o] += Σ_p factors[a + p, 0] · vectors[b + p] over p < depth."""
    width = out.shape[1]
    j = 0
    while j + 4 * TILE <= width:
        tile1_wide(out, o, out, o, j, factors, a, 0, vectors, b, depth)
        j += 4 * TILE
    while j < width:
        tile1(out, o, out, o, j, factors, a, 0, vectors, b, depth)
        j += TILE


@kernel
def add_outer_products(
    gram: FloatArray,
    o: int,
    source: FloatArray,
    s: int,
    vectors: FloatArray,
    listed: Int32Array,
    first: int,
    stop: int,
    panel: FloatArray,
) -> None:
    """gram[o:] = source[s:] + Σ t tᵀ, t the rows ``listed[first:stop]`` of vectors."""
    width = panel.shape[1]
    depth = 0
    for e in range(first, stop):
        row = listed[e]
        for c in range(width):
            panel[depth, c] = vectors[row, c]
        depth += 1
        if depth == len(panel):
            add_panel(gram, o, source, s, panel, depth)
            source = gram
            s = o
            depth = 0
    if depth > 0 or s != o:
        add_panel(gram, o, source, s, panel, depth)


@kernel
def solve(
    gram: FloatArray,
    o: int,
    shared: FloatArray,
    observed: float,
    ridge: float,
    n_components: int,
    right: FloatArray,
    x: FloatArray,
    row: int,
    matrix: FloatArray,
    gradient: FloatArray,
    max_inner: int,
    tolerance: float,
) -> float:
    """Coordinate descent for min xᵀHx − 2 bᵀx, x ≥ 0, from the x that is there.

    H = observed · gram + shared + ridge · I and b = ``right[0]``. Stops after `max_inner` sweeps,
    or when a sweep lowers the value by less than `tolerance` · bᵀx. Returns the value reached; no
    step raises it.
    """
    width = matrix.shape[1]
    scale = gram.dtype.type(observed)
    for i in range(n_components):
        block = i // TILE * TILE
        for j in range(block, width):
            matrix[i, j] = scale * gram[o + i, j] + shared[i, j]
        matrix[i, i] += gram.dtype.type(ridge)
    for i in range(TILE, n_components):
        for j in range(i // TILE * TILE):
            matrix[i, j] = matrix[j, i]
    for c in range(width):
        gradient[0, c] = -right[0, c]
        d = matrix[c, c] if c < n_components else gram.dtype.type(0)
        gradient[1, c] = 1 / d if d > 0 else gram.dtype.type(0)
    for c in range(n_components):
        if x[row, c] != 0:
            add_row(gradient, 0, matrix, c, x[row, c])
    for _ in range(max_inner):
        gain = 0.0
        reach = 0.0
        for c in range(n_components):
            old = x[row, c]
            new = old - gradient[0, c] * gradient[1, c]
            if new < 0 or gradient[1, c] == 0:  # no vector has this component: nor need the row
                new = gram.dtype.type(0)
            step = new - old
            if step != 0:
                x[row, c] = new
                add_row(gradient, 0, matrix, c, step)
                gain += step * step * matrix[c, c]
            reach += right[0, c] * new
        if gain <= tolerance * reach:
            break
    value = 0.0
    for c in range(n_components):
        value += np.float64(x[row, c]) * (np.float64(gradient[0, c]) - np.float64(right[0, c]))
    return value
