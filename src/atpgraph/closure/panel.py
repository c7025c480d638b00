"""Exact paths to a few nodes: one sweep over the edges tells who reaches 512 of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from atpgraph._bits import popcount
from atpgraph._jit import kernel
from atpgraph._threads import Workers, checkpoint
from atpgraph._typing import BoolArray, Int32Array, Int64Array, IntArray, UInt64Array
from atpgraph.closure._positions import Positions

WORDS = 8  # of a row: one line of the cache
COLUMNS = 64 * WORDS
_SLICE = 20_000_000  # edges and nodes, a fraction of a second


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

    Examples
    --------
    >>> from atpgraph.graph import DiGraph
    >>> view = Positions.of(DiGraph.from_codes([0, 1], [1, 2], 4))
    >>> with Workers(1) as workers:
    ...     panel = Panel(view, np.array([2]), workers)
    >>> panel.joined(np.array([0, 1, 3]), np.array([2, 2, 2])).tolist()
    [True, True, False]
    """

    def __init__(self, view: Positions, columns: IntArray, workers: Workers) -> None:
        self.view, self.columns = view, np.asarray(columns, dtype=np.int32)
        self.slot = np.full(view.n, -1, dtype=np.int32)
        self.slot[columns] = np.arange(len(columns), dtype=np.int32)
        sheets = max(-(-len(columns) // COLUMNS), 1)
        self.bits = np.zeros((sheets, view.n, WORDS), dtype=np.uint64)
        cuts = _cuts(view.successors[0])

        def sweep(sheet: int) -> None:
            some = columns[sheet * COLUMNS : (sheet + 1) * COLUMNS]
            bits = self.bits[sheet]
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

    def sizes(self) -> Int64Array:
        """How many nodes reach each column, without itself."""
        total = np.zeros(len(self.bits) * COLUMNS, dtype=np.int64)
        for sheet, bits in enumerate(self.bits):
            _count_columns(bits, total[sheet * COLUMNS :])
        return total[: len(self.columns)] - 1

    def pick(self, wanted: Int64Array) -> Int32Array:
        """Of the nodes that reach each column, in ascending order and without itself, those at the
        places in its row of `wanted`, which ascend; −1 for a place that is none.
        """
        found = np.full(wanted.shape, -1, dtype=np.int32)
        for sheet, bits in enumerate(self.bits):
            part = slice(sheet * COLUMNS, (sheet + 1) * COLUMNS)
            _pick(bits, self.view.position, self.columns[part], wanted[part], found[part])
        return found

    def reaching(self, column: int) -> Int32Array:
        """The nodes that reach the node ``columns[column]``, ascending, without itself."""
        sheet, bit = divmod(column, COLUMNS)
        words = self.bits[sheet, :, bit >> 6]
        positions = np.flatnonzero(words >> np.uint64(bit & 63) & np.uint64(1))
        nodes = self.view.nodes[positions]
        return np.sort(nodes[nodes != self.columns[column]])


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
    for u in range(first, stop):
        for e in range(indptr[u], indptr[u + 1]):
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
def _count_columns(bits: UInt64Array, total: Int64Array) -> None:
    one = np.uint64(1)
    for u in range(len(bits)):
        for w in range(WORDS):
            word = bits[u, w]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                total[64 * w + np.int64(popcount(low - one))] += 1


@kernel
def _pick(
    bits: UInt64Array,
    position: Int32Array,
    columns: Int32Array,
    wanted: Int64Array,
    found: Int32Array,
) -> None:
    one = np.uint64(1)
    passed = np.zeros(COLUMNS, dtype=np.int64)
    done = np.zeros(COLUMNS, dtype=np.int64)
    for v in range(len(position)):
        for w in range(WORDS):
            word = bits[position[v], w]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                c = 64 * w + np.int64(popcount(low - one))
                if columns[c] == v:
                    continue
                while done[c] < wanted.shape[1] and wanted[c, done[c]] < passed[c]:
                    done[c] += 1  # a place that is none
                if done[c] < wanted.shape[1] and wanted[c, done[c]] == passed[c]:
                    found[c, done[c]] = v
                    done[c] += 1
                passed[c] += 1


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
