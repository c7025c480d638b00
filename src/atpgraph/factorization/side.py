"""One side of the factorisation: a closure forest with ranks, cut into tasks for threads."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.closure.forest import ClosureForest
from atpgraph.factorization import _update
from atpgraph.factorization._gram import PANEL

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]

_TASK_COUNTS = (256, 128, 64, 32, 16, 8, 4)
_ALLOWED_OVERHEAD = 0.08


@dataclass(frozen=True, eq=False)
class Side:
    """Rows (or columns) of the matrix M: who reaches whom, at which rank difference.

    Attributes
    ----------
    forest : ClosureForest
        Descendants for the rows, ancestors for the columns.
    rank : int32 array of n entries
        Ranks from 1 that rise from a node to what its row holds.
    """

    forest: ClosureForest
    rank: I32

    @classmethod
    def rows(cls, forest: ClosureForest, levels: npt.ArrayLike) -> Side:
        """The rows of M, from the forest of descendants."""
        return cls(forest, np.ascontiguousarray(levels, dtype=np.int32))

    @classmethod
    def columns(cls, forest: ClosureForest, levels: npt.ArrayLike) -> Side:
        """The columns of M, from the forest of ancestors: ranks count from the other end."""
        rank = np.asarray(levels, dtype=np.int32)
        return cls(forest, rank.max(initial=0) + np.int32(1) - rank)

    @property
    def n_levels(self) -> int:
        """Highest rank."""
        return int(self.rank.max(initial=0))

    @property
    def n_slots(self) -> int:
        """Buffers that a walk needs."""
        return int(self.forest.slot.max(initial=0)) + 1

    @property
    def highest(self) -> I32:
        """Highest rank reached from every node."""
        return self._highest_and_depth[0]

    @cached_property
    def _highest_and_depth(self) -> tuple[I32, I32]:
        f = self.forest
        highest, depth = np.empty((2, f.n_nodes), dtype=np.int32)
        _update.highest_ranks(
            f.order, f.parent, f.extras_indptr, f.extras, self.rank, highest, depth
        )
        return highest, depth

    def differences(self) -> I64:
        """Number of reachable pairs at every rank difference 0 … n_levels − 1."""
        histogram = np.zeros(max(self.n_levels, 1), dtype=np.int64)
        counts = np.empty((self.n_slots, self.n_levels + 1), dtype=np.int64)
        f = self.forest
        _update.count_differences(
            f.order, f.parent, f.slot, f.extras_indptr, f.extras, self.rank, self.highest, counts,
            histogram,
        )  # fmt: skip
        return histogram

    def times(self, table: F64, x: F64) -> F64:
        """The product of M (or of its transpose, for columns) and a vector."""
        f = self.forest
        y = np.empty(f.n_nodes, dtype=np.float64)
        sums = np.empty((self.n_slots, self.n_levels + 1), dtype=np.float64)
        _update.multiply(
            f.order, f.parent, f.slot, f.extras_indptr, f.extras, self.rank, self.highest, table, x,
            sums, y,
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
        spans = (self.highest - self.rank).astype(np.int64)
        # In products of two vector components, about as measured at 64 components.
        cost = np.diff(f.extras_indptr)[f.order] + 10 + np.minimum(spans, f.sizes)[f.order] // 8
        cost = np.where(entered, cost, 1)
        depth = self._highest_and_depth[1][f.order]
        restart = np.where(entered, f.sizes[parent] + 5 * depth, 0)
        before = np.concatenate([[0], np.cumsum(cost)])
        cuts: I64 = np.zeros(0, dtype=np.int64)
        for count in _TASK_COUNTS:
            share = before[-1] / count
            if count > 4 and share * width * width < 4e6:  # under a millisecond
                continue
            cuts = _cheap_cuts(before, restart, count)
            if restart[cuts].sum() <= _ALLOWED_OVERHEAD * before[-1]:
                break
        edges = np.unique(np.concatenate([[0], cuts, [n]])).tolist()
        return list(itertools.pairwise(edges))

    def update(
        self,
        task: tuple[int, int],
        table: Floats,
        vectors: Floats,
        x: Floats,
        n_components: int,
        shared: Floats,
        observed: float,
        regularization: float,
        max_inner: int,
        tolerance: float,
    ) -> float:
        """Solve the rows of a task for `x`, given the `vectors` of the other side."""
        f = self.forest
        width = vectors.shape[1]
        kind = vectors.dtype
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
                self.rank,
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


def _cheap_cuts(before: I64, restart: I64, count: int) -> I64:
    """Places near the multiples of total / count at which a restart is cheapest."""
    share = before[-1] / count
    cuts = []
    for k in range(1, count):
        low, high = np.searchsorted(before, [(k - 0.25) * share, (k + 0.25) * share])
        high = min(max(int(high), int(low) + 1), len(restart))
        if low < high:
            cuts.append(int(low) + int(np.argmin(restart[low:high])))
    return np.array(cuts, dtype=np.int64)
