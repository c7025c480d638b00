"""Exact paths to a few nodes: one sweep over the edges tells who reaches 512 of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels as levels_of
from atpgraph.util.arrays import AnyArray, BoolArray, Int32Array, Int64Array, IntArray, UInt64Array
from atpgraph.util.jit import NEAR, kernel, prefetch
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
        """Pointers and list, as of a CSR matrix."""
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
    """Which nodes of an acyclic graph reach each node of a panel.

    Of the reversed graph it tells who is reached. Each sweep, a task of the workers, takes 512
    columns, which must differ. The bits of an earlier panel can be overwritten (`room`), if they
    are as many: new memory costs more than a sweep. `slot` is the place in `columns` of every node,
    −1 if it has none. Bit c % 64 of ``bits[c // 512, position, c % 512 // 64]`` says whether a
    position reaches column c, or is it.

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
        """Return whether each `u` reaches its `v`, a node of the panel, or is it."""
        return has_bit(self.bits, self.view.position[u], self.slot[v])

    def sizes(self) -> Int64Array:
        """Return how many columns each node reaches, itself included."""
        total = np.zeros(self.view.n, dtype=np.int64)
        for sheet in self.bits:
            total += np.bitwise_count(sheet).sum(axis=1, dtype=np.int64)
        return total[self.view.position]


def bit(at: IntArray) -> UInt64Array:
    """Return words in which bit at % 64 is set."""
    return np.asarray(np.uint64(1) << (at & 63).astype(np.uint64))


def has_bit(bits: UInt64Array, positions: AnyArray, columns: AnyArray) -> BoolArray:
    """Return whether the bits of a panel are set at these positions and columns."""
    words = bits[columns // COLUMNS, positions, (columns >> 6) % WORDS]
    return np.asarray(words & bit(columns) != 0)


@kernel
def _sweep(
    first: int, stop: int, indptr: Int64Array, successors: Int32Array, bits: UInt64Array
) -> None:
    """Every position takes over the bits of its successors, which have lower positions."""
    words, last = bits.reshape(-1), indptr[stop] - 1
    for u in range(first, stop):
        for e in range(indptr[u], indptr[u + 1]):
            prefetch(words, WORDS * np.int64(successors[min(e + NEAR, last)]))
            v = successors[e]
            for w in range(WORDS):
                bits[u, w] |= bits[v, w]
