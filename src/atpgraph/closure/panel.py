"""Exact and sampled paths of an acyclic graph, each found in one sweep over the edges.

A panel finds exactly which nodes reach each of 512 nodes. A sketch is a uniform sample of the
descendants of every node: every node gets a random rank, and the sketch of u has the s descendants
of lowest rank, merged from the sketches of its successors (Cohen's bottom-s sketch). A node with at
most s descendants has all of them in its sketch; otherwise the highest rank in the sketch tells how
many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels as levels_of
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    Int32Array,
    Int64Array,
    IntArray,
    UInt64Array,
)
from atpgraph.util.checks import whole_number
from atpgraph.util.jit import NEAR, kernel, prefetch
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import Workers, checkpoint

WORDS = 8  # of a row: one line of the cache
COLUMNS = 64 * WORDS
_SLICE = 20_000_000  # edges and nodes, a fraction of a second


@dataclass(frozen=True, eq=False)
class Positions:
    """An acyclic graph by position, sinks first: descendants of a node have lower positions."""

    dag: DiGraph
    levels: Int32Array
    nodes: Int32Array  # the node at every position

    @classmethod
    def of(cls, dag: DiGraph, levels: Int32Array | None = None) -> Positions:
        """Sort the nodes by level, highest first."""
        level = levels_of(dag) if levels is None else levels
        return cls(dag, level, np.argsort(-level, kind="stable").astype(np.int32))

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @cached_property
    def position(self) -> Int32Array:
        """Position of every node."""
        position = np.empty(self.n, dtype=np.int32)
        position[self.nodes] = np.arange(self.n, dtype=np.int32)
        return position

    @cached_property
    def successors(self) -> tuple[Int64Array, Int32Array]:
        """The successors of every position: pointers and positions, as in a CSR matrix."""
        degree = self.dag.out_degree[self.nodes]
        indptr = np.zeros(self.n + 1, dtype=np.int64)
        np.cumsum(degree, out=indptr[1:])
        edges = np.repeat(self.dag.indptr[self.nodes] - indptr[:-1], degree)
        edges += np.arange(self.dag.n_edges)
        return indptr, self.position[self.dag.targets[edges]]

    def cuts(self, width: int, most: int) -> list[int]:
        """Cut the positions into ranges that read about `most` words, `width` for each edge."""
        work = width * (self.successors[0] + np.arange(self.n + 1))
        parts = int(work[-1] // most) + 1
        cuts: list[int] = np.searchsorted(work, np.linspace(0, work[-1], parts + 1)).tolist()
        return cuts


class Panel:
    """The nodes of an acyclic graph that reach each node of a panel.

    For the nodes that the panel reaches, pass the reversed graph. Each sweep is a task of the
    workers and takes 512 columns, which must be distinct. `room` has the bits of an earlier panel
    of the same size, to be overwritten: new memory costs more than a sweep. `slot` is the position
    of every node in `columns`, or −1. Bit c % 64 of ``bits[c // 512, position, c % 512 // 64]``
    says whether a position reaches column c, or is it.

    Examples
    --------
    >>> from atpgraph.graph import DiGraph
    >>> view = Positions.of(DiGraph.from_codes([0, 1], [1, 2], 4))
    >>> with Workers(1) as workers:
    ...     panel = Panel(view, np.array([2]), workers)
    >>> panel.joined(np.array([0, 1, 3]), np.array([2, 2, 2])).tolist()
    [True, True, False]
    """

    def __init__(
        self, view: Positions, columns: IntArray, workers: Workers, room: UInt64Array | None = None
    ) -> None:
        self.view, self.columns = view, np.asarray(columns, dtype=np.int32)
        self.slot = np.full(view.n, -1, dtype=np.int32)
        self.slot[columns] = np.arange(len(columns), dtype=np.int32)
        sheets = max(-(-len(columns) // COLUMNS), 1)
        shape = (sheets, view.n, WORDS)
        used = room is not None and room.shape == shape
        self.bits = room if room is not None and used else np.zeros(shape, dtype=np.uint64)
        cuts = view.cuts(1, _SLICE)

        def sweep(sheet: int) -> None:
            bits = self.bits[sheet]
            if used:
                bits[:] = 0
            some = view.position[columns[sheet * COLUMNS : (sheet + 1) * COLUMNS]]
            at = np.arange(len(some))
            bits[some, at >> 6] = bit(at)
            for first, stop in pairwise(cuts):
                checkpoint()
                _sweep(first, stop, *view.successors, bits)

        for _ in workers.map(sweep, range(sheets)):
            pass

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Return whether each `u` reaches its `v`, a node of the panel, or equals it."""
        return has_bit(self.bits, self.view.position[u], self.slot[v])

    def sizes(self) -> Int64Array:
        """Return how many columns each node reaches, itself included."""
        total = np.zeros(self.view.n, dtype=np.int64)
        for sheet in self.bits:
            total += np.bitwise_count(sheet).sum(axis=1, dtype=np.int64)
        return total[self.view.position]


def bit(at: IntArray) -> UInt64Array:
    """Return words with the bit at % 64 set."""
    return np.asarray(np.uint64(1) << (at & 63).astype(np.uint64))


def has_bit(bits: UInt64Array, positions: AnyArray, columns: AnyArray) -> BoolArray:
    """Return whether the bits of a panel are set at these positions and columns."""
    words = bits[columns // COLUMNS, positions, (columns >> 6) % WORDS]
    return np.asarray(words & bit(columns) != 0)


@kernel
def _sweep(
    first: int, stop: int, indptr: Int64Array, successors: Int32Array, bits: UInt64Array
) -> None:
    """Add to every position the bits of its successors, which have lower positions."""
    words, last = bits.reshape(-1), indptr[stop] - 1
    for u in range(first, stop):
        for e in range(indptr[u], indptr[u + 1]):
            prefetch(words, WORDS * np.int64(successors[min(e + NEAR, last)]))
            v = successors[e]
            for w in range(WORDS):
                bits[u, w] |= bits[v, w]


_SMALL = 100_000  # ranks looked at: less is not worth a task of its own
_SKETCH_SLICE = 30_000_000  # about a tenth of a second
_AHEAD = 6  # edges: what their ends need is on its way


@dataclass(frozen=True, eq=False)
class ReachSketch:
    """A sample of the descendants of every node (for the reversed graph, of its ancestors).

    Build one with :func:`reach_sketch`.

    Attributes
    ----------
    members : int32 array of shape (n, s)
        Descendants of every node by rank, −1 beyond the last one.
    counts : int32 array of n entries
        Number of descendants in each row.
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

    @cached_property
    def n_pairs(self) -> int:
        """Estimated number of reachable pairs."""
        return int(self.sizes.sum())


def reach_sketch(
    dag: DiGraph,
    levels: Int32Array | None = None,
    *,
    size: int = 64,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
) -> ReachSketch:
    """Sketch the descendants of every node of an acyclic graph, in O(size · edges).

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles; for ancestors, its reverse.
    levels : int32 array, optional
        Levels of the graph, if they are already known; they rise along every edge.
    size : int
        Members kept for each node, at least 2, with 4 bytes each.
    n_jobs : int, optional
        Threads; by default all cores. The result does not depend on it.
    random_state
        Seed of the ranks. One seed gives a graph and its reverse the same ranks.
    """
    whole_number("The size of a sketch", size, least=2)
    with Workers(n_jobs) as workers:
        return sketch_nodes(Positions.of(dag, levels), size, generator(random_state), workers)


def sketch_nodes(
    view: Positions, size: int, rng: np.random.Generator, workers: Workers
) -> ReachSketch:
    """Return a sketch as lists of nodes."""
    node_of = np.full(view.n + 1, -1, dtype=np.int32)
    ranks = rng.permutation(view.n).astype(np.int32)
    node_of[ranks] = np.arange(view.n, dtype=np.int32)
    found, counts, complete = sketch_ranks(view, ranks, size, workers)
    sizes = counts.astype(np.int64)
    # Up to the s-th member there are s − 1 among as many nodes as its rank says (Haldane).
    last = found[~complete, size - 1].astype(np.float64)
    guess = np.rint(view.n * (size - 1) / last)
    sizes[~complete] = np.clip(guess, size + 1, max(view.n - 1, size + 1))
    at = view.position
    members = np.empty_like(found)
    for column in range(size):  # one at a time, to need little memory beside the sketch
        checkpoint()
        members[:, column] = node_of[found[at, column]]
    return ReachSketch(members, counts[at], complete[at], sizes[at])


def sketch_ranks(
    view: Positions,
    ranks: Int32Array,
    size: int,
    workers: Workers,
    unasked: BoolArray | None = None,
    room: Int32Array | None = None,
) -> tuple[Int32Array, Int32Array, BoolArray]:
    """Return the ranks in the sketch of every position (n where there is none), their number, and
    whether these are all descendants.

    `unasked` marks positions that need no sketch; positions that reach one of them need none
    either. Their rows count as full and have no meaning. `room` is overwritten if it has the right
    shape.
    """
    fits = room is not None and room.shape == (view.n, size)
    found = room if room is not None and fits else np.zeros((view.n, size), dtype=np.int32)
    counts = np.zeros(view.n, dtype=np.int32)
    complete = np.ones(view.n, dtype=np.bool_)
    own = ranks[view.nodes]
    without = np.zeros(view.n, dtype=np.bool_) if unasked is None else unasked

    def work(part: tuple[int, int]) -> None:
        checkpoint()
        _merge(*part, view.successors, own, without, found, counts, complete)

    for step in _steps(view, size, workers.threads):
        for _ in workers.map(work, step):
            pass
    return found, counts, complete


def _steps(view: Positions, width: int, threads: int) -> list[list[tuple[int, int]]]:
    """Return ranges of positions; the nodes of a range depend only on earlier ranges."""
    if threads == 1:  # position by position, whatever the levels
        return [[part] for part in pairwise(view.cuts(width, _SKETCH_SLICE))]
    starts = np.flatnonzero(np.diff(view.levels[view.nodes], prepend=-1, append=-1))
    costs = width * np.diff(view.successors[0][starts] + starts)
    steps: list[list[tuple[int, int]]] = []
    held = 0.0  # work of the last step, as long as it is one range of small levels
    for (first, stop), cost in zip(pairwise(starts.tolist()), costs.tolist(), strict=True):
        if cost < _SMALL and steps and 0 < held < _SKETCH_SLICE:
            steps[-1] = [(steps[-1][0][0], stop)]
            held += cost
            continue
        parts = int(min(max(cost // _SMALL, 1), max(64, cost // _SKETCH_SLICE), stop - first))
        cuts = np.linspace(first, stop, parts + 1).astype(np.int64).tolist()
        steps.append(list(pairwise(cuts)))
        held = cost if cost < _SMALL else 0.0
    return steps


def popularity(back: ReachSketch, ahead: ReachSketch, count: int) -> Float64Array:
    """Return the share of paths that end at each node, if every node draws `count` descendants.

    `back` sketches the ancestors, `ahead` the descendants.
    """
    weight = np.append(np.minimum(ahead.sizes, count) / np.maximum(ahead.sizes, 1), 0.0)
    share = np.zeros(len(back.counts))
    for column in back.members.T:  # −1, for no member, has the weight 0 that was appended
        share += weight[column]
    share *= back.sizes / np.maximum(back.counts, 1)
    return np.asarray(share / max(float(share.sum()), 1e-300))


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
    """Merge, for each position, the lowest ranks of its successors and of their rows, ascending.

    Rows are padded with a rank that no node has, so that the loops need not check for their ends.
    The lowest rank is chosen without a branch, which could not be predicted.
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
