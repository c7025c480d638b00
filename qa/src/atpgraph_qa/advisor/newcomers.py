"""Place newcomers, whom the trained model does not know, by what they declare or answered.

Somebody who never answered has no record, so no ranking would ever suggest them. A newcomer is
placed by evidence of one of two kinds:

declared
    The tags and words they say they know about. The newcomer is ranked as if they had answered the
    three resolved questions nearest in text thirty days ago, without being accepted.
first answers
    Questions they answered after the model was trained. These count as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import parse_json
from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph_qa.data.site import DAY_MS, NOBODY
from atpgraph_qa.timeline.events import Arrival, Newcomer
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import SETTLE_DAYS
from atpgraph_qa.timeline.tables import AnswerTable

NEAR = 3
MOST_ANSWERS = 3


def read_newcomers(path: str | os.PathLike[str]) -> list[Newcomer]:
    """Read newcomers from a JSON list of objects with the attributes of :class:`Newcomer`."""
    try:
        given = parse_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    if not isinstance(given, list):
        raise InputError(
            f'{path} must be a list of newcomers, like [{{"user": 9, "tags": ["a"]}}].'
        )
    return [
        newcomer_from_json(entry, f"{path}, entry {number}")
        for number, entry in enumerate(given, 1)
    ]


def newcomer_from_json(entry: object, where: str) -> Newcomer:
    """Return a newcomer from parsed JSON; `where` names the entry in errors."""
    if not isinstance(entry, dict) or not _is_id(entry.get("user")):
        raise InputError(f'{where}: a newcomer must be an object with a user id, "user".')
    unknown = sorted(set(entry) - set(Newcomer.__dataclass_fields__))
    if unknown:
        raise InputError(
            f"{where}: there is no {unknown[0]!r}; use user, tags, text, answered, accepted."
        )
    lists: dict[str, tuple[object, ...]] = {}
    for name, what, fits in (
        ("tags", "words", lambda value: isinstance(value, str)),
        ("answered", "ids of questions", _is_id),
        ("accepted", "ids of questions", _is_id),
    ):
        values = entry.get(name, [])
        if not isinstance(values, list) or not all(map(fits, values)):
            raise InputError(f"{where}: {name} must be a list of {what}, not {values!r}.")
        lists[name] = tuple(values)
    text = entry.get("text", "")
    if not isinstance(text, str):
        raise InputError(f"{where}: text must be a string, not {text!r}.")
    return Newcomer(entry["user"], text=text, **lists)  # type: ignore[arg-type]


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def welcome(history: History, newcomers: Iterable[Newcomer]) -> History:
    """Return the history with newcomers in it, people with at most three answers so far.

    People without evidence (the site uses none of their tags or words) are never suggested.
    """
    people = list(newcomers)
    _check(history, people)
    arrivals = [Arrival(person, evidence(history, person)) for person in people]
    known = history.records.until(history.now)
    records = known.with_answers(*_answers(history, arrivals), arrivals)
    return History(records, history.now)


def evidence(history: History, newcomer: Newcomer) -> Int64Array:
    """Return the questions that represent a newcomer's knowledge; none if nothing matches.

    Those they answered, else the resolved ones nearest to what they declare; ties go to the latest.
    """
    if newcomer.answered:
        wanted = np.array(sorted({*newcomer.answered, *newcomer.accepted}), dtype=np.int64)
        ids = history.questions.id
        missing = wanted[~np.isin(wanted, ids)]
        if len(missing):
            raise InputError(
                f"User {newcomer.user} is said to have answered question {missing[0]}, which the "
                "site does not have."
            )
        return np.flatnonzero(np.isin(ids, wanted))
    terms = history.corpus.query(newcomer.text, "", newcomer.tags)
    match = history.corpus.bm25(terms, history.questions.present)
    match = np.where(history.best_answer >= 0, match, 0.0)
    order = np.lexsort((-np.arange(len(match)), -match))[:NEAR]
    return np.sort(order[match[order] > 0])


def _check(history: History, people: Sequence[Newcomer]) -> None:
    if len({person.user for person in people}) < len(people):
        raise InputError("A newcomer is listed twice.")
    codes = history.codes([person.user for person in people])
    for person, code in zip(people, codes.tolist(), strict=True):
        given = int(history.n_given[code]) if code >= 0 else 0
        if given > MOST_ANSWERS:
            raise InputError(f"User {person.user} has given {given} answers and is not a newcomer.")


def _answers(history: History, arrivals: Sequence[Arrival]) -> tuple[AnswerTable, BoolArray]:
    """Return the answers that represent newcomers, and which of them are accepted.

    They are the newcomer's first answers, or represent what they declared.
    """
    now = history.last_ms - 1
    counts = [len(arrival.questions) for arrival in arrivals]
    nothing = np.zeros(0, dtype=np.int64)
    question = np.concatenate([nothing, *(arrival.questions for arrival in arrivals)])
    user = np.repeat([arrival.newcomer.user for arrival in arrivals], counts).astype(np.int64)
    first = np.repeat([bool(arrival.newcomer.answered) for arrival in arrivals], counts)
    declared = now - round(SETTLE_DAYS * DAY_MS)
    given = np.where(first, now, np.maximum(declared, history.questions.asked_ms[question]))
    won = [
        np.isin(history.questions.id[arrival.questions], arrival.newcomer.accepted)
        for arrival in arrivals
    ]
    accepted = np.concatenate([nothing.astype(np.bool_), *won])
    accepted &= history.best_answer[question] < 0  # somebody else's answer was accepted
    return AnswerTable(given, question, user, np.full(len(user), NOBODY)), accepted
