"""Node numbers for ids as they are read: two hash tables, one numbering.

Ids that are integers written the usual way are looked up by their value, all others by their bytes,
which are kept in one long array. Both kinds are numbered together by first appearance, so whether
the labels are integers or text can be decided at the end.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from atpgraph.util.arrays import AnyArray, BoolArray, ByteArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel

_FIRST_SIZE = 1 << 12
_FULL = 0.7  # share of a table that may be taken
_FEW = 1 << 16  # up to here tables grow fourfold, then they double
_STRING_BYTES = 64  # of a Python string and the reference to it, beside its characters


class Numbering:
    """The distinct ids so far.

    The hash has a random key, so that nobody can write a file whose ids all collide; numbers do not
    depend on it.
    """

    def __init__(self) -> None:
        self._key = secrets.randbits(64) | 1, secrets.randbits(64)
        self._integers, self._texts = _free(_FIRST_SIZE, 2), _free(_FIRST_SIZE, 4)
        self._values = np.empty(_FIRST_SIZE, dtype=np.int64)
        self._sizes = np.empty(_FIRST_SIZE, dtype=np.int32)
        self._arena = np.empty(1 << 16, dtype=np.uint8)
        # How many ids, how many of them are text, bytes of those.
        self._state = np.zeros(3, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def n_texts(self) -> int:
        """How many of the ids are not integers."""
        return int(self._state[1])

    @property
    def nbytes(self) -> int:
        """Memory that the tables take, and at the end the labels."""
        arrays = (self._integers, self._texts, self._values, self._sizes, self._arena)
        known, texts, held = self._state.tolist()
        return sum(array.nbytes for array in arrays) + (
            _STRING_BYTES * known + held if texts else 8 * known
        )

    def number(self, data: ByteArray, ids: Int64Array, lengths: Int32Array) -> Int32Array:
        """Node indices of rows of ids, new ones numbered.

        Parameters
        ----------
        data : uint8 array
            The text that holds the ids.
        ids : int64 array of shape (rows, 2)
            The integer, or where in `data` the text begins.
        lengths : int32 array of shape (rows, 2)
            −1 for an integer, else the number of bytes.
        """
        codes = np.empty((len(ids), 2), dtype=np.int32)
        row = 0
        while True:
            tables = self._integers, self._texts
            hashing = np.array([*self._key, *map(_shift, tables)], dtype=np.uint64)
            limits = np.array([_FULL * len(table) for table in tables], dtype=np.int64)
            row = number_ids(
                data, ids, lengths, codes, *tables, self._values, self._sizes, self._arena,
                self._state, hashing, row, limits,
            )  # fmt: skip
            if row == len(ids):
                return codes
            self._grow(int(np.maximum(lengths[row], 0).sum()))

    def _grow(self, text_bytes: int) -> None:
        known, texts, held = self._state.tolist()
        if known + 2 > len(self._values):
            room = len(self._values) * (4 if known < _FEW else 2)
            self._values = np.concatenate([self._values, np.empty(room - known, np.int64)])
            self._sizes = np.concatenate([self._sizes, np.empty(room - known, np.int32)])
        if known - texts + 2 > int(_FULL * len(self._integers)):
            self._integers = self._larger(self._integers)
        if texts + 2 > int(_FULL * len(self._texts)):
            self._texts = self._larger(self._texts)
        if held + text_bytes > len(self._arena):
            more = max(len(self._arena), text_bytes)
            self._arena = np.concatenate([self._arena, np.empty(more, dtype=np.uint8)])

    def _larger(self, table: Int64Array) -> Int64Array:
        larger = _free(len(table) * (4 if len(table) < _FEW else 2), table.shape[1])
        refill(table, larger, np.uint64(self._key[0]), np.uint64(_shift(larger)))
        return larger

    def is_integer(self, codes: Int32Array) -> BoolArray:
        """Whether these ids are integers."""
        return np.asarray(self._sizes[codes] < 0)

    def text(self, code: int) -> str:
        """One id, as it is written."""
        if self._sizes[code] < 0:
            return str(self._values[code])
        start = int(self._values[code])
        return self._arena[start : start + int(self._sizes[code])].tobytes().decode()

    def labels(self, which: Int64Array | None = None, keep_integers: bool = False) -> AnyArray:
        """Return the ids by number (or those of `which`): int64 if all are integers, else text.

        With `keep_integers`, integers stay integers beside text.
        """
        known = len(self)
        values, sizes = self._values[:known], self._sizes[:known]
        if which is not None:
            values, sizes = values[which], sizes[which]
        if not np.any(sizes >= 0):
            return values.copy()
        names = np.empty(len(values), dtype=object)
        number: Any = int if keep_integers else str
        raw = self._arena[: self._state[2]].tobytes()
        each = zip(values.tolist(), sizes.tolist(), strict=True)
        if raw.isascii():
            text = raw.decode("ascii")
            names[:] = [text[at : at + size] if size >= 0 else number(at) for at, size in each]
        else:
            names[:] = [
                raw[at : at + size].decode() if size >= 0 else number(at) for at, size in each
            ]
        return names


def _shift(table: Int64Array) -> int:
    """How far a hash of 64 bits has to be shifted to be a row of the table."""
    return 65 - len(table).bit_length()


def _free(size: int, columns: int) -> Int64Array:
    """A table without entries: rows of key, number (−1 where free), and for texts their bytes."""
    table = np.empty((size, columns), dtype=np.int64)
    table[:, 1] = -1
    return table


@kernel
def number_ids(
    data: Any,
    ids: Any,
    lengths: Any,
    codes: Any,
    integers: Any,
    texts: Any,
    values: Any,
    sizes: Any,
    arena: Any,
    state: Any,
    hashing: Any,
    row: Any,
    limits: Any,
) -> Any:
    """Number the ids by first appearance, source before target; the row before which it stopped.

    It stops where something has to grow. A table is a power of two of rows of key and number, with
    open addressing; the key is the integer, or a hash of the text, after which the bytes decide.

    Parameters
    ----------
    data, ids, lengths : arrays
        As for :meth:`Numbering.number`.
    codes : int32 array of shape (rows, 2)
        Output: numbers of the ids.
    integers, texts : int64 arrays of shape (size, 2) and (size, 4)
        The tables; that of texts has where in `arena` the bytes are as well, and how many, because
        a second place to look would be a second wait for memory.
    values, sizes : int64 and int32 arrays
        By number: the integer and −1, or where its bytes are in `arena` and how many.
    arena : uint8 array
    state : int64 array of 3
        Ids known, texts among them, bytes of those.
    hashing : uint64 array of 4
        Odd multiplier, first value of the hash of a text, shifts for the two tables.
    row : int
        Where to begin.
    limits : int64 array of 2
        Entries that the tables may have.
    """
    known, n_texts, held = state[0], state[1], state[2]
    multiplier, basis = hashing[0], hashing[1]
    shift_integers, shift_texts = hashing[2], hashing[3]
    last_integer, last_text = len(integers) - 1, len(texts) - 1
    while row < len(ids):
        if known + 2 > len(values) or known - n_texts + 2 > limits[0] or n_texts + 2 > limits[1]:
            break
        if held + max(lengths[row, 0], 0) + max(lengths[row, 1], 0) > len(arena):
            break
        for side in range(2):
            key = ids[row, side]
            length = lengths[row, side]
            if length < 0:
                place = np.int64((np.uint64(key) * multiplier) >> shift_integers)
                while integers[place, 1] >= 0 and integers[place, 0] != key:
                    place = (place + 1) & last_integer
                code = integers[place, 1]
                if code < 0:
                    code = known
                    integers[place, 0] = key
                    integers[place, 1] = code
                    values[code] = key
                    sizes[code] = -1
                    known += 1
            else:
                h = basis
                for p in range(key, key + length):
                    h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
                h ^= h >> np.uint64(32)
                signed = np.int64(h)
                place = np.int64((h * multiplier) >> shift_texts)
                while True:
                    code = texts[place, 1]
                    if code < 0:
                        break
                    if texts[place, 0] == signed and texts[place, 3] == length:
                        start = texts[place, 2]
                        p = 0
                        while p < length and data[key + p] == arena[start + p]:
                            p += 1
                        if p == length:
                            break
                    place = (place + 1) & last_text
                if code < 0:
                    code = known
                    texts[place, 0] = signed
                    texts[place, 1] = code
                    texts[place, 2] = held
                    texts[place, 3] = length
                    values[code] = held
                    sizes[code] = length
                    for p in range(length):
                        arena[held + p] = data[key + p]
                    held += length
                    n_texts += 1
                    known += 1
            codes[row, side] = code
        row += 1
    state[0], state[1], state[2] = known, n_texts, held
    return row


@kernel
def refill(table: Any, larger: Any, multiplier: Any, shift: Any) -> None:
    """Move the entries of a table into an empty one."""
    last = len(larger) - 1
    for i in range(len(table)):
        if table[i, 1] >= 0:
            place = np.int64((np.uint64(table[i, 0]) * multiplier) >> shift)
            while larger[place, 1] >= 0:
                place = (place + 1) & last
            for column in range(table.shape[1]):
                larger[place, column] = table[i, column]


@kernel
def renumber(codes: Any, number: Any, known: Any) -> Any:
    """Number by first appearance again; `number` maps the old numbers, −1 for those not seen yet.

    Returns how many there are now.
    """
    for row in range(len(codes)):
        for side in range(2):
            code = codes[row, side]
            if number[code] < 0:
                number[code] = known
                known += 1
            codes[row, side] = number[code]
    return known
