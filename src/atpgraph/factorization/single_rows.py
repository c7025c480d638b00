"""Solve single rows: vectors of nodes that were not there when the others were fitted."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.linalg
from scipy.optimize import nnls

from atpgraph.closure import Paths
from atpgraph.factorization.panels import Descent
from atpgraph.util.arrays import Float64Array, FloatArray, Int64Array, IntArray

_NEGATIVES = 4  # of each kind, uniform and popular, that a path meets while vectors are learned
_STEPS, _HALVINGS, _TOLERANCE = 100, 16, 1e-6
_LEAST_RIDGE = 1e-6


class LearnedRows:
    """Solve :func:`~atpgraph.factorization.fit_panels` for single vectors, all others fixed.

    What is drawn at random there is summed up here: every path of the new node, and every other
    node with the weight with which it would be drawn. The sum is convex in one vector; Newton's
    method finds its minimum.

    Parameters
    ----------
    source, target : arrays of shape (n, k)
        The vectors that :func:`~atpgraph.factorization.fit_panels` found.
    paths : Paths
        Those of the graph.
    margin, regularization : float
        As used when the vectors were fitted.

    Examples
    --------
    >>> from atpgraph.closure import collect_paths, kernel_table
    >>> from atpgraph.factorization import fit_panels
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 4], 5)
    >>> paths = collect_paths(dag, levels(dag))
    >>> fit = fit_panels(
    ...     *paths.sides, paths.levels, kernel_table("log", 3), n_components=8, random_state=0
    ... )
    >>> rows = LearnedRows(fit.source, fit.target, paths, fit.margin)
    >>> (rows.source(np.array([1, 3]), np.array([1.3, 1.5])) @ fit.target.T > 0).tolist()
    [False, True, False, True, False]
    """

    def __init__(
        self,
        source: FloatArray,
        target: FloatArray,
        paths: Paths,
        margin: float,
        regularization: float = 1e-4,
    ) -> None:
        self._source, self._target = (x.astype(np.float32, copy=False) for x in (source, target))
        self._k, self._margin, self._ridge = source.shape[1], margin, regularization
        # Paths that each node draws in a round, and each of its paths' share of them.
        self._drawn = np.minimum(paths.sizes, Descent.draws).astype(np.float64)
        self._share = self._drawn / np.maximum(paths.sizes, 1)
        self._popularity = paths.popularity
        self._uniform = 1.0 / max(int(np.count_nonzero(paths.popularity)), 1)

    def source(self, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return the source vector of a node from its descendants and their scores f(Δ)."""
        others = _NEGATIVES * len(columns) * (self._uniform + self._popularity)
        return self._solve(self._target, columns, values, np.ones(len(columns)), others, 0)

    def target(self, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return the target vector of a node from its ancestors and their scores f(Δ)."""
        weights = self._share[columns]
        popularity = weights.sum() / max(self._drawn.sum(), 1.0)
        others = _NEGATIVES * (self._uniform + popularity) * self._drawn
        return self._solve(self._source, columns, values, weights, others, 1)

    def _solve(
        self,
        vectors: FloatArray,
        columns: IntArray,
        values: Float64Array,
        weights: Float64Array,
        others: Float64Array,
        side: int,
    ) -> FloatArray:
        """Minimize Σ_columns w (⟨x, t⟩ − f)² + Σ_others o max(⟨x, t⟩ + margin, 0)² + λ‖x‖²."""
        k = self._k
        x = np.zeros(k)
        free = np.arange(k)
        if k >= 3:  # the component that faces the biases is 1
            constant = k - 1 - side
            x[constant] = 1.0
            free = np.delete(free, constant)
        if k >= 3 and not len(columns):
            # A node without any path scores none, like the fitted ones.
            highest = max(float(vectors[:, constant].max(initial=0.0)), 0.0)
            x[k - 2 + side] = -self._margin - highest
            return x.astype(np.float32)
        listed = vectors[columns].astype(np.float64)
        others[columns] = 0.0
        ridge = max(self._ridge, _LEAST_RIDGE) * max(float(weights.sum()), 1.0)
        gram = (weights[:, None] * listed).T @ listed + ridge * np.eye(k)
        right = listed.T @ (weights * values)

        def at(x: Float64Array) -> tuple[float, Int64Array, Float64Array]:
            """Value at x, and the others that cost something there."""
            excess = vectors @ x.astype(np.float32) + self._margin
            active = np.flatnonzero((excess > 0) & (others > 0))
            cost = excess[active].astype(np.float64)
            value = x @ gram @ x - 2 * right @ x + others[active] @ cost**2
            return float(value), active, cost

        value, active, cost = at(x)
        for _ in range(_STEPS):
            some = vectors[active].astype(np.float64)
            weighted = others[active][:, None] * some
            gradient = (gram @ x - right + weighted.T @ cost)[free]
            step = np.zeros(k)
            hessian = (gram + weighted.T @ some)[np.ix_(free, free)]
            step[free] = np.linalg.solve(hessian, gradient)
            before = value
            for _ in range(_HALVINGS):
                value, active, cost = at(x - step)
                if value <= before:
                    break
                step /= 2
            x = x - step
            if before - value <= _TOLERANCE * max(abs(value), 1.0):
                break
        return x.astype(np.float32)


class NnlsRows:
    """Solve :func:`~atpgraph.factorization.factorize` for single vectors, all others fixed.

    Examples
    --------
    >>> targets = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> rows = NnlsRows(targets, targets, zero_weight=0.0, regularization=0.0)
    >>> rows.source(np.array([0, 1]), np.array([3.0, 4.0])).round(6).tolist()
    [3.0, 2.0]
    """

    def __init__(
        self, source: FloatArray, target: FloatArray, zero_weight: float, regularization: float
    ) -> None:
        self._source, self._target = source, target
        self._zero_weight, self._regularization = zero_weight, regularization

    def source(self, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return the source vector of a node from its descendants and their scores f(Δ)."""
        return self._solve(self._target, self._target_gram, columns, values)

    def target(self, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return the target vector of a node from its ancestors and their scores f(Δ)."""
        return self._solve(self._source, self._source_gram, columns, values)

    @cached_property
    def _source_gram(self) -> Float64Array:
        return _gram(self._source)

    @cached_property
    def _target_gram(self) -> Float64Array:
        return _gram(self._target)

    def _solve(
        self, vectors: FloatArray, whole: Float64Array, columns: IntArray, values: Float64Array
    ) -> FloatArray:
        """Minimize xᵀHx − 2 bᵀx over x ≥ 0 as non-negative least squares with the root of H."""
        k = vectors.shape[1]
        if not len(columns):
            return np.zeros(k, dtype=vectors.dtype)
        listed = vectors[columns].astype(np.float64)
        matrix = (1.0 - self._zero_weight) * (listed.T @ listed) + self._zero_weight * whole
        ridge = self._regularization * len(columns) + 1e-10 * max(float(np.trace(matrix)), 1e-300)
        root = np.linalg.cholesky(matrix + ridge * np.eye(k)).T
        right = scipy.linalg.solve_triangular(root, listed.T @ values, trans="T")
        x, _ = nnls(root, right)
        return np.asarray(x, dtype=vectors.dtype)


def _gram(vectors: FloatArray) -> Float64Array:
    wide = vectors.astype(np.float64)
    return np.asarray(wide.T @ wide)
