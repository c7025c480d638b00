"""What operators watch: figures for Prometheus, and the log, one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from sqlalchemy import func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atpgraph_qa._version import __version__
from atpgraph_qa.service import tables
from atpgraph_qa.service.database import DatabaseGoneError
from atpgraph_qa.service.service import Service

LOG = logging.getLogger("atpgraph.serve")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS")
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with none at all, our own forms would be strangers
    (b"cache-control", b"no-store"),
]


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
            path = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.requests.labels(path, method, status).observe(took)
            if self.logged:
                caller = scope.get("state", {}).get("caller")
                facts = {"route": path, "method": method, "status": status,
                         "ms": round(1000 * took, 1), "token": caller and caller.id}  # fmt: skip
                LOG.info("request", extra={"facts": facts})


class JsonLines(logging.Formatter):
    """A record as a JSON object: time, level, what, and its facts, without personal data."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line = {
            **getattr(record, "facts", {}),
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "what": record.getMessage(),
        }
        if record.exc_info and record.exc_info[2] is not None:
            # Places only: the message of an error may quote what somebody wrote.
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
