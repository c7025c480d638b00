"""Number ids as they are read, and collect the edges between them within a budget of memory.

One hash table serves all ids: those of at most eight bytes, nearly all of them in practice, are
their own key, so that one memory access finds a number; longer ones are compared byte by byte.
Whether the ids are integers is decided at the end: an integer counts only if it is written the
usual way, so equal numbers are equal bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from atpgraph.errors import BudgetError
from atpgraph.graph._lookup import insert
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    ByteArray,
    Float64Array,
    Int32Array,
    Int64Array,
    IntArray,
)
from atpgraph.util.jit import NEAR, kernel, prefetch
from atpgraph.util.memory import human_bytes
from atpgraph.util.threads import checkpoint

_FIRST_SIZE = 1 << 12
_FULL = 0.7  # share of a table that may be taken
_FEW = 1 << 16  # up to here tables grow fourfold, then they double
_STRING_BYTES = 64  # of a Python string and the reference to it, beside its characters
_PROBED = 1000  # strings that say whether all are likely to be integers
# Memory of sorting: both ends of each edge before and after it, and the weights likewise.
_BYTES_PER_EDGE, _BYTES_PER_WEIGHT, _BYTES_PER_NODE = 16, 24, 24
_LEAST = 1 << 23  # bytes that the smallest file may take, whatever the budget


class _Table(NamedTuple):
    """The hash table as the kernel sees it.

    A slot holds a key and 2 · number, plus 1 if the key is a hash; −1 where it is free. The bytes
    of id k are ``arena[ends[k] : ends[k + 1]]``.
    """

    slots: Int64Array
    ends: Int64Array
    arena: ByteArray
    multiplier: np.uint64
    shift: np.uint64


class Numbering:
    """The distinct strings so far, numbered by first appearance.

    The hash has a random key, so that nobody can write a file whose ids all collide; numbers do not
    depend on it.

    Examples
    --------
    >>> names, spans = Numbering(), np.array([[0, 1, 1, 3], [0, 1, 3, 4]], dtype=np.int32)
    >>> names.number(np.frombuffer(b"abca", dtype=np.uint8), spans).tolist()
    [[0, 1], [0, 0]]
    >>> names.labels().tolist()
    ['a', 'bc']
    """

    def __init__(self) -> None:
        self._key = secrets.randbits(64) | 1, secrets.randbits(64)
        self._known = 0
        self._slots = np.full((_FIRST_SIZE, 2), -1, dtype=np.int64)
        self._ends = np.zeros(int(_FULL * _FIRST_SIZE), dtype=np.int64)
        self._arena = np.empty(1 << 16, dtype=np.uint8)

    def __len__(self) -> int:
        return self._known

    @property
    def nbytes(self) -> int:
        """Memory of the table, and of the labels at the end."""
        held = int(self._ends[self._known])
        few = self.integers(_PROBED)[1]  # whether the first ones are integers
        labels = 8 * self._known if few.all() else _STRING_BYTES * self._known + held
        return self._slots.nbytes + self._ends.nbytes + self._arena.nbytes + labels

    def number(self, data: ByteArray, spans: IntArray) -> Int32Array:
        """Return the numbers of rows of strings; new strings get new numbers.

        `spans` has two columns for each string of a row: its first byte in `data` and its end.
        """
        codes = np.empty((len(spans), spans.shape[1] // 2), dtype=np.int32)
        keys = np.empty(codes.shape, dtype=np.uint64)
        _find_keys(data, spans, np.uint64(self._key[1]), keys)
        row = 0
        while True:
            shift = np.uint64(65 - len(self._slots).bit_length())
            table = _Table(self._slots, self._ends, self._arena, np.uint64(self._key[0]), shift)
            row, self._known = _number_rows(table, data, spans, keys, codes, row, self._known)
            if row == len(spans):
                return codes
            self._grow(codes.shape[1], int(np.diff(spans[row])[::2].sum()))

    def _grow(self, strings: int, size: int) -> None:
        """Make room for more strings, given their number and their total number of bytes."""
        if self._known + strings >= len(self._ends):
            old, factor = self._slots, 4 if len(self._slots) < _FEW else 2
            self._slots = np.full((factor * len(old), 2), -1, dtype=np.int64)
            shift = np.uint64(65 - len(self._slots).bit_length())
            insert(old, self._slots, np.uint64(self._key[0]), shift)
            more = int(_FULL * len(self._slots)) - len(self._ends)
            self._ends = np.concatenate([self._ends, np.zeros(more, dtype=np.int64)])
        if self._ends[self._known] + size > len(self._arena):
            more = max(len(self._arena), size)
            self._arena = np.concatenate([self._arena, np.empty(more, dtype=np.uint8)])

    def integers(self, most: int = 2**31) -> tuple[Int64Array, BoolArray]:
        """Return, for the first `most` strings, their integer values and whether they have one."""
        count = min(len(self), most)
        values, plain = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        _parse_integers(self._arena, self._ends, values, plain)
        return values, plain

    def labels(self) -> AnyArray:
        """Return the strings by number."""
        names = np.empty(len(self), dtype=object)
        ends = self._ends[: len(self) + 1].tolist()
        raw = self._arena[: ends[-1]].tobytes()
        spans = pairwise(ends)
        if raw.isascii():
            text = raw.decode("ascii")
            names[:] = [text[start:end] for start, end in spans]
        else:
            names[:] = [raw[start:end].decode() for start, end in spans]
        return names


class EdgeRows(NamedTuple):
    """Edges in the order of their file or table, repeats included."""

    ends: Int32Array  # two node indices for each edge
    labels: AnyArray
    weights: Float64Array | None = None
    types: IntArray | None = None  # positions in the names
    type_names: Sequence[str] = ()

    def pairs(self) -> tuple[AnyArray, AnyArray]:
        """Return the labels of sources and targets."""
        return self.labels[self.ends[:, 0]], self.labels[self.ends[:, 1]]

    def graph(self) -> DiGraph:
        """Return the edges as a graph."""
        checkpoint()
        u, v = self.ends.T
        graph = DiGraph.from_codes(u, v, self.labels, self.weights)
        return graph if self.types is None else graph.with_types(u, v, self.types, self.type_names)


def check_budget(what: Path | str, need: int, budget: int) -> None:
    """Raise a BudgetError if reading something takes more than the budget."""
    budget = max(budget, _LEAST)
    if need > budget:
        raise BudgetError(
            f"{what} needs at least {human_bytes(need)} to be read, and the budget is "
            f"{human_bytes(budget)}; raise memory."
        )


class EdgeCollector:
    """The edges of a text read so far, within a budget of bytes."""

    def __init__(self, path: Path, budget: int) -> None:
        self.path, self.budget = path, budget
        self.numbering, self._type_names = Numbering(), Numbering()
        self.n_rows = 0
        self.pieces: list[Int32Array] = []
        self.weights: list[Float64Array] = []
        self._types: list[Int32Array] = []

    def add(self, data: ByteArray, spans: IntArray, weights: Float64Array | None = None) -> None:
        """Number more edges, given the spans of their ends and of their types, if any."""
        self.pieces.append(self.numbering.number(data, spans[:, :4]))
        self.n_rows += len(spans)
        if weights is not None:
            self.weights.append(weights)
        if spans.shape[1] > 4:
            self._types.append(self._type_names.number(data, spans[:, -2:])[:, 0].copy())

    def check(self, buffers: int, done: float = 1.0) -> None:
        """Raise an error if the edges, and those expected in the rest of the file, do not fit.

        `buffers` are the bytes that the reader itself holds, `done` is the share that it has read.
        """
        each = _BYTES_PER_EDGE
        if self.weights:
            each += _BYTES_PER_WEIGHT
        if self._types:
            each += 36  # codes, rows and their places in the graph
        nodes = self.numbering.nbytes + _BYTES_PER_NODE * len(self.numbering)
        need = int(self.n_rows / max(done, 1e-9) * each) + nodes + buffers
        check_budget(self.path, need, self.budget)

    def rows(self) -> EdgeRows:
        """Return all edges; the collector is empty afterwards."""
        labels, plain = self.numbering.integers()
        if not plain.all():
            labels = self.numbering.labels()
        rows = EdgeRows(np.concatenate(self.pieces), labels)
        self.pieces.clear()
        if self.weights:
            rows = rows._replace(weights=np.concatenate(self.weights))
            self.weights.clear()
        if not self._types:
            return rows
        types = np.concatenate(self._types)
        return rows._replace(types=types, type_names=self._type_names.labels().tolist())


@kernel
def _find_keys(data: Any, spans: Any, basis: Any, keys: Any) -> None:
    """Write the keys of the strings: their bytes, or a hash if there are more than eight."""
    for row in range(len(keys)):
        for k in range(keys.shape[1]):
            start, end = spans[row, 2 * k], spans[row, 2 * k + 1]
            h = basis if end - start > 8 else np.uint64(0)
            if end - start > 8:
                for p in range(start, end):
                    h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
                h ^= h >> np.uint64(32)
            else:
                for p in range(start, end):
                    h = h << np.uint64(8) | np.uint64(data[p])
            keys[row, k] = h


@kernel
def _number_rows(
    table: Any, data: Any, spans: Any, keys: Any, codes: Any, row: Any, known: Any
) -> Any:
    """Fill in `codes` from `row` on; return the row before which something has to grow, and how
    many strings are known.
    """
    slots, ends, arena = table.slots, table.ends, table.arena
    multiplier, shift = table.multiplier, table.shift
    last = len(slots) - 1
    width = codes.shape[1]
    flat = slots.reshape(-1)
    while row < len(spans):
        if row + NEAR < len(spans):
            for k in range(width):
                prefetch(flat, 2 * np.int64((keys[row + NEAR, k] * multiplier) >> shift))
        size = 0
        for k in range(width):
            size += spans[row, 2 * k + 1] - spans[row, 2 * k]
        if known + width >= len(ends) or ends[known] + size > len(arena):
            break
        for k in range(width):
            start, end = spans[row, 2 * k], spans[row, 2 * k + 1]
            is_long = end - start > 8
            key = np.int64(keys[row, k])
            place = np.int64((keys[row, k] * multiplier) >> shift)
            while True:
                code = slots[place, 1] >> 1  # −1 stays −1
                if code < 0 or (
                    slots[place, 0] == key
                    and (slots[place, 1] & 1) == is_long
                    and (not is_long or _same(data, start, end, arena, ends[code], ends[code + 1]))
                ):
                    break
                place = (place + 1) & last
            if code < 0:
                slots[place, 0], slots[place, 1] = key, 2 * known + is_long
                held = ends[known]
                for p in range(start, end):
                    arena[held + p - start] = data[p]
                ends[known + 1] = held + end - start
                code = known
                known += 1
            codes[row, k] = code
        row += 1
    return row, known


@kernel
def _same(data: Any, start: Any, end: Any, arena: Any, first: Any, stop: Any) -> Any:
    if end - start != stop - first:
        return False
    k = 0
    while k < end - start and data[start + k] == arena[first + k]:
        k += 1
    return k == end - start


@kernel
def _parse_integers(arena: Any, ends: Any, values: Any, plain: Any) -> None:
    """Read integers of 64 bits that are written the usual way: no +, no leading zero."""
    for code in range(len(values)):
        start, end = ends[code], ends[code + 1]
        negative = start < end and arena[start] == 45
        first = start + 1 if negative else start
        digits = end - first
        total, ok = np.uint64(0), 0 < digits < 20
        for p in range(first, end if ok else first):
            ok &= 48 <= arena[p] <= 57
            total = total * np.uint64(10) + np.uint64(arena[p] - 48)
        ok &= digits > 0 and (arena[first] != 48 or (digits == 1 and not negative))
        # 19 digits fit in 64 bits without a sign; 2⁶³ wraps to the least integer, its own negative.
        ok &= total <= np.uint64(2**63 - 1) + np.uint64(negative)
        plain[code] = ok
        values[code] = -np.int64(total) if negative else np.int64(total)
