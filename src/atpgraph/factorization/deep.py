"""Weighted sums over descendants of deep graphs, at a cost that does not grow with their depth.

Sums by level cost as many steps for each node as there are levels below it: in a path of n nodes
n² / 2. A weight function f(Δ) = Σ_j w_j exp(−λ_j Δ) + w Δ + w′ Δ² needs one sum for each term
instead: one level further down, each is multiplied by a constant. Functions that level off or grow
smoothly, as all kernels here do, have this form to the precision of the vectors with about thirty
terms.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass

import numpy as np

from atpgraph.closure.forest import ClosureForest
from atpgraph.factorization._gram import add_panel, solve
from atpgraph.factorization._update import path_from_root
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel

TERMS = 36  # of a function, about
SHALLOW = 1024  # up to so many levels sums by level are kept, whatever they cost
_RATIO = 1.7  # of one rate to the next
_PRECISION = 2e-7
_STEPS = 40  # sample points for each doubling of the difference


@dataclass(frozen=True, eq=False)
class Exponentials:
    """f(Δ) = Σ_j w_j exp(−rates[j] Δ) + w Δ + w′ Δ² for Δ = 1, 2, …; rates[0] is 0.

    `weights` holds the w_j, w and w′.

    Examples
    --------
    >>> found = Exponentials.of(np.log(np.e + np.arange(5000.0)))
    >>> bool(abs(found(np.array([3000.0]))[0] - np.log(np.e + 3000)) < 1e-6)
    True
    """

    rates: Float64Array
    weights: Float64Array

    @classmethod
    def of(cls, table: Float64Array) -> Exponentials | None:
        """The form of a function with these values at 0, 1, …; None if it has none.

        The error is at most 2 · 10⁻⁷ of the value (float32 rounds by 6 · 10⁻⁸). The value at 0 is
        never used.
        """
        last = len(table) - 1
        if last < 1:
            return None
        count = int(np.ceil(np.log(32.0 * last) / np.log(_RATIO)))
        rates = np.concatenate([[0.0], 8.0 * _RATIO ** -np.arange(float(count))])
        points = np.unique(np.geomspace(1, last, int(_STEPS * np.log2(last + 1)) + 2).round())
        values = table[points.astype(np.int64)]
        relative = 1.0 / np.maximum(np.abs(values), 1e-12)
        terms = np.column_stack([np.exp(-np.outer(points, rates)), points, points**2])
        terms *= relative[:, None]
        norms = np.linalg.norm(terms, axis=0)  # rates that play no part leave columns of zeros
        norms[norms == 0] = 1.0
        weights = np.linalg.lstsq(terms / norms, values * relative, rcond=1e-14)[0] / norms
        found = cls(rates, weights)
        for start in range(1, last + 1, 1 << 16):
            delta = np.arange(start, min(start + (1 << 16), last + 1))
            wrong = np.abs(found(delta.astype(np.float64)) - table[delta])
            if bool(np.any(wrong > _PRECISION * np.maximum(np.abs(table[delta]), 1e-12))):
                return None
        return found

    def __call__(self, delta: Float64Array) -> Float64Array:
        """The values at some differences."""
        terms = np.exp(-np.outer(delta, self.rates)) @ self.weights[:-2]
        return np.asarray(terms + self.weights[-2] * delta + self.weights[-1] * delta**2)

    def times(self, forest: ClosureForest, levels: Int32Array, x: Float64Array) -> Float64Array:
        """For every node Σ f(Δ) x over its descendants."""
        y = np.empty(forest.n_nodes, dtype=np.float64)
        slots = int(forest.slot.max(initial=0)) + 1
        sums = np.zeros((slots * len(self.weights), 1), dtype=np.float64)
        multiply_deep(
            forest.order, forest.parent, forest.slot, forest.extras_indptr, forest.extras, levels,
            self.rates, self.weights, x[:, None].copy(), sums, y,
        )  # fmt: skip
        return y


_last: list[tuple[bytes, Exponentials | None]] = []  # the few functions of a fit, newest last
_finding = threading.Lock()


def exponentials(table: Float64Array) -> Exponentials | None:
    """:meth:`Exponentials.of`, remembered: every task of a fit asks for the same functions."""
    key = hashlib.sha1(table.tobytes(), usedforsecurity=False).digest()
    with _finding:
        for known, form in _last:
            if known == key:
                return form
        found = Exponentials.of(table)
        _last.append((key, found))
        del _last[:-8]
        return found


@kernel
def descend_sums(
    u: int, p: int, slot: Int32Array, levels: Int32Array, rates: Float64Array,
    vectors: FloatArray, sums: Float64Array,
) -> None:  # fmt: skip
    """The sums of u from those of its parent p, and p itself; extras are added afterwards.

    The tiny number keeps sums that die away from becoming denormal, which is slow.
    """
    terms = len(rates)
    source = slot[p] * (terms + 2)
    into = slot[u] * (terms + 2)
    step = np.float64(levels[p] - levels[u])
    width = vectors.shape[1]
    for c in range(width):
        new = step * (sums[source, c] + vectors[p, c])
        linear = sums[source + terms, c]
        sums[into + terms + 1, c] = sums[source + terms + 1, c] + step * (2.0 * linear + new)
        sums[into + terms, c] = linear + new
    for j in range(terms):
        factor = np.exp(-rates[j] * step)
        for c in range(width):
            sums[into + j, c] = factor * (sums[source + j, c] + vectors[p, c] + 1e-150)


@kernel
def add_to_sums(
    u: int, v: int, slot: Int32Array, levels: Int32Array, rates: Float64Array,
    vectors: FloatArray, sums: Float64Array,
) -> None:  # fmt: skip
    """Add a descendant v of u that the parent of u does not have."""
    terms = len(rates)
    into = slot[u] * (terms + 2)
    delta = np.float64(levels[v] - levels[u])
    width = vectors.shape[1]
    for j in range(terms):
        factor = np.exp(-rates[j] * delta)
        for c in range(width):
            sums[into + j, c] += factor * vectors[v, c]
    for c in range(width):
        sums[into + terms, c] += delta * vectors[v, c]
        sums[into + terms + 1, c] += delta * delta * vectors[v, c]


@kernel
def multiply_deep(
    order: Int32Array, parent: Int32Array, slot: Int32Array, indptr: Int64Array,
    extras: Int32Array, levels: Int32Array, rates: Float64Array, weights: Float64Array,
    x: Float64Array, sums: Float64Array, y: Float64Array,
) -> None:  # fmt: skip
    """y = M x; `x` and `sums` have one column."""
    terms = len(rates)
    for i in range(len(order)):
        u = order[i]
        p = parent[u]
        into = slot[u] * (terms + 2)
        y[u] = 0
        if p < 0:
            sums[into : into + terms + 2] = 0
            continue
        descend_sums(u, p, slot, levels, rates, x, sums)
        for e in range(indptr[u], indptr[u + 1]):
            add_to_sums(u, extras[e], slot, levels, rates, x, sums)
        total = 0.0
        for j in range(terms + 2):
            total += weights[j] * sums[into + j, 0]
        y[u] = total


@kernel
def update_rows_deep(
    first: int,
    stop: int,
    order: Int32Array,
    parent: Int32Array,
    slot: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    sizes: Int64Array,
    levels: Int32Array,
    rates: Float64Array,
    weights: Float64Array,
    vectors: FloatArray,
    x: FloatArray,
    n_components: int,
    shared: FloatArray,
    observed: float,
    regularization: float,
    max_inner: int,
    tolerance: float,
    grams: FloatArray,
    sums: Float64Array,
    panel: FloatArray,
    work: FloatArray,
) -> float:
    """As :func:`~atpgraph.factorization._update.update_rows`, with sums of exponentials."""
    width = vectors.shape[1]
    terms = len(rates)
    right = work[:1]
    gradient = work[1:3]
    matrix = work[3:]
    path = path_from_root(parent[order[first]], parent)
    total = 0.0
    for i in range(-len(path), stop - first):
        # First the nodes above the first one of the range, to get its inheritance together.
        u = path[i + len(path)] if i < 0 else order[first + i]
        p = parent[u]
        into = slot[u] * width
        own = slot[u] * (terms + 2)
        if p < 0:
            if i >= 0:
                x[u] = 0
            grams[into : into + width] = 0
            sums[own : own + terms + 2] = 0
            continue
        descend_sums(u, p, slot, levels, rates, vectors, sums)
        source = slot[p] * width
        depth = 0
        for e in range(indptr[u] - 1, indptr[u + 1]):
            v = extras[e] if e >= indptr[u] else p
            for c in range(width):
                panel[depth, c] = vectors[v, c]
            if v != p:
                add_to_sums(u, v, slot, levels, rates, vectors, sums)
            depth += 1
            if depth == len(panel) or e == indptr[u + 1] - 1:
                add_panel(grams, into, grams, source, panel, depth)
                source = into
                depth = 0
        if i >= 0:
            for c in range(width):
                value = 0.0
                for j in range(terms + 2):
                    value += weights[j] * sums[own + j, c]
                right[0, c] = max(value, 0.0)
            total += solve(
                grams, into, shared, observed, regularization * sizes[u], n_components, right, x, u,
                matrix, gradient, max_inner, tolerance,
            )  # fmt: skip
    return total
