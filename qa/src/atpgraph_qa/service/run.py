"""The application, its metrics for Prometheus, its log, and the server that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import socket
import sys
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from sqlalchemy import func, select
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from atpgraph.errors import InputError
from atpgraph_qa._version import __version__
from atpgraph_qa.service import routes, tables
from atpgraph_qa.service.database import DatabaseGoneError
from atpgraph_qa.service.pages import add_pages
from atpgraph_qa.service.problems import ProblemError, ProblemOut
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Limits
from atpgraph_qa.service.tokens import Authenticator

LOG = logging.getLogger("atpgraph.serve")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS")
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # without a referrer, our own forms would look foreign
    (b"cache-control", b"no-store"),
]


class ServiceMetrics:
    """Metrics of the service, computed when they are requested."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.requests = Histogram(
            "atp_request_seconds", "Time of requests.", ("route", "method", "status"),
            buckets=BUCKETS, registry=self.registry,
        )  # fmt: skip

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        service, engine = self.service, self.service.engine
        yield InfoMetricFamily("atp", "The program.", {"version": __version__})
        gauges = {
            "ready": int(service.ready),
            "events_applied": engine.seq,
            "events_waiting": engine.waiting,
            "routes_under_way": engine.limiter.under_way,
            "users": engine.advisor.history.n_users,
            "history_age_days": round(engine.days_behind(), 3),
            "database_up": 1,
        }
        try:
            with service.database.read() as connection:
                for table, name in (
                    (tables.outbox, "messages"), (tables.suggestions, "suggestions")
                ):  # fmt: skip
                    family = GaugeMetricFamily(f"atp_{name}", "By state.", labels=["state"])
                    query = select(table.c.state, func.count()).group_by(table.c.state)
                    for state, count in connection.execute(query):
                        family.add_metric([state], count)
                    yield family
        except DatabaseGoneError:
            gauges["database_up"] = 0
        for name, value in gauges.items():
            yield GaugeMetricFamily(f"atp_{name}", "See the page on operations.", value)


class Watch:
    """Counts and logs requests by the pattern of their route, since paths may hold user ids."""

    def __init__(self, app: ASGIApp, requests: Histogram, logged: bool) -> None:
        self.app, self.requests, self.logged = app, requests, logged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_SAFE]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            took = time.perf_counter() - started
            path = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.requests.labels(path, method, status).observe(took)
            if self.logged:
                caller = scope.get("state", {}).get("caller")
                facts = {"route": path, "method": method, "status": status,
                         "ms": round(1000 * took, 1), "token": caller and caller.id}  # fmt: skip
                LOG.info("request", extra={"facts": facts})


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


class JsonLines(logging.Formatter):
    """Formats a record as a JSON object: time, level, what, and facts, without personal data."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line = {
            **getattr(record, "facts", {}),
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "what": record.getMessage(),
        }
        if record.exc_info and record.exc_info[2] is not None:
            # Only the places: the message of an error may quote what somebody wrote.
            frames = traceback.extract_tb(record.exc_info[2])[-5:]
            line["trace"] = [f"{frame.name}:{frame.lineno}" for frame in frames]
        return json.dumps(line, default=str)


def set_up_log(level: str) -> None:
    """Send the service's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("atpgraph.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level.upper() if name == "atpgraph.serve" else "WARNING")
        logger.propagate = False


# A route releases the interpreter lock a hundred times, and may wait this long for it each time.
_SWITCH_S = 0.001
_ABOUT = """Find the people of a community who can answer a question.

Send events of the site to `questions`, `edits`, `closures`, `answers`, `acceptances` and `votes`,
or as signed hooks. Read suggestions from `suggestions`, from webhooks, or on the page at `/`.
Errors are problem details (RFC 9457). Every route but health needs a token with the scope that it
names."""


def create_app(service: Service, *, background: bool = True) -> FastAPI:
    """Return the application of a service; it starts and stops the service's threads."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if background:
            service.start()
        try:
            yield
        finally:
            await run_in_threadpool(service.stop)

    app = FastAPI(
        title="atpgraph", version=__version__, description=_ABOUT, lifespan=lifespan,
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
    )  # fmt: skip
    limits, server = service.settings.limits, service.settings.server
    app.state.service = service
    app.state.auth = Authenticator(service.database, limits, service.clock)
    app.state.metrics = ServiceMetrics(service)
    app.include_router(routes.router)
    add_pages(app)

    @app.get("/openapi.json", include_in_schema=False, dependencies=[routes.needs("read")])
    def document() -> dict[str, Any]:
        made = app.openapi()
        schemas = made["components"]["schemas"]
        schemas.setdefault("ProblemOut", ProblemOut.model_json_schema())
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        return made

    app.add_middleware(SizeLimit, most=limits.body_bytes, seconds=limits.body_seconds)
    if server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(server.cors_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    requests, logged = app.state.metrics.requests, service.settings.log.requests
    app.add_middleware(Watch, requests=requests, logged=logged)
    return app


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:  # clients may connect as soon as they know the address
        made = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"Cannot listen on {host}, port {port}: {why}.") from error
    # Connections inherit it. Without it the body of an answer, which is written after the head,
    # waits 40 ms for the other side.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as a link."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def limited_protocol(limits: Limits) -> type[H11Protocol]:
    """Return an HTTP protocol that closes connections that are too many or too slow.

    Uvicorn has no deadline for headers: a client that sends half of them would keep its
    connection forever.
    """

    class LimitedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect_headers()
            if len(self.connections) > limits.connections:
                transport.abort()

        def _expect_headers(self) -> None:
            wait = limits.header_seconds
            self._deadline = self.loop.call_later(wait, self.transport.abort)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            if before is not None and before.response_complete and self._deadline.cancelled():
                self._expect_headers()  # of the next request of this connection
            super().data_received(data)
            if self.cycle is not before:
                self._deadline.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            self._deadline.cancel()
            super().connection_lost(exc)

    return LimitedProtocol


def config_of(service: Service, app: FastAPI) -> uvicorn.Config:
    """Return Uvicorn's configuration."""
    server = service.settings.server
    return uvicorn.Config(
        app,
        http=limited_protocol(service.settings.limits),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=server.behind_proxy,
        forwarded_allow_ips=list(server.trusted_proxies),
        timeout_graceful_shutdown=20,
        timeout_keep_alive=75,  # callers should close first, or a request may be cut off
    )


def serve(service: Service, bound: socket.socket) -> None:
    """Answer requests on a socket until a signal comes; then finish and close."""
    set_up_log(service.settings.log.level)
    app = create_app(service)
    gc.collect()
    gc.freeze()  # scanning the history, which stays, would take tenths of a second each time
    sys.setswitchinterval(_SWITCH_S)
    with contextlib.closing(bound):
        uvicorn.Server(config_of(service, app)).run(sockets=[bound])
