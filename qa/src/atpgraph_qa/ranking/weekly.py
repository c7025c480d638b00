"""Statistics of all people as of the last Monday, and how they are carried on to a moment.

Answers count less the older they are. What a person's answers are worth is kept as of the start of
a week and carried on from there, so that a question costs a pass over the answers of a few days,
not over all answers there ever were. This is the one result that the ranker keeps between
questions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph.util.arrays import Float32Array, Float64Array, Int8Array, Int32Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.names import AXES
from atpgraph_qa.ranking.user_stats import user_stats
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import UNIT
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.visibility import FOREVER

ANSWERS = {"fading_3": 3.0, "fading_15": 15.0, "fading_60": 60.0, "fading_365": 365.0}
ACCEPTED = {"accepted_60": 60.0, "accepted_365": 365.0}
SIMILAR = np.array([180.0, 30.0, 10.0])  # half-lives of answers to similar questions, in days
WEEK_MS = 7 * DAY_MS
_HOUR = DAY_MS // 24
_MONDAY = 4 * DAY_MS  # 1970-01-05
_AROUND = 3  # hours
_NEVER_DAYS = 3650.0
_LEAST, _TINY = 0.02, 1e-30
_CALM = 5.0


@dataclass(frozen=True, eq=False)
class WeeklyStats:
    """Everything has one entry more than there are users, for whoever comes later.

    Attributes
    ----------
    known : History
        What was known at the start of the week.
    steady : dict of float32 arrays
        Counts and rates, by feature.
    activity : dict of float64 arrays
        Faded counts of answers, by feature; empty where time plays no part.
    hour : float32 array of shape (users, 24)
        How much somebody answers around each hour of the day.
    first_ms, last_ms : int64 arrays
        First and last answer, 0 for none.
    profiles : float32 array of shape (users, axes) or None
        Mean vector of the questions answered, drawn to 0 where they are few; None where there are
        no vectors on shared axes.
    faded : float32 array of shape (answers, 3)
        How much each answer of the base counts as of the start of the week, person by person.
    """

    known: History
    steady: dict[str, Float32Array]
    activity: dict[str, Float64Array]
    hour: Float32Array
    first_ms: Int64Array
    last_ms: Int64Array
    profiles: Float32Array | None
    faded: Float32Array


WEEKS: Shelf[WeeklyStats] = Shelf("weekly statistics", keep=2)


def is_timeless(history: History) -> bool:
    """Return whether all of time is known, as in the paper's protocol."""
    return history.now == FOREVER


def monday(moment_ms: int) -> int:
    """Return the start of the week of a moment."""
    return (moment_ms - _MONDAY) // WEEK_MS * WEEK_MS + _MONDAY


def weekly_stats(history: History) -> WeeklyStats:
    """Return the statistics of the week of a history."""
    start = FOREVER if is_timeless(history) else min(monday(history.now), history.now)
    base = history.records.base
    return history.records.memo.get(WEEKS, (base, start), lambda: _compute(history, start))


def _compute(history: History, start: int) -> WeeklyStats:
    known = History(history.records.with_nobody(), start)
    steady = {name: c.astype(np.float32) for name, c in user_stats(known).items()}
    n, given_ms = known.n_users, known.answers.given_ms
    seen = known.answers.owner >= 0
    first, last = first_and_last(known.answers.owner[seen], given_ms[seen], n)
    if start == FOREVER:
        nothing = np.zeros((n, 0), dtype=np.float32)
        faded = np.zeros((0, len(SIMILAR)), dtype=np.float32)
        return WeeklyStats(known, steady, {}, nothing, first, last, _profiles(known), faded)
    days = (start - given_ms) / DAY_MS
    activity = {name: known.per_user(np.exp2(-days / half)) for name, half in ANSWERS.items()}
    for name, half in ACCEPTED.items():
        activity[name] = known.per_user(np.where(known.is_accepted, np.exp2(-days / half), 0.0))
    base = history.records.base
    given = np.minimum(base.answers.given_ms[base.owned_answers], start + WEEK_MS)
    faded = _fade((given - start) / DAY_MS)
    hour = _hours(known).astype(np.float32)
    return WeeklyStats(known, steady, activity, hour, first, last, _profiles(known), faded)


def moment_columns(
    query: Query, week: WeeklyStats, codes: Int64Array, place: Int32Array
) -> dict[str, Float64Array]:
    """Return the features of activity at the moment of a question.

    Parameters
    ----------
    query : Query
    week : WeeklyStats
    codes : int64 array
        People.
    place : int32 array
        By user code, the position of each of them in `codes`, −1 for others.
    """
    history, moment = query.history, query.asked_ms
    if is_timeless(history):
        return {name: column[codes] for name, column in timeless_columns(query).items()}
    start, then = week.known.n_answers, np.minimum(codes, len(week.first_ms) - 1)
    owner, given = history.answers.owner[start:], history.answers.given_ms[start:]
    inside = owner >= 0
    inside[inside] = place[owner[inside]] >= 0
    at, given = place[owner[inside]], given[inside]
    since = max(moment - week.known.now, 0) / DAY_MS
    days = np.maximum(moment - given, 0) / DAY_MS
    columns = {}
    for name, half in ANSWERS.items():
        total = week.activity[name][then] * 2.0 ** (-since / half)
        np.add.at(total, at, np.exp2(-days / half))
        columns[name] = np.log(total + _LEAST)
    for name, half in ACCEPTED.items():
        columns[name] = np.log(week.activity[name][then] * 2.0 ** (-since / half) + _LEAST)
    first, last = first_and_last(at, given, len(codes))
    first = np.where(week.first_ms[then] > 0, week.first_ms[then], first)
    last = np.where(last > 0, last, week.last_ms[then])
    idle = np.where(last > 0, np.maximum(moment - last, 0) / DAY_MS, _NEVER_DAYS)
    tenure = np.where(first > 0, np.maximum(moment - first, 0) / DAY_MS, 0.0)
    return columns | {
        "days_since": -np.log(idle + 0.05),
        "tenure": np.log1p(tenure),
        "hour": week.hour[then, (moment // _HOUR) % 24],
    }


def timeless_columns(query: Query) -> dict[str, Float64Array]:
    """Return the same for all users where time plays no part: distance, before or after."""
    history = query.history
    owner, given = history.answers.owner, history.answers.given_ms
    days = np.abs(query.asked_ms - given) / DAY_MS
    seen = owner >= 0
    nearest = np.full(history.n_users, _NEVER_DAYS)
    np.minimum.at(nearest, owner[seen], days[seen])
    first, _ = first_and_last(owner[seen], given[seen], history.n_users)
    tenure = np.where(first > 0, np.abs(query.asked_ms - first) / DAY_MS, 0.0)
    hours = (query.asked_ms // _HOUR - given // _HOUR) % 24
    near = (np.minimum(hours, 24 - hours) <= _AROUND).astype(np.float64)
    columns = {}
    for name, half in (ANSWERS | ACCEPTED).items():
        counts = history.is_accepted if name in ACCEPTED else True
        worth = np.where(counts, np.exp2(-days / half), 0.0)
        columns[name] = np.log(history.per_user(worth) + _LEAST)
    return columns | {
        "days_since": -np.log(nearest + 0.05),
        "tenure": np.log1p(tenure),
        "hour": np.log((history.per_user(near) + 1.75) / (history.n_given + 7.0)),
    }


def fading_factors(
    query: Query, week: WeeklyStats
) -> tuple[Float32Array, Float32Array, Float64Array]:
    """Return how much answers count: those of the base, later ones, and what is left since then.

    All factors shrink alike from one moment to the next, so those of the start of the week are
    kept and sums are multiplied by the last result.
    """
    history, base = query.history, query.history.records.base
    late = history.answers.given_ms[len(base.answers) :]
    if is_timeless(history):
        given = base.answers.given_ms[base.owned_answers]
        away, away_late = (np.abs(query.asked_ms - part) / DAY_MS for part in (given, late))
        return _fade(-away), _fade(-away_late), np.ones(len(SIMILAR))
    start = week.known.now
    since = np.exp2(-(query.asked_ms - start) / DAY_MS / SIMILAR)
    return week.faded, _fade((late - start) / DAY_MS), since


def _fade(days: Float64Array) -> Float32Array:
    factors = np.exp2(days[:, None] / SIMILAR)
    factors[factors < _TINY] = 0.0  # the smallest numbers there are take longest to multiply
    return np.asarray(factors, dtype=np.float32)


def first_and_last(
    owner: Int64Array | Int32Array, given_ms: Int64Array, n: int
) -> tuple[Int64Array, Int64Array]:
    """Return when each of `n` people gave the first and the last of some answers, by date."""
    first, last = np.zeros((2, n), dtype=np.int64)
    last[owner] = given_ms  # the last one stays
    first[owner[::-1]] = given_ms[::-1]
    return first, last


def _hours(known: History) -> Float64Array:
    """Logarithm of the share of answers around each hour of the day."""
    seen = known.answers.owner >= 0
    hour = (known.answers.given_ms[seen] // _HOUR) % 24
    counts = np.bincount(known.answers.owner[seen] * 24 + hour, minlength=known.n_users * 24)
    counts = counts.reshape(known.n_users, 24)
    around = counts.copy()
    for shift in range(1, _AROUND + 1):  # one after the other: all at once take a lot of memory
        around += np.roll(counts, shift, axis=1) + np.roll(counts, -shift, axis=1)
    return np.asarray(np.log((around + 1.75) / (known.n_given[:, None] + 7.0)))


def _profiles(history: History) -> Float32Array | None:
    """Mean vectors of what people answered."""
    meaning = history.records.meaning
    if meaning is None or not meaning.is_shared:
        return None
    total = np.zeros((history.n_users, len(AXES)))
    add_vectors(history.answers.owner, history.answers.question, meaning.vectors, total)
    total /= UNIT * (history.n_given[:, None] + _CALM)
    return total.astype(np.float32)


@kernel
def add_vectors(
    owner: Int64Array, question: Int64Array, vectors: Int8Array, total: Float64Array
) -> None:
    """Add the vector of every answered question to its answerer's; −1 answers nothing."""
    for answer in range(len(owner)):
        person = owner[answer]
        if person >= 0:
            for axis in range(total.shape[1]):
                total[person, axis] += vectors[question[answer], axis]
