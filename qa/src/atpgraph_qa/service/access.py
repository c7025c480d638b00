"""Tokens and rate limits of requests, and how large a request may be."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atpgraph_qa.service import tokens
from atpgraph_qa.service.database import DatabaseGoneError
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.tokens import Token

_KNOWN_S = 30.0  # how long a token is cached
_BEARER = HTTPBearer(auto_error=False, description="A token, see POST /v1/tokens.")


class Buckets:
    """A rate limiter: a bucket for each caller, refilled at a rate.

    Examples
    --------
    >>> now = iter([0.0, 0.0, 0.0, 2.0])
    >>> buckets = Buckets(rate=0.5, burst=2, clock=lambda: next(now))
    >>> [buckets.take("a") for _ in range(4)]
    [0, 0, 2, 0]
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock, self.most = rate, burst, clock, 10_000
        self._held: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: Hashable) -> int:
        """Return 0 if the caller may continue, else the seconds to wait."""
        with self._lock:
            now = self.clock()
            level, then = self._held.pop(caller, (self.burst, now))
            level = min(self.burst, level + (now - then) * self.rate)
            self._held[caller] = (level - 1 if level >= 1 else level), now
            if len(self._held) > self.most:
                self._held.popitem(last=False)
            return 0 if level >= 1 else max(1, math.ceil((1 - level) / self.rate))

    def check(self, caller: Hashable) -> None:
        """Raise a problem if the caller is over the limit."""
        if wait := self.take(caller):
            raise ProblemError(429, f"Try again in {wait} s.", wait=wait)


class Authenticator:
    """Checks tokens and limits the rate of callers."""

    def __init__(self, service: Service) -> None:
        self.service, limits = service, service.settings.limits
        self.rates = Buckets(limits.per_second, limits.burst)
        self.failures = Buckets(limits.failures_per_minute / 60, limits.failures_per_minute)
        self._known: dict[str, tuple[Token, float]] = {}

    def known(self, secret: str) -> Token | None:
        """Return the token of a secret that was looked up a moment ago."""
        known = self._known.get(tokens.digest(secret))
        return known[0] if known is not None and time.monotonic() < known[1] else None

    def look_up(self, secret: str, client: str) -> Token:
        """Return the token of a secret, or raise a problem. A wrong one costs no write."""
        digest, service = tokens.digest(secret), self.service
        try:
            with service.database.read() as connection:
                found = tokens.find_token(connection, secret)
            if found is not None:
                with service.database.write() as connection:
                    tokens.touch_token(connection, found.id, service.clock())
        except DatabaseGoneError:
            # Callers that were known go on routing meanwhile; a revoked token is not among them.
            if digest not in self._known:
                raise
            return self._known[digest][0]
        if found is None:
            self.failures.check(client)
            raise ProblemError(401, "The token is not known.", {"WWW-Authenticate": "Bearer"})
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[digest] = found, time.monotonic() + _KNOWN_S
        return found

    def forget(self) -> None:
        """Clear the cached tokens, because one was revoked."""
        self._known.clear()


def client_of(request: Request) -> str:
    """Return the address of the caller."""
    return request.client.host if request.client else ""


def service_of(request: Request) -> Service:
    """Return the service behind a request."""
    service: Service = request.app.state.service
    if not service.ready:
        raise ProblemError(503, "The service is starting or stopping.", wait=5)
    return service


def admit(request: Request, token: Token, scope: str) -> None:
    """Raise a problem unless a caller is below the rate limit and has a scope."""
    request.app.state.auth.rates.check(token.id)
    if not token.may(scope):
        raise ProblemError(403, f"The token lacks the scope {scope!r}.")
    request.state.caller = token


async def check_token(request: Request, scope: str) -> None:
    """Reject a caller without a token that has a scope."""
    auth: Authenticator = request.app.state.auth
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    if kind.lower() != "bearer" or not secret:
        needed = "Send a token: Authorization: Bearer …"
        raise ProblemError(401, needed, {"WWW-Authenticate": "Bearer"})
    token = auth.known(secret)
    if token is None:  # the database query must not block the event loop
        token = await run_in_threadpool(auth.look_up, secret, client_of(request))
    admit(request, token, scope)


def needs(scope: str) -> Any:
    """Return a dependency that checks for a token with a scope."""

    async def checked(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
    ) -> None:
        await check_token(request, scope)

    checked.scope = scope  # type: ignore[attr-defined]
    return Depends(checked)


def _caller(request: Request) -> Token:
    found: Token = request.state.caller
    return found


Serving = Annotated[Service, Depends(service_of)]
Caller = Annotated[Token, Depends(_caller)]  # checked by the route's scope


class SizeLimit:
    """Rejects requests with a body that is too large or arrives too slowly."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        large = ProblemError(413, f"A request has at most {self.most} bytes.")
        late = f"The body did not arrive within {self.seconds:g} seconds."
        request, body = Request(scope, receive), bytearray()
        try:
            length = request.headers.get("content-length", "0")
            if not length.isdigit() or int(length) > self.most:
                raise large
            async with asyncio.timeout(self.seconds):
                # Small, so it is read at once: no work starts for half a request.
                async for part in request.stream():
                    body += part
                    if len(body) > self.most:
                        raise large
        except ClientDisconnect:
            return
        except (ProblemError, TimeoutError) as error:
            slow = ProblemError(408, late, {"Connection": "close"})
            problem = error if isinstance(error, ProblemError) else slow
            await problem.response()(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self.app(scope, again, send)
