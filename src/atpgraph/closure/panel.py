"""Exact paths to a few nodes: one sweep over the edges tells who reaches 512 of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from atpgraph.closure._positions import Positions
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray, UInt64Array
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel
from atpgraph.util.prefetch import NEAR, prefetch
from atpgraph.util.threads import Workers, checkpoint

WORDS = 8  # of a row: one line of the cache
COLUMNS = 64 * WORDS
_SLICE = 20_000_000  # edges and nodes, a fraction of a second
_SAMPLE = 2**15  # nodes that others are drawn from
_FEW = 256  # of them, so that draws for one column are drawn far apart


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

    def draw(self, count: int, rng: np.random.Generator) -> Int32Array:
        """Up to `count` nodes that reach each column, without itself, each of them as likely; −1
        where there are no more.

        They are drawn among some random nodes, for columns that many of these reach, else among
        all.
        """
        found = np.full((len(self.columns), count), -1, dtype=np.int32)
        nodes = self.view.nodes
        some = np.sort(rng.choice(len(nodes), min(_SAMPLE, len(nodes)), replace=False))
        fewest = _FEW if len(some) < len(nodes) else 0
        for sheet, bits in enumerate(self.bits):
            part = slice(sheet * COLUMNS, (sheet + 1) * COLUMNS)
            columns = self.columns[part]
            asked = np.ones(len(columns), dtype=np.bool_)
            _draw(bits[some], nodes[some], columns, asked, fewest, rng, found[part])
            if asked.any():
                _draw(bits, nodes, columns, asked, 0, rng, found[part])
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


def _draw(
    bits: UInt64Array,
    nodes: Int32Array,
    columns: Int32Array,
    asked: BoolArray,
    fewest: int,
    rng: np.random.Generator,
    found: Int32Array,
) -> None:
    """Draw nodes for the columns that are asked about and that `fewest` of the nodes reach; these
    are asked about no more.
    """
    mask = np.zeros(WORDS, dtype=np.uint64)
    at = np.flatnonzero(asked)
    np.bitwise_or.at(mask, at >> 6, np.uint64(1) << (at & 63).astype(np.uint64))
    sizes = np.zeros(COLUMNS, dtype=np.int64)
    _count_columns(bits, nodes, columns, mask, sizes)
    places = np.full((len(columns), found.shape[1]), len(nodes), dtype=np.int64)
    for column in at.tolist():
        size = int(sizes[column])
        if size >= fewest:
            some = rng.choice(size, min(size, found.shape[1]), replace=False)
            places[column, : len(some)] = np.sort(some)
            asked[column] = False
    _pick(bits, nodes, columns, mask, places, found)


@kernel
def _count_columns(
    bits: UInt64Array, nodes: Int32Array, columns: Int32Array, mask: UInt64Array, total: Int64Array
) -> None:
    """How many of the nodes reach each column that `mask` names, without itself."""
    one = np.uint64(1)
    for u in range(len(bits)):
        for w in range(WORDS):
            word = bits[u, w] & mask[w]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                c = 64 * w + np.int64(popcount(low - one))
                total[c] += columns[c] != nodes[u]


@kernel
def _pick(
    bits: UInt64Array,
    nodes: Int32Array,
    columns: Int32Array,
    mask: UInt64Array,
    places: Int64Array,
    found: Int32Array,
) -> None:
    """Of the nodes counted for each column, those at the places in its row, which ascend."""
    one = np.uint64(1)
    passed = np.zeros(COLUMNS, dtype=np.int64)
    done = np.zeros(COLUMNS, dtype=np.int64)
    for u in range(len(bits)):
        for w in range(WORDS):
            word = bits[u, w] & mask[w]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                c = 64 * w + np.int64(popcount(low - one))
                if columns[c] != nodes[u]:
                    if done[c] < places.shape[1] and places[c, done[c]] == passed[c]:
                        found[c, done[c]] = nodes[u]
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
