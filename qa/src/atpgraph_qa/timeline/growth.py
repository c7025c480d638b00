"""Arrays that grow at the end, while whoever holds a shorter one goes on seeing just that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar, overload

import numpy as np

from atpgraph.util.arrays import AnyArray, Int64Array

A = TypeVar("A", bound=AnyArray)


class Room:
    """Buffers with space to spare behind the columns of a timeline, one for each name.

    Only the latest column of a name may grow into its buffer; any other is copied first, so that
    nobody's data change.

    Examples
    --------
    >>> room = Room()
    >>> short = room.extend("n", np.arange(3), [3])
    >>> long, other = room.extend("n", short, [4, 5]), room.extend("n", short, [9])
    >>> print(short, long, other)
    [0 1 2 3] [0 1 2 3 4 5] [0 1 2 3 9]
    """

    def __init__(self) -> None:
        self._buffers: dict[str, AnyArray] = {}
        self._used: dict[str, int] = {}
        self._lock = Lock()
        self.step = 0

    def claim(self, step: int) -> bool:
        """Whether the caller, who saw `step`, is the latest; if so, the next step is theirs."""
        with self._lock:
            if step != self.step:
                return False
            self.step += 1
            return True

    def extend(self, name: str, column: A, more: Any) -> A:
        """A column and what comes after it, without a copy where the column is the latest."""
        new = np.asarray(more, dtype=column.dtype)
        n, total = len(column), len(column) + len(new)
        buffer = self._buffers.get(name)
        latest = buffer is not None and _address(column) == _address(buffer)
        latest = latest and self._used[name] == n
        if buffer is None:
            buffer = lent_space(column)
            latest = buffer is not None
            if buffer is not None:
                self._buffers[name] = buffer
        if buffer is None or not latest or total > len(buffer):
            size = total + total // 4 + 64, *column.shape[1:]
            buffer = np.empty(size, dtype=column.dtype)
            buffer[:n] = column
            self._buffers[name] = buffer
        buffer[n:total] = new
        self._used[name] = total
        grown: Any = buffer[:total]
        return grown  # type: ignore[no-any-return]


class TextLines(Sequence[str]):
    """Lines of text in two arrays, which can grow and which several processes can share.

    Examples
    --------
    >>> lines = TextLines.of(["one", "two"])
    >>> lines[1], list(lines.grown(Room(), "titles", ["three"])), len(lines)
    ('two', ['one', 'two', 'three'], 2)
    """

    def __init__(self, ends: Int64Array, data: AnyArray) -> None:
        self._ends, self._data = ends, data

    @classmethod
    def of(cls, lines: Iterable[str]) -> TextLines:
        """Return lines in this form."""
        if isinstance(lines, TextLines):
            return lines
        nothing = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
        return cls(*nothing).grown(Room(), "", lines)

    def grown(self, room: Room, name: str, more: Iterable[str]) -> TextLines:
        """Return these lines and some more."""
        encoded = [line.encode("utf-8", "surrogatepass") for line in more]
        ends = self._ends[-1] + np.cumsum([len(line) for line in encoded], dtype=np.int64)
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        return TextLines(
            room.extend(f"{name}_ends", self._ends, ends),
            room.extend(f"{name}_data", self._data, data),
        )

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[str]:
        raw = self._data.tobytes()
        return (raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(self._ends.tolist()))

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        part = self._data[self._ends[at] : self._ends[at + 1]]
        return str(part.tobytes(), "utf-8", "surrogatepass")


_lent: dict[int, AnyArray] = {}  # space behind arrays in a file, by the address of the array


def lend_space(space: AnyArray) -> None:
    """Let the array at the start of some bytes grow in place, until it fills them."""
    _lent[_address(space)] = space


def lent_space(column: A) -> A | None:
    """Return an array that begins with a column and has space behind it; None if there is none."""
    space = _lent.get(_address(column)) if len(column) else None
    if space is None:
        return None
    row = column[:1].nbytes
    whole: Any = space[: len(space) // row * row].view(column.dtype).reshape(-1, *column.shape[1:])
    return whole  # type: ignore[no-any-return]


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])
