"""Reachability sketches: a uniform sample of the descendants of every node, in bounded memory.

Every node gets a random rank. The sketch of u holds the s descendants of lowest rank, merged from
the sketches of its successors (Cohen's bottom-s sketch): all descendants where there are at most s,
else a uniform sample without replacement, whose highest rank tells how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from atpgraph.closure.panel import Positions
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels as levels_of
from atpgraph.util.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.checks import whole_number
from atpgraph.util.jit import kernel
from atpgraph.util.prefetch import prefetch
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import Workers, checkpoint

_SMALL = 100_000  # ranks looked at: less is not worth a task of its own
_SLICE = 30_000_000  # about a tenth of a second
_ROWS = 2**18
_AHEAD = 6  # edges: what their ends need is on its way


@dataclass(frozen=True, eq=False)
class ReachSketch:
    """A sample of the descendants of every node; of the reversed graph, of the ancestors.

    Build one with :func:`reach_sketch`.

    Attributes
    ----------
    members : int32 array of shape (n, s)
        Descendants of every node by rank, −1 beyond the last one.
    counts : int32 array of n entries
        How many of a row are descendants.
    complete : bool array of n entries
        Whether these are all descendants of the node.
    sizes : int64 array of n entries
        Number of descendants: exact where the row is complete, else an estimate with a relative
        error of about 1 / √(s − 2).

    Examples
    --------
    >>> from atpgraph.graph import DiGraph
    >>> found = reach_sketch(DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 3], 4), size=3)
    >>> found.sizes.tolist(), sorted(found.members[0].tolist())
    ([3, 1, 1, 0], [1, 2, 3])
    """

    members: Int32Array
    counts: Int32Array
    complete: BoolArray
    sizes: Int64Array

    def __repr__(self) -> str:
        n, s = self.members.shape
        return f"ReachSketch(nodes={n}, size={s}, pairs={self.n_pairs})"

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.counts)

    @cached_property
    def n_pairs(self) -> int:
        """Number of reachable pairs, as estimated."""
        return int(self.sizes.sum())

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    def popularity(self, other: ReachSketch, count: int) -> Float64Array:
        """Share of paths that end at each node, if every node draws `count` descendants.

        This sketch is of the ancestors, `other` of the descendants.
        """
        weight = np.minimum(other.sizes, count) / np.maximum(other.sizes, 1)
        share = np.zeros(self.n_nodes)
        _sum_weights(self.members, self.counts, self.sizes, weight, share)
        return np.asarray(share / max(float(share.sum()), 1e-300))


def reach_sketch(
    dag: DiGraph,
    levels: Int32Array | None = None,
    *,
    size: int = 64,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
) -> ReachSketch:
    """Sketch the descendants of every node of an acyclic graph, O(size · edges).

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles. For ancestors give its reverse.
    levels : int32 array, optional
        Those of the graph, if they are known already; they rise along every edge.
    size : int
        Members kept for each node, from 2 on: 4 bytes each.
    n_jobs : int, optional
        Threads; by default all cores. The result does not depend on it.
    random_state
        Seed of the ranks. One seed gives a graph and its reverse the same ranks.
    """
    whole_number("The size of a sketch", size, least=2)
    ranks = generator(random_state).permutation(dag.n_nodes).astype(np.int32)
    with Workers(n_jobs) as workers:
        return Sketcher(dag, levels).sketch(ranks, size, workers)


def reversed_levels(levels: Int32Array) -> Int32Array:
    """Return the levels of the reverse graph, which count from the other end."""
    return np.asarray(levels.max(initial=0) + 1 - levels, dtype=np.int32)


class Sketcher:
    """Sketches of one graph, again and again with other ranks."""

    def __init__(self, dag: DiGraph, levels: Int32Array | None = None) -> None:
        self._level = levels_of(dag) if levels is None else levels
        self.view = Positions.of(dag, self._level)

    @cached_property
    def _level_starts(self) -> Int64Array:
        """The first position of every level, and the number of nodes."""
        by_position = self._level[self.view.nodes]
        return np.flatnonzero(np.diff(by_position, prepend=-1, append=-1))

    def steps(self, width: int, threads: int) -> list[list[tuple[int, int]]]:
        """Ranges of positions: those of a step need only earlier steps, not each other."""
        starts = self._level_starts
        if threads == 1:  # position by position, whatever the levels
            work = width * (self.view.successors[0] + np.arange(self.view.n + 1))
            slices = int(work[-1] // _SLICE) + 1
            bounds = np.searchsorted(work, np.linspace(0, work[-1], slices + 1)).tolist()
            return [[part] for part in pairwise(bounds)]
        edges = self.view.successors[0][starts]
        costs = width * (np.diff(edges) + np.diff(starts))
        steps: list[list[tuple[int, int]]] = []
        held = 0.0  # work of the last step, as long as it is one range of small levels
        for first, stop, cost in zip(
            *(part.tolist() for part in (starts, starts[1:], costs)), strict=False
        ):
            if cost < _SMALL and steps and 0 < held < _SLICE:
                steps[-1] = [(steps[-1][0][0], stop)]
                held += cost
                continue
            parts = int(min(max(cost // _SMALL, 1), max(64, cost // _SLICE), stop - first))
            cuts = np.linspace(first, stop, parts + 1).astype(np.int64).tolist()
            steps.append(list(pairwise(cuts)))
            held = cost if cost < _SMALL else 0.0
        return steps

    def sketch(self, ranks: Int32Array, size: int, workers: Workers) -> ReachSketch:
        """The sketch by these ranks of the nodes, as lists of nodes."""
        view = self.view
        found, counts, complete = self.by_rank(ranks, size, workers)
        sizes = counts.astype(np.int64)
        # Up to the s-th member there are s − 1 among as many nodes as its rank says (Haldane).
        last = found[~complete, size - 1].astype(np.float64)
        guess = np.rint(view.n * (size - 1) / last)
        sizes[~complete] = np.clip(guess, size + 1, max(view.n - 1, size + 1))
        node_of = np.full(view.n + 1, -1, dtype=np.int32)
        node_of[ranks] = np.arange(view.n, dtype=np.int32)
        members = np.empty_like(found)
        for first in range(0, view.n, _ROWS):
            checkpoint()
            _by_node(view.position[first : first + _ROWS], found, node_of, members[first:])
        at = view.position
        return ReachSketch(members, counts[at], complete[at], sizes[at])

    def by_rank(
        self,
        ranks: Int32Array,
        size: int,
        workers: Workers,
        unasked: BoolArray | None = None,
        room: Int32Array | None = None,
    ) -> tuple[Int32Array, Int32Array, BoolArray]:
        """Ranks in the sketch of every position (n where there is none), counts, completeness.

        `unasked` are positions that need no sketch, and with them all that reach them: their rows
        mean nothing, and count as full. `room` is overwritten if it has as many ranks.
        """
        view = self.view
        fits = room is not None and room.shape == (view.n, size)
        found = room if room is not None and fits else np.zeros((view.n, size), dtype=np.int32)
        counts = np.zeros(view.n, dtype=np.int32)
        complete = np.ones(view.n, dtype=np.bool_)
        own = ranks[view.nodes]
        without = np.zeros(view.n, dtype=np.bool_) if unasked is None else unasked

        def work(part: tuple[int, int]) -> None:
            checkpoint()
            _merge(*part, view.successors, own, without, found, counts, complete)

        for step in self.steps(size, workers.threads):
            for _ in workers.map(work, step):
                pass
        return found, counts, complete


@kernel
def _by_node(rows: Int32Array, found: Int32Array, node_of: Int32Array, members: Int32Array) -> None:
    """Copy rows of ranks, as the nodes that have them."""
    for i in range(len(rows)):
        for j in range(found.shape[1]):
            members[i, j] = node_of[found[rows[i], j]]


@kernel
def _sum_weights(
    members: Int32Array,
    counts: Int32Array,
    sizes: Int64Array,
    weight: Float64Array,
    sums: Float64Array,
) -> None:
    """Weights of all that each row stands for: those of its members, times what each stands for."""
    for u in range(len(counts)):
        for e in range(counts[u]):
            sums[u] += weight[members[u, e]]
        if counts[u] > 0:
            sums[u] *= sizes[u] / counts[u]


@kernel
def _merge(
    first: int,
    stop: int,
    edges: tuple[Int64Array, Int32Array],
    own: Int32Array,
    without: BoolArray,
    found: Int32Array,
    counts: Int32Array,
    complete: BoolArray,
) -> None:
    """The lowest ranks among the successors of each position and in their rows, ascending.

    Rows are filled up with a rank that none has, so that no end of a row need be looked for. What
    is taken does not branch either: which rank is lowest nobody can foretell.
    """
    indptr, successors = edges
    size = found.shape[1]
    none = np.int32(len(own))
    row, merged = np.empty((2, size), dtype=np.int32)
    flat, last_edge = found.reshape(-1), indptr[stop] - 1
    for u in range(first, stop):
        if without[u]:
            counts[u] = size
            continue
        row[:] = none
        count = 0
        whole = True
        for e in range(indptr[u], indptr[u + 1]):
            ahead = np.int64(successors[min(e + _AHEAD, last_edge)])
            for line in range(0, size, 16):
                prefetch(flat, size * ahead + line)
            prefetch(own, ahead)
            v = successors[e]
            whole = whole and complete[v]
            rank = own[v]  # of the successor itself, which stands somewhere in its row
            many = counts[v]
            last = row[size - 1]
            if last < rank and last < found[v, 0]:
                whole = False  # all that is new is higher than the last one, so not among them
                continue
            i = 0
            j = 0
            at = 0
            while at < size:
                a = row[i]
                b = found[v, j]
                low = min(min(a, b), rank)
                if low == none:
                    break
                merged[at] = low
                at += 1
                i += a == low
                j += b == low
                rank = none if rank == low else rank
            if i < count or j < many or rank != none:
                whole = False
            count = at
            for i in range(at, size):
                merged[i] = none
            row, merged = merged, row
        found[u] = row
        counts[u] = count
        complete[u] = whole
