"""The application: routes, limits, errors, and the OpenAPI document."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware

from atpgraph_qa._version import __version__
from atpgraph_qa.service.api import admin, metrics, routes
from atpgraph_qa.service.api.auth import Authenticator
from atpgraph_qa.service.api.limits import SizeLimit
from atpgraph_qa.service.api.pool import Pool
from atpgraph_qa.service.api.problems import ProblemOut, answer_problems
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store.tokens import Token

_ABOUT = """Who should answer a question of a community.

Events of the site come in under `questions`, `answers`, `acceptances` and `votes`, or by signed
hooks; suggestions come out under `suggestions`, by webhooks, or on the page at `/`. Errors are
problem details (RFC 9457). Every route but health needs a token with the scope it names."""


def create_app(service: Service, *, background: bool = True) -> FastAPI:
    """The application of a service; it starts and stops the service's threads."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if background:
            service.start()
        try:
            yield
        finally:
            await run_in_threadpool(app.state.pool.close)
            await run_in_threadpool(service.stop)

    app = FastAPI(
        title="atpgraph", version=__version__, description=_ABOUT, lifespan=lifespan,
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
    )  # fmt: skip
    settings = service.settings
    app.state.service = service
    app.state.auth = Authenticator(service.database, settings.limits, service.clock)
    app.state.counters = metrics.Counters()
    app.state.pool = Pool(settings.limits.queue_routes)
    answer_problems(app)
    for router in (routes.router, admin.router, metrics.router):
        app.include_router(router)

    @app.get("/openapi.json", include_in_schema=False)
    def document(token: Token = routes.MaySee) -> JSONResponse:
        return JSONResponse(describe(app))

    limits = settings.limits
    app.add_middleware(SizeLimit, most=limits.body_bytes, seconds=limits.body_seconds)
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.server.cors_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    app.add_middleware(metrics.Watch, counters=app.state.counters, logged=settings.log.requests)
    return app


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document."""
    document = app.openapi()
    schemas = document["components"]["schemas"]
    schemas.setdefault("ProblemOut", ProblemOut.model_json_schema())
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document
