"""Forget a person: everything about them goes, and what was removed is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, func, or_, select, update

from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.service.store.events import ForgottenPeople, from_payload, to_payload
from atpgraph_qa.service.store.tables import (
    answers,
    asks,
    audit,
    events,
    feedback,
    idempotency,
    outbox,
    people,
    questions,
    quotes,
    suggestions,
    topic_parts,
)
from atpgraph_qa.timeline.events import Answered, Asked

GONE = "@removed"
_AT_ONCE = 500  # values in one query


def forget_rows(
    connection: Connection, forgotten: ForgottenPeople, user: int, handle: str,
    asked: Collection[int], now_ms: int,
) -> dict[str, int]:  # fmt: skip
    """Remove a person from every table; return how many rows of each were removed or changed.

    Their answers stay as answers of nobody. Of their questions the tags stay, so that the answers
    of others keep their place; title and text go.

    Parameters
    ----------
    asked : collection of int
        Ids of the questions they asked, those that came with the model as well.
    """
    report: dict[str, int] = {}
    theirs = select(events.c.question).where(events.c.person == user, events.c.kind == "asked")
    titles = set(asked) | set(connection.execute(theirs).scalars())
    touched = _suggestions_about(connection, user, titles)
    report["events"] = _events(connection, user)
    report["answers"] = _blank(connection, answers, "person", user)
    report["questions"] = _blank(connection, questions, "asker", user, title="", body="")
    for column in ("first_person", "accepted_person"):
        _blank(connection, questions, column, user)
    report["settings"] = _drop(connection, people, people.c.id == user)
    _blank(connection, audit, "person", user)
    report["asks"] = _drop(connection, asks, asks.c.person == user)
    report["feedback"] = _blank(connection, feedback, "person", user, note="")
    report["messages"] = _messages(connection, touched, user, titles)
    report["suggestions"] = _suggestions(connection, touched, user, titles)
    report["rankings"] = _blank_rankings(connection, user)
    waiting = connection.execute(select(topic_parts.c.topic, topic_parts.c.payload)).all()
    gone = [row.topic for row in waiting if json.loads(row.payload).get("asker") == user]
    _drop(connection, topic_parts, topic_parts.c.topic.in_(gone))
    connection.execute(delete(idempotency))  # answers kept for repetitions may tell of anybody
    report["mentions"] = _mentions(connection, handle) if handle else 0
    forgotten.add(connection, user, now_ms)
    return report


def erase_question_rows(connection: Connection, question: int) -> None:
    """Remove title and text of a question that was deleted, and what quotes it."""
    touched = _quoting(connection, [question])
    _messages(connection, touched, NOBODY, [question])
    _suggestions(connection, touched, NOBODY, [question])
    blank = update(questions).where(questions.c.id == question)
    connection.execute(blank.values(title="", body="", origin="{}"))
    texts = events.c.kind.in_(("asked", "edited")) & (events.c.question == question)
    for row in connection.execute(select(events).where(texts)).all():
        values = {**json.loads(row.payload), "title": "", "body": ""}
        change = update(events).where(events.c.seq == row.seq)
        payload = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        connection.execute(change.values(payload=payload, origin="{}"))


def mention(handle: str) -> re.Pattern[str]:
    """Return a pattern of ``@handle`` in any letter case, as text and as JSON has it."""
    forms = {re.escape(handle), re.escape(json.dumps(handle)[1:-1])}
    return re.compile(f"@(?:{'|'.join(sorted(forms))})(?![\\w-])", re.IGNORECASE)


def _events(connection: Connection, user: int) -> int:
    rows = connection.execute(select(events).where(events.c.person == user)).all()
    for row in rows:
        event = from_payload(row.kind, row.payload)
        if isinstance(event, Asked):
            event = replace(event, asker=NOBODY, title="", body="")
            _edits(connection, event.id)
        elif isinstance(event, Answered):
            event = replace(event, user=NOBODY)
        change = update(events).where(events.c.seq == row.seq)
        connection.execute(change.values(person=None, payload=to_payload(event)))
    return len(rows)


def _edits(connection: Connection, question: int) -> None:
    """Remove the texts of a question's later versions."""
    which = (events.c.kind == "edited") & (events.c.question == question)
    for row in connection.execute(select(events.c.seq, events.c.payload).where(which)).all():
        values = {**json.loads(row.payload), "title": "", "body": ""}
        change = update(events).where(events.c.seq == row.seq)
        connection.execute(change.values(payload=json.dumps(values)))


def _suggestions_about(connection: Connection, user: int, asked: Collection[int]) -> set[int]:
    """Return the suggestions of a person to ask, or that quote one of their questions.

    Lists are JSON in one form, so a person is found by what surrounds their id.
    """
    named = _has(connection, suggestions.c.people, f'"user": {user},')
    found = set(connection.execute(select(suggestions.c.id).where(named)).scalars())
    for table in (feedback, asks):  # somebody else may have been asked in their place
        query = select(table.c.suggestion).where(table.c.person == user)
        found |= {number for number in connection.execute(query).scalars() if number is not None}
    return found | _quoting(connection, asked)


def _blank_rankings(connection: Connection, user: int) -> int:
    """Put nobody in the place of a person in rankings and decisions; return how many rows.

    The database does it: thousands of suggestions may rank somebody. Places stay as they were.
    """
    t, nobody = suggestions.c, str(NOBODY)
    forms = [
        (column, f'"person": {user},', f'"person": {nobody},')
        for column in (t.ranking, t.decisions)
    ]
    for before in ("[", " "):
        for after in (",", "]"):
            form = f"{before}{user}{after}", f"{before}{nobody}{after}"
            forms.append((t.baseline, *form))
    named = or_(t.outcome == user, *(_has(connection, column, old) for column, old, _ in forms))
    ids = list(connection.execute(select(t.id).where(named)).scalars())
    for start in range(0, len(ids), _AT_ONCE):
        which = update(suggestions).where(t.id.in_(ids[start : start + _AT_ONCE]))
        for column, old, new in forms:
            connection.execute(which.values({column.name: func.replace(column, old, new)}))
        connection.execute(which.where(t.outcome == user).values(outcome=None))
    return len(ids)


def _quoting(connection: Connection, asked: Collection[int]) -> set[int]:
    """Return the suggestions about some questions, or that quote them."""
    ids, found = sorted(asked), set[int]()
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        about = select(suggestions.c.id).where(suggestions.c.question.in_(part))
        quoting = select(quotes.c.suggestion).where(quotes.c.question.in_(part))
        found |= set(connection.execute(about).scalars())
        found |= set(connection.execute(quoting).scalars())
        connection.execute(delete(quotes).where(quotes.c.question.in_(part)))
    return found


def _has(connection: Connection, column: Any, text: str) -> ColumnElement[bool]:
    find = func.instr if connection.dialect.name == "sqlite" else func.strpos
    return find(column, text) > 0


def _rows(connection: Connection, table: Table, column: Any, ids: Collection[int]) -> list[Any]:
    wanted, rows = sorted(ids), list[Any]()
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows += connection.execute(select(table).where(column.in_(part))).all()
    return rows


def _suggestions(
    connection: Connection, touched: Collection[int], user: int, asked: Collection[int]
) -> int:
    """Remove a person, and what quotes their questions, from the people to ask."""
    changed, quoted = 0, set(asked)
    for row in _rows(connection, suggestions, suggestions.c.id, touched):
        old, notes = json.loads(row.people), json.loads(row.notes)
        new = [
            {**p, "reasons": [r for r in p["reasons"] if not quoted.intersection(r["questions"])]}
            for p in old
            if p["user"] != user
        ]
        kept = [note for note in notes if f"User {user} " not in note]
        if new != old or kept != notes:
            change = update(suggestions).where(suggestions.c.id == row.id)
            connection.execute(change.values(people=json.dumps(new), notes=json.dumps(kept)))
            changed += 1
    return changed


def _messages(
    connection: Connection, touched: Collection[int], user: int, asked: Collection[int]
) -> int:
    changed, quoted = 0, set(asked)
    for row in _rows(connection, outbox, outbox.c.suggestion, touched):
        data = json.loads(row.payload).get("data", {})
        listed = data.get("people", ())
        theirs = {q for p in listed for r in p["reasons"] for q in r.get("questions", ())}
        about = data.get("question", {}).get("id")
        if any(p["user"] == user for p in listed) or about in quoted or theirs & quoted:
            state = "cancelled" if row.state == "waiting" else row.state
            change = update(outbox).where(outbox.c.id == row.id)
            connection.execute(change.values(payload="{}", state=state))
            changed += 1
    return changed


def _mentions(connection: Connection, handle: str) -> int:
    """Take ``@handle`` out of what others wrote, and out of what quotes it; return how many rows.

    The database looks for the first letters, in any case; here the rest is compared.
    """
    pattern, changed = mention(handle), 0
    start = re.match(r"[\x20-\x7e]*", handle)
    prefix = "@" + (start[0] if start else "")
    for table, key, column in (
        (events, events.c.seq, events.c.payload),
        (topic_parts, topic_parts.c.topic, topic_parts.c.payload),
        (questions, questions.c.id, questions.c.title),
        (questions, questions.c.id, questions.c.body),
        (audit, audit.c.id, audit.c.what),
        (suggestions, suggestions.c.id, suggestions.c.people),
        (feedback, feedback.c.id, feedback.c.note),
        (outbox, outbox.c.id, outbox.c.payload),
    ):
        if connection.dialect.name == "sqlite":  # LIKE does not tell A from a there
            there = column.contains(prefix, autoescape=True)
        else:
            there = column.icontains(prefix, autoescape=True)
        for number, text in connection.execute(select(key, column).where(there)).all():
            new = pattern.sub(GONE, text)
            if new != text:
                connection.execute(update(table).where(key == number).values({column.name: new}))
                changed += 1
    return changed


def _blank(connection: Connection, table: Table, column: str, user: int, **more: Any) -> int:
    change = update(table).where(table.c[column] == user).values({column: None, **more})
    return int(connection.execute(change).rowcount)


def _drop(connection: Connection, table: Table, which: Any) -> int:
    return int(connection.execute(delete(table).where(which)).rowcount)
