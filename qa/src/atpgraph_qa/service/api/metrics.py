"""Figures for Prometheus, and the line in the log for each request."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from sqlalchemy import func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atpgraph_qa._version import __version__
from atpgraph_qa.service.api.auth import token_of
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store import tables
from atpgraph_qa.service.store.database import DatabaseGoneError

LOG = logging.getLogger("atpgraph.serve")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS")
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with none at all, our own forms would be strangers
    (b"cache-control", b"no-store"),
]
router = APIRouter()


class ServiceMetrics:
    """What the service knows of itself at the moment it is asked."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.requests = Histogram(
            "atp_request_seconds", "Time of requests.", ("route", "method", "status"),
            buckets=BUCKETS, registry=self.registry,
        )  # fmt: skip

    def collect(self) -> Iterator[Metric]:
        """Yield the figures."""
        service, engine = self.service, self.service.engine
        yield InfoMetricFamily("atp", "The program.", {"version": __version__})
        gauges = {
            "ready": int(service.ready),
            "events_applied": engine.seq,
            "events_waiting": engine.waiting,
            "routes_under_way": engine.limiter.under_way,
            "users": engine.current().history.n_users,
            "history_age_days": round(engine.days_behind(), 3),
        }
        up = 1
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
            up = 0
        for name, value in {**gauges, "database_up": up}.items():
            yield GaugeMetricFamily(f"atp_{name}", "See the page on operations.", value)


class Watch:
    """Counts and logs requests by the pattern of their route: paths may hold ids of people."""

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
            route: Any = scope.get("route")
            path = getattr(route, "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.requests.labels(path, method, status).observe(took)
            if self.logged:
                facts = {"route": path, "method": method, "status": status,
                         "ms": round(1000 * took, 1),
                         "token": scope.get("state", {}).get("token")}  # fmt: skip
                LOG.info("request", extra={"facts": facts})


@router.get(
    "/metrics", summary="Figures for Prometheus", tags=["health"], response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Needs a token with the scope read, unless server.public_metrics is set."""
    found: ServiceMetrics = request.app.state.metrics
    if not found.service.settings.server.public_metrics:
        await token_of(request, "read")
    return Response(generate_latest(found.registry), media_type=CONTENT_TYPE_LATEST)
