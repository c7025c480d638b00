"""How many questions are ranked at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from atpgraph.errors import AtpError
from atpgraph.util.threads import thread_count

T = TypeVar("T")


class BusyError(AtpError):
    """Too many questions are waiting to be ranked."""


class RankingLimiter:
    """Runs rankings for callers, one a core, and refuses them once too many are waiting.

    The threads are not those of other requests: however many questions are waiting, events are
    stored and pages are served. Questions that came as events are ranked by another thread, which
    lets callers go first for a while.

    Parameters
    ----------
    most : int
        How many may be under way or waiting.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.under_way = 0
        self._changed = threading.Condition()
        self._threads = ThreadPoolExecutor(thread_count(None), "atp-rank")

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise :class:`BusyError` at once."""
        with self._changed:
            if self.under_way >= self.most:
                raise BusyError("Too many questions at once.")
            self.under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            with self._changed:
                self.under_way -= 1
                self._changed.notify_all()

    def wait_for_callers(self, seconds: float) -> None:
        """Wait while there are callers, but so many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self.under_way, seconds)

    def close(self) -> None:
        """Finish what is under way."""
        self._threads.shutdown(cancel_futures=True)
