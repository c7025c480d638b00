"""Single rows of the regression over pairs: vectors of nodes that were not there when it ran."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atpgraph.factorization._gram import PANEL, add_panel
from atpgraph.factorization.nnls import padded
from atpgraph.factorization.path_vectors import Descent
from atpgraph.util.arrays import BoolArray, Float32Array, Int32Array, Int64Array
from atpgraph.util.jit import fast_kernel

_STEPS = 100
_HALVINGS = 16
_TOLERANCE = 1e-5


class PairRows:
    """Solves :func:`~atpgraph.factorization.fit_pairs` for single vectors, all others kept.

    What is drawn at random there is summed up here: every path of the new node, and every other
    node with the weight with which it would be drawn. The sum is convex in one vector; Newton's
    method finds its minimum, and the answer depends on nothing but the arguments.

    Parameters
    ----------
    source, target : arrays of shape (n, k)
        The vectors that :func:`~atpgraph.factorization.fit_pairs` found.
    sizes : int64 array of n entries
        Number of descendants of every node.
    popularity : array of n entries
        Share of the paths drawn that end at each node
        (:meth:`atpgraph.closure.PathSampler.popularity`).
    margin, regularization : float
        As used when the vectors were fitted.
    descent : Descent, optional
        The constants that were used.

    Examples
    --------
    >>> from atpgraph.closure import PathSampler, closure_forest, kernel_table
    >>> from atpgraph.factorization import fit_pairs
    >>> from atpgraph.graph import DiGraph
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 4], 5)
    >>> paths = PathSampler(closure_forest(dag))
    >>> fit = fit_pairs(
    ...     paths, levels(dag), kernel_table("log", 3), n_components=8, random_state=0
    ... )
    >>> rows = PairRows(
    ...     fit.source, fit.target, paths.sizes, paths.popularity(16), margin=fit.margin
    ... )
    >>> (rows.sources([0, 2], [1, 3], [1.3, 1.5]) @ fit.target.T > 0).tolist()
    [[False, True, False, True, False]]
    """

    def __init__(
        self,
        source: Float32Array,
        target: Float32Array,
        sizes: Int64Array,
        popularity: npt.ArrayLike,
        *,
        margin: float,
        regularization: float = 1e-4,
        descent: Descent | None = None,
    ) -> None:
        how = descent or Descent()
        kind = np.dtype(np.float32)
        self._source, self._target = padded(source, kind), padded(target, kind)
        self._k = source.shape[1]
        self._margin = margin
        self._ridge = max(regularization, 1e-6)
        drawn = np.minimum(sizes, how.draws).astype(np.float32)
        self._rows = drawn
        self._paths = (drawn / np.maximum(sizes, 1)).astype(np.float32)
        share = np.asarray(popularity, dtype=np.float64)
        self._drawn = float(drawn.sum())
        self._uniform = 1.0 / max(int(np.count_nonzero(share)), 1)
        self._negatives = how.negatives
        self._columns = (how.negatives * (self._uniform + share)).astype(np.float32)

    def sources(
        self, indptr: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike
    ) -> Float32Array:
        """Source vectors of new nodes from their descendants.

        Those of node i are ``columns[indptr[i] : indptr[i + 1]]``, each listed once, with f(Δ) in
        `values`.
        """
        ends = np.ascontiguousarray(indptr, dtype=np.int64)
        ones = np.ones(len(self._target), dtype=np.float32)
        # As many negatives as go with so many paths.
        return self._solve(
            self._target, ends, columns, values, ones, self._columns, np.diff(ends), 0
        )

    def targets(
        self, indptr: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike
    ) -> Float32Array:
        """Target vectors of new nodes from their ancestors, given as for :meth:`sources`."""
        ends = np.ascontiguousarray(indptr, dtype=np.int64)
        weight = self._paths[np.asarray(columns, dtype=np.int64)]
        into = np.concatenate([[0.0], np.cumsum(weight, dtype=np.float64)])
        share = np.diff(into[ends]) / max(self._drawn, 1.0)
        scale = self._negatives * (self._uniform + share)
        return self._solve(self._source, ends, columns, values, self._paths, self._rows, scale, 1)

    def _solve(
        self,
        vectors: Float32Array,
        indptr: Int64Array,
        columns: npt.ArrayLike,
        values: npt.ArrayLike,
        path_weight: Float32Array,
        other_weight: Float32Array,
        scale: npt.ArrayLike,
        side: int,
    ) -> Float32Array:
        width = vectors.shape[1]
        constant = self._k - 1 - side if self._k >= 3 else -1
        x = np.zeros((len(indptr) - 1, width), dtype=np.float32)
        if constant >= 0:
            x[:, constant] = 1
        solve_one_sided(
            indptr,
            np.ascontiguousarray(columns, dtype=np.int32),
            np.ascontiguousarray(values, dtype=np.float32),
            np.ascontiguousarray(scale, dtype=np.float32),
            vectors,
            path_weight,
            other_weight,
            np.float32(self._margin),
            np.float32(self._ridge),
            constant,
            x,
            np.zeros(len(vectors), dtype=np.bool_),
            np.zeros((width, width), dtype=np.float32),
            np.zeros((PANEL, width), dtype=np.float32),
            np.zeros((2, width), dtype=np.float32),
        )
        if constant >= 0:
            # A node without any path scores none, as where the others were fitted.
            bias = self._k - 2 + side
            highest = max(float(vectors[:, constant].max(initial=0.0)), 0.0)
            x[np.diff(indptr) == 0, bias] = -self._margin - highest
        return x[:, : self._k].copy()


@fast_kernel
def solve_one_sided(
    indptr: Int64Array,
    columns: Int32Array,
    values: Float32Array,
    scale: Float32Array,
    vectors: Float32Array,
    path_weight: Float32Array,
    other_weight: Float32Array,
    margin: np.float32,
    ridge: np.float32,
    constant: int,
    x: Float32Array,
    listed: BoolArray,
    gram: Float32Array,
    panel: Float32Array,
    work: Float32Array,
) -> None:
    """Newton's method for every row i of x, from what is there.

    Minimises Σ_listed p (⟨x, t⟩ − f)² + scale[i] Σ_others o max(⟨x, t⟩ + margin, 0)² + λ‖x‖², λ
    the ridge times the weight of the paths; component `constant` stays as it is. `gram` comes and
    `listed` goes zero.
    """
    for i in range(len(indptr) - 1):
        weight = np.float32(0)
        for e in range(indptr[i], indptr[i + 1]):
            listed[columns[e]] = True
            weight += path_weight[columns[e]]
        before = np.inf
        shorter = 0
        for _ in range(_STEPS):
            value = _sum_up(
                indptr[i], indptr[i + 1], columns, values, scale[i], vectors, path_weight,
                other_weight, margin, ridge * max(weight, np.float32(1)), constant, x[i], listed,
                gram, panel, work[0],
            )  # fmt: skip
            if value > before:
                if shorter == _HALVINGS:
                    x[i] += work[1]
                    break
                # The step went too far: half of it back.
                work[1] *= np.float32(0.5)
                x[i] += work[1]
                shorter += 1
                continue
            if shorter == 0 and before - value <= _TOLERANCE * value:
                break  # a step cut short may gain little far from the minimum
            before = value
            shorter = 0
            _solve_in_place(gram, work[0])
            work[1] = work[0]
            x[i] -= work[0]
        for e in range(indptr[i], indptr[i + 1]):
            listed[columns[e]] = False


@fast_kernel
def _sum_up(
    first: int,
    stop: int,
    columns: Int32Array,
    values: Float32Array,
    scale: np.float32,
    vectors: Float32Array,
    path_weight: Float32Array,
    other_weight: Float32Array,
    margin: np.float32,
    ridge: np.float32,
    constant: int,
    x: Float32Array,
    listed: BoolArray,
    gram: Float32Array,
    panel: Float32Array,
    gradient: Float32Array,
) -> float:
    """Value, half the gradient and half the second derivatives (upper triangle) at x."""
    width = len(x)
    gram[:] = 0
    value = 0.0
    for c in range(width):
        free = c != constant
        gradient[c] = ridge * x[c] if free else np.float32(0)
        value += ridge * x[c] * x[c] if free else 0.0
    depth = 0
    paths = stop - first
    for q in range(paths + len(vectors)):
        if q < paths:
            j = np.int64(columns[first + q])
            weight = path_weight[j]
            miss = -values[first + q]
        else:
            j = np.int64(q - paths)
            if listed[j]:
                continue
            weight = scale * other_weight[j]
            miss = margin
        for c in range(width):
            miss += x[c] * vectors[j, c]
        if weight > 0 and (q < paths or miss > 0):
            value += weight * miss * miss
            root = np.sqrt(weight)
            for c in range(width):
                panel[depth, c] = root * vectors[j, c]
                gradient[c] += root * miss * panel[depth, c]
            depth += 1
        if depth == len(panel):
            add_panel(gram, 0, gram, 0, panel, depth)
            depth = 0
    if depth > 0:
        add_panel(gram, 0, gram, 0, panel, depth)
    for c in range(width):
        gram[c, c] += ridge
    if constant >= 0:
        gradient[constant] = 0
        for c in range(width):
            gram[constant, c] = 0
            gram[c, constant] = 0
        gram[constant, constant] = 1
    return value


@fast_kernel
def _solve_in_place(matrix: Float32Array, right: Float32Array) -> None:
    """Replace `right` by the solution of a positive definite system, its upper triangle given."""
    n = len(right)
    for j in range(n):
        root = np.sqrt(max(matrix[j, j], np.float32(1e-12)))
        for c in range(j, n):
            matrix[j, c] /= root
        for i in range(j + 1, n):
            factor = matrix[j, i]
            for c in range(i, n):
                matrix[i, c] -= factor * matrix[j, c]
    for j in range(n):
        right[j] /= matrix[j, j]
        for c in range(j + 1, n):
            right[c] -= matrix[j, c] * right[j]
    for j in range(n - 1, -1, -1):
        for c in range(j + 1, n):
            right[j] -= matrix[j, c] * right[c]
        right[j] /= matrix[j, j]
