"""How much one caller may do: buckets in memory, and a limit for the size of requests."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atpgraph_qa.service.api.problems import problem


class Buckets:
    """A bucket of tokens for each caller, refilled at a rate.

    Examples
    --------
    >>> now = iter([0.0, 0.0, 0.0, 2.0])
    >>> buckets = Buckets(rate=0.5, burst=2, clock=lambda: next(now))
    >>> [buckets.take("a") for _ in range(4)]
    [0, 0, 2, 0]
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic,
        most: int = 10_000,
    ) -> None:  # fmt: skip
        self.rate, self.burst, self.clock, self.most = rate, burst, clock, most
        self._held: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: Hashable, cost: float = 1.0) -> int:
        """Return 0 if the caller may go on, else how many seconds to wait."""
        with self._lock:
            now = self.clock()
            level, then = self._held.pop(caller, (self.burst, now))
            level = min(self.burst, level + (now - then) * self.rate)
            enough = level >= cost
            self._held[caller] = (level - cost if enough else level), now
            if len(self._held) > self.most:
                self._held.popitem(last=False)
            return 0 if enough else max(1, math.ceil((cost - level) / self.rate))


class SizeLimit:
    """Refuse requests whose body is too large or arrives too slowly."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        detail = f"A request has at most {self.most} bytes."
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most:
            await problem(413, detail)(scope, receive, send)
            return
        seen, body, more = 0, list[bytes](), True
        until = asyncio.get_running_loop().time() + self.seconds
        while more:  # small, and so read at once: nothing is done for half a request
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                late = f"The body did not arrive within {self.seconds:g} seconds."
                await problem(408, late, {"Connection": "close"})(scope, receive, send)
                return
            if message["type"] == "http.disconnect":
                return
            part = message.get("body", b"")
            seen += len(part)
            if seen > self.most:
                await problem(413, detail)(scope, receive, send)
                return
            body.append(part)
            more = message.get("more_body", False)
        whole: Message | None = {
            "type": "http.request", "body": b"".join(body), "more_body": False
        }  # fmt: skip

        async def again() -> Any:
            nonlocal whole
            if whole is not None:
                sent, whole = whole, None
                return sent
            return await receive()

        await self.app(scope, again, send)
