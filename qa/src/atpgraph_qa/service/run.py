"""Serve until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from atpgraph.errors import InputError
from atpgraph_qa.service import logs
from atpgraph_qa.service.api.app import create_app
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Limits
from atpgraph_qa.service.web.pages import add_pages

# A route lets go of the interpreter a hundred times, and has to wait for it so long each time.
_SWITCH_S = 0.001


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
    logs.set_up(service.settings.log.level)
    app = create_app(service)
    add_pages(app)
    gc.collect()
    gc.freeze()  # the history stays: to look through it for garbage takes tenths of a second
    sys.setswitchinterval(_SWITCH_S)
    server = uvicorn.Server(config_of(service, app))
    if started is not None:
        started()
    with contextlib.closing(bound):
        server.run(sockets=[bound])
