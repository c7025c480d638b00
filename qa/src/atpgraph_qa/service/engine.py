"""The engine: applies events in order, keeps the advisor up to date, and routes questions.

All effects of an event are stored in one transaction, together with its number; the advisor in
memory is replaced afterwards. So a crash at any moment leaves either all effects or none, and the
event is applied after the restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, func, select

from atpgraph.errors import InputError
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.threads import thread_count
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.people import Directory, Person
from atpgraph_qa.advisor.policies import WEEK_MS, AskLog, Choice, Decision, Dispatcher, Policy, best
from atpgraph_qa.advisor.readers import Readers
from atpgraph_qa.advisor.suggest import Suggestions
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import events, outbox, suggestions, tables
from atpgraph_qa.service.database import (
    Database,
    DatabaseGoneError,
    NotInChargeError,
    after_commit,
    serialize,
)
from atpgraph_qa.service.events import Arrival, Edited, Event, StatusChanged, TopicChange
from atpgraph_qa.service.forget import erase_questions, erase_texts
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.tables import get_meta, put_meta
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Newcomer
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, Question

LOG = logging.getLogger("atpgraph.serve")
APPLIED, CALIBRATED = "applied_seq", "calibrated_day"
LEAST_OUTCOMES = 200  # people suggested before confidence is corrected
BATCH = 200  # events read at once
MANY_RECENT = 50_000  # rows that are scanned, before they are merged into the indexes
BASELINE_DAYS = 30
_WAIT_S = 0.25  # events wait no longer than this for callers
T = TypeVar("T")
Change = tuple[Any, ...]  # a function of an advisor, and its other arguments
Store = Callable[[Connection], None]


def now_ms() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


@contextlib.contextmanager
def log_bugs(**facts: int) -> Iterator[None]:
    """Log an exception instead of raising it, unless the database is gone or not ours any more."""
    try:
        yield
    except (DatabaseGoneError, NotInChargeError):
        raise
    except Exception as bug:
        LOG.exception("bug", extra={"facts": {**facts, "kind": type(bug).__name__}})


class RankingLimiter:
    """Ranks for callers, one question per core, and rejects callers while `most` run or wait.

    It has threads of its own, so that events are stored and pages are served however many questions
    wait. Questions from events are ranked by another thread, which waits until this one is idle.
    """

    def __init__(self, most: int) -> None:
        self.most, self.under_way = most, 0
        self.idle = threading.Event()
        self.idle.set()
        self._threads = ThreadPoolExecutor(thread_count(None), "atp-rank")

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, or raise an error at once."""
        if self.under_way >= self.most:
            raise ProblemError(503, "Too many questions at once.", wait=1)
        self.under_way += 1
        self.idle.clear()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.idle.set()

    def close(self) -> None:
        """Finish the running work."""
        self._threads.shutdown(cancel_futures=True)


@dataclass(frozen=True, kw_only=True)
class Advice(Suggestions):
    """The people to ask, and the decisions of the rules.

    For reports, `ranking` has the best people regardless of caps, with their confidence, and
    `baseline` a trivial ranking to compare with.
    """

    decisions: tuple[Decision, ...] = ()
    ranking: Sequence[tables.Row] = ()
    baseline: Sequence[int] = ()
    model: str


class _Recorder(Dispatcher):
    """A dispatcher that records the candidates and its decisions."""

    seen: tuple[Query, Int64Array, Float64Array, tuple[Decision, ...]] | None = None

    def choose(
        self, query: Query, candidates: Int64Array, scores: Float64Array, top: int = 5
    ) -> Choice:
        choice = super().choose(query, candidates, scores, top)
        self.seen = query, candidates, scores, choice.decisions
        return choice


class Engine:
    """The advisor, people's settings and the log of asks, kept up to date with a database."""

    def __init__(
        self, database: Database, settings: Settings, clock: Callable[[], int] = now_ms
    ) -> None:
        self.database, self.settings, self.clock = database, settings, clock
        self.lock = threading.RLock()  # held while the state changes
        self._changing_person = threading.Lock()
        self.new_events = threading.Event()
        self.limiter = RankingLimiter(settings.limits.queue_routes)
        self.advisor: Advisor  # set by `start_from`
        self.readers: Readers | None = None
        self.model = ""
        self.seq = 0
        self.waiting = 0
        # Set by the Suggester: ranks for an event, and returns what stores the suggestion.
        self.prepare: Callable[[Event, Advisor], Store | None]
        with database.write() as connection:
            self.forgotten_people = events.ForgottenPeople(connection, Path(settings.store.folder))
            self.directory = Directory(map(_person, tables.find(connection, select(tables.people))))
            # The mode set on the page is valid until the settings change.
            kept, _, given = get_meta(connection, "mode").partition(" ")
            self.mode = kept if given == settings.policy.mode else settings.policy.mode
            self.asks = self._load_asks(connection)

    @property
    def shadow(self) -> bool:
        """Whether nobody is asked."""
        return self.mode == "shadow"

    def set_mode(self, mode: str, who: str) -> None:
        """Switch between shadow, approve and automatic; the audit log says who did."""
        with self.lock:
            with self.database.write(acting=True) as connection:
                put_meta(connection, "mode", f"{mode} {self.settings.policy.mode}")
                tables.note(connection, self.clock(), who, f"mode: {self.mode} → {mode}")
            self.mode = mode
            with self.database.read() as connection:
                self.asks = self._load_asks(connection)

    def _load_asks(self, connection: Connection) -> AskLog:
        """Return the asks of the last weeks; those of shadow mode count only in shadow mode."""
        t = tables.asks.c
        query = select(t.person, t.at_ms).where(t.at_ms > self.clock() - 8 * WEEK_MS)
        rows = connection.execute(query if self.shadow else query.where(~t.shadow))
        log = AskLog()
        log.record_all([(row.person, row.at_ms) for row in rows])
        return log

    def note_asks(
        self, connection: Connection, asked: Sequence[int], kind: str, *, shadow: bool = False,
        suggestion: int | None = None,
    ) -> None:  # fmt: skip
        """Record that people are asked now; it counts once the transaction is committed."""
        now = self.clock()
        for person in asked:
            tables.add(
                connection, tables.asks, person=person, at_ms=now, kind=kind, shadow=shadow,
                suggestion=suggestion,
            )  # fmt: skip
        after_commit(connection, lambda: self.asks.record(asked, now))

    def start_from(self, advisor: Advisor, model: str, seq: int) -> None:
        """Start from a snapshot and the events that were applied since, without new effects."""
        with self.database.read() as connection:
            applied = int(get_meta(connection, APPLIED, "0"))
        self.advisor, _ = self._continued(advisor, seq, applied)
        self.model = model
        self.seq = max(seq, applied)
        self.let_time_pass()
        self.place_newcomers()
        if self.settings.server.readers:
            self.readers = Readers(self.advisor, self.settings.server.readers)

    def _continued(self, advisor: Advisor, seq: int, until: int) -> tuple[Advisor, list[Change]]:
        """Add the events after one number, up to another; also return the changes."""
        changes: list[Change] = []
        while True:
            with self.database.read() as connection:
                rows = events.after(connection, seq, 2000, until=until)
            if not rows:
                return advisor, changes
            for part in _parts(rows, together=True):
                advisor, change, _ = self._observed(advisor, part)
                changes += [change] if change else []
            seq = rows[-1].seq

    def let_time_pass(self) -> None:
        """Update the advisor at midnight, when votes of the day before or a new week begin to
        count.
        """
        midnight = self.clock() // DAY_MS * DAY_MS
        with self.lock:
            if self.advisor.history.now < midnight:
                self.exchange(self.advisor.later(midnight), (Advisor.later, midnight))

    def go_on_from(self, merged: Advisor, seq: int) -> None:
        """Continue with an advisor whose indexes contain the events up to a number."""
        # What takes seconds comes before the lock: starting readers, and most of the events.
        started = [] if self.readers is None else self.readers.started(merged)
        with contextlib.ExitStack() as unused:
            for reader in started:
                unused.callback(reader.end)
            until = self.seq
            ahead, changes = self._continued(merged, seq, until)
            ahead.warm_up()
            ready = self.readers is not None and all(reader.catch_up(changes) for reader in started)
            with self.lock:
                now = self.advisor
                same = now.router is merged.router and now.newcomers == merged.newcomers
                if not same:
                    merged = replace(merged, router=now.router, newcomers=now.newcomers)
                    ahead, _ = self._continued(merged, seq, until)
                advisor, changes = self._continued(ahead, until, self.seq)
                ready = ready and same and advisor.week_ms == now.week_ms
                if self.readers and ready and all(reader.catch_up(changes) for reader in started):
                    unused.pop_all()
                    self.readers.restart(advisor, started)
                    self.advisor = advisor
                else:
                    self.exchange(advisor)

    def exchange(self, advisor: Advisor, change: Change = ()) -> None:
        """Replace the advisor with the result of a change, or with a new one."""
        if advisor.week_ms != self.advisor.week_ms:
            advisor.warm_up()  # here, not when the next caller asks
        if self.readers is not None and advisor is not self.advisor:
            if change:
                self.readers.change(advisor, *change)
            else:
                self.readers.restart(advisor)
        self.advisor = advisor

    def close(self) -> None:
        """End the threads and processes that rank."""
        self.limiter.close()
        if self.readers is not None:
            self.readers.close()

    def place_newcomers(self) -> None:
        """Place people who declared topics and have not answered yet."""
        with self.lock:
            history, declared = self.advisor.history, self.directory.declaring()
            codes = history.codes([person.id for person in declared]).tolist()
            new = tuple(
                Newcomer(person.id, tags=person.topics)
                for person, code in zip(declared, codes, strict=True)
                if code < 0 or not history.n_given[code]
            )
            if new != self.advisor.newcomers:
                self.exchange(with_newcomers(self.advisor, new), (with_newcomers, new))

    def knows(self, user: int) -> bool:
        """Return whether a person posted or set anything."""
        return user in self.directory or self.advisor.history.codes([user])[0] >= 0

    def change_person(self, user: int, who: str = "", **changes: Any) -> None:
        """Change a person's settings, unless they were forgotten; `who` is for the audit log."""
        if not who and replace(self.directory[user], **changes) == self.directory[user]:
            return
        with self._changing_person, self.database.write() as connection:
            serialize(connection)  # with who is being forgotten
            if user in self.forgotten_people:
                return
            person = replace(self.directory[user], **changes)
            values = asdict(person)
            values |= {"member_of": values.pop("groups"), "updated_ms": self.clock()}
            tables.save(connection, tables.people, **values)
            if who:
                tables.note(connection, self.clock(), who, "changed a person", user)
            after_commit(connection, lambda: self.directory.put(person))

    def _rules(self, policy: Policy | None = None, skip: Collection[int] = ()) -> _Recorder:
        return _Recorder(
            policy or self.settings.policy.policy(), self.asks, self.directory, skip=skip,
            now_ms=self.clock(), remember=False,
        )  # fmt: skip

    def why_not(self, person: int) -> str:
        """Return why a person may not be asked now, '' if they may."""
        no = self._rules().why_not(self.directory[person], self.clock())
        return "" if no is None else no.text

    def route(
        self, question: Question, *, top: int | None = None, keep: bool = False,
        skip: Collection[int] = (), advisor: Advisor | None = None, policy: Policy | None = None,
    ) -> Advice:  # fmt: skip
        """Return the people to ask now and, with `keep`, data for reports; nothing is stored."""
        advisor = advisor or self.advisor
        rules, now, recorder = self.settings.policy, self.clock(), self._rules(policy, skip)
        if now >= advisor.history.last_ms:
            question = replace(question, at=datetime.fromtimestamp(now / 1000, UTC))
        with contextlib.ExitStack() as stack:
            ranker = None
            if self.readers is not None and advisor is self.advisor:
                ranker = stack.enter_context(self.readers.ranker(advisor))
            found = advisor.ask(
                question, recorder, k=top or rules.people,
                least_confidence=rules.least_confidence, ranker=ranker,
            )  # fmt: skip
        advice = Advice(**vars(found), model=self.model)
        if recorder.seen is None:
            return advice
        query, people, scores, decisions = recorder.seen
        if found.abstains:  # nobody is asked
            decisions = tuple(decision for decision in decisions if decision.rule != "asked")
            if not found.people and decisions:
                advice = replace(advice, abstains=_nobody(decisions))
        if keep:
            others = np.flatnonzero(people != question.asker)
            looked = best(people, scores, others, rules.candidates)
            sure = np.zeros(len(looked))
            if advisor.router.questions_:
                share = recorder.expected_share(advisor.router.presence_)
                sure = share * advisor.router.confidence(scores, looked)
            pairs = zip(people[looked].tolist(), sure.tolist(), strict=True)
            ranking = [{"person": person, "confidence": value} for person, value in pairs]
            baseline = most_active(query, rules.candidates)
            advice = replace(advice, ranking=ranking, baseline=baseline)
        return replace(advice, decisions=decisions)

    def append(self, arrivals: Sequence[Arrival]) -> list[int | None]:
        """Store events; return the sequence number of each, None for those that were there."""
        self.check_dates(arrivals)
        clean = self.forgotten_people.cleaned
        with self.database.write() as connection:
            serialize(connection)  # with others who append, and with who is being forgotten
            cleaned = [replace(arrival, event=clean(arrival.event)) for arrival in arrivals]
            numbers = events.append(connection, cleaned, self.clock())
        self.waiting += sum(1 for number in numbers if number is not None)
        self.new_events.set()
        return numbers

    def check_dates(self, arrivals: Sequence[Arrival]) -> None:
        """Raise an error if an event is dated too far ahead."""
        for arrival in arrivals:
            if arrival.event.at_ms > self.clock() + DAY_MS:
                raise InputError(
                    f"The event is dated {_date(arrival.event.at_ms)}, more than a day ahead of "
                    "this server; check the sender's clock."
                )

    def apply(self) -> int:
        """Apply stored events; return how many there were."""
        self.limiter.idle.wait(_WAIT_S)  # callers first
        with self.lock:
            self.let_time_pass()
            with self.database.read() as connection:
                rows = events.after(connection, self.seq, BATCH)
                newest = connection.execute(select(func.max(tables.events.c.seq))).scalar()
                self.waiting = (newest or 0) - self.seq
            for part in _parts(rows):
                self._apply(part)
            if self.advisor.newcomers:  # those who answered are none any more
                self.place_newcomers()
            return len(rows)

    def _apply(self, rows: Sequence[Arrival]) -> None:
        advisor, change, refused = self._observed(self.advisor, rows)
        stored = False
        with log_bugs(seq=rows[0].seq):
            suggest = None if refused else self.prepare(rows[0].event, self.advisor)
            self._store(rows, refused, suggest)
            stored = True
        if not stored:  # without a suggestion, so that later events are applied
            self._store(rows, refused, None)
        self.exchange(advisor, change)
        self.seq = rows[-1].seq
        for seq in refused:
            LOG.info("event refused", extra={"facts": {"seq": seq}})

    def _store(
        self, rows: Sequence[Arrival], refused: dict[int, str], suggest: Store | None
    ) -> None:
        """Store all effects of some events."""
        with self.database.write(acting=True) as connection:
            for row in rows:
                if row.seq in refused:
                    tables.change(connection, tables.events, row.seq, refused=refused[row.seq])
                else:
                    self._project(connection, row)
                    events.revive(connection, row.event, self.clock())
            if suggest is not None:
                suggest(connection)
            put_meta(connection, APPLIED, rows[-1].seq)

    def _observed(
        self, advisor: Advisor, rows: Sequence[Arrival]
    ) -> tuple[Advisor, Change, dict[int, str]]:
        """Return the advisor after some events, the change, and why some events were refused."""
        first = rows[0].event
        if isinstance(first, TopicChange):
            place = advisor.history.records.question_at(first.question)
            if place < 0:
                return advisor, (), {rows[0].seq: "its question is not known"}
            if not isinstance(first, StatusChanged) or first.state != "deleted":
                return advisor, (), {}
            places = np.array([place])
            return erase_questions(advisor, places), (erase_questions, places), {}
        dated = _in_order([row.event for row in rows], _last_post(advisor))
        after = advisor.observe(dated)  # type: ignore[arg-type]
        why = {id(event): text for event, text in after.ignored}
        pairs = zip(rows, dated, strict=True)
        refused = {row.seq: why[id(event)] for row, event in pairs if id(event) in why}
        return after, (Advisor.observe, dated), refused

    def recalibrate(self) -> None:
        """Correct the stated confidence by the outcomes of the last days."""
        today = self.clock() // DAY_MS
        with self.database.read() as connection:
            since = int(get_meta(connection, CALIBRATED, "0"))
            stated, happened = suggestions.outcomes(connection, since, today)
        if len(stated) < LEAST_OUTCOMES:
            return
        with self.lock, self.database.write(acting=True) as connection:
            # Today's suggestions may use either calibration.
            put_meta(connection, CALIBRATED, today + 1)
            self.advisor = self.advisor.recalibrate(stated, happened)

    def _project(self, connection: Connection, row: Arrival) -> None:
        """Store the data of an event that pages and reports need."""
        event, now = row.event, self.clock()
        match event:
            case Asked():
                values = {**asdict(event), "asker": event.asker if event.asker >= 0 else None}
                values["asked_ms"] = values.pop("at_ms")
                tables.add(connection, tables.questions, **values, answers=0, origin=row.origin)
            case Answered():
                person = event.user if event.user >= 0 else None
                if suggestions.add_answer(connection, event, person):
                    suggestions.resolve(connection, event.question, person, now)
                    outbox.cancel(connection, event.question)
            case Accepted():
                given = tables.find_one(connection, tables.answers, event.answer)
                if given is not None and given["person"] is not None:
                    suggestions.resolve(connection, event.question, given["person"], now)
            case Edited():
                q = tables.questions.c
                empty = (q.title == "") & (q.body == "") & q.closed_ms.is_not(None)
                deleted = (q.id == event.question) & empty
                if tables.find_one(connection, tables.questions, deleted) is None:
                    tables.change(connection, tables.questions, event.question, **event.changes())
                else:
                    erase_texts(connection, [event.question])  # those of the edit
            case StatusChanged():
                closed_ms = None if event.state == "open" else event.at_ms
                tables.change(connection, tables.questions, event.question, closed_ms=closed_ms)
                if event.state != "open":
                    about = tables.suggestions.c.question == event.question
                    suggestions.end_suggestions(connection, about, "withdrawn", now)
                    outbox.cancel(connection, event.question)
                if event.state == "deleted":
                    erase_texts(connection, [event.question])

    def dated_ahead(self) -> str:
        """Return why the history cannot be used if its last post is in the future, else ''."""
        last = self.last_post_ms
        if last <= self.clock() + DAY_MS:
            return ""
        return (
            f"The history ends on {_date(last)}, in the future: stop the service and run "
            "'atp server repair'."
        )

    def days_behind(self) -> float:
        """Return the age of the newest known post, in days."""
        return max(0.0, (self.clock() - self.last_post_ms) / DAY_MS)

    @property
    def last_post_ms(self) -> int:
        """The date of the newest known post."""
        return _last_post(self.advisor)


def with_newcomers(advisor: Advisor, newcomers: Sequence[Newcomer]) -> Advisor:
    """Return the advisor with these newcomers and no others; readers call this, too."""
    return replace(advisor, newcomers=()).welcome(newcomers)


def _last_post(advisor: Advisor) -> int:
    return History(advisor.history.records).last_ms - 1


def _person(row: tables.Row) -> Person:
    row = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    del row["updated_ms"]
    return Person(groups=row.pop("member_of"), **row)


def _date(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _nobody(decisions: Sequence[Decision]) -> str:
    """Return a sentence that explains why none of the best people may be asked."""
    words = {
        "opted-out": "opted out", "holiday": "on holiday", "hours": "outside their hours",
        "weekday": "not asked on this day of the week", "capacity": "asked as often as allowed",
        "asked-recently": "asked a moment ago", "asked-before": "asked about this question before",
    }  # fmt: skip
    counts = Counter(decision.rule for decision in decisions)
    parts = [f"{count} {words.get(rule, rule)}" for rule, count in counts.most_common()]
    return f"None of the best {len(decisions)} may be asked now: {', '.join(parts)}."


def most_active(query: Query, count: int) -> list[int]:
    """Return the people with most answers in the last month, a trivial ranking to compare with."""
    answers, records = query.history.answers, query.history.records
    since = np.searchsorted(answers.given_ms, query.asked_ms - BASELINE_DAYS * DAY_MS)
    owner = answers.owner[since:]
    people, given = np.unique(owner[owner >= 0], return_counts=True)
    users = records.ids(people)
    others = users != query.question.asker
    order = np.lexsort((users[others], -given[others]))[:count]
    found: list[int] = users[others][order].tolist()
    return found


def _in_order(given: Sequence[Event], last_ms: int) -> list[Event]:
    """Return the events with dates that never decrease.

    A late event gets the date of its arrival. This does not depend on how many events are applied
    at once, so a restart, which applies thousands, gives the same history.
    """
    result: list[Event] = []
    for event in given:
        event = replace(event, at_ms=max(event.at_ms, last_ms))
        if isinstance(event, (Asked, Answered)):
            last_ms = event.at_ms
        result.append(event)
    return result


def _parts(rows: Sequence[Arrival], *, together: bool = False) -> list[list[Arrival]]:
    """Split events into parts that are applied at once.

    Changes of a question are applied alone. So are questions unless `together`, because each is
    routed by what was known before.
    """
    kinds = TopicChange if together else TopicChange | Asked
    parts: list[list[Arrival]] = []
    for alone, group in groupby(rows, lambda row: isinstance(row.event, kinds)):
        run = list(group)
        parts += [[row] for row in run] if alone else [run]
    return parts
