"""Whose turn it is to rank: a few at a time, whoever waits for an answer first."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from atpgraph.util.courtesy import courteous
from atpgraph.util.threads import thread_count

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
        self._callers = 0  # who wait, or rank
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, *, caller: bool) -> Iterator[None]:
        """Have a turn; one that is no caller's is interrupted when callers come."""
        until = time.monotonic() + _PATIENCE_S
        if not caller:
            self.give_way(_PATIENCE_S)
        with self._changed:
            self._callers += caller
            self._sit_down()
        try:
            with contextlib.nullcontext() if caller else courteous(lambda: self._let_by(until)):
                yield
        finally:
            with self._changed:
                self._callers -= caller
                self._stand_up()

    def give_way(self, patience: float) -> None:
        """Wait while there are callers, but so many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._callers, patience)

    def _let_by(self, until: float) -> None:
        """Leave the place to callers, if there are any, and come back after them."""
        if not self._callers:
            return
        with self._changed:
            self._stand_up()
            self._changed.wait_for(lambda: not self._callers, until - time.monotonic())
            self._sit_down()

    def _sit_down(self) -> None:
        self._changed.wait_for(lambda: self._free > 0)
        self._free -= 1

    def _stand_up(self) -> None:
        self._free += 1
        self._changed.notify_all()
