"""Whom of the best to ask: the rules that keep quiet, each decision in words."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph_qa.advisor.policies import Choice, Dispatcher, best
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.settings import WEEKDAYS, Rules, parse_day, parse_hours, time_zone
from atpgraph_qa.service.store.asks import AskHistory
from atpgraph_qa.service.store.people import Directory, Person
from atpgraph_qa.timeline.query import Query

HOUR_MS = 3_600_000
_FALLBACK_POOL = 200  # among so many of the best the least recently asked is looked for
BASELINE_DAYS = 30


@dataclass(frozen=True)
class Decision:
    """What a rule said about a person.

    Attributes
    ----------
    person : int
    rule : str
        Its name; ``asked`` for those who are asked.
    text : str
        The same for people.
    """

    person: int
    rule: str
    text: str


@dataclass(frozen=True)
class Ranked:
    """One of the best, whatever the rules say."""

    person: int
    confidence: float


class AskPolicy(Dispatcher):
    """Applies the rules of the service to one question.

    Parameters
    ----------
    rules : Rules
    directory : Directory
    asks : AskHistory
    now_ms : int
    skip : collection of int
        Who was asked about this question before.
    confidence : callable, optional
        Calibrated confidence of scores; given when the ranking is to be kept.
    """

    def __init__(
        self,
        rules: Rules,
        directory: Directory,
        asks: AskHistory,
        now_ms: int,
        *,
        skip: Collection[int] = (),
        confidence: Callable[[Float64Array, Int64Array], Float64Array] | None = None,
    ) -> None:
        super().__init__()
        self.rules, self.directory, self.asks, self.now_ms = rules, directory, asks, now_ms
        self.skip = frozenset(skip)
        self.confidence = confidence
        self.decisions: list[Decision] = []
        self.ranking: tuple[Ranked, ...] = ()
        self.baseline: tuple[int, ...] = ()

    def choose(
        self, query: Query, candidates: Int64Array, scores: Float64Array, top: int = 5
    ) -> Choice:
        """The people to ask; decisions, ranking and baseline are kept as attributes."""
        everybody = np.arange(len(candidates))
        looked = best(candidates, scores, everybody, self.rules.candidates)
        if self.confidence is not None:
            sure = self.confidence(scores, looked).tolist()
            self.ranking = tuple(map(Ranked, candidates[looked].tolist(), sure))
            self.baseline = most_active(query, self.rules.candidates)
        allowed, hard = self._record(query, candidates)
        adjusted = self._adjusted(query, candidates, scores)
        chosen = self._walk(candidates, adjusted, allowed, top)
        for place in looked.tolist():
            if not allowed[place]:
                self.decisions.append(hard(place))
        if not chosen and self.rules.fallback:
            chosen = self._fallback(candidates, adjusted, allowed, top)
        positions = np.array(chosen, dtype=np.int64)
        return Choice(positions, allowed, adjusted, 0)

    def why_not(self, person: Person) -> Decision | None:
        """The first rule by which somebody may not be asked now, whatever they know."""
        rules, now = self.rules, self.now_ms
        if person.id in self.skip:
            return Decision(person.id, "asked-before", "was asked about this question before")
        if person.opted_out:
            return Decision(person.id, "opted-out", "does not want to be asked")
        moment = datetime.fromtimestamp(now / 1000, UTC)
        local = moment.astimezone(time_zone(person.time_zone or rules.time_zone))
        if person.away_until and local.date() <= parse_day(person.away_until):
            return Decision(person.id, "away", f"is away until {person.away_until}")
        closed = self._closed(person, local.date(), 60 * local.hour + local.minute)
        if closed:
            return Decision(person.id, *closed)
        week = rules.per_week if person.capacity is None else person.capacity
        for limit, days, name in ((rules.per_day, 1.0, "day"), (week, 7.0, "week")):
            asked = self.asks.times(person.id, now, days, shadow=rules.shadow)
            if asked >= limit:
                said = f"{asked} asks in the last {name}, {limit} allowed"
                return Decision(person.id, "capacity", said)
        last = self.asks.last(person.id, shadow=rules.shadow)
        if last > now - rules.rest_hours * HOUR_MS:
            hours = (now - last) / HOUR_MS
            return Decision(person.id, "asked-recently", f"was asked {hours:.1f} hours ago")
        return None

    def _closed(self, person: Person, day: date, minute: int) -> tuple[str, str] | None:
        rules = self.rules
        if day.isoformat() in rules.holidays:
            return "holiday", f"{day.isoformat()} is a holiday"
        if rules.weekdays and WEEKDAYS[day.weekday()] not in rules.weekdays:
            return "weekday", f"nobody is asked on a {WEEKDAYS[day.weekday()]}"
        hours = person.hours or rules.hours
        if hours:
            start, end = parse_hours(hours)
            inside = start <= minute < end if start < end else minute >= start or minute < end
            if not inside:
                return "hours", f"outside of {hours}, {person.time_zone or rules.time_zone}"
        return None

    def _record(
        self, query: Query, candidates: Int64Array
    ) -> tuple[BoolArray, Callable[[int], Decision]]:
        """Whom their record and their groups allow, and why not the others."""
        rules, history = self.rules, query.history
        codes = np.maximum(history.codes(candidates), 0)
        idle_ms = query.asked_ms - history.last_answer_ms[codes]
        active = idle_ms <= rules.inactive_days * DAY_MS
        declared = [person.id for person in self.directory.declaring()]
        enough = history.n_given[codes] >= rules.least_answers
        if declared:
            enough |= np.isin(candidates, declared)
        permitted = np.ones(len(candidates), dtype=np.bool_)
        if rules.groups:
            permitted = np.isin(candidates, self.directory.members(rules.groups))

        def why(place: int) -> Decision:
            person = int(candidates[place])
            if not permitted[place]:
                return Decision(person, "groups", "is in none of the groups that may be asked")
            if not enough[place]:
                said = f"gave fewer than {rules.least_answers} answers"
                return Decision(person, "least-answers", said)
            days = idle_ms[place] / DAY_MS
            return Decision(person, "inactive", f"has not answered for {days:.0f} days")

        return np.asarray(active & enough & permitted), why

    def _adjusted(self, query: Query, candidates: Int64Array, scores: Float64Array) -> Float64Array:
        """Scores with what people declared, and less the load of the week."""
        rules, tags = self.rules, set(query.question.tags)
        adjusted = scores.astype(np.float64, copy=True)

        def add(people: Int64Array, more: Float64Array) -> None:
            place = np.minimum(np.searchsorted(candidates, people), len(candidates) - 1)
            there = candidates[place] == people  # candidates ascend
            adjusted[place[there]] += more[there]

        if tags and rules.declared_bonus:
            knowing = [p.id for p in self.directory.declaring() if tags.intersection(p.topics)]
            people = np.array(sorted(knowing), dtype=np.int64)
            add(people, np.full(len(people), rules.declared_bonus))
        if rules.spread:
            people, asked = self.asks.week(self.now_ms)
            add(people, -rules.spread * np.log2(1.0 + asked))
        return adjusted

    def _walk(
        self, candidates: Int64Array, scores: Float64Array, allowed: BoolArray, top: int
    ) -> list[int]:
        """The first who may be asked, going down the list."""
        chosen: list[int] = []
        places = best(candidates, scores, np.flatnonzero(allowed), self.rules.candidates)
        for place in places.tolist():
            person = self.directory[int(candidates[place])]
            no = self.why_not(person)
            if no is not None:
                self.decisions.append(no)
            elif len(chosen) < top:
                chosen.append(place)
                self.decisions.append(Decision(person.id, "asked", f"place {len(chosen)}"))
        return chosen

    def _fallback(
        self, candidates: Int64Array, scores: Float64Array, allowed: BoolArray, top: int
    ) -> list[int]:
        """Of the wider list, those who were asked least recently."""
        places = best(candidates, scores, np.flatnonzero(allowed), _FALLBACK_POOL)
        free = [
            (self.asks.last(int(candidates[place]), shadow=self.rules.shadow), turn, place)
            for turn, place in enumerate(places.tolist())
            if self.why_not(self.directory[int(candidates[place])]) is None
        ]
        chosen = [place for _, _, place in sorted(free)[:top]]
        for place in chosen:
            said = "none of the best may be asked; asked least recently of the others"
            self.decisions.append(Decision(int(candidates[place]), "fallback", said))
        return chosen


def most_active(query: Query, count: int, days: int = BASELINE_DAYS) -> tuple[int, ...]:
    """The trivial ranking to compare with: who gave most answers in the last month."""
    history = query.history
    since = int(np.searchsorted(history.answers.given_ms, query.asked_ms - days * DAY_MS))
    owner = history.answers.owner[since:]
    people, given = np.unique(owner[owner >= 0], return_counts=True)
    users = history.records.ids(people)
    keep = users != query.question.asker
    users, given = users[keep], given[keep]
    order = np.lexsort((users, -given))[:count]
    return tuple(users[order].tolist())
