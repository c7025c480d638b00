"""How much answers count as they grow old."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph.util.arrays import Float32Array, Float64Array, Int64Array
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.activity import WEEK_MS, is_timeless, monday
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query

HALF_LIVES = (180.0, 30.0, 10.0)
_NOTHING = 1e-30


@dataclass(frozen=True, eq=False)
class Fading:
    """Factors of answers that halve every 180, 30 and 10 days.

    All factors shrink alike from one moment to the next, so those of the start of a week are kept,
    and a sum over answers is multiplied by `since`. Where time plays no part it is the distance in
    time that counts, before or after, and nothing can be kept.

    Attributes
    ----------
    each : float32 array of shape (answers, 3)
        As of the start of the week, in the order of ``by_person.base``.
    late : float32 array of shape (late answers, 3)
        The same for ``by_person.late``.
    since : float64 array of shape (3,)
        What is left of 1 since the start of the week.
    origin_ms : int
        The start of the week, or the moment of the question where time plays no part.
    timeless : bool
    """

    each: Float32Array
    late: Float32Array
    since: Float64Array
    origin_ms: int
    timeless: bool

    @classmethod
    def at(cls, query: Query) -> Fading:
        """At the moment of a question."""
        history, mine = query.history, query.history.by_person
        timeless = is_timeless(history)
        origin = query.asked_ms if timeless else monday(history.now)
        given = history.answers.given_ms

        base = history.records.base
        answers = base.by_owner[1]

        def of_the_week() -> Float32Array:
            then = np.minimum(base.answers.given_ms[answers], origin + WEEK_MS)
            return _factors(then, origin, timeless)

        if timeless or (base is not history.records and len(mine.base.answer) < len(answers)):
            each = _factors(given[mine.base.answer], origin, timeless)
        else:  # all that events add is late
            each = history.records.memo.get(FACTORS, (base, origin), of_the_week)
            if len(mine.base.answer) < len(answers):
                each = each[answers < history.n_answers]
        days = 0.0 if timeless else (query.asked_ms - origin) / DAY_MS
        since = np.exp2(-days / np.array(HALF_LIVES))
        late = _factors(given[mine.late.answer], origin, timeless)
        return cls(each, late, since, origin, timeless)

    def of(self, history: History, answers: Int64Array) -> Float64Array:
        """What some answers count at the moment, halved every 180 days."""
        given = history.answers.given_ms[answers]
        factors = _factors(given, self.origin_ms, self.timeless, 1)[:, 0]
        return np.asarray(factors * self.since[0])


FACTORS: Shelf[Float32Array] = Shelf("factors of answers", keep=1)


def _factors(given_ms: Int64Array, origin_ms: int, timeless: bool, count: int = 3) -> Float32Array:
    days = (given_ms - origin_ms) / DAY_MS
    if timeless:
        days = -np.abs(days)
    factors = np.exp2(days[:, None] / np.array(HALF_LIVES[:count]))
    factors[factors < _NOTHING] = 0.0  # the smallest numbers there are take longest to multiply
    return np.asarray(factors, dtype=np.float32)
