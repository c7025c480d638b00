"""Who may do what and how much; errors as problem details (RFC 9457), for people as a page."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atpgraph.errors import InputError
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import tables, tokens
from atpgraph_qa.service.adapters.base import ForgedError
from atpgraph_qa.service.database import DatabaseGoneError, NotInChargeError
from atpgraph_qa.service.engine import BusyError
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.suggester import ConflictError
from atpgraph_qa.service.tables import idempotency
from atpgraph_qa.service.tokens import Token

LOG = logging.getLogger("atpgraph.serve")
MEDIA = "application/problem+json"
TITLES = {
    400: "Bad request", 401: "Token needed", 403: "Not allowed", 404: "Not found",
    405: "Method not allowed", 408: "Too slow", 409: "Conflict", 413: "Too large", 415: "Not JSON",
    422: "Not valid", 429: "Too many requests", 500: "A bug", 503: "Not available now",
}  # fmt: skip
# Status and seconds to wait for errors that say in words what is wrong.
_STATUS: dict[type[Exception], tuple[int, int]] = {
    InputError: (422, 0), ForgedError: (401, 0), ConflictError: (409, 0), BusyError: (503, 1),
    DatabaseGoneError: (503, 5), NotInChargeError: (503, 30),
}  # fmt: skip


class ProblemOut(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = ""


class ProblemError(Exception):
    """An error to answer with."""

    def __init__(
        self, status: int, detail: str = "", headers: dict[str, str] | None = None, wait: int = 0
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})
        self.title = TITLES.get(status, "Error")
        if wait:
            self.headers["Retry-After"] = str(wait)

    def response(self) -> Response:
        """Return the answer for a machine."""
        name = f"urn:atpgraph:problem:{self.title.lower().replace(' ', '-')}"
        content = ProblemOut(type=name, title=self.title, status=self.status, detail=self.detail)
        return JSONResponse(content.model_dump(), self.status, self.headers, MEDIA)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what a route may answer besides success, for the OpenAPI document."""
    content = {MEDIA: {"schema": {"$ref": "#/components/schemas/ProblemOut"}}}
    return {status: {"description": TITLES[status], "content": content} for status in statuses}


def as_problem(error: Exception) -> ProblemError:
    """Return what to answer when something was raised."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, (RequestValidationError, ValidationError)):
        # Where and what, never the value: it may be personal.
        said = [
            f"{'.'.join(map(str, entry['loc']))}: {entry['msg'].removeprefix('Value error, ')}"
            for entry in error.errors()[:5]
        ]
        return ProblemError(422, "; ".join(said))
    if isinstance(error, HTTPException):
        return ProblemError(error.status_code, str(error.detail), dict(error.headers or {}))
    for kind, (status, wait) in _STATUS.items():
        if isinstance(error, kind):
            return ProblemError(status, str(error), wait=wait)
    # The message of an unforeseen error may quote data; its kind and place do not.
    trace, last = error.__traceback__, ""
    while trace is not None:
        last = f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
        trace = trace.tb_next
    LOG.error("bug", extra={"facts": {"kind": type(error).__name__, "place": last}})
    return ProblemError(500, f"{type(error).__name__} at {last}.")


def answer_problems(app: FastAPI, page: Callable[[Request, ProblemError], Response]) -> None:
    """Answer every error with a problem: JSON for machines, a page for browsers."""

    def answer(request: Request, error: Exception) -> Response:
        found = as_problem(error)
        machine = request.url.path.startswith(("/v1", "/metrics", "/livez", "/readyz", "/openapi"))
        return found.response() if machine else page(request, found)

    for kind in (ProblemError, RequestValidationError, HTTPException, Exception, *_STATUS):
        app.add_exception_handler(kind, answer)


_KNOWN_S = 30.0  # how long a token is known without asking the database
_STUCK_MS = 60_000  # an attempt that did not end by then died with its process
_BEARER = HTTPBearer(auto_error=False, description="A token, see POST /v1/tokens.")


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
        """Raise a problem if a caller does too much."""
        wait = self.take(caller)
        if wait:
            raise ProblemError(429, f"Try again in {wait} s.", wait=wait)


class Authenticator:
    """Check tokens and limit the rate of callers."""

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
            # Whoever was known goes on routing meanwhile; a revoked token is not in there.
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
    """Admit a caller who is below the rate limit and has a scope."""
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
    if token is None:  # the database is asked off the event loop
        token = await run_in_threadpool(auth.look_up, secret, client_of(request))
    admit(request, token, scope)


def needs(scope: str) -> Any:
    """Return a dependency: a token with a scope."""

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
Caller = Annotated[Token, Depends(_caller)]  # whom the route's scope let in


class SizeLimit:
    """Reject requests with a body that is too large or arrives too slowly."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        large = ProblemError(413, f"A request has at most {self.most} bytes.").response()
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most:
            await large(scope, receive, send)
            return
        body, more = b"", True
        until = asyncio.get_running_loop().time() + self.seconds
        while more:  # small, and so read at once: nothing is done for half a request
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                late = f"The body did not arrive within {self.seconds:g} seconds."
                await ProblemError(408, late, {"Connection": "close"}).response()(
                    scope, receive, send
                )
                return
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > self.most:
                await large(scope, receive, send)
                return
            more = message.get("more_body", False)
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self.app(scope, again, send)


def document_key(
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key", min_length=1, max_length=200,
            description="The same key with the same request gets the same answer, without a new "
            "effect; kept for a day.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Describe the header that :class:`IdempotentRoute` reads."""


class IdempotentRoute(APIRoute):
    """Repeats the answer to a request that comes again under its key.

    Answers other than successes are not kept.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            key = request.headers.get("idempotency-key", "")
            if not 0 < len(key) <= 200:
                return await handle(request)
            service: Service = request.app.state.service
            # A token is known by its digest; whoever has no valid one gets no answer to keep.
            caller = hashlib.sha256(request.headers.get("authorization", "").encode()).digest()
            token = int.from_bytes(caller[:7], "big")
            raw = f"{request.method} {request.url.path} ".encode() + await request.body()
            mark = hashlib.sha256(raw).hexdigest()
            kept = await run_in_threadpool(_begin, service, token, key, mark)
            if kept is not None:
                return kept
            answer = None
            try:
                answer = await handle(request)
                return answer
            finally:
                await run_in_threadpool(_end, service, token, key, answer)

        return handler


def _begin(service: Service, token: int, key: str, mark: str) -> Response | None:
    """Return the answer that a key got before, None if the request is to be done."""
    now, t = service.clock(), idempotency.c
    with service.database.write() as connection:
        tables.remove(connection, idempotency, t.created_ms < now - DAY_MS)
        values = {"token": token, "name": key, "fingerprint": mark, "created_ms": now}
        if tables.add(connection, idempotency, **values) is not None:
            return None
        row = tables.find_one(connection, idempotency, (t.token == token) & (t.name == key))
    if row is None:
        return None
    if row["fingerprint"] != mark:
        raise ProblemError(422, "The key was used for another request.")
    if row["status"] is not None:
        sent = {"Idempotent-Replay": "true", "Content-Type": "application/json"}
        return Response(row["body"], row["status"], sent)
    if now - row["created_ms"] < _STUCK_MS:
        raise ProblemError(409, "The first request is still under way.", wait=1)
    return None


def _end(service: Service, token: int, key: str, answer: Response | None) -> None:
    which = (idempotency.c.token == token) & (idempotency.c.name == key)
    with service.database.write() as connection:
        if answer is not None and 200 <= answer.status_code < 300:
            values = {"status": answer.status_code, "body": bytes(answer.body).decode()}
            tables.change(connection, idempotency, which, **values)
        else:
            tables.remove(connection, idempotency, which)
