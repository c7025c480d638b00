"""The application: routes, limits, errors, and the OpenAPI document."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware

from atpgraph_qa._version import __version__
from atpgraph_qa.service.api import metrics, routes
from atpgraph_qa.service.api.auth import Authenticator
from atpgraph_qa.service.api.idempotency import Idempotency
from atpgraph_qa.service.api.limits import SizeLimit
from atpgraph_qa.service.api.problems import ProblemOut, answer_problems
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store.tokens import Token

_ABOUT = """Who should answer a question of a community.

Events of the site come in under `questions`, `edits`, `closures`, `answers`, `acceptances` and
`votes`, or by signed hooks; suggestions come out under `suggestions`, by webhooks, or on the page
at `/`. Errors are problem details (RFC 9457). Every route but health needs a token with the scope
it names."""


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
    settings = service.settings
    app.state.service = service
    app.state.auth = Authenticator(service.database, settings.limits, service.clock)
    app.state.metrics = metrics.ServiceMetrics(service)
    answer_problems(app)
    app.include_router(routes.router)
    app.include_router(metrics.router)

    @app.get("/openapi.json", include_in_schema=False)
    def document(token: Token = routes.MaySee) -> dict[str, Any]:
        return describe(app)

    limits = settings.limits
    app.add_middleware(Idempotency, service=service)
    app.add_middleware(SizeLimit, most=limits.body_bytes, seconds=limits.body_seconds)
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.server.cors_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    requests = app.state.metrics.requests
    app.add_middleware(metrics.Watch, requests=requests, logged=settings.log.requests)
    return app


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document."""
    document = app.openapi()
    schemas = document["components"]["schemas"]
    schemas.setdefault("ProblemOut", ProblemOut.model_json_schema())
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document
