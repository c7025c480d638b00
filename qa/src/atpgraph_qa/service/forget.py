"""Forget a person: everything about them goes, and what was removed is counted."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Table, delete, select, update

from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.store.events import Forgetter, from_payload, to_payload
from atpgraph_qa.service.store.tables import (
    answers,
    asks,
    events,
    feedback,
    halves,
    idempotency,
    outbox,
    people,
    questions,
    suggestions,
)
from atpgraph_qa.timeline.events import Answered, Asked

GONE = "@removed"


def forget_rows(
    connection: Connection, forgetter: Forgetter, user: int, handle: str, now_ms: int
) -> dict[str, int]:
    """Take a person out of every table; how many rows of each were removed or changed.

    Their answers stay as answers of nobody. Of their questions the tags stay, so that the answers
    of others keep their place; title and text go.
    """
    report: dict[str, int] = {}
    asked = set(
        connection.execute(
            select(events.c.question).where(events.c.person == user, events.c.kind == "asked")
        ).scalars()
    )
    report["events"] = _events(connection, user)
    report["answers"] = _blank(connection, answers, "person", user)
    report["questions"] = _blank(connection, questions, "asker", user, title="")
    for column in ("first_person", "accepted_person"):
        _blank(connection, questions, column, user)
    report["settings"] = _drop(connection, people, people.c.id == user)
    report["asks"] = _drop(connection, asks, asks.c.person == user)
    report["feedback"] = _blank(connection, feedback, "person", user, note="")
    report["suggestions"] = _suggestions(connection, user, asked)
    report["messages"] = _messages(connection, user, asked)
    for row in connection.execute(select(halves)).all():
        if json.loads(row.payload).get("asker") == user:
            _drop(connection, halves, halves.c.topic == row.topic)
    connection.execute(delete(idempotency))  # answers kept for repetitions may tell of anybody
    report["mentions"] = _mentions(connection, handle) if handle else 0
    forgetter.add(connection, user, now_ms)
    return report


def _events(connection: Connection, user: int) -> int:
    rows = connection.execute(select(events).where(events.c.person == user)).all()
    for row in rows:
        event = from_payload(row.kind, row.payload)
        if isinstance(event, Asked):
            event = replace(event, asker=NOBODY, title="", body="")
        elif isinstance(event, Answered):
            event = replace(event, user=NOBODY)
        connection.execute(
            update(events)
            .where(events.c.seq == row.seq)
            .values(person=None, payload=to_payload(event))
        )
    return len(rows)


def _suggestions(connection: Connection, user: int, asked: Collection[int]) -> int:
    changed = 0
    for row in connection.execute(select(suggestions)).all():
        values: dict[str, Any] = {}
        for name in ("people", "ranking", "decisions", "baseline"):
            old = json.loads(getattr(row, name))
            new = [_without(entry, asked) for entry in old if _who(entry) != user]
            if new != old:
                values[name] = json.dumps(new)
        notes = [note for note in json.loads(row.notes) if f"User {user} " not in note]
        if len(notes) < len(json.loads(row.notes)):
            values["notes"] = json.dumps(notes)
        if row.outcome == user:
            values["outcome"] = None
        if values:
            change = update(suggestions).where(suggestions.c.id == row.id)
            connection.execute(change.values(**values))
            changed += 1
    return changed


def _who(entry: Any) -> int:
    return entry if isinstance(entry, int) else entry.get("user", entry.get("person"))


def _without(entry: Any, asked: Collection[int]) -> Any:
    """An entry without reasons that quote questions of the person."""
    if not isinstance(entry, dict) or "reasons" not in entry:
        return entry
    reasons = [r for r in entry["reasons"] if not set(r.get("questions", ())) & set(asked)]
    return {**entry, "reasons": reasons}


def _messages(connection: Connection, user: int, asked: Collection[int]) -> int:
    changed = 0
    for row in connection.execute(select(outbox.c.id, outbox.c.state, outbox.c.payload)).all():
        data = json.loads(row.payload).get("data", {})
        named = {person["user"] for person in data.get("people", ())}
        quoted = {
            question
            for person in data.get("people", ())
            for reason in person["reasons"]
            for question in reason.get("questions", ())
        }
        about = data.get("question", {}).get("id")
        if user in named or about in asked or quoted & set(asked):
            state = "cancelled" if row.state == "waiting" else row.state
            change = update(outbox).where(outbox.c.id == row.id)
            connection.execute(change.values(payload="{}", state=state))
            changed += 1
    return changed


def _mentions(connection: Connection, handle: str) -> int:
    """Take ``@handle`` out of what others wrote, and out of what quotes it; how many rows."""
    changed = 0
    # As it is, and as JSON has it.
    for mention in {f"@{handle}", "@" + json.dumps(handle)[1:-1]}:
        for table, key, column in (
            (events, events.c.seq, events.c.payload),
            (questions, questions.c.id, questions.c.title),
            (suggestions, suggestions.c.id, suggestions.c.people),
            (feedback, feedback.c.id, feedback.c.note),
            (outbox, outbox.c.id, outbox.c.payload),
        ):
            found = select(key, column).where(column.contains(mention, autoescape=True))
            for number, text in connection.execute(found).all():
                new = {column.name: text.replace(mention, GONE)}
                connection.execute(update(table).where(key == number).values(**new))
                changed += 1
    return changed


def _blank(connection: Connection, table: Table, column: str, user: int, **more: Any) -> int:
    change = update(table).where(table.c[column] == user).values({column: None, **more})
    return int(connection.execute(change).rowcount)


def _drop(connection: Connection, table: Table, which: Any) -> int:
    return int(connection.execute(delete(table).where(which)).rowcount)
