"""Messages on their way out, written in the same transaction as what they are about."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from atpgraph_qa.service.store.database import Database
from atpgraph_qa.service.store.tables import deliveries, outbox, suggestions, switched_off

# Seconds to the next attempt: from five seconds to half a day, over three days in all.
BACKOFF = (5, 60, 300, 1800, 7200, 18_000, 36_000, 43_200, 43_200, 43_200, 43_200)


@dataclass(frozen=True)
class Message:
    """Something to deliver.

    Attributes
    ----------
    id : str
        The same in every attempt, so that a receiver knows a repetition.
    suggestion : int
    adapter : str
    payload : dict
    attempts : int
        Those before this one.
    """

    id: str
    suggestion: int
    adapter: str
    payload: dict[str, Any]
    attempts: int


def enqueue(
    connection: Connection, suggestion: int, adapter: str, payload: dict[str, Any], now_ms: int
) -> str:
    """Put a message into the outbox; returns its id."""
    name = f"msg_{secrets.token_hex(16)}"
    connection.execute(
        insert(outbox).values(
            id=name, suggestion=suggestion, adapter=adapter, payload=json.dumps(payload),
            state="waiting", attempts=0, next_ms=now_ms, created_ms=now_ms,
        )
    )  # fmt: skip
    return name


def claim(
    database: Database, connection: Connection, now_ms: int, limit: int = 20
) -> list[Message]:
    """Take messages that are due; they are ``sending`` until :func:`settle`."""
    off = select(switched_off.c.adapter)
    query = select(outbox).where(
        outbox.c.state == "waiting", outbox.c.next_ms <= now_ms, outbox.c.adapter.not_in(off)
    )
    query = query.order_by(outbox.c.next_ms).limit(limit)
    if not database.is_sqlite:
        query = query.with_for_update(skip_locked=True)
    rows = connection.execute(query).all()
    if rows:
        ids = [row.id for row in rows]
        change = update(outbox).where(outbox.c.id.in_(ids))
        connection.execute(change.values(state="sending", attempts=outbox.c.attempts + 1))
    return [
        Message(row.id, row.suggestion, row.adapter, json.loads(row.payload), row.attempts)
        for row in rows
    ]


def settle(
    connection: Connection, message: Message, *, status: int | None, error: str, took_ms: int,
    now_ms: int, again: bool,
) -> str:  # fmt: skip
    """Record an attempt; the new state: sent, waiting (for another attempt) or dead."""
    state, next_ms = "sent", now_ms
    if error:
        state = "waiting" if again and message.attempts < len(BACKOFF) else "dead"
        if state == "waiting":
            next_ms = now_ms + 1000 * BACKOFF[message.attempts]
    connection.execute(
        insert(deliveries).values(
            message=message.id, at_ms=now_ms, status=status, error=error, took_ms=took_ms
        )
    )
    connection.execute(
        update(outbox).where(outbox.c.id == message.id).values(state=state, next_ms=next_ms)
    )
    if state == "sent":
        connection.execute(
            update(suggestions)
            .where(suggestions.c.id == message.suggestion, suggestions.c.state == "proposed")
            .values(state="delivered", changed_ms=now_ms)
        )
    return state


def recover(connection: Connection, repeatable: set[str], now_ms: int) -> tuple[int, int]:
    """After a crash: what was being sent may have arrived or not.

    A receiver that knows a message by its id gets it again. Where it would appear twice, it is
    left as ``uncertain`` for somebody to decide. Returns how many of each. An attempt that ended
    with the process does not count: crashes would make the pauses long.
    """
    rows = connection.execute(select(outbox).where(outbox.c.state == "sending")).all()
    again = [row.id for row in rows if row.adapter in repeatable]
    unsure = [row.id for row in rows if row.adapter not in repeatable]
    for ids, state in ((again, "waiting"), (unsure, "uncertain")):
        if ids:
            change = update(outbox).where(outbox.c.id.in_(ids))
            tried = outbox.c.attempts - 1
            connection.execute(change.values(state=state, next_ms=now_ms, attempts=tried))
    return len(again), len(unsure)


def cancel(connection: Connection, question: int) -> int:
    """Stop messages about a question that somebody has answered; how many."""
    about = select(suggestions.c.id).where(suggestions.c.question == question)
    done = connection.execute(
        update(outbox)
        .where(outbox.c.suggestion.in_(about), outbox.c.state == "waiting")
        .values(state="cancelled")
    )
    return int(done.rowcount)


def redeliver(connection: Connection, message: str, now_ms: int) -> bool:
    """Send a message again that is dead, uncertain, cancelled or sent; False if there is none."""
    done = connection.execute(
        update(outbox)
        .where(outbox.c.id == message, outbox.c.state.not_in(("waiting", "sending")))
        .values(state="waiting", next_ms=now_ms, attempts=0)
    )
    row = connection.execute(select(outbox.c.adapter).where(outbox.c.id == message)).first()
    if row is not None:
        connection.execute(switched_off.delete().where(switched_off.c.adapter == row.adapter))
    return bool(done.rowcount)


def switch_off(connection: Connection, adapter: str, why: str, now_ms: int) -> None:
    """Stop an adapter whose receiver is gone for good."""
    connection.execute(switched_off.delete().where(switched_off.c.adapter == adapter))
    connection.execute(insert(switched_off).values(adapter=adapter, since_ms=now_ms, why=why))


def listed(connection: Connection, limit: int = 100) -> list[dict[str, Any]]:
    """The newest messages with their last attempt, without what is in them."""
    wanted = (
        outbox.c.id, outbox.c.suggestion, outbox.c.adapter, outbox.c.state, outbox.c.attempts,
        outbox.c.next_ms, outbox.c.created_ms,
    )  # fmt: skip
    rows = connection.execute(select(*wanted).order_by(outbox.c.created_ms.desc()).limit(limit))
    found = [dict(row._mapping) for row in rows]
    for entry in found:
        last = connection.execute(
            select(deliveries.c.status, deliveries.c.error, deliveries.c.at_ms)
            .where(deliveries.c.message == entry["id"])
            .order_by(deliveries.c.id.desc())
            .limit(1)
        ).first()
        entry["last"] = None if last is None else dict(last._mapping)
    return found
