"""The paper's method: alternating non-negative least squares on closure forests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.closure import ClosureForest
from atpgraph.errors import InputError
from atpgraph.factorization._nnls_rows import TILE, Solve, add_rows
from atpgraph.factorization.matrix import ImplicitMatrix
from atpgraph.util.arrays import Float64Array, FloatArray
from atpgraph.util.checkpoints import Loop
from atpgraph.util.checks import real_number, whole_number
from atpgraph.util.progress import stage
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import Workers

_SWEEPS, _LEAST_GAIN = 4, 1e-5  # of coordinate descent in a row
_CHUNK = 4096  # rows that are summed up in their own precision


@dataclass(frozen=True, eq=False)
class Factorization:
    """Source and target vectors, M ≈ source · targetᵀ.

    Attributes
    ----------
    source, target : array of shape (n, n_components)
        One row per node; each component has the same norm on both sides.
    objective : float64 array
        Value after each iteration; empty for solvers without one.
    n_iter : int
        Number of iterations done.
    converged : bool
        Whether the relative change of the objective fell to the tolerance.
    margin : float
        How far below 0 the scores of pairs without a path were put, for solvers that do that.
    """

    source: FloatArray
    target: FloatArray
    objective: Float64Array
    n_iter: int
    converged: bool
    margin: float = 0.0


def factorize(
    rows: ClosureForest,
    columns: ClosureForest,
    levels: npt.ArrayLike,
    table: npt.ArrayLike,
    *,
    n_components: int = 64,
    zero_weight: float = 0.0,
    regularization: float = 0.01,
    max_iter: int = 10,
    tol: float = 1e-4,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    dtype: npt.DTypeLike = np.float32,
    loop: Loop | None = None,
) -> Factorization:
    """Factorize M over the reachable pairs, M never written out.

    Minimizes, over non-negative S and T with rows s_i and t_j,

    Σ_reachable (M_ij − s_i·t_j)² + w0 Σ_unreachable (s_i·t_j)²
    + λ (Σ_i |R(i)| ‖s_i‖² + Σ_j |R⁻¹(j)| ‖t_j‖²)

    by solving for all rows, then for all columns, in turn. No step raises the objective.

    Parameters
    ----------
    rows, columns : ClosureForest
        Descendants and ancestors (:func:`~atpgraph.closure.closure_forests`).
    levels : array of n entries
        Levels from 1, rising along every edge (:func:`atpgraph.hierarchy.levels`).
    table : array
        f(Δ) for Δ = 0, 1, … (:func:`~atpgraph.closure.kernel_table`).
    n_components : int
        Length k of the vectors.
    zero_weight : float
        w0 in [0, 1]: 0 fits reachable pairs only, 1 is plain non-negative factorization.
    regularization : float
        λ ≥ 0.
    max_iter, tol
        Stop after `max_iter` iterations (rows and columns once each), or when the objective
        falls by less than `tol` times its value.
    n_jobs : int, optional
        Threads; by default all cores. The result does not depend on it.
    random_state
        Seed of the first vectors.
    dtype : float32 or float64
        Precision of the vectors and of the arithmetic.
    loop : Loop, optional
        Where the state is saved after an iteration, and resumed from.

    Examples
    --------
    >>> from atpgraph.closure import closure_forests, kernel_table
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> level = levels(dag)
    >>> fit = factorize(
    ...     *closure_forests(dag), level, kernel_table("constant", level.max()),
    ...     n_components=2, random_state=0,
    ... )
    >>> bool(fit.source[0] @ fit.target[3] > 0.9)
    True
    """
    whole_number("n_components", n_components)
    whole_number("max_iter", max_iter)
    real_number("zero_weight", zero_weight, most=1.0)
    real_number("regularization", regularization)
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise InputError(f"The vectors can be float32 or float64, not {kind}.")
    down = ImplicitMatrix.of_rows(rows, levels)
    up = ImplicitMatrix.of_columns(columns, levels)
    values = np.asarray(table, dtype=np.float64)
    if len(values) < down.n_levels:
        raise InputError(f"The kernel table has {len(values)} entries for {down.n_levels} levels.")
    values = values[: max(down.n_levels, 1)]
    coefficients = np.ascontiguousarray(values.astype(kind)[:, None])
    n_pairs, total, square = up.moments(values)  # as the objective comes from the columns
    mean = total / max(n_pairs, 1)

    rng = generator(random_state)
    S, T = (_first_vectors(rng, n_components, mean, matrix, kind) for matrix in (down, up))
    tasks = {id(matrix): matrix.tasks(T.shape[1]) for matrix in (down, up)}
    history: list[float] = []
    converged = n_pairs == 0

    with Workers(n_jobs) as pool, stage("factorise", max_iter) as progress:

        def solve(matrix: ImplicitMatrix, vectors: FloatArray, x: FloatArray) -> float:
            shared = np.zeros((x.shape[1], x.shape[1]), dtype=kind)
            if zero_weight:
                shared += (zero_weight * gram_of(vectors)).astype(kind)
            penalty = float(regularization)
            how = Solve(n_components, shared, 1.0 - zero_weight, penalty, _SWEEPS, _LEAST_GAIN)

            def work(task: tuple[int, int]) -> float:
                return matrix.update(task, coefficients, vectors, x, how)

            return sum(pool.map(work, tasks[id(matrix)]))

        kept = None if loop is None else loop.state()
        if kept is not None:
            S, T = (np.array(kept[0][name]) for name in ("source", "target"))
            history, converged = list(kept[1]["history"]), bool(kept[1]["converged"])
            progress.advance(len(history))
        while not converged and len(history) < max_iter:
            solve(down, T, S)
            fit = solve(up, S, T)
            penalty = regularization * float(rows.sizes @ np.einsum("ij,ij->i", S, S, dtype=float))
            history.append(square + fit + penalty)
            progress.advance()
            if len(history) > 1:
                converged = history[-2] - history[-1] <= tol * abs(history[-2])
            if loop is not None:
                done = converged or len(history) == max_iter
                facts = {"history": history, "converged": bool(converged)}
                loop.keep(lambda: {"source": S, "target": T}, facts, at_once=done)
    source, target = _balanced(S[:, :n_components], T[:, :n_components])
    return Factorization(source, target, np.array(history), len(history), converged)


def gram_of(vectors: FloatArray) -> Float64Array:
    """Return the Gram matrix Σ t tᵀ of all rows, the same bytes whatever the threads of BLAS."""
    n, width = vectors.shape
    total = np.zeros((width, width))
    for start in range(0, n, _CHUNK):
        part = np.zeros((width, width), dtype=vectors.dtype)
        add_rows(part, vectors, start, min(start + _CHUNK, n))
        total += part
    upper = np.triu(total)
    return upper + np.triu(upper, 1).T


def padded(vectors: FloatArray, kind: np.dtype[Any]) -> FloatArray:
    """A copy with zero columns added up to the width that the kernels want."""
    n, k = vectors.shape
    wide = np.zeros((n, -(-k // TILE) * TILE), dtype=kind)
    wide[:, :k] = vectors
    return wide


def _first_vectors(
    rng: np.random.Generator,
    k: int,
    mean: float,
    matrix: ImplicitMatrix,
    kind: np.dtype[Any],
) -> FloatArray:
    """Random vectors whose products are about the mean of M; zero where a row is empty."""
    draws = rng.random((len(matrix.levels), k)) * (2.0 * np.sqrt(mean / k))
    draws[matrix.sizes == 0] = 0.0
    return padded(draws, kind)


def _balanced(S: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale every component so that its norm over the nodes is the same on both sides."""
    norms = [np.sqrt(np.einsum("ij,ij->j", X, X, dtype=np.float64)) for X in (S, T)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(norms[1] / norms[0])
    ratio = np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)
    return (S * ratio).astype(S.dtype), (T / ratio).astype(T.dtype)
