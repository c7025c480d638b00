"""Whose turn it is to rank: a few at a time, whoever waits for an answer first."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from atpgraph._threads import thread_count

_PATIENCE_S = 1.0  # a question that was stored waits no longer than this for callers


class Turns:
    """Lets so many rankings run at once.

    More than one a core would only slow each other down. A caller waits for the answer; a question
    that came as an event does not, and so lets callers go first, for a while.

    Parameters
    ----------
    places : int, optional
        By default, the cores this process may use.
    """

    def __init__(self, places: int | None = None) -> None:
        self.places = thread_count(places)
        self._free = self.places
        self._callers = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, *, caller: bool) -> Iterator[None]:
        """Have a turn."""
        with self._changed:
            if not caller:
                self._changed.wait_for(self._is_quiet, _PATIENCE_S)
            self._callers += 1
            self._changed.wait_for(lambda: self._free > 0)
            self._callers -= 1
            self._free -= 1
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()

    def _is_quiet(self) -> bool:
        return self._free > 0 and not self._callers
