"""Who is active around the time of a question.

Answers count less the older they are. What a person's answers are worth is kept as of the start of
a week and carried on from there, so that a question costs a pass over the people and over the
answers of a few days, not over all answers there ever were.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from atpgraph.util.arrays import AnyArray, Float64Array, Int64Array
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.visibility import FOREVER

A = TypeVar("A", bound=AnyArray)
HALF_LIVES = {"fading_3": 3.0, "fading_15": 15.0, "fading_60": 60.0, "fading_365": 365.0}
ACCEPTED = {"accepted_60": 60.0, "accepted_365": 365.0}
WEEK_MS = 7 * DAY_MS
_HOUR = DAY_MS // 24
_MONDAY = 4 * DAY_MS  # 1970-01-05
_AROUND = 3  # hours
_NEVER_DAYS = 3650.0
_LEAST = 0.02


def log_count(count: Float64Array) -> Float64Array:
    """Logarithm of a count plus a small part of an answer, so that nothing is a number, too."""
    result = count + _LEAST
    return np.log(result, out=result)


def monday(moment_ms: int) -> int:
    """The start of the week of a moment."""
    return (moment_ms - _MONDAY) // WEEK_MS * WEEK_MS + _MONDAY


def week_start(history: History) -> History:
    """What was known on the last Monday."""
    return history.at(monday(history.now))


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
        hour = (known.answers.given_ms // _HOUR) % 24
        seen = known.answers.owner >= 0
        self._first, self._last = _ends(
            known.answers.owner[seen], known.answers.given_ms[seen], known.n_users
        )
        counts = np.bincount(
            known.answers.owner[seen] * 24 + hour[seen], minlength=known.n_users * 24
        ).reshape(known.n_users, 24)
        around = counts.copy()
        for shift in range(1, _AROUND + 1):  # one after the other: all at once take a lot of memory
            around += np.roll(counts, shift, axis=1)
            around += np.roll(counts, -shift, axis=1)
        self._hour: Float64Array = np.log((around + 1.75) / (known.n_given[:, None] + 7.0))

    def features(self, query: Query, some: Int64Array | None = None) -> dict[str, Float64Array]:
        """Features of all users for a question, or of some, whose codes ascend.

        Acceptances and hours are of the week's start.
        """
        history, moment = query.history, query.asked_ms
        start = self._known.n_answers
        since = max(moment - self._known.now, 0) / DAY_MS
        owner, given = history.answers.owner[start:], history.answers.given_ms[start:]
        if some is None:
            n, seen = history.n_users, owner >= 0
            place = owner[seen]
        else:
            n, seen = len(some), np.isin(owner, some)
            place = np.searchsorted(some, owner[seen])
        given = given[seen]

        def known(column: A) -> A:
            if some is None:
                return for_users(column, n)
            picked: Any = column[np.minimum(some, len(column) - 1)]
            return picked  # type: ignore[no-any-return]

        away = np.maximum(moment - given, 0) / DAY_MS
        columns = {}
        for name, half_life in HALF_LIVES.items():
            total = known(self._fading[name]) * 2.0 ** (-since / half_life)
            np.add.at(total, place, np.exp2(-away / half_life))
            columns[name] = log_count(total)
        for name, half_life in ACCEPTED.items():
            columns[name] = log_count(known(self._accepted[name]) * 2.0 ** (-since / half_life))
        first, last = _ends(place, given, n)
        before = known(self._first)
        first = np.where(before > 0, before, first)
        last = np.where(last > 0, last, known(self._last))
        return {
            **columns,
            **_since(moment, first, last),
            "hour": known(self._hour[:, (moment // _HOUR) % 24]),
        }


def timeless(query: Query) -> dict[str, Float64Array]:
    """The same where time plays no part: distance in time, before or after."""
    history = query.history
    away = np.abs(query.asked_ms - history.answers.given_ms) / DAY_MS
    owner = history.answers.owner
    seen = owner >= 0
    nearest = np.full(history.n_users, _NEVER_DAYS)
    np.minimum.at(nearest, owner[seen], away[seen])
    first, _ = _ends(owner[seen], history.answers.given_ms[seen], history.n_users)
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


def _ends(owner: Int64Array, given_ms: Int64Array, n: int) -> tuple[Int64Array, Int64Array]:
    """When each of `n` people first and last gave one of the answers, which come by date."""
    first, last = np.zeros((2, n), dtype=np.int64)
    last[owner] = given_ms  # the last one stays
    first[owner[::-1]] = given_ms[::-1]
    return first, last


def _since(moment: int, first: Int64Array, last: Int64Array) -> dict[str, Float64Array]:
    idle = np.where(last > 0, np.maximum(moment - last, 0) / DAY_MS, _NEVER_DAYS)
    tenure = np.where(first > 0, np.maximum(moment - first, 0) / DAY_MS, 0.0)
    return {"days_since": -np.log(idle + 0.05), "tenure": np.log1p(tenure)}


def is_timeless(history: History) -> bool:
    """Whether all of time is known, as in the paper's protocol."""
    return history.now == FOREVER
