"""Who may be asked, and how often: rules that hold whatever the ranking says."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.cqa.routing.history import Question
from atpgraph.cqa.routing.method import Floats, Int64
from atpgraph.cqa.routing.newcomers import OpenHistory
from atpgraph.cqa.site import DAY_MS
from atpgraph.errors import InputError

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Policy:
    """Rules for whom to ask. The asker is never asked.

    Attributes
    ----------
    opted_out : frozenset of int
        Users who are never asked.
    inactive_days : float or None
        Leave out people whose last answer is older.
    per_day, per_week : int or None
        Nobody is asked more often, counted over the last 24 hours and seven days.
    spread : float
        How many log-odds a person loses when the number of times they were asked in the last week
        doubles (from one to two, and so on); 0 ranks by evidence alone.
    newcomer_share : float
        Share of the places, rounded down over the questions so far, that go to the best newcomers.
    newcomer_answers : int
        Newcomers gave at most so many answers.
    """

    opted_out: frozenset[int] = frozenset()
    inactive_days: float | None = None
    per_day: int | None = None
    per_week: int | None = None
    spread: float = 0.0
    newcomer_share: float = 0.0
    newcomer_answers: int = 3

    def __post_init__(self) -> None:
        for name in ("per_day", "per_week"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} is a number from 0, not {value}.")
        if not 0 <= self.newcomer_share <= 1:
            raise InputError(f"The share of newcomers is 0 to 1, not {self.newcomer_share}.")
        if self.spread < 0:
            raise InputError(f"spread is a number from 0, not {self.spread}.")
        if self.inactive_days is not None and self.inactive_days <= 0:
            raise InputError(f"inactive_days is a positive number, not {self.inactive_days}.")


class Dispatcher:
    """Applies a policy to a stream of questions and keeps count of who was asked.

    Parameters
    ----------
    policy : Policy

    Examples
    --------
    >>> policy = Policy(per_day=1, opted_out=frozenset({3}))
    >>> people = Dispatcher(policy)
    >>> people.allowed(np.array([1, 2, 3]), asker=2, now_ms=0).tolist()
    [True, False, False]
    >>> people.record([1], now_ms=0)
    >>> people.allowed(np.array([1, 2, 3]), asker=-1, now_ms=1).tolist()
    [False, True, False]
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._asked: dict[int, deque[int]] = defaultdict(deque)
        self._places = 0
        self._newcomers = 0

    def record(self, people: Iterable[int], now_ms: int) -> None:
        """Remember that these people were asked."""
        for person in people:
            self._asked[int(person)].append(now_ms)

    def to_json(self) -> dict[str, Any]:
        """Who was asked when, and how many places newcomers got; without the policy."""
        asked = {str(person): list(times) for person, times in self._asked.items() if times}
        return {"asked": asked, "places": self._places, "newcomers": self._newcomers}

    @classmethod
    def from_json(cls, data: Any, policy: Policy | None = None) -> Dispatcher:
        """Go on from what :meth:`to_json` gave."""
        made = cls(policy)
        try:
            for person, times in data["asked"].items():
                made._asked[int(person)] = deque(sorted(int(time) for time in times))
            made._places, made._newcomers = int(data["places"]), int(data["newcomers"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError("This is not a record of who was asked.") from None
        return made

    def load(self, person: int, now_ms: int, days: float) -> int:
        """How often somebody was asked in the last so many days."""
        times = self._asked.get(int(person))
        if not times:
            return 0
        while times and times[0] <= now_ms - 7 * DAY_MS:
            times.popleft()
        since = now_ms - days * DAY_MS
        return sum(1 for t in times if t > since)

    def allowed(self, candidates: Int64, asker: int, now_ms: int) -> Flags:
        """Which candidates may be asked now, their activity aside."""
        rule = self.policy
        result: Flags = np.asarray(candidates != asker)
        if rule.opted_out:
            result &= ~np.isin(candidates, np.fromiter(rule.opted_out, dtype=np.int64))
        for limit, days in ((rule.per_day, 1.0), (rule.per_week, 7.0)):
            if limit == 0:
                result[:] = False
            elif limit is not None and self._asked:
                busy = [p for p in self._asked if self.load(p, now_ms, days) >= limit]
                result &= ~np.isin(candidates, np.array(busy, dtype=np.int64))
        return np.asarray(result)

    def adjusted(
        self, question: Question, candidates: Int64, scores: Floats
    ) -> tuple[Flags, Floats]:
        """Which candidates may be asked this question, and their scores less their load."""
        now, history, rule = question.asked_ms, question.history, self.policy
        allowed = self.allowed(candidates, question.asker, now)
        if rule.inactive_days is not None:
            codes = history.codes(candidates)
            last = np.where(codes >= 0, history.last_answer_ms[np.maximum(codes, 0)], 0)
            allowed &= last > now - rule.inactive_days * DAY_MS
        return allowed, self._spread(candidates, scores, now)

    def choose(self, question: Question, candidates: Int64, scores: Floats, top: int = 5) -> Int64:
        """Positions of the people to ask, best first, and remember that they were asked.

        Parameters
        ----------
        question : Question
        candidates : int64 array
            User ids, no repeats.
        scores : float64 array
            One per candidate, larger is better; of equals the smaller id comes first.
        top : int
            How many people at most.
        """
        allowed, scores = self.adjusted(question, candidates, scores)
        chosen = _best(candidates, scores, np.flatnonzero(allowed), top)
        if self.policy.newcomer_share and len(chosen):
            fresh = self.newcomers(question, candidates) & allowed
            chosen = self._with_newcomers(chosen, fresh, candidates, scores)
        self.record(candidates[chosen].tolist(), question.asked_ms)
        return chosen

    def newcomers(self, question: Question, candidates: Int64) -> Flags:
        """Which candidates are newcomers: few answers, or welcomed as one."""
        history = question.history
        codes = history.codes(candidates)
        given = np.where(codes >= 0, history.n_given[np.maximum(codes, 0)], 0)
        few = given <= self.policy.newcomer_answers
        if isinstance(history, OpenHistory):
            few |= np.isin(candidates, list(history.newcomers))
        return np.asarray(few)

    def _spread(self, candidates: Int64, scores: Floats, now: int) -> Floats:
        if not self.policy.spread or not self._asked:
            return scores
        scores = scores.astype(np.float64)
        people = np.fromiter(self._asked, dtype=np.int64, count=len(self._asked))
        order = np.argsort(candidates, kind="stable")
        place = np.searchsorted(candidates, people, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        there = candidates[place] == people
        for person, where in zip(people[there].tolist(), place[there].tolist(), strict=True):
            load = self.load(person, now, 7.0)
            scores[where] -= self.policy.spread * np.log2(1.0 + load)
        return scores

    def _with_newcomers(
        self, chosen: Int64, fresh: Flags, candidates: Int64, scores: Floats
    ) -> Int64:
        """The best, but as many newcomers at the end as are owed so far."""
        self._places += len(chosen)
        owed = int(self._places * self.policy.newcomer_share) - self._newcomers
        missing = min(owed - int(fresh[chosen].sum()), len(chosen))
        if missing > 0:
            others = np.setdiff1d(np.flatnonzero(fresh), chosen)
            waiting = _best(candidates, scores, others, missing)
            known = np.flatnonzero(~fresh[chosen])
            leave = known[len(known) - min(len(waiting), len(known)) :]
            chosen = np.concatenate([np.delete(chosen, leave), waiting[: len(leave)]])
        self._newcomers += int(fresh[chosen].sum())
        return chosen


def _best(candidates: Int64, scores: Floats, places: Int64, count: int) -> Int64:
    """The first `count` of some places by score, then id, without sorting all of them."""
    if count < len(places):
        value = scores[places]
        least = np.partition(value, len(value) - count)[len(value) - count]
        places = places[value >= least]
    order = np.lexsort((candidates[places], -scores[places]))
    return np.asarray(places[order[:count]])
