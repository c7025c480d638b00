"""Exact paths to a few nodes: one sweep over the edges tells who reaches 512 of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels as levels_of
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray, UInt64Array
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel
from atpgraph.util.prefetch import NEAR, prefetch
from atpgraph.util.threads import Workers, checkpoint

WORDS = 8  # of a row: one line of the cache
COLUMNS = 64 * WORDS
_SLICE = 20_000_000  # edges and nodes, a fraction of a second


@dataclass(frozen=True, eq=False)
class Positions:
    """An acyclic graph by position, sinks first: descendants of a node have lower positions."""

    dag: DiGraph
    nodes: Int32Array  # the node at every position

    @classmethod
    def of(cls, dag: DiGraph, levels: Int32Array | None = None) -> Positions:
        """Sort the nodes by level, highest first."""
        level = levels_of(dag) if levels is None else levels
        return cls(dag, np.argsort(-level, kind="stable").astype(np.int32))

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
    def predecessors(self) -> tuple[Int64Array, Int32Array]:
        """Pointers and list, as of a CSR matrix."""
        return self._neighbors(self.dag.reverse())

    @cached_property
    def successors(self) -> tuple[Int64Array, Int32Array]:
        """Pointers and list, as of a CSR matrix."""
        return self._neighbors(self.dag)

    def _neighbors(self, graph: DiGraph) -> tuple[Int64Array, Int32Array]:
        degree = graph.out_degree[self.nodes]
        indptr = np.zeros(self.n + 1, dtype=np.int64)
        np.cumsum(degree, out=indptr[1:])
        edges = np.repeat(graph.indptr[self.nodes] - indptr[:-1], degree)
        edges += np.arange(graph.n_edges)
        return indptr, self.position[graph.targets[edges]]


class Panel:
    """Which nodes of an acyclic graph reach each node of a panel.

    Parameters
    ----------
    view : Positions
        The graph; of the reversed graph the panel tells who is reached.
    columns : integer array
        The nodes of the panel, each once. They take 8 bytes a node for 64 of them.
    workers : Workers
        Threads that do the sweeps, 512 columns each.
    room : uint64 array, optional
        The bits of an earlier panel, to be overwritten if they are as many: new memory costs more
        than a sweep.

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
        self,
        view: Positions,
        columns: IntArray,
        workers: Workers,
        room: UInt64Array | None = None,
    ) -> None:
        self.view, self.columns = view, np.asarray(columns, dtype=np.int32)
        self.slot = np.full(view.n, -1, dtype=np.int32)
        self.slot[columns] = np.arange(len(columns), dtype=np.int32)
        sheets = max(-(-len(columns) // COLUMNS), 1)
        shape = (sheets, view.n, WORDS)
        used = room is not None and room.shape == shape
        self.bits = room if room is not None and used else np.zeros(shape, dtype=np.uint64)
        cuts = _cuts(view.successors[0])

        def sweep(sheet: int) -> None:
            some = columns[sheet * COLUMNS : (sheet + 1) * COLUMNS]
            bits = self.bits[sheet]
            if used:
                bits[:] = 0
            _mark(view.position[some], bits)
            for first, stop in pairwise(cuts):
                checkpoint()
                _sweep(first, stop, *view.successors, bits)

        for _ in workers.map(sweep, range(sheets)):
            pass

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether each `u` reaches its `v`, a node of the panel, or is it."""
        answer = np.empty(len(u), dtype=np.bool_)
        _look_up(
            np.ascontiguousarray(u, dtype=np.int32),
            np.ascontiguousarray(v, dtype=np.int32),
            self.view.position,
            self.slot,
            self.bits,
            answer,
        )
        return answer

    def count(self) -> int:
        """Number of pairs that are joined, each column with itself among them."""
        return int(_count(self.bits.reshape(-1)))


def _cuts(indptr: Int64Array) -> list[int]:
    n = len(indptr) - 1
    work = indptr + np.arange(n + 1)
    parts = int(work[-1] // _SLICE) + 1
    cuts: list[int] = np.searchsorted(work, np.linspace(0, work[-1], parts + 1)).tolist()
    return cuts


def _mark(positions: Int32Array, bits: UInt64Array) -> None:
    at = np.arange(len(positions))
    bits[positions, at >> 6] = np.uint64(1) << (at & 63).astype(np.uint64)


@kernel
def _sweep(
    first: int, stop: int, indptr: Int64Array, successors: Int32Array, bits: UInt64Array
) -> None:
    """Every position takes over the bits of its successors."""
    words, last = bits.reshape(-1), indptr[stop] - 1
    for u in range(first, stop):
        for e in range(indptr[u], indptr[u + 1]):
            prefetch(words, WORDS * np.int64(successors[min(e + NEAR, last)]))
            v = successors[e]
            for w in range(WORDS):
                bits[u, w] |= bits[v, w]


@kernel
def _count(words: UInt64Array) -> np.int64:
    total = np.int64(0)
    for word in words:
        total += np.int64(popcount(word))
    return total


@kernel
def _look_up(
    sources: Int32Array,
    targets: Int32Array,
    position: Int32Array,
    slot: Int32Array,
    bits: UInt64Array,
    answer: BoolArray,
) -> None:
    one = np.uint64(1)
    for q in range(len(sources)):
        at = slot[targets[q]]
        sheet = at // COLUMNS
        bit = at - sheet * COLUMNS
        word = bits[sheet, position[sources[q]], bit >> 6]
        answer[q] = (word >> np.uint64(bit & 63)) & one != 0
