"""Who is active around the time of a question.

Answers count less the older they are. What a person's answers are worth is kept as of the start of
a week and carried on from there, so that a question costs a pass over the people and over the
answers of a few days, not over all answers there ever were.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from atpgraph._typing import AnyArray, Float64Array, Int64Array
from atpgraph.cqa.data.site import DAY_MS
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.query import Query
from atpgraph.cqa.routing.timeline.visibility import FOREVER

A = TypeVar("A", bound=AnyArray)
HALF_LIVES = {"fading_3": 3.0, "fading_15": 15.0, "fading_60": 60.0, "fading_365": 365.0}
ACCEPTED = {"accepted_60": 60.0, "accepted_365": 365.0}
_WEEK = 7 * DAY_MS
_HOUR = DAY_MS // 24
_MONDAY = 4 * DAY_MS  # 1970-01-05
_AROUND = 3  # hours
_NEVER_DAYS = 3650.0
_LEAST = 0.02


def log_count(
    count: Float64Array, least: float = _LEAST, some: Int64Array | None = None
) -> Float64Array:
    """Logarithm of a count plus a small part of an answer, so that nothing is a number, too.

    Logarithms are slow, and most people have nothing under a tag: `some`, where given, are all who
    have anything.
    """
    if some is None or 3 * len(some) > len(count):
        result = count + least
        return np.log(result, out=result)
    result = np.full(len(count), np.log(least))
    result[some] = np.log(count[some] + least)
    return result


def week_start(history: History) -> History:
    """What was known on the last Monday."""
    return history.at((history.now - _MONDAY) // _WEEK * _WEEK + _MONDAY)


def for_users(column: A, n: int) -> A:
    """A column for `n` users, from one whose last entry is that of somebody who did nothing."""
    more: Any = column[:n]
    if n > len(column):
        more = np.concatenate([column, np.repeat(column[-1:], n - len(column), axis=0)])
    return more  # type: ignore[no-any-return]


class Activity:
    """Activity of everybody as of a moment.

    Parameters
    ----------
    known : History
        What was known at that moment, with a last user who did nothing.
    """

    def __init__(self, known: History) -> None:
        self._known = known
        away = (known.now - known.answers.given_ms) / DAY_MS
        accepted = known.is_accepted
        self._fading = {n: known.per_user(np.exp2(-away / h)) for n, h in HALF_LIVES.items()}
        self._accepted = {
            n: known.per_user(np.where(accepted, np.exp2(-away / h), 0.0))
            for n, h in ACCEPTED.items()
        }
        self._first, self._last = _ends(known, 0)
        hour = (known.answers.given_ms // _HOUR) % 24
        seen = known.answers.owner >= 0
        counts = np.bincount(
            known.answers.owner[seen] * 24 + hour[seen], minlength=known.n_users * 24
        ).reshape(known.n_users, 24)
        turn = [np.roll(counts, shift, axis=1) for shift in range(-_AROUND, _AROUND + 1)]
        self._hour: Float64Array = np.log(
            (np.sum(turn, axis=0) + 1.75) / (known.n_given[:, None] + 7.0)
        )

    def features(self, query: Query) -> dict[str, Float64Array]:
        """Features of all users for a question; acceptances and hours are of the week's start."""
        history, moment = query.history, query.asked_ms
        n = history.n_users
        start = self._known.n_answers
        since = max(moment - self._known.now, 0) / DAY_MS
        owner = history.answers.owner[start:]
        seen = owner >= 0
        owner = owner[seen]
        away = np.maximum(moment - history.answers.given_ms[start:][seen], 0) / DAY_MS
        columns = {}
        for name, half_life in HALF_LIVES.items():
            total = for_users(self._fading[name], n) * 2.0 ** (-since / half_life)
            np.add.at(total, owner, np.exp2(-away / half_life))
            columns[name] = log_count(total)
        for name, half_life in ACCEPTED.items():
            share = for_users(self._accepted[name], n)
            columns[name] = log_count(share * 2.0 ** (-since / half_life))
        first, last = _ends(history, start)
        before = for_users(self._first, n)
        first = np.where(before > 0, before, first)
        last = np.where(last > 0, last, for_users(self._last, n))
        return {
            **columns,
            **_since(moment, first, last),
            "hour": for_users(self._hour[:, (moment // _HOUR) % 24], n),
        }


def timeless(query: Query) -> dict[str, Float64Array]:
    """The same where time plays no part: distance in time, before or after."""
    history = query.history
    away = np.abs(query.asked_ms - history.answers.given_ms) / DAY_MS
    owner = history.answers.owner
    seen = owner >= 0
    nearest = np.full(history.n_users, _NEVER_DAYS)
    np.minimum.at(nearest, owner[seen], away[seen])
    first, _ = _ends(history, 0)
    tenure = np.where(first > 0, np.abs(query.asked_ms - first) / DAY_MS, 0.0)
    hours = (query.asked_ms // _HOUR - history.answers.given_ms // _HOUR) % 24
    near = (np.minimum(hours, 24 - hours) <= _AROUND).astype(np.float64)
    return {
        **{n: log_count(history.per_user(np.exp2(-away / h))) for n, h in HALF_LIVES.items()},
        **{
            n: log_count(history.per_user(np.where(history.is_accepted, np.exp2(-away / h), 0.0)))
            for n, h in ACCEPTED.items()
        },
        "days_since": -np.log(nearest + 0.05),
        "tenure": np.log1p(tenure),
        "hour": np.log((history.per_user(near) + 1.75) / (history.n_given + 7.0)),
    }


def _ends(history: History, start: int) -> tuple[Int64Array, Int64Array]:
    """When every user first and last answered from the answer at `start` on, 0 for never."""
    owner, moment = history.answers.owner[start:], history.answers.given_ms[start:]
    seen = np.flatnonzero(owner >= 0)
    first = np.zeros(history.n_users, dtype=np.int64)
    last = np.zeros(history.n_users, dtype=np.int64)
    last[owner[seen]] = moment[seen]  # answers come by date: the last one stays
    first[owner[seen[::-1]]] = moment[seen[::-1]]
    return first, last


def _since(moment: int, first: Int64Array, last: Int64Array) -> dict[str, Float64Array]:
    idle = np.where(last > 0, np.maximum(moment - last, 0) / DAY_MS, _NEVER_DAYS)
    tenure = np.where(first > 0, np.maximum(moment - first, 0) / DAY_MS, 0.0)
    return {"days_since": -np.log(idle + 0.05), "tenure": np.log1p(tenure)}


def is_timeless(history: History) -> bool:
    """Whether all of time is known, as in the paper's protocol."""
    return history.now == FOREVER
