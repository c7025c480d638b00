"""The leading singular vectors of a small matrix, the same bytes on every machine and thread count.

Matrices that hold vectors have one in each row.
"""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float64Array
from atpgraph.util.jit import fast_kernel

_POWERS = 6
_SWEEPS = 12
_SMALL = 1e-4  # of the largest singular value: less is noise


def singular_vectors(
    matrix: Float64Array, count: int, rng: np.random.Generator
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Left vectors, values and right vectors of the `count` largest, those near zero left out.

    Subspace iteration, then Jacobi rotations inside the subspace.

    Examples
    --------
    >>> some = np.random.default_rng(0)
    >>> left, values, right = singular_vectors(np.diag([1.0, 5.0, 3.0]), 2, some)
    >>> values.round(3).tolist(), (left * values[:, None] * right).sum(axis=0).round(3).tolist()
    ([5.0, 3.0], [0.0, 5.0, 3.0])
    """
    rows, columns = matrix.shape
    count = min(count, rows, columns)
    right = rng.standard_normal((count, columns))
    left = np.empty((count, rows))
    turned = np.ascontiguousarray(matrix.T)
    for _ in range(_POWERS):
        orthonormalize(right)
        multiply(matrix, right, left)
        orthonormalize(left)
        multiply(turned, left, right)
    orthonormalize(right)
    multiply(matrix, right, left)
    for _ in range(_SWEEPS):
        if rotate(left, right) < 1e-12:
            break
    values = np.sqrt((left * left).sum(axis=1))
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > _SMALL * values.max(initial=0.0)]
    values = values[order]
    return left[order] / values[:, None], values, right[order]


@fast_kernel
def multiply(matrix: Float64Array, vectors: Float64Array, out: Float64Array) -> None:
    """``out[j] = matrix @ vectors[j]``."""
    for j in range(len(vectors)):
        for i in range(matrix.shape[0]):
            total = 0.0
            for p in range(matrix.shape[1]):
                total += matrix[i, p] * vectors[j, p]
            out[j, i] = total


@fast_kernel
def orthonormalize(vectors: Float64Array) -> None:
    """Gram and Schmidt, twice over; a vector that depends on those before it becomes zero."""
    for j in range(len(vectors)):
        before = 0.0
        for i in range(vectors.shape[1]):
            before += vectors[j, i] * vectors[j, i]
        for _ in range(2):
            for h in range(j):
                total = 0.0
                for i in range(vectors.shape[1]):
                    total += vectors[h, i] * vectors[j, i]
                for i in range(vectors.shape[1]):
                    vectors[j, i] -= total * vectors[h, i]
        total = 0.0
        for i in range(vectors.shape[1]):
            total += vectors[j, i] * vectors[j, i]
        scale = 1.0 / np.sqrt(total) if total > 1e-20 * before and total > 0.0 else 0.0
        for i in range(vectors.shape[1]):
            vectors[j, i] *= scale


@fast_kernel
def rotate(left: Float64Array, right: Float64Array) -> float:
    """One sweep of one-sided Jacobi rotations: every two left vectors made orthogonal in turn, the
    right ones turned along. Returns the largest squared cosine met.
    """
    worst = 0.0
    for a in range(len(left)):
        for b in range(a + 1, len(left)):
            aa = 0.0
            bb = 0.0
            ab = 0.0
            for i in range(left.shape[1]):
                aa += left[a, i] * left[a, i]
                bb += left[b, i] * left[b, i]
                ab += left[a, i] * left[b, i]
            if ab == 0.0 or aa == 0.0 or bb == 0.0:
                continue
            worst = max(worst, ab * ab / (aa * bb))
            ratio = (bb - aa) / (2.0 * ab)
            sign = 1.0 if ratio >= 0.0 else -1.0
            tangent = sign / (abs(ratio) + np.sqrt(1.0 + ratio * ratio))
            cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
            sine = cosine * tangent
            for i in range(left.shape[1]):
                x, y = left[a, i], left[b, i]
                left[a, i] = cosine * x - sine * y
                left[b, i] = sine * x + cosine * y
            for i in range(right.shape[1]):
                x, y = right[a, i], right[b, i]
                right[a, i] = cosine * x - sine * y
                right[b, i] = sine * x + cosine * y
    return worst
