"""The application, and how it is served until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from atpgraph.errors import InputError
from atpgraph_qa._version import __version__
from atpgraph_qa.service import routes
from atpgraph_qa.service.access import Authenticator, SizeLimit, needs
from atpgraph_qa.service.monitoring import ServiceMetrics, Watch, set_up_log
from atpgraph_qa.service.pages import add_pages
from atpgraph_qa.service.problems import ProblemOut
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Limits

# A route lets go of the interpreter a hundred times, and has to wait for it so long each time.
_SWITCH_S = 0.001
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
    limits, server = service.settings.limits, service.settings.server
    app.state.service = service
    app.state.auth = Authenticator(service)
    app.state.metrics = ServiceMetrics(service)
    app.include_router(routes.router)
    add_pages(app)

    @app.get("/openapi.json", include_in_schema=False, dependencies=[needs("read")])
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
    watched = {"requests": app.state.metrics.requests, "logged": service.settings.log.requests}
    app.add_middleware(Watch, **watched)
    return app


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches off the wait for full packets only where the protocol is named: without it an
    # answer, whose head and body are two writes, waits 40 ms for the other side.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(2048)  # whoever reads the address may connect at once, and waits
    except (OSError, OverflowError) as error:
        made.close()
        why = getattr(error, "strerror", None) or error
        raise InputError(f"Cannot listen on {host}, port {port}: {why}.") from error
    return made


def address_of(bound: socket.socket) -> str:
    """Return the address of a socket as a link."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def limited_protocol(limits: Limits) -> type[H11Protocol]:
    """Return an HTTP protocol that closes connections which are too many or too slow.

    Uvicorn has no deadline for headers: a client that sends half of them would keep its
    connection for ever.
    """

    class LimitedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
            else:
                self._expect_headers()

        def data_received(self, data: bytes) -> None:
            idle = self.cycle is None or self.cycle.response_complete
            if idle and self._deadline is None:  # the next request of this connection
                self._expect_headers()
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._headers_are_there()

        def connection_lost(self, exc: Exception | None) -> None:
            self._headers_are_there()
            super().connection_lost(exc)

        def _expect_headers(self) -> None:
            wait = limits.header_seconds
            self._deadline = self.loop.call_later(wait, self.transport.abort)

        def _headers_are_there(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return LimitedProtocol


def config_of(service: Service, app: FastAPI) -> uvicorn.Config:
    """Return how the application is served."""
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
        timeout_keep_alive=75,  # callers should close first: we might cut off a request
    )


def serve(
    service: Service, bound: socket.socket, started: Callable[[], None] | None = None
) -> None:
    """Answer requests on a socket until a signal comes; then finish and close."""
    set_up_log(service.settings.log.level)
    app = create_app(service)
    gc.collect()
    gc.freeze()  # the history stays: to look through it for garbage takes tenths of a second
    sys.setswitchinterval(_SWITCH_S)
    server = uvicorn.Server(config_of(service, app))
    if started is not None:
        started()
    with contextlib.closing(bound):
        server.run(sockets=[bound])
