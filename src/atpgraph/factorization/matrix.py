"""M by rows or by columns, never written out: a closure forest with levels, in tasks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from atpgraph.closure.forest import ClosureForest
from atpgraph.factorization import _update, deep
from atpgraph.factorization._gram import PANEL
from atpgraph.factorization.deep import exponentials, update_rows_deep
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array, Int64Array

_TASK_COUNTS = (256, 128, 64, 32, 16, 8, 4)
_ALLOWED_OVERHEAD = 0.08


@dataclass(frozen=True, eq=False)
class ImplicitMatrix:
    """The matrix M, or its transpose: who reaches whom, at which difference of levels.

    Attributes
    ----------
    forest : ClosureForest
        What each row holds: descendants for M, ancestors for its transpose.
    levels : int32 array of n entries
        Levels from 1 that rise from a node to what its row holds.
    """

    forest: ClosureForest
    levels: Int32Array

    @classmethod
    def of_rows(cls, descendants: ClosureForest, levels: npt.ArrayLike) -> ImplicitMatrix:
        """M by its rows."""
        return cls(descendants, np.ascontiguousarray(levels, dtype=np.int32))

    @classmethod
    def of_columns(cls, ancestors: ClosureForest, levels: npt.ArrayLike) -> ImplicitMatrix:
        """M by its columns, that is its transpose: levels count from the other end."""
        from_below = np.asarray(levels, dtype=np.int32)
        return cls(ancestors, from_below.max(initial=0) + np.int32(1) - from_below)

    @property
    def sizes(self) -> Int64Array:
        """Entries of every row."""
        return self.forest.sizes

    @property
    def n_levels(self) -> int:
        """Highest level."""
        return int(self.levels.max(initial=0))

    @property
    def n_slots(self) -> int:
        """Buffers that a walk needs."""
        return int(self.forest.slot.max(initial=0)) + 1

    @property
    def highest(self) -> Int32Array:
        """Highest level reached from every node."""
        return self._highest_and_depth[0]

    @cached_property
    def _highest_and_depth(self) -> tuple[Int32Array, Int32Array]:
        f = self.forest
        highest, depth = np.empty((2, f.n_nodes), dtype=np.int32)
        _update.highest_levels(
            f.order, f.parent, f.extras_indptr, f.extras, self.levels, highest, depth
        )
        return highest, depth

    def differences(self) -> Int64Array:
        """Number of reachable pairs at every difference of levels 0 … n_levels − 1."""
        histogram = np.zeros(max(self.n_levels, 1), dtype=np.int64)
        counts = np.empty((self.n_slots, self.n_levels + 1), dtype=np.int64)
        f = self.forest
        _update.count_differences(
            f.order, f.parent, f.slot, f.extras_indptr, f.extras, self.levels, self.highest, counts,
            histogram,
        )  # fmt: skip
        return histogram

    @cached_property
    def is_deep(self) -> bool:
        """Whether sums of exponentials are cheaper here than sums by level.

        Few levels are cheap, and their sums stay the same bytes.
        """
        f = self.forest
        if self.n_levels <= deep.SHALLOW:
            return False
        by_level = np.minimum(self.highest - self.levels, f.sizes).sum()
        return bool(2 * deep.TERMS * (f.n_nodes + f.n_extras) < by_level)

    def moments(self, values: Float64Array) -> tuple[int, float, float]:
        """Number of pairs, and the sums of their weights and of the squares of these."""
        f = self.forest
        if self.is_deep:
            forms = [exponentials(values**power) for power in (1, 2)]
            ones = np.ones(f.n_nodes)
            sums = [float(x.times(f, self.levels, ones).sum()) for x in forms if x is not None]
            if len(sums) == 2:
                return f.n_pairs, sums[0], sums[1]
        pairs = self.differences()
        return f.n_pairs, float(pairs @ values), float(pairs @ values**2)

    def times(self, table: Float64Array, x: Float64Array) -> Float64Array:
        """The product of this matrix and a vector."""
        f = self.forest
        form = exponentials(table[: self.n_levels]) if self.is_deep else None
        if form is not None:
            return form.times(f, self.levels, x)
        y = np.empty(f.n_nodes, dtype=np.float64)
        sums = np.empty((self.n_slots, self.n_levels + 1), dtype=np.float64)
        _update.multiply(
            f.order, f.parent, f.slot, f.extras_indptr, f.extras, self.levels, self.highest, table,
            x, sums, y,
        )  # fmt: skip
        return y

    def tasks(self, width: int) -> list[tuple[int, int]]:
        """Ranges of the preorder of about equal cost, whatever the number of threads.

        A range that starts below a node has to sum up that node's closure first, so cuts are put
        where this costs little, and are as many as keep it a small share of the whole.
        """
        f = self.forest
        n = f.n_nodes
        parent = f.parent[f.order]
        entered = parent >= 0
        spans = (self.highest - self.levels).astype(np.int64)
        # In products of two vector components, about as measured at 64 components.
        cost = np.diff(f.extras_indptr)[f.order] + 10
        cost += deep.TERMS if self.is_deep else np.minimum(spans, f.sizes)[f.order] // 8
        cost = np.where(entered, cost, 1)
        depth = self._highest_and_depth[1][f.order]
        restart = np.where(entered, f.sizes[parent] + 5 * depth, 0)
        before = np.concatenate([[0], np.cumsum(cost)])
        cuts: Int64Array = np.zeros(0, dtype=np.int64)
        for count in _TASK_COUNTS:
            share = before[-1] / count
            if count > 4 and share * width * width < 4e6:  # under a millisecond
                continue
            cuts = _cheap_cuts(before, restart, count)
            if restart[cuts].sum() <= _ALLOWED_OVERHEAD * before[-1]:
                break
        edges = np.unique(np.concatenate([[0], cuts, [n]])).tolist()
        return list(itertools.pairwise(edges))

    def rows(self, task: tuple[int, int]) -> Int32Array:
        """The rows of a task."""
        return self.forest.order[task[0] : task[1]]

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
        f = self.forest
        width = vectors.shape[1]
        kind = vectors.dtype
        form = exponentials(table[:, 0].astype(np.float64)) if self.is_deep else None
        if form is not None:
            return float(
                update_rows_deep(
                    *task, f.order, f.parent, f.slot, f.extras_indptr, f.extras, f.sizes,
                    self.levels, form.rates, form.weights, vectors, x, n_components, shared,
                    float(observed), float(regularization), max_inner, float(tolerance),
                    np.empty((self.n_slots * width, width), dtype=kind),
                    np.empty((self.n_slots * len(form.weights), width), dtype=np.float64),
                    np.empty((PANEL, width), dtype=kind),
                    np.zeros((3 + width, width), dtype=kind),
                )
            )  # fmt: skip
        return float(
            _update.update_rows(
                task[0],
                task[1],
                f.order,
                f.parent,
                f.slot,
                f.subtree,
                f.extras_indptr,
                f.extras,
                f.sizes,
                self.levels,
                self.highest,
                table,
                vectors,
                x,
                n_components,
                shared,
                float(observed),
                float(regularization),
                max_inner,
                float(tolerance),
                np.empty((self.n_slots * width, width), dtype=kind),
                np.empty((self.n_slots * (len(table) + 1), width), dtype=kind),
                np.empty((PANEL, width), dtype=kind),
                np.empty((PANEL, 1), dtype=kind),
                np.zeros((3 + width, width), dtype=kind),
            )
        )


def _cheap_cuts(before: Int64Array, restart: Int64Array, count: int) -> Int64Array:
    """Places near the multiples of total / count at which a restart is cheapest."""
    share = before[-1] / count
    cuts = []
    for k in range(1, count):
        low, high = np.searchsorted(before, [(k - 0.25) * share, (k + 0.25) * share])
        high = min(max(int(high), int(low) + 1), len(restart))
        if low < high:
            cuts.append(int(low) + int(np.argmin(restart[low:high])))
    return np.array(cuts, dtype=np.int64)
