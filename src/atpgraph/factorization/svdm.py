"""Truncated singular value decomposition of M ("SVDM"), M never written out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, svds

from atpgraph.closure.forest import ClosureForest
from atpgraph.errors import InputError
from atpgraph.factorization.matrix import ImplicitMatrix
from atpgraph.factorization.nnls import Factorization
from atpgraph.util.arrays import Float64Array
from atpgraph.util.random import RandomState, generator, seed_of_svds


def matrix_operator(
    rows: ClosureForest, columns: ClosureForest, levels: npt.ArrayLike, table: npt.ArrayLike
) -> LinearOperator:
    """M as a linear operator: products with M and its transpose from the two forests.

    Examples
    --------
    >>> from atpgraph.closure import closure_forests, kernel_table
    >>> from atpgraph.graph import DiGraph
    >>> forests = closure_forests(DiGraph.from_codes([0, 1], [1, 2], 3))
    >>> (matrix_operator(*forests, [1, 2, 3], kernel_table("linear", 3)) @ np.ones(3)).tolist()
    [3.0, 1.0, 0.0]
    """
    down, up = ImplicitMatrix.of_rows(rows, levels), ImplicitMatrix.of_columns(columns, levels)
    values = np.ascontiguousarray(table, dtype=np.float64)
    if len(values) < down.n_levels:
        raise InputError(f"The kernel table has {len(values)} entries for {down.n_levels} levels.")

    def product(matrix: ImplicitMatrix, x: npt.ArrayLike) -> Float64Array:
        return matrix.times(values, np.ascontiguousarray(x, dtype=np.float64).reshape(-1))

    return LinearOperator(
        (rows.n_nodes, rows.n_nodes),
        matvec=lambda x: product(down, x),
        rmatvec=lambda x: product(up, x),
        dtype=np.float64,
    )


def svdm(
    rows: ClosureForest,
    columns: ClosureForest,
    levels: npt.ArrayLike,
    table: npt.ArrayLike,
    *,
    n_components: int = 64,
    random_state: RandomState = None,
) -> Factorization:
    """Source U√Σ and target V√Σ of the largest singular values of M.

    Parameters as for :func:`~atpgraph.factorization.factorize`. Components come in descending
    order of their singular value; each is signed so that the largest entry of its source
    vector is positive. Components beyond the number of nodes are zero.
    """
    if n_components < 1:
        raise InputError(f"n_components is {n_components}; it must be at least 1.")
    n = rows.n_nodes
    source, target = np.zeros((2, n, n_components))
    if rows.n_pairs:
        operator = matrix_operator(rows, columns, levels, table)
        if n_components < n:
            rng = generator(random_state)
            start = rng.standard_normal(n)
            U, sigma, Vt = svds(operator, k=n_components, v0=start, **seed_of_svds(rng))
        else:
            U, sigma, Vt = np.linalg.svd(operator @ np.eye(n))
        best = np.argsort(-sigma, kind="stable")
        top = np.argmax(np.abs(U[:, best]), axis=0)
        sign = np.where(U[top, best] < 0, -1.0, 1.0)
        scale = sign * np.sqrt(np.maximum(sigma[best], 0.0))
        source[:, : len(best)] = U[:, best] * scale
        target[:, : len(best)] = Vt[best].T * scale
    return Factorization(source, target, np.zeros(0), 1, True)
