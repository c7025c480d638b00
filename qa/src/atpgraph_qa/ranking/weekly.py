"""Statistics of all people as of the last Monday, and how they are updated to a moment.

Answers count less the older they are. The total weight of a person's answers is stored as of the
start of a week and updated from there, so that a question costs a pass over the answers of a few
days, not over all answers ever given. This is the only result that the ranker keeps between
questions. It depends on the week alone, not on how events came in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from atpgraph.util.arrays import (
    Float32Array,
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
    UInt32Array,
)
from atpgraph.util.jit import kernel
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.names import AXES, HABIT, POPULARITY
from atpgraph_qa.ranking.user_stats import user_stats
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import UNIT
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import FOREVER
from atpgraph_qa.timeline.tables import Grouped

ANSWERS = {"fading_3": 3.0, "fading_15": 15.0, "fading_60": 60.0, "fading_365": 365.0}
ACCEPTED = {"accepted_60": 60.0, "accepted_365": 365.0}
_HALF_LIVES = np.array([*ANSWERS.values(), *ACCEPTED.values()])
STEADY = (*POPULARITY, *(name for name in HABIT if name not in ("hour", "tenure")))
SIMILAR = np.array([180.0, 30.0, 10.0])  # half-lives of answers to similar questions, in days
MOMENT = (*ANSWERS, *ACCEPTED, "days_since", "tenure")
_HOUR = DAY_MS // 24
_AROUND = 3  # hours
_NEVER_DAYS = 3650.0
_LEAST, _TINY = 0.02, 1e-30
_CALM = 5.0
_SEVERAL = 3  # answers that rules ask for


class Posts(NamedTuple):
    """Posts from before the week, in the order of :class:`WeeklyStats`.

    The answers of row k are ``start[k] : start[k + 1]``, by date: `answer` has their positions, and
    `question` the positions of their questions in `order`. `worth` has how much each counts by age,
    for three half-lives, and whether it was accepted. Questions that people asked are in
    `asked_start` and `asked` likewise. `order` has the questions by the first row that answered or
    asked them: those of the first k rows are the first ``extent[k]``. Positions are unsigned, so
    that kernels need not check their sign.
    """

    start: Int64Array
    answer: Int32Array
    question: UInt32Array
    worth: Float32Array
    asked_start: Int64Array
    asked: UInt32Array
    order: UInt32Array
    extent: Int64Array


@dataclass(frozen=True, eq=False)
class WeeklyStats:
    """Statistics of people at the start of a week, a row for each.

    Rules exclude people with fewer than three answers and most people who have been away for long.
    The others come first, as do the questions that they answered or asked, so that a loop over them
    reads memory in order. The extra row is for people who arrive later.
    """

    known: History  # at the start of the week
    row: Int64Array  # by user code; the last entry is for all later ones
    steady: Float32Array  # rows × STEADY: counts and rates
    activity: Float32Array  # rows × half-lives: faded counts of answers, if time plays a part
    hour: Float32Array  # rows × 24: how much somebody answers around each hour of the day
    first_ms: Int64Array  # first answer, 0 for none
    last_ms: Int64Array  # last answer
    # Rows × shared axes, if there are such: mean vector of what somebody answered, drawn to 0
    # where that is little.
    profiles: Float32Array
    vectors: Int8Array  # of the questions in the order of Posts.order; none for words alone
    posts: Posts


WEEKS = "weekly statistics"


def is_timeless(history: History) -> bool:
    """Return whether all of time is known, as in the paper's protocol."""
    return history.now == FOREVER


def weekly_stats(history: History) -> WeeklyStats:
    """Return the statistics of the week of a history."""
    start = history.week_ms
    return history.records.memo.get(WEEKS, start, lambda: _compute(history, start))


def _compute(history: History, start: int) -> WeeklyStats:
    known = History(history.records.with_nobody(), start)
    stats = user_stats(known)
    n, given_ms = known.n_users, known.answers.given_ms
    seen = known.answers.owner >= 0
    first, last = first_and_last(known.answers.owner[seen], given_ms[seen], n)
    order = np.lexsort((-last, known.n_given < _SEVERAL))
    row = np.empty(n, dtype=np.int64)
    row[order] = np.arange(n)
    activity, hour = np.zeros((n, 0)), np.zeros((n, 0), dtype=np.float32)
    if start < FOREVER:
        days = (start - given_ms) / DAY_MS
        faded = [np.exp2(-days / half) for half in _HALF_LIVES.tolist()]
        for column in faded[len(ANSWERS) :]:
            column[~known.is_accepted] = 0.0
        activity = np.stack([known.per_user(column) for column in faded], axis=1)
        hour = _hours(known).astype(np.float32)
    meaning, places = known.records.meaning, np.append(row, -1)  # −1 stays −1
    answered = Grouped.of(places[known.answers.owner], n)
    asked = Grouped.of(places[known.questions.asker], n)
    worth = np.empty((len(answered.positions), len(SIMILAR) + 1), dtype=np.float32)
    if start < FOREVER:
        worth[:, :-1] = fade((given_ms[answered.positions] - start) / DAY_MS)
    worth[:, -1] = known.is_accepted[answered.positions]
    question = known.answers.question[answered.positions].astype(np.uint32)
    own = asked.positions.astype(np.uint32)
    rows = np.concatenate([np.repeat(np.arange(n), np.diff(i.indptr)) for i in (answered, asked)])
    found, extent = by_first_use(rows, np.append(question, own), n)
    number = np.empty(known.n_questions, dtype=np.uint32)
    number[found] = np.arange(len(found))
    return WeeklyStats(
        known,
        row,
        np.stack([stats[name] for name in STEADY], axis=1)[order].astype(np.float32),
        activity[order].astype(np.float32),
        hour[order],
        first[order],
        last[order],
        _profiles(known)[order],
        np.zeros((0, 0), dtype=np.int8) if meaning is None else meaning.vectors[found],
        Posts(
            answered.indptr, answered.positions.astype(np.int32), number[question], worth,
            asked.indptr, number[own], found, extent,
        ),
    )  # fmt: skip


def by_first_use(
    rows: Int64Array, questions: UInt32Array, n_rows: int
) -> tuple[UInt32Array, Int64Array]:
    """Order questions by the first row that has them; return how many the first k rows have."""
    by_row = np.argsort(rows, kind="stable")
    uses, places = questions[by_row], np.arange(len(questions))
    first = np.empty(int(uses.max(initial=0)) + 1, dtype=np.int64)
    first[uses[::-1]] = places[::-1]  # the last one stays
    new = np.flatnonzero(first[uses] == places)
    return uses[new], np.searchsorted(rows[by_row[new]], np.arange(n_rows + 1))


def moment_columns(
    query: Query, week: WeeklyStats, codes: Int64Array, rows: Int64Array, place: Int32Array
) -> tuple[Float32Array, Float32Array]:
    """Return people's activity at the moment of a question, and how usual it is at this hour.

    The first is people × :data:`MOMENT`, of which logarithms are taken. `place` has, by user code,
    the position of each person in `codes`, −1 for others; `rows` are theirs in `week`.
    """
    history, moment = query.history, query.asked_ms
    if is_timeless(history):
        return _timeless_columns(query, codes)
    start = week.known.n_answers
    owner, given = history.answers.owner[start:], history.answers.given_ms[start:]
    inside = owner >= 0
    inside[inside] = place[owner[inside]] >= 0
    at, given = place[owner[inside]], given[inside]
    days = np.maximum(moment - given, 0) / DAY_MS
    worth = np.exp2(-days[:, None] / _HALF_LIVES[: len(ANSWERS)])
    since = max(moment - week.known.now, 0) / DAY_MS
    left = np.exp2(-since / _HALF_LIVES).astype(np.float32)
    result = np.empty((len(codes), len(MOMENT)), dtype=np.float32)
    put_activity(
        week.activity, week.first_ms, week.last_ms, rows, left, result, moment, at, given, worth
    )
    return result, week.hour[rows, (moment // _HOUR) % 24]


@kernel
def put_activity(
    activity: Float32Array, first_ms: Int64Array, last_ms: Int64Array, rows: Int64Array,
    left: Float32Array, result: Float32Array, moment: int,
    at: Int32Array, given_ms: Int64Array, worth: Float64Array,
) -> None:  # fmt: skip
    """Write the columns of :data:`MOMENT`: the decayed activity of the week plus answers since.

    The answers since are by the people at the positions `at` and have the weights `worth`.
    """
    since = np.zeros((len(rows), worth.shape[1]))
    first, last = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for answer in range(len(at)):
        person = at[answer]
        for column in range(worth.shape[1]):
            since[person, column] += worth[answer, column]
        last[person] = given_ms[answer]
        if first[person] == 0:
            first[person] = given_ms[answer]
    for k in range(len(rows)):
        row = rows[k]
        for column in range(len(left)):
            total = activity[row, column] * left[column]
            if column < worth.shape[1]:
                total = np.float32(np.float64(total) + since[k, column])
            result[k, column] = total + np.float32(_LEAST)
        start = first_ms[row] if first_ms[row] > 0 else first[k]
        end = last[k] if last[k] > 0 else last_ms[row]
        idle = max(moment - end, 0) / DAY_MS if end > 0 else _NEVER_DAYS
        tenure = max(moment - start, 0) / DAY_MS if start > 0 else 0.0
        result[k, len(left)] = idle + 0.05
        result[k, len(left) + 1] = tenure + 1.0


def _timeless_columns(query: Query, codes: Int64Array) -> tuple[Float32Array, Float32Array]:
    """Return the same for the paper's protocol: by distance in time, before or after."""
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
    columns = []
    for name, half in (ANSWERS | ACCEPTED).items():
        counts = history.is_accepted if name in ACCEPTED else True
        columns.append(history.per_user(np.where(counts, np.exp2(-days / half), 0.0)) + _LEAST)
    hour = np.log((history.per_user(near) + 1.75) / (history.n_given + 7.0))
    moment = np.stack([*columns, nearest + 0.05, tenure + 1.0], axis=1)
    return moment[codes].astype(np.float32), hour[codes].astype(np.float32)


def fade(days: Float64Array) -> Float32Array:
    """Return the weight of answers by how many days after a moment they were given."""
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
    """Return the logarithm of the share of answers around each hour of the day."""
    seen = known.answers.owner >= 0
    hour = (known.answers.given_ms[seen] // _HOUR) % 24
    cells = np.bincount(known.answers.owner[seen] * 24 + hour, minlength=known.n_users * 24)
    counts = cells.reshape(known.n_users, 24)
    around = counts.copy()
    for shift in range(1, _AROUND + 1):  # one after the other: all at once take a lot of memory
        around += np.roll(counts, shift, axis=1) + np.roll(counts, -shift, axis=1)
    return np.asarray(np.log((around + 1.75) / (known.n_given[:, None] + 7.0)))


def _profiles(history: History) -> Float32Array:
    """Return the mean vectors of what people answered."""
    meaning = history.records.meaning
    if meaning is None or not meaning.is_shared:
        return np.zeros((history.n_users, 0), dtype=np.float32)
    question = history.answers.question
    total = [history.per_user(meaning.vectors[question, axis]) for axis in range(len(AXES))]
    mean = np.stack(total, axis=1) / (UNIT * (history.n_given[:, None] + _CALM))
    return mean.astype(np.float32)
