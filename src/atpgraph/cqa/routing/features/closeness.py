"""How much a question is about what somebody answered, or asked: features of meaning.

They stand beside those of words. Closeness is the cosine of two questions' vectors; what is not
close at all counts as 0, and squares favour the close ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph._jit import kernel
from atpgraph._typing import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from atpgraph.cqa.data.site import DAY_MS
from atpgraph.cqa.routing.features.activity import log_count
from atpgraph.cqa.routing.features.names import MEANING
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.query import Query

_HALF_LIVES = (180.0, 30.0, 10.0)


@dataclass(frozen=True, eq=False)
class Close:
    """Sums over everybody's answers of how close their questions are, one entry per user.

    Attributes
    ----------
    total, accepted, recent, month, days : float64 arrays
        Squares over all answers; over accepted ones; over all, halved every 180, 30, 10 days.
    plain : float64 array
        The cosines themselves, negative ones included.
    largest : float64 array
    """

    total: Float64Array
    accepted: Float64Array
    recent: Float64Array
    month: Float64Array
    days: Float64Array
    plain: Float64Array
    largest: Float64Array


@dataclass(frozen=True, eq=False)
class Fading:
    """How much answers count at a moment.

    Attributes
    ----------
    each : float32 array of shape (answers, 3)
        Factors of every answer, person by person: halved every 180, 30 and 10 days.
    log_month : float64 array
        Logarithm of the sum of the second of them, for every user.
    """

    each: Float32Array
    log_month: Float64Array

    @classmethod
    def at(cls, query: Query) -> Fading:
        """At the moment of a question; the distance in time where time plays no part."""
        history, mine = query.history, query.history.by_person
        away = np.abs(query.asked_ms - history.answers.given_ms[mine.answer]) / DAY_MS
        each = np.exp2(away[:, None] * (-1.0 / np.array(_HALF_LIVES)))
        person = np.repeat(np.arange(len(mine.indptr) - 1), np.diff(mine.indptr))
        person = np.concatenate([person, mine.late_owner])
        month = np.bincount(person, each[:, 1], minlength=history.n_users)
        return cls(each.astype(np.float32), log_count(month.astype(np.float64)))


def close(history: History, closeness: Float32Array, faded: Float32Array) -> Close:
    """One pass over all answers; `faded` as in :class:`Fading`."""
    mine, result = history.by_person, np.zeros((7, history.n_users))
    close_answers(mine.indptr, mine.question, mine.accepted, faded, closeness, result)
    if len(mine.late_owner):
        late = slice(int(mine.indptr[-1]), None)
        value = closeness[mine.question[late]].astype(np.float64)
        each = np.maximum(value, 0.0) ** 2
        rows = (each, each * mine.accepted[late], *(each * faded[late].T), value)
        for total, part in zip(result, rows, strict=False):
            np.add.at(total, mine.late_owner, part)
        np.maximum.at(result[6], mine.late_owner, value)
    return Close(*result)


def meaning_features(
    query: Query, fading: Fading | None, log_given: Float64Array
) -> dict[str, Float64Array]:
    """Features of all users; none where there are no vectors.

    Parameters
    ----------
    query : Query
    fading : Fading or None
    log_given : float64 array
        log(answers + 5) of every user.
    """
    history, closeness = query.history, query.closeness
    if closeness is None or fading is None or not len(closeness):
        return {}
    found = close(history, closeness, fading.each)
    month = log_count(found.month)
    asked = np.zeros((2, history.n_users))
    close_asked(history.questions.asker, closeness, asked)
    some = np.flatnonzero(asked[0])
    return dict(
        zip(
            MEANING,
            (
                log_count(found.total),
                found.largest,
                log_count(found.accepted),
                log_count(found.recent),
                log_count(found.total, 0.05) - log_given,
                month,
                log_count(found.days),
                month - fading.log_month,
                found.plain / (history.n_given + 5.0),
                log_count(asked[0], some=some),
                asked[1],
            ),
            strict=True,
        )
    )


@kernel
def close_answers(
    indptr: Int64Array,
    question: Int32Array,
    accepted: BoolArray,
    faded: Float32Array,
    closeness: Float32Array,
    result: Float64Array,
) -> None:
    """Sums of :class:`Close`; the answers of person p are ``indptr[p] : indptr[p + 1]``."""
    for person in range(len(indptr) - 1):
        total = won = recent = month = days = plain = largest = 0.0
        for answer in range(indptr[person], indptr[person + 1]):
            value = float(closeness[question[answer]])
            plain += value
            # No branches: half of the questions are on the other side of 0, in no order.
            value = max(value, 0.0)
            largest = max(largest, value)
            value *= value
            total += value
            won += value * accepted[answer]
            recent += value * faded[answer, 0]
            month += value * faded[answer, 1]
            days += value * faded[answer, 2]
        result[0, person] = total
        result[1, person] = won
        result[2, person] = recent
        result[3, person] = month
        result[4, person] = days
        result[5, person] = plain
        result[6, person] = largest


@kernel
def close_asked(asker: Int64Array, closeness: Float32Array, result: Float64Array) -> None:
    """For every asker, the sum of the squares and the largest over the questions they asked."""
    for question in range(len(asker)):
        value = np.float64(closeness[question])
        person = asker[question]
        if person >= 0 and value > 0.0:
            result[0, person] += value * value
            result[1, person] = max(result[1, person], value)
