"""M by rows or by columns, never written out: a closure forest with levels, in tasks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from atpgraph.closure.forest import ClosureForest
from atpgraph.factorization import _nnls_rows
from atpgraph.factorization._nnls_rows import Forest, Room, Solve
from atpgraph.util.arrays import Float64Array, FloatArray, Int32Array, Int64Array

_TASK_COUNTS = (256, 128, 64, 32, 16, 8, 4)
_ALLOWED_OVERHEAD = 0.08


@dataclass(frozen=True, eq=False)
class ImplicitMatrix:
    """The matrix M, or its transpose: f(difference of levels) for every pair joined by a path.

    Attributes
    ----------
    forest : ClosureForest
        The columns of each row: descendants for M, ancestors for its transpose.
    levels : int32 array of n entries
        Levels from 1 that rise from a node to the columns of its row.
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

    @cached_property
    def _walk(self) -> tuple[Forest, Int32Array]:
        """The forest for kernels, and the depth of every node in it."""
        f = self.forest
        highest, depth = np.empty((2, f.n_nodes), dtype=np.int32)
        forest = Forest(
            f.order, f.parent, f.slot, f.subtree, f.extras_indptr, f.extras, f.sizes, self.levels,
            highest,
        )  # fmt: skip
        _nnls_rows.highest_levels(forest, depth)
        return forest, depth

    def moments(self, values: Float64Array) -> tuple[int, float, float]:
        """Return the number of pairs, and the sums of their weights and of the squares of these."""
        ones = np.ones(self.forest.n_nodes)
        sums = [float(self.times(table, ones).sum()) for table in (values, values**2)]
        return self.forest.n_pairs, sums[0], sums[1]

    def times(self, table: Float64Array, x: Float64Array) -> Float64Array:
        """Return the product of this matrix and a vector."""
        y = np.empty(self.forest.n_nodes, dtype=np.float64)
        sums = np.empty((self.n_slots * (len(table) + 1), 1), dtype=np.float64)
        _nnls_rows.multiply(self._walk[0], table, x, sums, y)
        return y

    def tasks(self, width: int) -> list[tuple[int, int]]:
        """Return ranges of the preorder of about equal cost, whatever the number of threads.

        A range that starts below a node has to sum up that node's closure first, so cuts are put
        where this costs little, and are as many as keep it a small share of the whole.
        """
        f = self.forest
        parent = f.parent[f.order]
        entered = parent >= 0
        spans = (self._walk[0].highest - self.levels).astype(np.int64)
        # In products of two vector components, about as measured at 64 components.
        cost = np.diff(f.extras_indptr)[f.order] + 10
        cost += np.minimum(spans, f.sizes)[f.order] // 8
        cost = np.where(entered, cost, 1)
        depth = self._walk[1][f.order]
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
        edges = np.unique(np.concatenate([[0], cuts, [f.n_nodes]])).tolist()
        return list(itertools.pairwise(edges))

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
        return float(_nnls_rows.update_rows(*task, self._walk[0], table, vectors, x, how, room))


def _cheap_cuts(before: Int64Array, restart: Int64Array, count: int) -> Int64Array:
    """Return places near the multiples of total / count at which a restart is cheapest."""
    share = before[-1] / count
    cuts = []
    for k in range(1, count):
        low, high = np.searchsorted(before, [(k - 0.25) * share, (k + 0.25) * share])
        high = min(max(int(high), int(low) + 1), len(restart))
        if low < high:
            cuts.append(int(low) + int(np.argmin(restart[low:high])))
    return np.array(cuts, dtype=np.int64)
