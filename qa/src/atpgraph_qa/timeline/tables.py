"""Columns that grow in place, the tables of a timeline, and indexes of their keys and ids.

A timeline only ever appends. A column is the first part of a buffer with space behind it: a reader
of a shorter part still sees only that part, and appending to the longest part copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from threading import Lock
from typing import Annotated, Any, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from atpgraph.util.archive import Field
from atpgraph.util.arrays import AnyArray, BoolArray, Int64Array
from atpgraph_qa.data.site import Rows, find_ids

A = TypeVar("A", bound=AnyArray)
_SPARSE_IDS = 64  # a table of positions by id may be this much longer than the list of ids
_growing = Lock()


class Buffer(np.ndarray[Any, Any]):
    """An array of which the first `used` elements are in use."""

    used = 0


def extended(column: A, more: Any) -> A:
    """Return a column with values appended; only the longest part of a buffer grows in place.

    Examples
    --------
    >>> short = extended(np.arange(3), [3])
    >>> long, other = extended(short, [4, 5]), extended(short, [9])
    >>> print(short, long, other)
    [0 1 2 3] [0 1 2 3 4 5] [0 1 2 3 9]
    """
    new = np.asarray(more, dtype=column.dtype)
    n, total, buffer = len(column), len(column) + len(new), column.base
    with _growing:
        if not isinstance(buffer, Buffer) or buffer.used != n or total > len(buffer):
            buffer = Buffer((total + total // 4 + 64, *column.shape[1:]), dtype=column.dtype)
            buffer[:n] = column
        buffer.used = total
    buffer[n:total] = new
    # Not a slice: the base of a slice of a slice is the slice.
    grown: Any = np.ndarray((total, *column.shape[1:]), column.dtype, buffer)
    return grown  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Table(Rows):
    """Columns of equal length that grow in place.

    The requirements on each column are checked when a model is read; their letters are the numbers
    of users, questions, answers, acceptances (c) and votes.
    """

    def appended(self, rows: Sequence[Any]) -> Self:
        """Return the table with more rows, given by column; see :func:`extended`."""
        if not len(rows[0]):
            return self
        columns = (getattr(self, column.name) for column in fields(self))
        return type(self)(*map(extended, columns, rows))

    def inserted(self, rows: Sequence[Any]) -> Self:
        """Return a copy with more rows, sorted by the first column; new ones after equal ones."""
        columns = (getattr(self, column.name) for column in fields(self))
        joined = [np.concatenate(pair) for pair in zip(columns, rows, strict=True)]
        return type(self)(*joined).take(np.argsort(joined[0], kind="stable"))


@dataclass(frozen=True, eq=False)
class QuestionTable(Table):
    """Questions by date."""

    id: Annotated[Int64Array, Field("i", ("q",), unique=True)]
    asked_ms: Annotated[Int64Array, Field("i", ("q",), ascending=True)]
    asker: Annotated[
        Int64Array, Field("i", ("q",), low=-1, high="u")
    ]  # code, −1 if unknown or hidden
    present: Annotated[BoolArray, Field("b", ("q",))]  # False for hidden ones


@dataclass(frozen=True, eq=False)
class AnswerTable(Table):
    """Answers by the moment from which they can be seen."""

    given_ms: Annotated[Int64Array, Field("i", ("a",), ascending=True)]
    question: Annotated[
        Int64Array, Field("i", ("a",), low=0, high="q")
    ]  # position in QuestionTable
    owner: Annotated[
        Int64Array, Field("i", ("a",), low=-1, high="u")
    ]  # code, −1 if unknown or hidden
    id: Annotated[Int64Array, Field("i", ("a",), low=-1)]  # −1: what a newcomer declares


@dataclass(frozen=True, eq=False)
class AcceptanceTable(Table):
    """Accepted answers (positions in :class:`AnswerTable`), at most one for each question."""

    known_ms: Annotated[Int64Array, Field("i", ("c",), ascending=True)]
    answer: Annotated[Int64Array, Field("i", ("c",), low=0, high="a", unique=True)]


@dataclass(frozen=True, eq=False)
class VoteTable(Table):
    """Votes for answers (positions in :class:`AnswerTable`), +1 or −1 each."""

    known_ms: Annotated[Int64Array, Field("i", ("v",), ascending=True)]
    answer: Annotated[Int64Array, Field("i", ("v",), low=0, high="a")]
    value: Annotated[Int64Array, Field("i", ("v",), low=-1, high=2)]


@dataclass(frozen=True, eq=False)
class TextLines(Sequence[str]):
    """Lines of text in two columns, which can grow and which several processes can share.

    Examples
    --------
    >>> lines = TextLines.of(["one", "two"])
    >>> lines[1], list(lines.grown(["three"])), len(lines)
    ('two', ['one', 'two', 'three'], 2)
    """

    ends: Int64Array
    data: AnyArray  # bytes

    @classmethod
    def of(cls, lines: Iterable[str]) -> TextLines:
        """Return lines in this form."""
        if isinstance(lines, TextLines):
            return lines
        return cls(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)).grown(lines)

    def grown(self, more: Iterable[str]) -> TextLines:
        """Return these lines and some more."""
        encoded = [line.encode("utf-8", "surrogatepass") for line in more]
        ends = self.ends[-1] + np.cumsum([len(line) for line in encoded], dtype=np.int64)
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        return TextLines(extended(self.ends, ends), extended(self.data, data))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __iter__(self) -> Iterator[str]:
        raw = self.data.tobytes()
        return (raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(self.ends.tolist()))

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        part = self.data[self.ends[at] : self.ends[at + 1]]
        return str(part.tobytes(), "utf-8", "surrogatepass")


@dataclass(frozen=True, eq=False)
class Grouped:
    """Positions by key: an index of the first `size` entries of a column; the rest is scanned.

    Positions of key k are ``positions[indptr[k] : indptr[k + 1]]``, ascending.
    """

    indptr: Int64Array
    positions: Int64Array
    size: int

    @classmethod
    def of(cls, keys: Int64Array, n: int) -> Self:
        """Index a column of keys below `n`, skipping −1."""
        known = np.flatnonzero(keys >= 0)
        indptr = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys[known], minlength=n), out=indptr[1:])
        return cls(indptr, known[np.argsort(keys[known], kind="stable")], len(keys))

    def find(self, wanted: Sequence[int], keys: Int64Array) -> Int64Array:
        """Return the positions of keys, ascending, in a column longer or shorter than the index."""
        inside = [key for key in wanted if key < len(self.indptr) - 1]
        parts = [self.positions[self.indptr[key] : self.indptr[key + 1]] for key in inside]
        if len(keys) > self.size:
            late = keys[self.size :]
            hits = late == wanted[0] if len(wanted) == 1 else np.isin(late, wanted)
            parts.append(self.size + np.flatnonzero(hits))
        found = np.concatenate(parts) if parts else self.positions[:0]
        if len(parts) > 1:
            found.sort()
        return found[: int(np.searchsorted(found, len(keys)))]


class Ids:
    """Positions by id: an index of the first part of a column, whose later part is scanned.

    No id occurs twice in the column.
    """

    def __init__(self, ids: Int64Array) -> None:
        self.ids, top = ids, int(ids.max(initial=0))
        self._table: Int64Array | None = None
        if top <= _SPARSE_IDS * len(ids) + 1_000_000:
            self._table = np.full(top + 2, -1, dtype=np.int64)
            self._table[ids[ids >= 0]] = np.flatnonzero(ids >= 0)

    def find(self, wanted: npt.ArrayLike, column: Int64Array) -> Int64Array:
        """Return the positions of ids in the column as it is now, −1 for ids that do not occur."""
        wanted, size = np.asarray(wanted, dtype=np.int64), len(self.ids)
        if self._table is not None:
            there = (wanted >= 0) & (wanted < len(self._table) - 1)
            found = self._table[np.where(there, wanted, -1)]
        else:
            found = find_ids(self.ids, wanted)
        if len(column) > size:
            late = find_ids(column[size:], wanted)
            found = np.where(late >= 0, size + late, found)
        return found
