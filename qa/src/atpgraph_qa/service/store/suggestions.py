"""Suggestions and the questions they are about."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, delete, insert, or_, select, update

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Float64Array
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.store.tables import (
    answers,
    calibration,
    feedback,
    insert_into,
    questions,
    quotes,
    suggestions,
)

STATES = (
    "proposed", "delivered", "accepted", "declined", "reassigned", "answered", "expired",
    "withdrawn",
)  # fmt: skip
OPEN = ("proposed", "delivered", "accepted", "declined", "reassigned")
# Edges of confidence between which people are counted, to compare it with what happened.
BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0)
_LISTS = ("people", "ranking", "baseline", "decisions", "notes")


@dataclass(frozen=True)
class Page:
    """Some rows, and where to go on; an empty cursor at the end."""

    rows: list[dict[str, Any]]
    cursor: str


def add_suggestion(connection: Connection, values: Mapping[str, Any]) -> int | None:
    """Insert a suggestion; return its id, None if this question has one of this round."""
    same = and_(
        suggestions.c.question == values["question"], suggestions.c.round == values["round"]
    )
    if connection.execute(select(suggestions.c.id).where(same)).first() is not None:
        return None
    made = connection.execute(
        insert(suggestions).values(**_row(values)).returning(suggestions.c.id)
    )
    number = int(made.scalar_one())
    _note_quotes(connection, number, values["people"])
    return number


def change_suggestion(connection: Connection, suggestion: int, **values: Any) -> None:
    """Change columns of a suggestion."""
    if "people" in values:
        values = _row(values)
        connection.execute(delete(quotes).where(quotes.c.suggestion == suggestion))
        _note_quotes(connection, suggestion, json.loads(values["people"]))
    connection.execute(update(suggestions).where(suggestions.c.id == suggestion).values(**values))


def _row(values: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: json.dumps(values[name]) for name in _LISTS if name in values}
    return {**values, **lists, "asked": len(values["people"])}


def _note_quotes(connection: Connection, suggestion: int, people: Sequence[Any]) -> None:
    quoted = {q for person in people for reason in person["reasons"] for q in reason["questions"]}
    if quoted:
        rows = [{"question": question, "suggestion": suggestion} for question in sorted(quoted)]
        connection.execute(insert(quotes), rows)


def get_suggestion(connection: Connection, suggestion: int) -> dict[str, Any] | None:
    """Return a suggestion with the question it is about and the feedback it got."""
    row = connection.execute(_joined().where(suggestions.c.id == suggestion)).first()
    if row is None:
        return None
    found = _plain(row)
    found["feedback"] = feedback_of(connection, [suggestion])
    return found


def feedback_of(connection: Connection, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Return the feedback that some suggestions got, oldest first."""
    said = connection.execute(
        select(feedback).where(feedback.c.suggestion.in_(numbers)).order_by(feedback.c.id)
    )
    names = ("verdict", "person", "at_ms", "note", "given_by")
    return [{name: getattr(row, name) for name in names} for row in said]


def page_of(
    connection: Connection,
    *,
    limit: int,
    cursor: str = "",
    state: Sequence[str] = (),
    question: int | None = None,
    person: int | None = None,
    shadow: bool | None = None,
    since_ms: int | None = None,
    latest: bool = False,
) -> Page:
    """Return suggestions, newest first; with `latest`, only the last one of each question."""
    query = _joined().order_by(suggestions.c.id.desc()).limit(limit + 1)
    if cursor:
        query = query.where(suggestions.c.id < read_cursor(cursor))
    if state:
        query = query.where(suggestions.c.state.in_(state))
    if question is not None:
        query = query.where(suggestions.c.question == question)
    if shadow is not None:
        query = query.where(suggestions.c.shadow.is_(shadow))
    if since_ms is not None:
        query = query.where(suggestions.c.created_ms >= since_ms)
    if latest:
        later = suggestions.alias()
        newer = select(later.c.id).where(
            later.c.question == suggestions.c.question, later.c.round > suggestions.c.round
        )
        query = query.where(~newer.exists())
    if person is not None:
        # Lists are JSON with one form, so that a person is found by what surrounds their id.
        query = query.where(
            or_(
                suggestions.c.people.contains(f'{{"user": {person},', autoescape=True),
                suggestions.c.outcome == person,
            )
        )
    rows = [_plain(row) for row in connection.execute(query)]
    more = len(rows) > limit
    return Page(rows[:limit], make_cursor(rows[limit - 1]["id"]) if more else "")


def make_cursor(number: int) -> str:
    """Return an opaque place in a list."""
    return base64.urlsafe_b64encode(f"id:{number}".encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> int:
    """Return the place that :func:`make_cursor` was given."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        kind, _, number = raw.partition(":")
        if kind != "id" or not number.isascii() or not number.isdigit() or len(number) > 18:
            raise ValueError(cursor)
        return int(number)
    except (ValueError, binascii.Error, UnicodeError):
        raise InputError("The cursor is not one that a page gave.") from None


def rounds(connection: Connection, question: int) -> list[dict[str, Any]]:
    """Return all suggestions of a question, first round first."""
    query = _joined().where(suggestions.c.question == question).order_by(suggestions.c.round)
    return [_plain(row) for row in connection.execute(query)]


def set_state(connection: Connection, suggestion: int, state: str, now_ms: int) -> None:
    """Move a suggestion that is still open to another state."""
    connection.execute(
        update(suggestions)
        .where(suggestions.c.id == suggestion, suggestions.c.state.in_(OPEN))
        .values(state=state, changed_ms=now_ms)
    )


def end_suggestions(connection: Connection, which: Any, state: str, now_ms: int) -> int:
    """Close open suggestions; return how many."""
    ended = connection.execute(
        update(suggestions)
        .where(which, suggestions.c.state.in_(OPEN))
        .values(state=state, changed_ms=now_ms, escalate_ms=None)
    )
    return int(ended.rowcount)


def withdraw(connection: Connection, question: int, now_ms: int) -> None:
    """End the suggestions of a question that takes no more answers."""
    end_suggestions(connection, suggestions.c.question == question, "withdrawn", now_ms)


def add_feedback(connection: Connection, suggestion: int, verdict: str, **values: Any) -> None:
    """Append what somebody said about a suggestion."""
    row = {"person": None, "token": None, "note": "", "given_by": "", **values}
    connection.execute(insert(feedback).values(suggestion=suggestion, verdict=verdict, **row))


def resolve(connection: Connection, question: int, person: int | None, now_ms: int) -> None:
    """Somebody answered: close the suggestions of a question, and note where that person stood."""
    for row in rounds(connection, question):
        ranking = [entry["person"] for entry in row["ranking"]]
        if row["round"] == 0:
            _calibrate(connection, row, person)
        change_suggestion(
            connection,
            row["id"],
            state="answered" if row["state"] in OPEN else row["state"],
            changed_ms=now_ms,
            escalate_ms=None,
            outcome=person,
            place=_place(ranking, person),
            baseline_place=_place(row["baseline"], person),
            asked_answered=any(entry["user"] == person for entry in row["people"]),
            resolved_ms=now_ms,
        )


def _calibrate(connection: Connection, row: Mapping[str, Any], person: int | None) -> None:
    """Count the ranked people of a question by confidence, and the one who answered.

    When an answer by somebody else is accepted later, only who was right changes.
    """
    first = row["resolved_ms"] is None
    counts = [[0, 0.0, 0] for _ in BINS[1:]]
    for entry in row["ranking"]:
        count = counts[sum(entry["confidence"] >= edge for edge in BINS[1:-1])]
        if first:
            count[0] += 1
            count[1] += entry["confidence"]
        elif entry["person"] == row["outcome"]:
            count[2] -= 1
        if entry["person"] == person:
            count[2] += 1
    for number, (people, stated, observed) in enumerate(counts):
        if people or observed:
            made = insert_into(connection, calibration).values(
                day=row["created_ms"] // DAY_MS, shadow=row["shadow"], bin=number, people=people,
                stated=stated, observed=observed,
            )  # fmt: skip
            more = {
                name: calibration.c[name] + made.excluded[name]
                for name in ("people", "stated", "observed")
            }
            keys = ["day", "shadow", "bin"]
            connection.execute(made.on_conflict_do_update(index_elements=keys, set_=more))


def outcomes(
    connection: Connection, first_day: int, end_day: int
) -> tuple[Float64Array, BoolArray]:
    """Return the stated confidence of people suggested on some days, and whether they answered."""
    t = calibration.c
    query = select(t.people, t.stated, t.observed).where(t.day >= first_day, t.day < end_day)
    rows = [row for row in connection.execute(query.order_by(t.day, t.shadow, t.bin)) if row.people]
    nothing = np.zeros(0)
    stated = [np.full(row.people, row.stated / row.people) for row in rows]
    happened = [np.arange(row.people) < row.observed for row in rows]
    return np.concatenate([nothing, *stated]), np.concatenate([nothing.astype(bool), *happened])


def fill_reports(connection: Connection) -> None:
    """Derive what reports count from suggestions of a version that did not keep it."""
    query = select(suggestions).order_by(suggestions.c.id)
    for row in map(_plain, connection.execute(query).all()):
        values: dict[str, Any] = {"asked": len(row["people"])}
        _note_quotes(connection, row["id"], row["people"])
        if row["resolved_ms"] is not None:
            values["asked_answered"] = any(p["user"] == row["outcome"] for p in row["people"])
            if row["round"] == 0:
                _calibrate(connection, {**row, "resolved_ms": None}, row["outcome"])
        change_suggestion(connection, row["id"], **values)


def add_question(connection: Connection, values: Mapping[str, Any]) -> None:
    """Insert a question unless it is known."""
    row = {**values, "tags": json.dumps(values["tags"]), "answers": 0}
    connection.execute(insert_into(connection, questions).values(**row).on_conflict_do_nothing())


def change_question(connection: Connection, question: int, **values: Any) -> None:
    """Change columns of a question."""
    if "tags" in values:
        values["tags"] = json.dumps(values["tags"])
    connection.execute(update(questions).where(questions.c.id == question).values(**values))


def get_question(connection: Connection, question: int) -> dict[str, Any] | None:
    """Return a question as it is known now."""
    row = connection.execute(select(questions).where(questions.c.id == question)).first()
    if row is None:
        return None
    found = dict(row._mapping)
    return {**found, "tags": json.loads(row.tags), "origin": json.loads(row.origin)}


def add_answer(connection: Connection, answer: int, question: int, person: int, at: int) -> bool:
    """Insert an answer; return whether it is the first by somebody other than the asker."""
    owner = person if person >= 0 else None
    made = insert_into(connection, answers).values(
        id=answer, question=question, person=owner, at_ms=at
    )
    made = made.on_conflict_do_nothing().returning(answers.c.id)
    if connection.execute(made).first() is None:
        return False
    row = connection.execute(select(questions).where(questions.c.id == question)).first()
    if row is None or (row.asker is not None and row.asker == person):
        return False
    first = row.answered_ms is None
    values: dict[str, Any] = {"answers": row.answers + 1}
    if first:
        values |= {"answered_ms": at, "first_person": owner}
    change_question(connection, question, **values)
    return first


def accept_answer(connection: Connection, question: int, answer: int) -> int | None:
    """Note the accepted answer; return who gave it, None if that is not known."""
    found = connection.execute(select(answers.c.person).where(answers.c.id == answer)).scalar()
    change_question(connection, question, accepted_answer=answer, accepted_person=found)
    return None if found is None else int(found)


def _joined() -> Any:
    wanted = (
        questions.c.title, questions.c.tags, questions.c.asker, questions.c.asked_ms,
        questions.c.answers, questions.c.answered_ms, questions.c.body, questions.c.origin,
        questions.c.closed_ms,
    )  # fmt: skip
    return select(suggestions, *wanted).join(
        questions, questions.c.id == suggestions.c.question, isouter=True
    )


def _plain(row: Any) -> dict[str, Any]:
    values = dict(row._mapping)
    for name in (*_LISTS, "tags"):
        values[name] = json.loads(values.get(name) or "[]")
    values["url"] = json.loads(values.pop("origin", None) or "{}").get("url", "")
    values["body"] = values.get("body") or ""
    values["shadow"] = bool(values["shadow"])
    return values


def _place(ranking: Sequence[int], person: int | None) -> int | None:
    """Return the place from 1; None if the person is not in the list."""
    return ranking.index(person) + 1 if person in ranking else None
