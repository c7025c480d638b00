"""Idempotency keys: a request that is sent twice is done once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Header, Request
from fastapi.responses import JSONResponse, Response
from sqlalchemy import delete, select, update

from atpgraph_qa.service.api.problems import ProblemError
from atpgraph_qa.service.store.database import Database, insert_into
from atpgraph_qa.service.store.tables import idempotency
from atpgraph_qa.service.store.tokens import Token

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200,
        description="The same key with the same request gets the same answer, without a new "
        "effect; kept for a day.",
    ),
]  # fmt: skip
DAY_MS = 86_400_000
_STUCK_MS = 60_000  # an attempt that did not end by then died with its process


def run_once(
    request: Request, token: Token, key: str | None, body: Any, make: Callable[[], tuple[int, Any]]
) -> Response:
    """What `make` gives (status and content), or what it gave before for the same key."""
    if key is None:
        status, content = make()
        return JSONResponse(content, status)
    database: Database = request.app.state.service.database
    now = request.app.state.service.clock()
    written = json.dumps([request.method, request.url.path, body], sort_keys=True, default=str)
    fingerprint = hashlib.sha256(written.encode()).hexdigest()
    mine = (idempotency.c.token == token.id) & (idempotency.c.name == key)
    with database.write() as connection:
        connection.execute(delete(idempotency).where(idempotency.c.created_ms < now - DAY_MS))
        made = insert_into(connection, idempotency).values(
            token=token.id, name=key, fingerprint=fingerprint, created_ms=now
        )
        made = made.on_conflict_do_nothing().returning(idempotency.c.name)
        fresh = connection.execute(made).first() is not None
        row = connection.execute(select(idempotency).where(mine)).one()
        if not fresh:
            if row.fingerprint != fingerprint:
                raise ProblemError(422, "The key was used for another request.")
            if row.status is not None:
                return JSONResponse(json.loads(row.body), row.status, {"Idempotent-Replay": "true"})
            if now - row.created_ms < _STUCK_MS:
                raise ProblemError(
                    409, "The first request is still under way.", {"Retry-After": "1"}
                )
    try:
        status, content = make()
    except Exception:
        with database.write() as connection:
            connection.execute(delete(idempotency).where(mine))
        raise
    with database.write() as connection:
        kept = update(idempotency).where(mine).values(status=status, body=json.dumps(content))
        connection.execute(kept)
    return JSONResponse(content, status)
