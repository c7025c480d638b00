"""Compiled kernels of one row: its Gram matrix and its non-negative least squares.

Vectors are padded with zeros to a multiple of 16 components. Of a Gram matrix only the blocks on
and above the diagonal are kept. Matrices of a stack lie below each other in one array; `o` and `s`
are the rows at which they begin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atpgraph.factorization._simd import HEIGHT, TILE, tile
from atpgraph.util.arrays import FloatArray
from atpgraph.util.jit import fast_kernel, kernel

PANEL = 48  # rows of a panel: with a Gram matrix of 64 columns it stays in the first-level cache


class Solve(NamedTuple):
    """How rows are solved.

    Attributes
    ----------
    n_components : int
        Components in use; the others are padding.
    shared : array
        A matrix that is added to that of every row.
    observed : float
        Weight of the Gram matrix of a row.
    regularization : float
    max_inner, tolerance : int, float
        Sweeps of coordinate descent, and the relative gain below which they stop.
    """

    n_components: int
    shared: FloatArray
    observed: float
    regularization: float
    max_inner: int
    tolerance: float


@fast_kernel
def add_row(out: FloatArray, o: int, source: FloatArray, s: int, factor: float) -> None:
    """``out[o] += factor · source[s]``."""
    for c in range(out.shape[1]):
        out[o, c] += factor * source[s, c]


@kernel
def add_panel(
    gram: FloatArray, o: int, source: FloatArray, s: int, panel: FloatArray, depth: int
) -> None:
    """gram[o:] = source[s:] + Σ t tᵀ over the first `depth` rows t of the panel."""
    width = panel.shape[1]
    for i in range(0, width, HEIGHT):
        for j in range(i // TILE * TILE, width, TILE):
            tile(gram, o, source, s, i, j, panel, depth)


@kernel
def add_rows(gram: FloatArray, vectors: FloatArray, first: int, stop: int) -> None:
    """gram += Σ t tᵀ over the rows first … stop − 1 of vectors."""
    for start in range(first, stop, PANEL):
        add_panel(gram, 0, gram, 0, vectors[start:stop], min(PANEL, stop - start))


@fast_kernel
def add_combination(
    out: FloatArray, factors: FloatArray, a: int, vectors: FloatArray, b: int, depth: int
) -> None:
    """out[0] += Σ_p factors[a + p, 0] · vectors[b + p] over p < depth."""
    for p in range(depth):
        factor = factors[a + p, 0]
        for c in range(out.shape[1]):
            out[0, c] += factor * vectors[b + p, c]


@kernel
def solve(
    gram: FloatArray,
    o: int,
    ridge: float,
    right: FloatArray,
    x: FloatArray,
    row: int,
    matrix: FloatArray,
    gradient: FloatArray,
    how: Solve,
) -> float:
    """Coordinate descent for min xᵀHx − 2 bᵀx, x ≥ 0, from the current x.

    H = observed · gram + shared + ridge · I and b = ``right[0]``. Stops after `max_inner` sweeps,
    or when a sweep lowers the value by less than `tolerance` · bᵀx. Returns the value reached; no
    step raises it.
    """
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
