"""Figures for Prometheus, and the line in the log for each request."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from sqlalchemy import func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atpgraph_qa._version import __version__
from atpgraph_qa.service.api.auth import Authenticator
from atpgraph_qa.service.api.problems import ProblemError
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store import tables
from atpgraph_qa.service.store.database import DatabaseGoneError

LOG = logging.getLogger("atpgraph.serve")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
router = APIRouter()


class Counters:
    """Requests by route, method and status, and how long routes took."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self.times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.total: dict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def add(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            self.requests[route, method, status] += 1
            self.times[route][bisect_left(BUCKETS, seconds)] += 1
            self.total[route] += seconds

    def lines(self) -> Iterator[str]:
        """In the text format of Prometheus."""
        with self._lock:
            yield "# TYPE atp_requests_total counter"
            for (route, method, status), count in sorted(self.requests.items()):
                labels = f'route="{route}",method="{method}",status="{status}"'
                yield f"atp_requests_total{{{labels}}} {count}"
            yield "# TYPE atp_request_seconds histogram"
            for route, counts in sorted(self.times.items()):
                seen = 0
                for edge, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
                    seen += count
                    yield f'atp_request_seconds_bucket{{route="{route}",le="{edge}"}} {seen}'
                yield f'atp_request_seconds_sum{{route="{route}"}} {self.total[route]:.6f}'
                yield f'atp_request_seconds_count{{route="{route}"}} {seen}'


class Watch:
    """Counts and logs requests by the pattern of their route: paths may hold ids of people."""

    def __init__(self, app: ASGIApp, counters: Counters, logged: bool) -> None:
        self.app, self.counters, self.logged = app, counters, logged

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
            route: Any = scope.get("route")
            path = getattr(route, "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.counters.add(path, method, status, took)
            if self.logged:
                facts = {"route": path, "method": method, "status": status,
                         "ms": round(1000 * took, 1),
                         "token": scope.get("state", {}).get("token")}  # fmt: skip
                LOG.info("request", extra={"facts": facts})


_METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS")
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with none at all, our own forms would be strangers
    (b"cache-control", b"no-store"),
]


@router.get("/metrics", summary="Figures for Prometheus", tags=["health"])
def metrics(request: Request) -> Response:
    """Needs a token with the scope read, unless server.public_metrics is set."""
    service: Service = request.app.state.service
    if not service.settings.server.public_metrics:
        _check(request)
    lines = [
        f'atp_info{{version="{__version__}"}} 1',
        f"atp_ready {int(service.ready)}",
        f"atp_events_applied {service.engine.seq}",
        f"atp_events_waiting {service.engine.waiting}",
        f"atp_routes_under_way {request.app.state.pool.under_way}",
        f"atp_users {service.engine.current().history.n_users}",
    ]
    try:
        with service.database.read() as connection:
            for table, name in ((tables.outbox, "messages"), (tables.suggestions, "suggestions")):
                query = select(table.c.state, func.count()).group_by(table.c.state)
                for state, count in connection.execute(query):
                    lines.append(f'atp_{name}{{state="{state}"}} {count}')
        lines.append("atp_database_up 1")
    except DatabaseGoneError:
        lines.append("atp_database_up 0")
    lines += request.app.state.counters.lines()
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _check(request: Request) -> None:
    auth: Authenticator = request.app.state.auth
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret:
        raise ProblemError(401, "Send a token.", {"WWW-Authenticate": "Bearer"})
    client = request.client.host if request.client else ""
    if not auth.token(secret.strip(), client).may("read"):
        raise ProblemError(403, "The token lacks the scope 'read'.")
