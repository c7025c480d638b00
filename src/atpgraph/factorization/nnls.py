"""The paper's method: alternating non-negative least squares on closure forests."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from atpgraph.closure import ClosureForest
from atpgraph.factorization._nnls_rows import (
    TILE,
    Forest,
    Room,
    Solve,
    highest_levels,
    multiply,
    update_rows,
)
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array
from atpgraph.util.checkpoints import Loop
from atpgraph.util.progress import stage
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import Workers

_SWEEPS, _LEAST_GAIN = 4, 1e-5  # of coordinate descent in a row
_LEAST_FALL = 1e-4  # of the objective in an iteration, relative to it
_KIND = np.dtype(np.float32)  # of the vectors
_MOST_TASKS = 256
_LEAST_TASK = 4_000_000  # products of two numbers, about a millisecond
_ALLOWED_OVERHEAD = 0.08  # of a task, to restart below a node


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of both solvers; the result does not depend on `n_jobs`."""

    n_components: int = 128
    regularization: float = 1e-4  # λ, the penalty on long vectors
    max_iter: int = 32
    n_jobs: int | None = None
    random_state: RandomState = None
    loop: Loop | None = None  # where the state is saved between iterations, and resumed from


@dataclass(frozen=True, eq=False)
class Factorization:
    """Source and target vectors, M ≈ source · targetᵀ, one row per node."""

    source: FloatArray
    target: FloatArray
    objective: Float64Array  # value after each iteration
    n_iter: int
    margin: float = 0.0  # how far below 0 the scores of pairs without a path were put


@dataclass(frozen=True, eq=False)
class ImplicitMatrix:
    """The matrix M, or its transpose: f(difference of levels) for every pair joined by a path."""

    forest: ClosureForest  # the columns of each row: descendants for M, ancestors for its transpose
    levels: Int32Array  # from 1; they rise from a node to the columns of its row

    @classmethod
    def both(
        cls, forests: tuple[ClosureForest, ClosureForest], levels: npt.ArrayLike
    ) -> tuple[ImplicitMatrix, ImplicitMatrix]:
        """Return M by its rows and by its columns, whose levels count from the other end."""
        level = np.ascontiguousarray(levels, dtype=np.int32)
        return cls(forests[0], level), cls(forests[1], level.max(initial=0) + np.int32(1) - level)

    @property
    def n_levels(self) -> int:
        """Highest level."""
        return int(self.levels.max(initial=0))

    @property
    def n_slots(self) -> int:
        """Buffers that a walk needs."""
        return int(self.forest.slot.max(initial=0)) + 1

    @cached_property
    def _walk(self) -> tuple[Forest, Int32Array]:
        """The forest for kernels, and the depth of every node in it."""
        f = self.forest
        highest, depth = np.empty((2, f.n_nodes), dtype=np.int32)
        forest = Forest(
            f.order, f.parent, f.slot, f.subtree, f.extras_indptr, f.extras, f.sizes, self.levels,
            highest,
        )  # fmt: skip
        highest_levels(forest, depth)
        return forest, depth

    def times(self, table: Float64Array, x: Float64Array) -> Float64Array:
        """Return the product of this matrix and a vector."""
        y = np.empty(self.forest.n_nodes, dtype=np.float64)
        sums = np.empty((self.n_slots * (len(table) + 1), 1), dtype=np.float64)
        multiply(self._walk[0], table, x, sums, y)
        return y

    def tasks(self, width: int) -> list[tuple[int, int]]:
        """Return ranges of the preorder of about equal cost, whatever the number of threads.

        A range that starts below a node has to sum up that node's closure first. So each cut is
        moved to a nearby place where this costs least, and dropped if it costs too much even there.
        """
        f = self.forest
        parent = f.parent[f.order]
        entered = parent >= 0
        spans = (self._walk[0].highest - self.levels).astype(np.int64)
        # In products of two vector components, about as measured at 64 components.
        cost = np.diff(f.extras_indptr)[f.order] + 10
        cost += np.minimum(spans, f.sizes)[f.order] // 8
        restart = np.where(entered, f.sizes[parent] + 5 * self._walk[1][f.order], 0)
        before = np.concatenate([[0], np.cumsum(np.where(entered, cost, 1))])
        count = int(np.clip(before[-1] * width * width // _LEAST_TASK, 4, _MOST_TASKS))
        share = before[-1] / count
        cuts = {0, f.n_nodes}
        for k in range(1, count):
            low, high = np.searchsorted(before, [(k - 0.25) * share, (k + 0.25) * share]).tolist()
            high = min(max(high, low + 1), f.n_nodes)
            at = low + int(np.argmin(restart[low:high])) if low < high else 0
            if restart[at : at + 1].sum() <= _ALLOWED_OVERHEAD * share:
                cuts.add(at)
        return list(itertools.pairwise(sorted(cuts)))

    def update(
        self,
        task: tuple[int, int],
        table: FloatArray,
        vectors: FloatArray,
        x: FloatArray,
        how: Solve,
    ) -> float:
        """Solve the rows of a task for `x`, given the `vectors` of the other side."""
        room = Room.of(self.n_slots, len(table), vectors)
        return float(update_rows(*task, self._walk[0], table, vectors, x, how, room))


def factorize(
    forests: tuple[ClosureForest, ClosureForest],
    levels: npt.ArrayLike,
    table: npt.ArrayLike,
    options: Options,
    *,
    zero_weight: float = 0.0,
) -> Factorization:
    """Factorize M over the reachable pairs without building M.

    Minimizes, over non-negative S and T with rows s_i and t_j,

    Σ_reachable (M_ij − s_i·t_j)² + w0 Σ_unreachable (s_i·t_j)²
    + λ (Σ_i |R(i)| ‖s_i‖² + Σ_j |R⁻¹(j)| ‖t_j‖²)

    by solving for all rows, then for all columns, in turn, up to `max_iter` times or until the
    objective hardly falls. No step raises the objective. `forests` hold the descendants and the
    ancestors of every node, `table` f(Δ) for Δ = 0, 1, …; `zero_weight` is w0.

    Examples
    --------
    >>> from atpgraph.closure import closure_forests, kernel_table
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> level = levels(dag)
    >>> options = Options(n_components=2, regularization=0.01, max_iter=10, random_state=0)
    >>> table = kernel_table("constant", level.max())
    >>> fit = factorize(closure_forests(dag), level, table, options)
    >>> bool(fit.source[0] @ fit.target[3] > 0.9)
    True
    """
    k, penalty, loop = options.n_components, options.regularization, options.loop
    down, up = ImplicitMatrix.both(forests, levels)
    values = np.asarray(table, dtype=np.float64)[: max(down.n_levels, 1)]
    coefficients = np.ascontiguousarray(values.astype(_KIND)[:, None])
    # By columns, as the objective is summed.
    ones, n_pairs = np.ones(len(up.levels)), up.forest.n_pairs
    total, square = (float(up.times(each, ones).sum()) for each in (values, values**2))
    mean = total / max(n_pairs, 1)

    rng = generator(options.random_state)
    S, T = (_first_vectors(rng, k, mean, matrix) for matrix in (down, up))
    tasks = {id(matrix): matrix.tasks(T.shape[1]) for matrix in (down, up)}
    history: list[float] = []
    converged = n_pairs == 0

    with Workers(options.n_jobs) as pool, stage("factorize", options.max_iter) as progress:

        def solve(matrix: ImplicitMatrix, vectors: FloatArray, x: FloatArray) -> float:
            shared = np.zeros((x.shape[1], x.shape[1]), dtype=_KIND)
            if zero_weight:
                # Not by BLAS, where the bytes depend on its number of threads.
                gram = np.einsum("ij,ik->jk", vectors, vectors, dtype=np.float64)
                shared += (zero_weight * gram).astype(_KIND)
            how = Solve(k, shared, 1.0 - zero_weight, float(penalty), _SWEEPS, _LEAST_GAIN)

            def work(task: tuple[int, int]) -> float:
                return matrix.update(task, coefficients, vectors, x, how)

            return sum(pool.map(work, tasks[id(matrix)]))

        saved = None if loop is None else loop.state()
        if saved is not None:
            S, T = (np.array(saved[0][name]) for name in ("source", "target"))
            history, converged = list(saved[1]["history"]), bool(saved[1]["converged"])
            progress.advance(len(history))
        while not converged and len(history) < options.max_iter:
            solve(down, T, S)
            fit = solve(up, S, T)
            lengths = float(down.forest.sizes @ np.einsum("ij,ij->i", S, S, dtype=float))
            history.append(square + fit + penalty * lengths)
            progress.advance()
            if len(history) > 1:
                converged = history[-2] - history[-1] <= _LEAST_FALL * abs(history[-2])
            if loop is not None:
                done = converged or len(history) == options.max_iter
                facts = {"history": history, "converged": bool(converged)}
                loop.save(lambda: {"source": S, "target": T}, facts, at_once=done)
    source, target = _balanced(S[:, :k], T[:, :k])
    return Factorization(source, target, np.array(history), len(history))


def _first_vectors(
    rng: np.random.Generator, k: int, mean: float, matrix: ImplicitMatrix
) -> FloatArray:
    """Return random vectors whose products are about the mean of M; zeros for empty rows.

    They are padded with zeros to the width that the kernels need.
    """
    n = len(matrix.levels)
    vectors = np.zeros((n, -(-k // TILE) * TILE), dtype=_KIND)
    vectors[:, :k] = rng.random((n, k)) * (2.0 * np.sqrt(mean / k))
    vectors[matrix.forest.sizes == 0] = 0.0
    return vectors


def _balanced(S: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale every component so that its norm over the nodes is the same on both sides."""
    norms = [np.sqrt(np.einsum("ij,ij->j", X, X, dtype=np.float64)) for X in (S, T)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt(norms[1] / norms[0])
    ratio = np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)
    return (S * ratio).astype(S.dtype), (T / ratio).astype(T.dtype)
