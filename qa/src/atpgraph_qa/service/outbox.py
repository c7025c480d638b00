"""Messages on their way out, written in the same transaction as what they are about."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, select

from atpgraph_qa.service.database import Database
from atpgraph_qa.service.tables import (
    Row,
    add,
    change,
    deliveries,
    find,
    find_one,
    outbox,
    remove,
    save,
    suggestions,
    switched_off,
)

# Seconds to the next attempt: from five seconds to half a day, over three days in all.
BACKOFF = (5, 60, 300, 1800, 7200, 18_000, 36_000, 43_200, 43_200, 43_200, 43_200)


@dataclass(frozen=True)
class Message:
    """Something to deliver; its id is the same in every attempt, `attempts` are earlier ones."""

    id: str
    suggestion: int
    adapter: str
    payload: Row
    attempts: int


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt: status if there was one, error if it failed."""

    status: int | None
    error: str = ""
    again: bool = False
    took_ms: int = 0


def enqueue(
    connection: Connection, suggestion: int, adapter: str, payload: Row, now_ms: int
) -> None:
    """Put a message into the outbox."""
    add(
        connection, outbox, id=f"msg_{secrets.token_hex(16)}", suggestion=suggestion,
        adapter=adapter, payload=payload, state="waiting", attempts=0, next_ms=now_ms,
        created_ms=now_ms,
    )  # fmt: skip


def claim(
    database: Database, connection: Connection, now_ms: int, limit: int = 20
) -> list[Message]:
    """Take messages that are due; they are ``sending`` until :func:`settle`."""
    t = outbox.c
    query = select(t.id, t.suggestion, t.adapter, t.payload, t.attempts).where(
        t.state == "waiting", t.next_ms <= now_ms, t.adapter.not_in(select(switched_off.c.adapter))
    )
    query = query.order_by(t.next_ms).limit(limit)
    if not database.is_sqlite:
        query = query.with_for_update(skip_locked=True)
    messages = [Message(**row) for row in find(connection, query)]
    which = t.id.in_([message.id for message in messages])
    change(connection, outbox, which, state="sending", attempts=t.attempts + 1)
    return messages


def settle(connection: Connection, message: Message, outcome: Outcome, now_ms: int) -> str:
    """Record an attempt; return the new state: sent, waiting (for another attempt) or dead."""
    state, next_ms = "sent", now_ms
    if outcome.error and outcome.again and message.attempts < len(BACKOFF):
        state, next_ms = "waiting", now_ms + 1000 * BACKOFF[message.attempts]
    elif outcome.error:
        state = "dead"
    add(
        connection, deliveries, message=message.id, at_ms=now_ms, status=outcome.status,
        error=outcome.error, took_ms=outcome.took_ms,
    )  # fmt: skip
    change(connection, outbox, outbox.c.id == message.id, state=state, next_ms=next_ms)
    if state == "sent":
        which = (suggestions.c.id == message.suggestion) & (suggestions.c.state == "proposed")
        change(connection, suggestions, which, state="delivered", changed_ms=now_ms)
    return state


def recover(connection: Connection, repeatable: set[str], now_ms: int) -> tuple[int, int]:
    """Decide about what was being sent at a crash, and may have arrived or not.

    A receiver that knows a message by its id gets it again. Where it would appear twice, it is
    left as ``uncertain`` for somebody to decide. Returns how many of each. An attempt that ended
    with the process does not count: crashes would make the pauses long.
    """
    sending, again = outbox.c.state == "sending", outbox.c.adapter.in_(repeatable)
    values = {"next_ms": now_ms, "attempts": outbox.c.attempts - 1}
    return (
        change(connection, outbox, sending & again, state="waiting", **values),
        change(connection, outbox, sending, state="uncertain", **values),
    )


def cancel(connection: Connection, question: int) -> None:
    """Stop messages about a question that needs no answer any more."""
    about = select(suggestions.c.id).where(suggestions.c.question == question)
    which = outbox.c.suggestion.in_(about) & (outbox.c.state == "waiting")
    change(connection, outbox, which, state="cancelled")


def redeliver(connection: Connection, message: str, now_ms: int) -> bool:
    """Send a message again that is dead, uncertain, cancelled or sent; False if there is none."""
    which = (outbox.c.id == message) & outbox.c.state.not_in(("waiting", "sending"))
    row = find_one(connection, outbox, which)
    if row is not None:
        change(connection, outbox, which, state="waiting", next_ms=now_ms, attempts=0)
        remove(connection, switched_off, switched_off.c.adapter == row["adapter"])
    return row is not None


def switch_off(connection: Connection, adapter: str, why: str, now_ms: int) -> None:
    """Stop an adapter whose receiver is gone for good."""
    save(connection, switched_off, adapter=adapter, since_ms=now_ms, why=why)


def list_messages(connection: Connection, limit: int = 100) -> list[Row]:
    """Return the newest messages with their last attempt, without what is in them."""
    wanted = [column for column in outbox.c if column.name != "payload"]
    found = find(connection, select(*wanted).order_by(outbox.c.created_ms.desc()).limit(limit))
    for entry in found:
        t = deliveries.c
        tries = select(t.status, t.error, t.at_ms).where(t.message == entry["id"])
        last = find(connection, tries.order_by(t.id.desc()).limit(1))
        entry["last"] = last[0] if last else None
    return found
