"""Rows of suggestions and of the questions they are about."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Text, func, or_, select, type_coerce

from atpgraph.util.arrays import BoolArray, Float64Array
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import tables as db
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.events import Answered

OPEN = ("proposed", "delivered", "accepted", "declined", "reassigned")
# Edges of the bins of confidence, for its calibration.
BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0)


def add_suggestion(connection: Connection, **values: Any) -> int | None:
    """Insert a suggestion; return its id, None if this question has a suggestion of this round."""
    number: int | None = db.add(connection, db.suggestions, **values)
    if number is not None:
        change_suggestion(connection, number, people=values["people"])
    return number


def change_suggestion(connection: Connection, suggestion: int, **values: Any) -> None:
    """Change columns of a suggestion, and note which questions it quotes."""
    if "people" in values:
        people = values["people"]
        values["asked"] = len(people)
        db.remove(connection, db.quotes, db.quotes.c.suggestion == suggestion)
        quoted = {q for person in people for why in person["reasons"] for q in why["questions"]}
        for question in sorted(quoted):
            db.add(connection, db.quotes, question=question, suggestion=suggestion)
    db.change(connection, db.suggestions, suggestion, **values)


def get_suggestion(connection: Connection, suggestion: int) -> Row | None:
    """Return a suggestion with the question it is about and the feedback it got."""
    found = _select(connection, _joined().where(db.suggestions.c.id == suggestion))
    t = db.feedback.c
    said = select(db.feedback).where(t.suggestion == suggestion).order_by(t.id)
    return {**found[0], "feedback": db.find(connection, said)} if found else None


def rounds(connection: Connection, question: int) -> list[Row]:
    """Return all suggestions of a question, first round first."""
    query = _joined().where(db.suggestions.c.question == question)
    return _select(connection, query.order_by(db.suggestions.c.round))


def is_vain(row: Row) -> bool:
    """Return whether a suggestion named nobody, and nobody decided about it."""
    return row["state"] == "proposed" and row["sent_ms"] is None and not row["people"]


def tried(connection: Connection, made: Sequence[Row]) -> set[int]:
    """Return who was suggested, or named by somebody instead, in some suggestions."""
    t = db.feedback.c
    named = select(t.person).where(t.suggestion.in_([row["id"] for row in made]))
    listed = {person["user"] for row in made for person in row["people"]}
    return listed | {*connection.execute(named.where(t.person.is_not(None))).scalars()}


def list_suggestions(
    connection: Connection, limit: int, cursor: str = "", *, state: Sequence[str] = (),
    person: int | None = None, latest: bool = False, since_ms: int = 0, **equal: Any,
) -> tuple[list[Row], str]:  # fmt: skip
    """Return suggestions, newest first, and a cursor; `latest` takes one per question."""
    t = db.suggestions.c
    query = _joined().where(t.created_ms >= since_ms).order_by(t.id.desc()).limit(limit + 1)
    if cursor:
        query = query.where(t.id < int(cursor))
    if state:
        query = query.where(t.state.in_(state))
    for name, value in equal.items():
        if value is not None:
            query = query.where(t[name] == value)
    if latest:
        later = db.suggestions.alias()
        newer = select(later.c.id).where(later.c.question == t.question, later.c.round > t.round)
        query = query.where(~newer.exists())
    if person is not None:
        # The JSON of lists has one form, so this text occurs only where the person is listed.
        named = type_coerce(t.people, Text).contains(f'{{"user": {person},', autoescape=True)
        query = query.where(or_(named, t.outcome == person))
    rows = _select(connection, query)
    more = len(rows) > limit
    return rows[:limit], str(rows[limit - 1]["id"]) if more else ""


def newest(connection: Connection) -> int:
    """Return the id of the newest suggestion, 0 if there is none."""
    return connection.execute(select(func.max(db.suggestions.c.id))).scalar() or 0


def end_suggestions(connection: Connection, which: Any, state: str, now_ms: int) -> int:
    """Close open suggestions; return how many."""
    values = {"state": state, "changed_ms": now_ms, "escalate_ms": None}
    return db.change(connection, db.suggestions, which & db.suggestions.c.state.in_(OPEN), **values)


def resolve(connection: Connection, question: int, person: int | None, now_ms: int) -> None:
    """Close the suggestions of a question that was answered, and record the place of the person."""
    for row in rounds(connection, question):
        if row["round"] == 0:
            _calibrate(connection, row, person)
        change_suggestion(
            connection, row["id"], state="answered" if row["state"] in OPEN else row["state"],
            changed_ms=now_ms, escalate_ms=None, outcome=person, resolved_ms=now_ms,
            place=_place([entry["person"] for entry in row["ranking"]], person),
            baseline_place=_place(row["baseline"], person),
            asked_answered=any(entry["user"] == person for entry in row["people"]),
        )  # fmt: skip


def _calibrate(connection: Connection, row: Row, person: int | None) -> None:
    """Count the ranked people of a question, and the person who answered, by confidence, once."""
    first, before = row["resolved_ms"] is None, row["outcome"]
    counts = [[0, 0.0, 0] for _ in BINS[1:]]
    for entry in row["ranking"]:
        count = counts[bisect_right(BINS, entry["confidence"], 1, len(BINS) - 1) - 1]
        if first:
            count[0] += 1
            count[1] += entry["confidence"]
        count[2] += (entry["person"] == person) - (not first and entry["person"] == before)
    for number, (people, stated, observed) in enumerate(counts):
        if people or observed:
            made = db.insert_into(connection, db.calibration).values(
                day=row["created_ms"] // DAY_MS, shadow=row["shadow"], bin=number, people=people,
                stated=stated, observed=observed,
            )  # fmt: skip
            sums = ("people", "stated", "observed")
            more = {name: db.calibration.c[name] + made.excluded[name] for name in sums}
            keys = ["day", "shadow", "bin"]
            connection.execute(made.on_conflict_do_update(index_elements=keys, set_=more))


def outcomes(
    connection: Connection, first_day: int, end_day: int
) -> tuple[Float64Array, BoolArray]:
    """Return the stated confidence of people suggested on some days, and whether each answered."""
    t = db.calibration.c
    days = (t.day >= first_day) & (t.day < end_day) & (t.people > 0)
    query = select(t.people, t.stated, t.observed).where(days).order_by(t.day, t.shadow, t.bin)
    rows = np.array(connection.execute(query).all(), dtype=float).reshape(-1, 3)
    people, right = rows[:, 0].astype(int), rows[:, 2].astype(int)
    each = np.stack([right, people - right], axis=1).ravel()
    happened = np.repeat(np.tile([True, False], len(rows)), each)
    return np.repeat(rows[:, 1] / rows[:, 0], people), happened


def fill_reports(connection: Connection) -> None:
    """Fill the columns for reports, which 0.2 did not have."""
    for row in db.find(connection, select(db.suggestions).order_by(db.suggestions.c.id)):
        values: Row = {"people": row["people"]}
        if row["resolved_ms"] is not None:
            values["asked_answered"] = any(p["user"] == row["outcome"] for p in row["people"])
            if row["round"] == 0:
                _calibrate(connection, {**row, "resolved_ms": None}, row["outcome"])
        change_suggestion(connection, row["id"], **values)


def add_answer(connection: Connection, answer: Answered, person: int | None) -> bool:
    """Insert an answer; return whether it is the first by somebody other than the asker."""
    values = {"id": answer.id, "question": answer.question, "at_ms": answer.at_ms}
    if db.add(connection, db.answers, **values, person=person) is None:
        return False
    row = db.find_one(connection, db.questions, answer.question)
    if row is None or (person is not None and row["asker"] == person):
        return False
    first = row["answered_ms"] is None
    noted = {"answered_ms": answer.at_ms} if first else {}
    db.change(connection, db.questions, answer.question, answers=row["answers"] + 1, **noted)
    return first


def _joined() -> Any:
    wanted = [column for column in db.questions.c if column.name != "id"]
    about = db.questions.c.id == db.suggestions.c.question
    return select(db.suggestions, *wanted).join(db.questions, about, isouter=True)


def _select(connection: Connection, query: Any) -> list[Row]:
    rows = db.find(connection, query)
    for row in rows:
        row |= {"tags": row["tags"] or [], "origin": row["origin"] or {}, "body": row["body"] or ""}
    return rows


def _place(ranking: Sequence[int], person: int | None) -> int | None:
    """Return the position from 1; None if the person is not in the list."""
    return ranking.index(person) + 1 if person in ranking else None
