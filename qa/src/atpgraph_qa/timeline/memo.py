"""Cache results that are costly and needed more than once.

Everything in a timeline is immutable, so results can be cached by their inputs. Of each kind, only
the most recently used results are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """A cache of the most recently used results of every kind.

    Examples
    --------
    >>> memo = Memo()
    >>> [memo.get("squares", n, lambda: n * n, keep=2) for n in (2, 3, 4)]
    [4, 9, 16]
    >>> memo.get("squares", 4, lambda: 0, keep=2), memo.get("squares", 2, lambda: -1, keep=2)
    (16, -1)
    """

    def __init__(self) -> None:
        self._kinds: dict[str, OrderedDict[Hashable, Future[Any]]] = {}
        self._lock = Lock()

    def get(self, kind: str, key: Hashable, make: Callable[[], T], keep: int = 2) -> T:
        """Return the cached result for `key`, or call `make` and cache its result.

        `key` names everything the result depends on. Objects without their own equality are
        compared by identity and stay alive as long as the result. A caller whose result is being
        computed by another thread waits for it.
        """
        with self._lock:
            kept = self._kinds.setdefault(kind, OrderedDict())
            first, made = key not in kept, kept.setdefault(key, Future())
            kept.move_to_end(key)
            while len(kept) > keep:
                kept.popitem(last=False)
        if first:
            try:
                made.set_result(make())
            except BaseException as error:
                with self._lock:
                    kept.pop(key, None)
                made.set_exception(error)
        result: T = made.result()
        return result

    def copy(self) -> Memo:
        """Return a memo that starts with the same results."""
        other = Memo()
        with self._lock:
            other._kinds = {kind: kept.copy() for kind, kept in self._kinds.items()}
        return other

    def clear(self) -> None:
        """Drop all results."""
        with self._lock:
            self._kinds.clear()

    def __len__(self) -> int:
        return sum(len(kept) for kept in self._kinds.values())
