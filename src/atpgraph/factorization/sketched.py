"""M by rows or by columns from sketches: a weighted sample of every row, in tasks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from atpgraph.closure.sketch import ReachSketch, turned
from atpgraph.factorization._gram import PANEL, add_combination, add_panel, solve
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel

_TASK = 4096  # rows: about a tenth of a second


@dataclass(frozen=True, eq=False)
class SketchedMatrix:
    """The matrix M, or its transpose, where a row is known by a uniform sample of what it holds.

    Answers what :class:`~atpgraph.factorization.matrix.ImplicitMatrix` does. Every sampled entry
    stands for as many as the row has for each that was sampled.

    Attributes
    ----------
    sketch : ReachSketch
        Samples of the descendants for M, of the ancestors for its transpose.
    levels : int32 array of n entries
        Levels from 1 that rise from a node to what its row holds.
    """

    sketch: ReachSketch
    levels: Int32Array

    @classmethod
    def of_rows(cls, descendants: ReachSketch, levels: npt.ArrayLike) -> SketchedMatrix:
        """M by its rows."""
        return cls(descendants, np.ascontiguousarray(levels, dtype=np.int32))

    @classmethod
    def of_columns(cls, ancestors: ReachSketch, levels: npt.ArrayLike) -> SketchedMatrix:
        """M by its columns, that is its transpose: levels count from the other end."""
        return cls(ancestors, turned(np.asarray(levels, dtype=np.int32)))

    @property
    def sizes(self) -> Int64Array:
        """Entries of every row, as estimated."""
        return self.sketch.sizes

    @property
    def n_levels(self) -> int:
        """Highest level."""
        return int(self.levels.max(initial=0))

    def differences(self) -> Float64Array:
        """Number of reachable pairs at every difference of levels, as estimated."""
        histogram = np.zeros(max(self.n_levels, 1), dtype=np.float64)
        s = self.sketch
        _count_differences(s.members, s.counts, s.sizes, self.levels, histogram)
        return histogram

    def moments(self, values: Float64Array) -> tuple[int, float, float]:
        """Number of pairs, and the sums of their weights and of the squares of these."""
        pairs = self.differences()
        return round(float(pairs.sum())), float(pairs @ values), float(pairs @ values**2)

    def tasks(self, width: int) -> list[tuple[int, int]]:
        """Ranges of rows, whatever the number of threads."""
        n = self.sketch.n_nodes
        return list(pairwise([*range(0, n, _TASK), n]))

    def rows(self, task: tuple[int, int]) -> Int32Array:
        """The rows of a task."""
        return np.arange(*task, dtype=np.int32)

    def update(
        self,
        task: tuple[int, int],
        table: FloatArray,
        vectors: FloatArray,
        x: FloatArray,
        n_components: int,
        shared: FloatArray,
        observed: float,
        regularization: float,
        max_inner: int,
        tolerance: float,
    ) -> float:
        """Solve the rows of a task for `x`, given the `vectors` of the other side."""
        width, kind, s = vectors.shape[1], vectors.dtype, self.sketch
        return float(
            update_sampled_rows(
                task[0],
                task[1],
                s.members,
                s.counts,
                s.sizes,
                self.levels,
                table,
                vectors,
                x,
                n_components,
                shared,
                float(observed),
                float(regularization),
                max_inner,
                float(tolerance),
                np.zeros((2 * width, width), dtype=kind),
                np.empty((PANEL, width), dtype=kind),
                np.empty((PANEL, 1), dtype=kind),
                np.zeros((3 + width, width), dtype=kind),
            )
        )


@kernel
def update_sampled_rows(
    first: int,
    stop: int,
    members: Int32Array,
    counts: Int32Array,
    sizes: Int64Array,
    levels: Int32Array,
    table: FloatArray,
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
    factors: FloatArray,
    work: FloatArray,
) -> float:
    """Solve the rows first … stop − 1 from their samples; returns the sum of values.

    With w entries for each sampled one, Gram matrix and right-hand side are w times those of the
    sample. The second matrix of `grams` comes and stays zero.
    """
    width = vectors.shape[1]
    right = work[:1]
    total = 0.0
    for u in range(first, stop):
        count = counts[u]
        if count == 0:
            x[u] = 0
            continue
        weight = np.float64(sizes[u]) / count
        right[0] = 0
        source = width
        depth = 0
        for e in range(count):
            v = members[u, e]
            for c in range(width):
                panel[depth, c] = vectors[v, c]
            factors[depth, 0] = table[levels[v] - levels[u], 0]
            depth += 1
            if depth == len(panel) or e == count - 1:
                add_panel(grams, 0, grams, source, panel, depth)
                add_combination(right, 0, factors, 0, panel, 0, depth)
                source = 0
                depth = 0
        for c in range(width):
            right[0, c] *= right.dtype.type(weight)
        total += solve(
            grams, 0, shared, observed * weight, regularization * sizes[u], n_components, right, x,
            u, work[3:], work[1:3], max_inner, tolerance,
        )  # fmt: skip
    return total


@kernel
def _count_differences(
    members: Int32Array,
    counts: Int32Array,
    sizes: Int64Array,
    levels: Int32Array,
    histogram: Float64Array,
) -> None:
    for u in range(len(counts)):
        for e in range(counts[u]):
            histogram[levels[members[u, e]] - levels[u]] += np.float64(sizes[u]) / counts[u]
