"""Idempotency keys: a request that is sent twice is done once."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import Header
from sqlalchemy import delete, select, update
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.api.problems import problem
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.store.database import DatabaseGoneError
from atpgraph_qa.service.store.tables import idempotency, insert_into

HEADER = b"idempotency-key"
_STUCK_MS = 60_000  # an attempt that did not end by then died with its process


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
    """Describe the header that :class:`Idempotency` reads."""


class Idempotency:
    """Repeats the answer to a request of the API that comes again under its key.

    It is the innermost layer, so the body has been read; answers other than successes are not kept.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or repeat its answer."""
        headers = dict(scope.get("headers", ()))
        key = headers.get(HEADER, b"").decode("latin-1")
        changes = scope.get("method") in ("POST", "PATCH", "DELETE")
        if not 0 < len(key) <= 200 or not changes or not scope["path"].startswith("/v1/"):
            await self.app(scope, receive, send)
            return
        message = await receive()
        # A token is known by its digest; whoever has no valid one gets no answer to keep.
        caller = hashlib.sha256(headers.get(b"authorization", b"")).digest()
        mine = int.from_bytes(caller[:7], "big"), key
        raw = f"{scope['method']} {scope['path']} ".encode() + message.get("body", b"")
        try:
            kept = await run_in_threadpool(self._begin, mine, hashlib.sha256(raw).hexdigest())
        except DatabaseGoneError as error:
            kept = problem(503, str(error), {"Retry-After": "5"})
        if kept is not None:
            await kept(scope, receive, send)
            return
        status, parts = 500, list[bytes]()

        async def again() -> Message:
            nonlocal message
            given, message = message, {"type": "http.disconnect"}
            return given

        async def noted(answer: Message) -> None:
            nonlocal status
            status = answer.get("status", status)
            parts.append(answer.get("body", b""))
            await send(answer)

        try:
            await self.app(scope, again, noted)
        finally:
            await run_in_threadpool(self._end, mine, status, b"".join(parts).decode())

    def _begin(self, mine: tuple[int, str], fingerprint: str) -> Response | None:
        now, which = self.service.clock(), _row(mine)
        with self.service.database.write() as connection:
            connection.execute(delete(idempotency).where(idempotency.c.created_ms < now - DAY_MS))
            made = insert_into(connection, idempotency).values(
                token=mine[0], name=mine[1], fingerprint=fingerprint, created_ms=now
            )
            made = made.on_conflict_do_nothing().returning(idempotency.c.name)
            if connection.execute(made).first() is not None:
                return None
            row = connection.execute(select(idempotency).where(which)).one()
        if row.fingerprint != fingerprint:
            return problem(422, "The key was used for another request.")
        if row.status is not None:
            sent = {"Idempotent-Replay": "true", "Content-Type": "application/json"}
            return Response(row.body, row.status, sent)
        if now - row.created_ms < _STUCK_MS:
            return problem(409, "The first request is still under way.", {"Retry-After": "1"})
        return None

    def _end(self, mine: tuple[int, str], status: int, body: str) -> None:
        with self.service.database.write() as connection:
            if 200 <= status < 300:
                values = {"status": status, "body": body}
                connection.execute(update(idempotency).where(_row(mine)).values(**values))
            else:
                connection.execute(delete(idempotency).where(_row(mine)))


def _row(mine: tuple[int, str]) -> Any:
    return (idempotency.c.token == mine[0]) & (idempotency.c.name == mine[1])
