"""Who may be asked, and how often: rules that hold whatever the ranking says."""

from __future__ import annotations

import json
import os
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import parse_json
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.files import atomic_path
from atpgraph_qa.data.site import DAY_MS, MOST_DAYS
from atpgraph_qa.timeline.query import Query

_STRONGEST = 1e6


@dataclass(frozen=True)
class Policy:
    """Rules for whom to ask. The asker is never asked.

    Attributes
    ----------
    opted_out : frozenset of int
        Users who are never asked.
    inactive_days : float or None
        Leave out people whose last answer is older.
    least_answers : int
        Leave out people who gave fewer answers.
    per_day, per_week : int or None
        Nobody is asked more often, counted over the last 24 hours and seven days.
    spread : float
        How many log-odds a person loses when the number of times they were asked in the last week
        doubles (from one to two, and so on); 0 ranks by evidence alone.
    newcomer_share : float
        Share of the places, rounded down over the questions so far, that go to the best newcomers.
    newcomer_answers : int
        Newcomers gave at most this many answers.
    """

    opted_out: frozenset[int] = frozenset()
    inactive_days: float | None = None
    per_day: int | None = None
    per_week: int | None = None
    spread: float = 0.0
    newcomer_share: float = 0.0
    newcomer_answers: int = 3
    least_answers: int = 0

    def __post_init__(self) -> None:
        for name in ("per_day", "per_week"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} is a number from 0, not {value}.")
        if not 0 <= self.newcomer_share <= 1:
            raise InputError(f"The share of newcomers is 0 to 1, not {self.newcomer_share}.")
        if not 0 <= self.spread <= _STRONGEST:
            raise InputError(f"spread is a number from 0 to {_STRONGEST:g}, not {self.spread}.")
        if self.inactive_days is not None and not 0 < self.inactive_days <= MOST_DAYS:
            raise InputError(
                f"inactive_days is a positive number up to a million, not {self.inactive_days}."
            )


class AskLog:
    """Who was asked when, and how many places newcomers got: what a policy has to remember.

    Examples
    --------
    >>> log = AskLog()
    >>> log.record([7, 9], now_ms=0)
    >>> log.times_asked(7, now_ms=DAY_MS, days=7), log.times_asked(7, now_ms=DAY_MS, days=1)
    (1, 0)
    """

    def __init__(self) -> None:
        self._asked: dict[int, deque[int]] = defaultdict(deque)
        self.places = 0
        self.newcomers = 0

    @property
    def people(self) -> list[int]:
        """Everybody who was asked."""
        return list(self._asked)

    def record(self, people: Iterable[int], now_ms: int) -> None:
        """Remember that these people were asked."""
        for person in people:
            self._asked[int(person)].append(now_ms)

    def times_asked(self, person: int, now_ms: int, days: float) -> int:
        """How often somebody was asked in the last `days` days, seven at most."""
        times = self._asked.get(int(person))
        if not times:
            return 0
        while times and times[0] <= now_ms - 7 * DAY_MS:
            times.popleft()
        since = now_ms - days * DAY_MS
        return sum(1 for time in times if time > since)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        asked = {str(person): list(times) for person, times in self._asked.items() if times}
        return {"asked": asked, "places": self.places, "newcomers": self.newcomers}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Go on from what :meth:`to_json` gave."""
        log = cls()
        try:
            for person, times in data["asked"].items():
                log._asked[int(person)] = deque(sorted(int(time) for time in times))
            log.places, log.newcomers = int(data["places"]), int(data["newcomers"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise InputError("This is not a record of who was asked.") from None
        return log

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Go on from a file; from nothing if there is none yet."""
        file = Path(path)
        if not file.exists():
            return cls()
        try:
            return cls.from_json(parse_json(file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            raise InputError(
                f"{file} is not a record of who was asked: name another file."
            ) from None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file that :meth:`read` goes on from."""
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(self.to_json()) + "\n", encoding="utf-8")


@dataclass(frozen=True, eq=False)
class Choice:
    """Whom a policy asks.

    Attributes
    ----------
    positions : int64 array
        Positions of the people to ask among the candidates, best first.
    allowed : boolean array
        Which candidates may be asked.
    scores : float64 array
        Scores of the candidates, less their load.
    newcomers : int
        How many of the people to ask are newcomers.
    """

    positions: Int64Array
    allowed: BoolArray
    scores: Float64Array
    newcomers: int


class Dispatcher:
    """Applies a policy to a stream of questions.

    Parameters
    ----------
    policy : Policy, optional
        By default nobody but the asker is left out.
    log : AskLog, optional
        Who was asked before; new entries are added to it.

    Examples
    --------
    >>> people = Dispatcher(Policy(per_day=1, opted_out=frozenset({3})))
    >>> people.allowed(np.array([1, 2, 3]), asker=2, now_ms=0).tolist()
    [True, False, False]
    >>> people.log.record([1], now_ms=0)
    >>> people.allowed(np.array([1, 2, 3]), asker=-1, now_ms=1).tolist()
    [False, True, False]
    """

    def __init__(self, policy: Policy | None = None, log: AskLog | None = None) -> None:
        self.policy = policy or Policy()
        self.log = log or AskLog()

    def allowed(self, candidates: Int64Array, asker: int, now_ms: int) -> BoolArray:
        """Which candidates may be asked now, their activity aside."""
        rule, log = self.policy, self.log
        result: BoolArray = np.asarray(candidates != asker)
        if rule.opted_out:
            result &= ~np.isin(candidates, np.fromiter(rule.opted_out, dtype=np.int64))
        for limit, days in ((rule.per_day, 1.0), (rule.per_week, 7.0)):
            if limit == 0:
                result[:] = False
            elif limit is not None:
                busy = [p for p in log.people if log.times_asked(p, now_ms, days) >= limit]
                result &= ~np.isin(candidates, np.array(busy, dtype=np.int64))
        return np.asarray(result)

    def eligible(self, query: Query, codes: Int64Array) -> BoolArray:
        """Return which people (user codes) are worth ranking: by activity, which costs nothing."""
        rule, history = self.policy, query.history
        result = _by_code(history.n_given, codes) >= rule.least_answers
        if rule.inactive_days is not None:
            oldest = query.asked_ms - rule.inactive_days * DAY_MS
            result &= _by_code(history.last_answer_ms, codes) > oldest
        return np.asarray(result)

    def expected_share(self, presence: Float64Array) -> float:
        """Return how often the right person is eligible, given who was right in the past.

        Parameters
        ----------
        presence : float64 array of shape (2, questions)
            See :class:`~atpgraph_qa.ranking.router.Router`.
        """
        idle, given = presence
        inside = np.round(given) >= self.policy.least_answers
        if self.policy.inactive_days is not None:
            inside &= idle < self.policy.inactive_days
        return float(inside.mean()) if len(inside) else 1.0

    def choose(
        self, query: Query, candidates: Int64Array, scores: Float64Array, top: int = 5
    ) -> Choice:
        """Choose the people to ask, and remember that they were asked.

        Parameters
        ----------
        query : Query
        candidates : int64 array
            User ids, no repeats.
        scores : float64 array
            One per candidate, larger is better; of equals the smaller id comes first.
        top : int
            How many people at most.
        """
        now, rule = query.asked_ms, self.policy
        allowed = self.allowed(candidates, query.question.asker, now)
        allowed &= self.eligible(query, query.history.codes(candidates))
        scores = self._spread(candidates, scores, now)
        chosen = best(candidates, scores, np.flatnonzero(allowed), top)
        if rule.newcomer_share and len(chosen):
            fresh = self.newcomers(query, candidates) & allowed
            chosen = self._with_newcomers(chosen, fresh, candidates, scores)
        self.log.record(candidates[chosen].tolist(), now)
        newcomers = int(self.newcomers(query, candidates[chosen]).sum())
        return Choice(chosen, allowed, scores, newcomers)

    def newcomers(self, query: Query, candidates: Int64Array) -> BoolArray:
        """Which candidates are newcomers: few answers, or welcomed as one."""
        given = _by_code(query.history.n_given, query.history.codes(candidates))
        few = given <= self.policy.newcomer_answers
        welcomed = list(query.history.records.newcomers)
        return np.asarray(few | np.isin(candidates, welcomed) if welcomed else few)

    def _spread(self, candidates: Int64Array, scores: Float64Array, now: int) -> Float64Array:
        people = np.array(self.log.people if self.policy.spread else [], dtype=np.int64)
        if not len(people):
            return scores
        scores = scores.astype(np.float64)
        order = np.argsort(candidates, kind="stable")
        place = np.searchsorted(candidates, people, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        there = candidates[place] == people
        for person, where in zip(people[there].tolist(), place[there].tolist(), strict=True):
            load = self.log.times_asked(person, now, 7.0)
            scores[where] -= self.policy.spread * np.log2(1.0 + load)
        return scores

    def _with_newcomers(
        self, chosen: Int64Array, fresh: BoolArray, candidates: Int64Array, scores: Float64Array
    ) -> Int64Array:
        """The best, but with as many newcomers at the end as are owed so far."""
        self.log.places += len(chosen)
        owed = int(self.log.places * self.policy.newcomer_share) - self.log.newcomers
        missing = min(owed - int(fresh[chosen].sum()), len(chosen))
        if missing > 0:
            others = np.setdiff1d(np.flatnonzero(fresh), chosen)
            waiting = best(candidates, scores, others, missing)
            known = np.flatnonzero(~fresh[chosen])
            leave = known[len(known) - min(len(waiting), len(known)) :]
            chosen = np.concatenate([np.delete(chosen, leave), waiting[: len(leave)]])
        self.log.newcomers += int(fresh[chosen].sum())
        return chosen


def best(
    candidates: Int64Array, scores: Float64Array, places: Int64Array, count: int
) -> Int64Array:
    """The first `count` of some places by score, then id, without sorting all of them."""
    if 4 * count < len(places):
        value = scores[places]
        # The largest of each of so many parts: at least `count` values reach the count-th of them.
        starts = np.arange(0, len(value), len(value) // (2 * count))
        largest = np.maximum.reduceat(value, starts)
        places = places[value >= np.partition(largest, len(largest) - count)[-count]]
    order = np.lexsort((candidates[places], -scores[places]))
    return np.asarray(places[order[:count]])


def _by_code(values: Any, codes: Int64Array) -> Any:
    """Return the values of some user codes, 0 for −1."""
    return np.where(codes >= 0, values[np.maximum(codes, 0)], 0) if len(values) else 0 * codes
