"""Single rows: vectors of nodes that were not there when the others were fitted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.factorization._gram import PANEL, add_outer_products, solve
from atpgraph.factorization._simd import add_row
from atpgraph.factorization.nnls import check_weights, gram_of, padded
from atpgraph.util.arrays import FloatArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel


def solve_rows(
    vectors: FloatArray,
    indptr: npt.ArrayLike,
    columns: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    zero_weight: float = 0.0,
    regularization: float = 0.01,
    max_inner: int = 500,
    inner_tol: float = 1e-9,
) -> FloatArray:
    """Solve rows of M for their vectors, the vectors of the other side given ("fold-in").

    Row i minimises the objective of :func:`~atpgraph.factorization.factorize` over s_i alone:
    its reachable columns are ``columns[indptr[i] : indptr[i + 1]]``, each listed once, with the
    weights in `values`. For the target vector of a new node give the source vectors and the nodes
    that reach it.

    Parameters
    ----------
    vectors : array of shape (n, k)
        Vectors of the other side, non-negative.
    indptr, columns, values : arrays
        The rows, in the form of a CSR matrix.
    zero_weight, regularization
        As used when the vectors were fitted.
    max_inner, inner_tol
        Sweeps of coordinate descent, and the relative gain below which they stop.

    Returns
    -------
    array of shape (rows, k)
        A row without columns gets the zero vector.

    Examples
    --------
    >>> targets = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> solve_rows(targets, [0, 2], [0, 1], [3.0, 4.0], regularization=0.0).tolist()
    [[3.0, 2.0]]
    """
    solver = RowSolver(vectors, zero_weight=zero_weight, regularization=regularization)
    return solver(indptr, columns, values, max_inner=max_inner, inner_tol=inner_tol)


class RowSolver:
    """:func:`solve_rows` for many calls: what depends on the vectors alone is computed once."""

    def __init__(self, vectors: FloatArray, *, zero_weight: float, regularization: float) -> None:
        check_weights(zero_weight, regularization)
        given = np.asarray(vectors)
        self._kind = np.dtype(np.float32 if given.dtype == np.float32 else np.float64)
        self._size, self._k = given.shape
        self._wide = padded(given, self._kind)
        self._shared = (zero_weight * gram_of(self._wide)).astype(self._kind)
        self._observed = 1.0 - float(zero_weight)
        self._regularization = float(regularization)

    def __call__(
        self,
        indptr: npt.ArrayLike,
        columns: npt.ArrayLike,
        values: npt.ArrayLike,
        *,
        max_inner: int = 500,
        inner_tol: float = 1e-9,
    ) -> FloatArray:
        """Vectors of rows; see :func:`solve_rows`."""
        kind, width = self._kind, self._wide.shape[1]
        ends = np.ascontiguousarray(indptr, dtype=np.int64)
        listed = np.ascontiguousarray(columns, dtype=np.int32)
        weights = np.ascontiguousarray(values, dtype=kind)
        if len(listed) != len(weights) or not len(ends) or ends[-1] != len(listed):
            raise InputError(
                f"The rows do not fit together: {len(listed)} columns, {len(weights)} values, and "
                f"the last row ends at {ends[-1] if len(ends) else 'nothing'}."
            )
        if len(listed) and not 0 <= listed.min() <= listed.max() < self._size:
            raise InputError(f"A row names a column outside 0 … {self._size - 1}.")
        x = np.zeros((len(ends) - 1, width), dtype=kind)
        _solve_listed(
            ends,
            listed,
            weights,
            self._wide,
            x,
            self._k,
            self._shared,
            self._observed,
            self._regularization,
            max_inner,
            float(inner_tol),
            np.zeros((2 * width, width), dtype=kind),
            np.empty((PANEL, width), dtype=kind),
            np.zeros((3 + width, width), dtype=kind),
        )
        return x[:, : self._k].copy()


@kernel
def _solve_listed(
    indptr: Int64Array,
    columns: Int32Array,
    values: FloatArray,
    vectors: FloatArray,
    x: FloatArray,
    n_components: int,
    shared: FloatArray,
    observed: float,
    regularization: float,
    max_inner: int,
    tolerance: float,
    grams: FloatArray,
    panel: FloatArray,
    work: FloatArray,
) -> None:
    width = vectors.shape[1]
    right = work[:1]
    for i in range(len(indptr) - 1):
        size = indptr[i + 1] - indptr[i]
        if size == 0:
            continue
        right[0] = 0
        for e in range(indptr[i], indptr[i + 1]):
            add_row(right, 0, vectors, columns[e], values[e])
        # The second matrix of the stack is zero.
        add_outer_products(
            grams, 0, grams, width, vectors, columns, indptr[i], indptr[i + 1], panel
        )
        solve(
            grams, 0, shared, observed, regularization * size, n_components, right, x, i, work[3:],
            work[1:3], max_inner, tolerance,
        )  # fmt: skip
