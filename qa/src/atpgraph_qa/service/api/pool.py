"""Where questions are ranked: a few threads, and a queue that has an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from atpgraph.util.threads import thread_count
from atpgraph_qa.service.api.problems import ProblemError

T = TypeVar("T")


class Pool:
    """Runs work off the event loop; refuses it once too much is waiting.

    There is a thread for each core, since no more may rank at once. These threads are not those of
    the other requests: however many questions are waiting, events are stored and pages are served.

    Parameters
    ----------
    most : int
        How many may be under way or waiting.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.under_way = 0  # changed by the event loop only
        self._threads = ThreadPoolExecutor(thread_count(None), "atp-rank")

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` gives, or a problem at once."""
        if self.under_way >= self.most:
            raise ProblemError(503, "Too many questions at once.", {"Retry-After": "1"})
        self.under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self.under_way -= 1

    def close(self) -> None:
        """Finish what is under way."""
        self._threads.shutdown(cancel_futures=True)
