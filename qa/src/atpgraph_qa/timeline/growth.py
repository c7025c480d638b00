"""Arrays that grow at the end, while whoever holds a shorter one goes on seeing just that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, TypeVar, overload

import numpy as np

from atpgraph.util.arrays import AnyArray

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
        self._lines: dict[str, list[str]] = {}
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
        latest = buffer is not None and column.base is buffer and self._used[name] == n
        if buffer is None or not latest or total > len(buffer):
            size = total + total // 4 + 64, *column.shape[1:]
            buffer = np.empty(size, dtype=column.dtype)
            buffer[:n] = column
            self._buffers[name] = buffer
        buffer[n:total] = new
        self._used[name] = total
        grown: Any = buffer[:total]
        return grown  # type: ignore[no-any-return]

    def extend_lines(self, name: str, lines: Sequence[str], more: Iterable[str]) -> Lines:
        """The same for text."""
        kept = self._lines.get(name)
        if kept is None or not isinstance(lines, Lines) or not lines.ends(kept):
            kept = self._lines[name] = list(lines)
        kept.extend(more)
        return Lines(kept, len(kept))


class Lines(Sequence[str]):
    """The first lines of a list that may have grown since."""

    def __init__(self, lines: list[str], size: int) -> None:
        self._all, self._size = lines, size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            start, stop, step = place.indices(self._size)
            return self._all[start:stop:step] if step > 0 else self._all[: self._size][place]
        if not -self._size <= place < self._size:
            raise IndexError(place)
        return self._all[place % self._size]

    def ends(self, lines: list[str]) -> bool:
        """Whether these are all of a list, so that it may grow further."""
        return self._all is lines and len(lines) == self._size
