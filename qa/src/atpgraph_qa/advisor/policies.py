"""Rules for who may be asked, and how often, independent of the ranking."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.archive import parse_json
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.files import atomic_path
from atpgraph_qa.advisor.people import (
    WEEKDAYS,
    Directory,
    Person,
    parse_day,
    parse_hours,
    time_zone,
)
from atpgraph_qa.data.site import DAY_MS, MOST_DAYS
from atpgraph_qa.timeline.query import Query, largest

HOUR_MS = 3_600_000
WEEK_MS = 7 * DAY_MS
_STRONGEST = 1e6
_FALLBACK_POOL = 200  # among so many of the best the least recently asked is looked for


@dataclass(frozen=True)
class Policy:
    """Rules about who may be asked. The asker is never asked.

    Attributes
    ----------
    opted_out : frozenset of int
        Users who are never asked.
    inactive_days : float or None
        Leave out people whose last answer is older than this.
    per_day, per_week : int or None
        Nobody is asked more often, counted over the last 24 hours and seven days; a person's own
        capacity replaces `per_week`.
    spread : float
        How many log-odds a person loses when the number of times they were asked in the last week
        doubles (from one to two, and so on); 0 ranks by evidence alone.
    newcomer_share : float
        Share of the places in lists of suggestions that go to the best newcomers, rounded down over
        all questions so far.
    newcomer_answers : int
        A newcomer is somebody who gave at most this many answers.
    least_answers : int
        Leave out people who gave fewer answers, unless they declared a topic.
    groups : tuple of str
        Ask only members of these groups; empty for everybody.
    hours, weekdays, holidays, time_zone
        When people are asked: hours like 09:00-17:00 in their own time zone or `time_zone`, days
        like mon, and days like 2026-12-25 on which nobody is asked. Empty: at any time.
    rest_hours : float
        Leave people alone for this long after they were asked.
    declared_bonus : float
        Log-odds for people who declared a tag of the question.
    considered : int or None
        Consider only this many of the best people; None for all.
    fallback : bool
        If none of those may be asked, ask whoever on a longer list was asked least recently.
    """

    opted_out: frozenset[int] = frozenset()
    inactive_days: float | None = None
    per_day: int | None = None
    per_week: int | None = None
    spread: float = 0.0
    newcomer_share: float = 0.0
    newcomer_answers: int = 3
    least_answers: int = 0
    groups: tuple[str, ...] = ()
    hours: str = ""
    weekdays: tuple[str, ...] = ()
    holidays: tuple[str, ...] = ()
    time_zone: str = "UTC"
    rest_hours: float = 0.0
    declared_bonus: float = 0.0
    considered: int | None = None
    fallback: bool = False

    def __post_init__(self) -> None:
        for name in ("per_day", "per_week"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} must be a number from 0, not {value}.")
        if not 0 <= self.newcomer_share <= 1:
            raise InputError(f"The share of newcomers must be 0 to 1, not {self.newcomer_share}.")
        if not 0 <= self.spread <= _STRONGEST:
            raise InputError(
                f"spread must be a number from 0 to {_STRONGEST:g}, not {self.spread}."
            )
        if self.inactive_days is not None and not 0 < self.inactive_days <= MOST_DAYS:
            raise InputError(
                f"inactive_days must be positive and up to a million, not {self.inactive_days}."
            )


class AskLog:
    """Record who was asked when, and how many places newcomers got, for a policy.

    Examples
    --------
    >>> log = AskLog()
    >>> log.record([7, 9], now_ms=0)
    >>> log.times_asked(7, now_ms=DAY_MS, days=7), log.times_asked(7, now_ms=DAY_MS, days=1)
    (1, 0)
    >>> [part.tolist() for part in log.week(DAY_MS)], log.last_asked(8)
    ([[7, 9], [1, 1]], 0)
    """

    def __init__(self) -> None:
        self._asked: dict[int, list[int]] = {}  # the last ask, and those of the week before it
        self._week: tuple[int, Int64Array, Int64Array] | None = None  # good until, people, asks
        self._lock = threading.Lock()
        self.places = 0
        self.newcomers = 0

    @property
    def people(self) -> list[int]:
        """Return everybody who was asked."""
        return list(self._asked)

    def record(self, people: Iterable[int], now_ms: int) -> None:
        """Remember that these people were asked."""
        self.record_all([(int(person), now_ms) for person in people])

    def record_all(self, asked: Sequence[tuple[int, int]]) -> None:
        """Remember people and the moments at which they were asked."""
        with self._lock:
            for person, moment in asked:
                times = [*self._asked.get(person, ()), moment]
                since = max(times) - WEEK_MS
                self._asked[person] = [time for time in times if time > since]
            self._week = None

    def times_asked(self, person: int, now_ms: int, days: float) -> int:
        """Return how often a person was asked in the last `days` days, seven at most."""
        since = now_ms - days * DAY_MS
        return sum(1 for time in self._asked.get(int(person), ()) if time > since)

    def last_asked(self, person: int) -> int:
        """Return when a person was last asked, 0 for never."""
        return max(self._asked.get(person, ()), default=0)

    def week(self, now_ms: int) -> tuple[Int64Array, Int64Array]:
        """Return the ids of those asked in the last seven days, ascending, and how often."""
        with self._lock:
            if self._week is None or now_ms >= self._week[0]:  # an ask became older than a week
                lately = [
                    (person, time)
                    for person, times in self._asked.items()
                    for time in times
                    if time > now_ms - WEEK_MS
                ]
                until = min((time for _, time in lately), default=now_ms) + WEEK_MS
                asked = np.array([person for person, _ in lately], dtype=np.int64)
                self._week = until, *np.unique(asked, return_counts=True)
            return self._week[1:]

    def drop(self, person: int) -> None:
        """Remove a person."""
        with self._lock:
            self._asked.pop(person, None)
            self._week = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        asked = {str(person): sorted(times) for person, times in self._asked.items()}
        return {"asked": asked, "places": self.places, "newcomers": self.newcomers}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return the log that :meth:`to_json` described."""
        log = cls()
        try:
            log.record_all([(int(p), int(t)) for p, times in data["asked"].items() for t in times])
            log.places, log.newcomers = int(data["places"]), int(data["newcomers"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise InputError("This is not a record of who was asked.") from None
        return log

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read the log in a file; return an empty one if there is no file yet."""
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
        """Write the file that :meth:`read` reads."""
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps(self.to_json()) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Decision:
    """The decision about a person: the rule that excluded them or ``asked``, and a sentence."""

    person: int
    rule: str
    text: str


@dataclass(frozen=True, eq=False)
class Choice:
    """The people that a policy selects among some candidates."""

    positions: Int64Array  # of the people to ask, best first
    # Who may be asked; where the policy looks at the best only, by activity and groups alone.
    allowed: BoolArray
    scores: Float64Array  # with what people declared, less their load
    newcomers: int  # how many of the people to ask are newcomers
    decisions: tuple[Decision, ...] = ()  # about those who were looked at, best first


class Dispatcher:
    """Applies a policy to a stream of questions.

    Parameters
    ----------
    policy : Policy, optional
        By default nobody but the asker is left out.
    log : AskLog, optional
        Who was asked before; new entries are added to it.
    people : Directory, optional
        The settings of people.
    skip : collection of int
        People who were already asked about the question.
    now_ms : int, optional
        The time by which people are asked; by default that of the question.
    remember : bool
        Whether to add those chosen to the log.

    Examples
    --------
    >>> people = Dispatcher(Policy(per_day=1, opted_out=frozenset({3})))
    >>> people.allowed(np.array([1, 2, 3]), asker=2, now_ms=0).tolist()
    [True, False, False]
    >>> people.log.record([1], now_ms=0)
    >>> people.allowed(np.array([1, 2, 3]), asker=-1, now_ms=1).tolist()
    [False, True, False]
    """

    def __init__(
        self,
        policy: Policy | None = None,
        log: AskLog | None = None,
        people: Directory | None = None,
        *,
        skip: Collection[int] = (),
        now_ms: int | None = None,
        remember: bool = True,
    ) -> None:
        self.policy = policy or Policy()
        self.log = log or AskLog()
        self.people = people or Directory()
        self.skip, self.now_ms, self.remember = frozenset(skip), now_ms, remember

    def why_not(self, person: Person, now_ms: int) -> Decision | None:
        """Return the first rule that excludes a person now, whatever they know."""
        rule, log = self.policy, self.log
        if person.id in self.skip:
            return Decision(person.id, "asked-before", "was asked about this question before")
        if person.opted_out or person.id in rule.opted_out:
            return Decision(person.id, "opted-out", "does not want to be asked")
        closed = self._closed(person, now_ms)
        if closed:
            return Decision(person.id, *closed)
        week = rule.per_week if person.capacity is None else person.capacity
        for limit, days, name in ((rule.per_day, 1.0, "day"), (week, 7.0, "week")):
            if limit is not None:
                asked = log.times_asked(person.id, now_ms, days)
                if asked >= limit:
                    often = "once" if asked == 1 else f"{asked} times"
                    said = f"was asked {often} in the last {name}, {limit} allowed"
                    return Decision(person.id, "capacity", said)
        last = log.last_asked(person.id)
        if rule.rest_hours and last and last > now_ms - rule.rest_hours * HOUR_MS:
            hours = (now_ms - last) / HOUR_MS
            ago = f"{60 * hours:.0f} minutes" if hours < 1.5 else f"{hours:.0f} hours"
            return Decision(person.id, "asked-recently", f"was asked {ago} ago")
        return None

    def _closed(self, person: Person, now_ms: int) -> tuple[str, str] | None:
        rule = self.policy
        hours = person.hours or rule.hours
        if not (hours or person.away_until or rule.holidays or rule.weekdays):
            return None
        zone = person.time_zone or rule.time_zone
        local = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(time_zone(zone))
        day, minute = local.date(), 60 * local.hour + local.minute
        if person.away_until and day <= parse_day(person.away_until):
            return "away", f"is away until {person.away_until}"
        if day.isoformat() in rule.holidays:
            return "holiday", f"{day.isoformat()} is a holiday"
        if rule.weekdays and WEEKDAYS[day.weekday()] not in rule.weekdays:
            return "weekday", f"nobody is asked on a {day:%A}"
        if hours:
            start, end = parse_hours(hours)
            inside = start <= minute < end if start < end else minute >= start or minute < end
            if not inside:
                return "hours", f"it is outside of their hours, {hours} {zone}"
        return None

    def allowed(self, candidates: Int64Array, asker: int, now_ms: int) -> BoolArray:
        """Return which candidates may be asked now, ignoring their activity."""
        result: BoolArray = np.asarray(candidates != asker)
        if self.why_not(Person(-1), now_ms) is not None:  # a rule for everybody
            return np.zeros(len(candidates), dtype=np.bool_)
        told = {person.id for person in self.people} | self.policy.opted_out | self.skip
        told |= set(self.log.people)
        busy = [user for user in told if self.why_not(self.people[user], now_ms) is not None]
        return np.asarray(result & ~np.isin(candidates, np.array(busy, dtype=np.int64)))

    def eligible(self, query: Query) -> BoolArray:
        """Return which users are worth ranking, by activity and groups; the last entry is for
        others.
        """
        result = np.ones(query.history.n_users + 1, dtype=np.bool_)
        for _, passed in self._eligibility(query):
            result &= passed
        return result

    def _eligibility(self, query: Query) -> list[tuple[str, BoolArray]]:
        """Return which users pass each of the cheap rules, with a phrase for each rule."""
        rule, history = self.policy, query.history
        checks = []

        def among(users: Any) -> BoolArray:
            found = np.zeros(history.n_users + 1, dtype=np.bool_)
            found[history.codes(users)] = True
            found[-1] = False
            return found

        if rule.least_answers:
            enough = np.append(history.n_given >= rule.least_answers, False)
            enough |= among([person.id for person in self.people.declaring()])
            checks.append((f"gave fewer than {rule.least_answers} answers", enough))
        if rule.inactive_days is not None:
            oldest = query.asked_ms - rule.inactive_days * DAY_MS
            active = np.append(history.last_answer_ms > oldest, oldest < 0)
            checks.append((f"have not answered for {rule.inactive_days:g} days", active))
        if rule.groups:
            members = among(self.people.members(rule.groups))
            checks.append(("are in none of the groups that may be asked", members))
        return checks

    def explain_nobody(self, query: Query) -> str:
        """Return in words why none of those who answered before is eligible."""
        last = query.history.last_answer_ms
        everybody = np.flatnonzero(last)
        parts = [
            f"{int((~passed[everybody]).sum())} of {len(everybody)} {phrase}"
            for phrase, passed in self._eligibility(query)
            if not passed[everybody].all()
        ]
        days = (query.asked_ms - int(last.max())) / DAY_MS if len(last) else 0.0
        rule = self.policy
        if rule.inactive_days is not None and days > rule.inactive_days:
            parts.append(f"the newest answer known here is {days:,.0f} days old")
        return "The policy leaves nobody to ask: " + "; ".join(parts) + "." if parts else ""

    def expected_share(self, presence: Float64Array) -> float:
        """Return how often the right person is eligible, given `Router.presence_`."""
        idle, given = presence
        inside = np.round(given) >= self.policy.least_answers
        if self.policy.inactive_days is not None:
            inside &= idle < self.policy.inactive_days
        return float(inside.mean()) if len(inside) else 1.0

    def choose(
        self, query: Query, candidates: Int64Array, scores: Float64Array, top: int = 5
    ) -> Choice:
        """Choose at most `top` of some users, by score and then id, and log the choice."""
        rule, asker = self.policy, query.question.asker
        now = query.asked_ms if self.now_ms is None else self.now_ms
        allowed = self.eligible(query)[query.history.codes(candidates)]
        if rule.considered is None:
            allowed &= self.allowed(candidates, asker, now)
        else:
            allowed &= candidates != asker
        scores = self._adjusted(query, candidates, scores, now)
        positions, decisions = self._walk(candidates, scores, allowed, top, now)
        if rule.newcomer_share and len(positions):
            fresh = self.newcomers(query, candidates) & allowed
            positions = self._with_newcomers(positions, fresh, candidates, scores)
        if self.remember:
            self.log.record(candidates[positions].tolist(), now)
        newcomers = int(self.newcomers(query, candidates[positions]).sum())
        return Choice(positions, allowed, scores, newcomers, tuple(decisions))

    def _walk(
        self, candidates: Int64Array, scores: Float64Array, allowed: BoolArray, top: int, now: int
    ) -> tuple[Int64Array, list[Decision]]:
        """Go down the list and choose the first who may be asked."""
        rule, places = self.policy, np.flatnonzero(allowed)
        # Unless only the best are looked at, everybody who is allowed may be asked.
        count = top if rule.considered is None else rule.considered
        chosen: list[int] = []
        decisions: list[Decision] = []
        for place in best(candidates, scores, places, count).tolist():
            person = self.people[int(candidates[place])]
            no = self.why_not(person, now)
            if no is not None:
                decisions.append(no)
            elif len(chosen) < top:
                chosen.append(place)
                decisions.append(Decision(person.id, "asked", f"place {len(chosen)}"))
        if rule.fallback and not chosen:
            wider = best(candidates, scores, places, _FALLBACK_POOL)
            users = dict(zip(wider.tolist(), candidates[wider].tolist(), strict=True))
            free = [p for p, user in users.items() if self.why_not(self.people[user], now) is None]
            chosen = sorted(free, key=lambda place: self.log.last_asked(users[place]))[:top]
            said = "none of the best may be asked; asked least recently of the others"
            decisions += [Decision(users[place], "fallback", said) for place in chosen]
        return np.array(chosen, dtype=np.int64), decisions

    def _adjusted(
        self, query: Query, candidates: Int64Array, scores: Float64Array, now: int
    ) -> Float64Array:
        """Return the scores plus the bonus for declared tags, minus the load of the week."""
        rule, tags = self.policy, set(query.question.tags)
        adjusted = scores.astype(np.float64)

        def add(people: Int64Array, more: Float64Array) -> None:
            _, place, which = np.intersect1d(
                candidates, people, assume_unique=True, return_indices=True
            )
            adjusted[place] += more[which]

        if tags and rule.declared_bonus:
            knowing = [p.id for p in self.people.declaring() if tags.intersection(p.topics)]
            add(np.array(knowing, dtype=np.int64), np.full(len(knowing), rule.declared_bonus))
        if rule.spread:
            people, asked = self.log.week(now)
            add(people, -rule.spread * np.log2(1.0 + asked))
        return adjusted

    def newcomers(self, query: Query, candidates: Int64Array) -> BoolArray:
        """Return which candidates are newcomers: few answers, or welcomed as one."""
        given = np.append(query.history.n_given, 0)[query.history.codes(candidates)]
        few = given <= self.policy.newcomer_answers
        welcomed = list(query.history.records.newcomers)
        return np.asarray(few | np.isin(candidates, welcomed) if welcomed else few)

    def _with_newcomers(
        self, chosen: Int64Array, fresh: BoolArray, candidates: Int64Array, scores: Float64Array
    ) -> Int64Array:
        """Return the best, with as many newcomers at the end as their share requires so far."""
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
    """Return the first `count` of some positions by score, then id."""
    by_id = places[np.argsort(candidates[places], kind="stable")]
    return by_id[largest(scores[by_id], count)]
