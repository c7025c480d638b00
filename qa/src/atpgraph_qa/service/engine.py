"""The engine: takes events in order, keeps the advisor up to date, and makes suggestions.

Everything that lasts happens in a transaction that also says up to which event it is done; the
advisor in memory is exchanged afterwards. So a crash at any moment leaves either all of an event's
effects or none, and the event is applied when the process is back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select, update

from atpgraph.errors import InputError
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.suggest import Suggestions
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.policy import HOUR_MS, AskPolicy, Decision, Ranked
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store import events, outbox, suggestions, tables
from atpgraph_qa.service.store.asks import Ask, AskHistory, save_asks
from atpgraph_qa.service.store.database import Database, get_meta, put_meta
from atpgraph_qa.service.store.events import Event, ForgottenPeople, Stored
from atpgraph_qa.service.store.people import Directory
from atpgraph_qa.service.turns import Turns
from atpgraph_qa.timeline.events import Accepted, Answered, Asked
from atpgraph_qa.timeline.newcomer import Newcomer
from atpgraph_qa.timeline.query import Question

LOG = logging.getLogger("atpgraph.serve")
APPLIED = "applied_seq"
BATCH = 200  # how many events are read at once
_GIVE_WAY_S = 0.25  # events wait no longer than this for callers


def now_ms() -> int:
    """The time."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Advice:
    """Whom to ask, and what the rules decided."""

    found: Suggestions
    decisions: tuple[Decision, ...]
    ranking: tuple[Ranked, ...]
    baseline: tuple[int, ...]
    model: str


class Engine:
    """What the service knows and does; one for each process.

    Parameters
    ----------
    database : Database
        Up to date and in charge.
    settings : Settings
    clock : callable
        The time in milliseconds.
    """

    def __init__(
        self, database: Database, settings: Settings, clock: Callable[[], int] = now_ms
    ) -> None:
        self.database, self.settings, self.clock = database, settings, clock
        self.lock = threading.RLock()
        self.new_events = threading.Event()
        self.turns = Turns()
        self.advisor: Advisor | None = None
        self.model = ""
        self.seq = 0
        self.waiting = 0
        with database.write() as connection:
            folder = Path(settings.store.folder)
            self.forgotten_people = ForgottenPeople.load(connection, folder)
            self.directory = Directory.load(connection)
            self.asks = AskHistory.load(connection, clock())

    # --- the advisor -----------------------------------------------------------------------------

    def start_from(self, advisor: Advisor, model: str, seq: int) -> None:
        """Start from a snapshot: bring it up to what was applied before, without new effects."""
        with self.database.read() as connection:
            applied = int(get_meta(connection, APPLIED, "0"))
        while True:
            with self.database.read() as connection:
                rows = events.after(connection, seq, 2000, until=applied)
            if not rows:
                break
            advisor, _ = self._observed(advisor, rows)
            seq = rows[-1].seq
        self.advisor, self.model, self.seq = advisor, model, max(seq, applied)
        self.place_newcomers()

    def current(self) -> Advisor:
        """The advisor to ask."""
        if self.advisor is None:
            raise InputError("The service is still starting.")
        return self.advisor

    def place_newcomers(self) -> None:
        """Place those who declared what they know and have hardly answered yet."""
        with self.lock:
            advisor = self.current()
            history = advisor.history
            declared = self.directory.declaring()
            codes = history.codes([person.id for person in declared]).tolist()
            new = tuple(
                Newcomer(person.id, tags=person.topics)
                for person, code in zip(declared, codes, strict=True)
                if code < 0 or not history.n_given[code]
            )
            if new != advisor.newcomers:
                self.advisor = advisor.welcome(new)

    def route(
        self, question: Question, *, top: int | None = None, keep: bool = False,
        skip: Collection[int] = (), advisor: Advisor | None = None,
    ) -> Advice:  # fmt: skip
        """Whom to ask about a question now; nothing is stored."""
        advisor = advisor or self.current()
        rules, now = self.settings.policy, self.clock()
        confidence = advisor.router.confidence if keep and advisor.router.questions_ else None
        policy = AskPolicy(rules, self.directory, self.asks, now, skip=skip, confidence=confidence)
        moment = datetime.fromtimestamp(now / 1000, UTC)
        if now >= advisor.history.last_ms:
            question = Question(
                question.title, question.body, question.tags, question.asker, moment, question.id
            )
        with self.turns.taken(caller=not keep):
            found = advisor.ask(
                question, policy, top=top or rules.people, least_confidence=rules.least_confidence
            )
        decisions = tuple(policy.decisions)
        return Advice(found, decisions, policy.ranking, policy.baseline, self.model)

    # --- events ----------------------------------------------------------------------------------

    def append(self, arrivals: Sequence[events.Arrival]) -> list[int | None]:
        """Store events; the sequence number of each, None for those that were there."""
        latest = self.clock() + DAY_MS
        for arrival in arrivals:
            if arrival.event.at_ms > latest:
                moment = datetime.fromtimestamp(arrival.event.at_ms / 1000, UTC)
                raise InputError(
                    f"The event is dated {moment:%Y-%m-%d %H:%M} UTC, more than a day ahead of "
                    "this server; check the sender's clock."
                )
        cleaned = [
            events.Arrival(arrival.name, self.forgotten_people.cleaned(arrival.event))
            for arrival in arrivals
        ]
        with self.database.write() as connection:
            numbers = events.append(self.database, connection, cleaned, self.clock())
        self.waiting += sum(1 for number in numbers if number is not None)
        self.new_events.set()
        return numbers

    def apply(self, limit: int = BATCH) -> int:
        """Apply stored events; how many there were."""
        self.turns.give_way(_GIVE_WAY_S)
        with self.lock:
            with self.database.read() as connection:
                rows = events.after(connection, self.seq, limit)
                self.waiting = events.last_seq(connection) - self.seq
            for part in _parts(rows):
                self._apply(part)
            return len(rows)

    def _apply(self, rows: Sequence[Stored]) -> None:
        before = self.current()
        asked = rows[0].event if isinstance(rows[0].event, Asked) else None
        advisor, refused = self._observed(before, rows)
        advice = None
        if asked is not None and not refused and self._is_fresh(asked):
            advice = self.route(_question(asked), keep=True, advisor=before)
        made: list[Ask] = []
        with self.database.write(acting=True) as connection:
            for row in rows:
                if row.seq in refused:
                    events.refuse(connection, row.seq, refused[row.seq])
                else:
                    self._project(connection, row.event)
                    events.revive(self.database, connection, row.event, self.clock())
            if asked is not None and advice is not None:
                made = self._record(connection, asked, advice, 0)
            put_meta(connection, APPLIED, str(rows[-1].seq))
        if advisor.week_ms != before.week_ms:
            advisor.warm_up()  # here, not when the next caller asks
        self.advisor, self.seq = advisor, rows[-1].seq
        self.asks.add(made)
        for seq in refused:
            LOG.info("event refused", extra={"facts": {"seq": seq}})

    def _observed(self, advisor: Advisor, rows: Sequence[Stored]) -> tuple[Advisor, dict[int, str]]:
        """The advisor after some events, and which of them changed nothing, with why."""
        dated = _in_order([row.event for row in rows], advisor.history.last_ms - 1)
        after = advisor.observe(dated)
        why = {id(event): text for event, text in after.ignored}
        refused = {
            row.seq: why[id(event)]
            for row, event in zip(rows, dated, strict=True)
            if id(event) in why
        }
        return after, refused

    def _is_fresh(self, asked: Asked) -> bool:
        return asked.at_ms > self.clock() - self.settings.policy.stale_hours * HOUR_MS

    def _project(self, connection: Connection, event: Event) -> None:
        """Keep what the pages and reports need to know of an event."""
        match event:
            case Asked():
                values = {
                    "id": event.id, "title": event.title, "tags": list(event.tags),
                    "asker": event.asker if event.asker >= 0 else None, "asked_ms": event.at_ms,
                }  # fmt: skip
                suggestions.add_question(connection, values)
            case Answered():
                first = suggestions.add_answer(
                    connection, event.id, event.question, event.user, event.at_ms
                )
                if first:
                    person = event.user if event.user >= 0 else None
                    suggestions.resolve(connection, event.question, person, self.clock())
                    outbox.cancel(connection, event.question)
            case Accepted():
                giver = suggestions.accept_answer(connection, event.question, event.answer)
                if giver is not None:
                    suggestions.resolve(connection, event.question, giver, self.clock())

    def dated_ahead(self) -> str:
        """Return why the history cannot be used if its last post is in the future, else ''."""
        last = self.current().history.last_ms
        if last <= self.clock() + DAY_MS:
            return ""
        moment = datetime.fromtimestamp(last / 1000, UTC)
        return (
            f"The history ends on {moment:%Y-%m-%d}, in the future: stop the service and run "
            "'atp service repair'."
        )

    # --- suggestions -----------------------------------------------------------------------------

    def _record(
        self, connection: Connection, asked: Asked, advice: Advice, number: int
    ) -> list[Ask]:
        """Store a suggestion with its messages; the asks it makes."""
        rules, now = self.settings.policy, self.clock()
        found, people = advice.found, []
        if not found.abstains:
            people = [asdict(person) for person in found.people]
        suggestion = suggestions.add_suggestion(
            connection,
            {
                "question": asked.id, "round": number, "created_ms": now, "changed_ms": now,
                "shadow": rules.shadow, "model": advice.model, "state": "proposed",
                "people": people, "ranking": [asdict(entry) for entry in advice.ranking],
                "baseline": list(advice.baseline),
                "decisions": [asdict(decision) for decision in advice.decisions],
                "notes": list(found.notes),
                "confidence": max((p.confidence for p in found.people), default=0.0),
                "abstains": found.abstains, "candidates": found.candidates,
                "escalate_ms": self._escalation(now, number, bool(people)),
            },
        )  # fmt: skip
        if suggestion is None:
            return []
        kind = "suggestion" if number == 0 else "escalation"
        asks = [Ask(p["user"], now, kind, rules.shadow, suggestion) for p in people]
        save_asks(connection, asks)
        if people and not rules.shadow:
            self._enqueue(connection, suggestion, asked, people)
        return asks

    def _escalation(self, now: int, number: int, asked: bool) -> int | None:
        rules = self.settings.policy
        if not asked or not rules.escalate_hours or number >= rules.escalations:
            return None
        return now + round(rules.escalate_hours * HOUR_MS)

    def _enqueue(
        self, connection: Connection, suggestion: int, asked: Asked, people: list[dict[str, Any]]
    ) -> None:
        named = [{**person, "handle": self.directory[person["user"]].handle} for person in people]
        link = self.settings.server.public_url.rstrip("/")
        payload = {
            "type": "suggestion.created",
            "timestamp": datetime.fromtimestamp(self.clock() / 1000, UTC).isoformat(),
            "data": {
                "suggestion": suggestion,
                "question": {"id": asked.id, "title": asked.title, "tags": list(asked.tags)},
                "people": named,
                "link": f"{link}/inbox/{suggestion}" if link else "",
            },
        }
        for adapter in self.settings.deliver.adapters:
            if adapter == "discourse" and self.settings.deliver.discourse_how == "message":
                for person in named:  # few named people, no broadcast
                    data = {**payload["data"], "people": [person]}  # type: ignore[dict-item]
                    one = {**payload, "data": data}
                    outbox.enqueue(connection, suggestion, adapter, one, self.clock())
            else:
                outbox.enqueue(connection, suggestion, adapter, payload, self.clock())

    def escalate(self) -> int:
        """Ask the next people where there was silence; how many questions."""
        done = 0
        with self.lock:
            due = select(tables.suggestions.c.id, tables.suggestions.c.question).where(
                tables.suggestions.c.escalate_ms <= self.clock(),
                tables.suggestions.c.state.in_(suggestions.OPEN),
            )
            with self.database.read() as connection:
                rows = connection.execute(due.limit(100)).all()
            for row in rows:
                self._escalate(row.id, row.question)
                done += 1
        return done

    def _escalate(self, suggestion: int, question: int) -> None:
        with self.database.read() as connection:
            asked = events.question_event(connection, question)
            earlier = suggestions.rounds(connection, question)
        advice = None
        if asked is not None:
            before = {person["user"] for row in earlier for person in row["people"]}
            advice = self.route(_question(asked), keep=True, skip=before)
        made: list[Ask] = []
        with self.database.write(acting=True) as connection:
            connection.execute(
                update(tables.suggestions)
                .where(tables.suggestions.c.id == suggestion)
                .values(escalate_ms=None)
            )
            if asked is not None and advice is not None:
                made = self._record(connection, asked, advice, len(earlier))
        self.asks.add(made)

    def expire(self) -> None:
        """Close suggestions that nobody answered for long."""
        before = self.clock() - round(self.settings.policy.expire_days * DAY_MS)
        with self.database.write(acting=True) as connection:
            connection.execute(
                update(tables.suggestions)
                .where(
                    tables.suggestions.c.created_ms < before,
                    tables.suggestions.c.state.in_(suggestions.OPEN),
                )
                .values(state="expired", changed_ms=self.clock(), escalate_ms=None)
            )

    def feedback(
        self, suggestion: int, verdict: str, *, person: int | None = None,
        token: int | None = None, note: str = "",
    ) -> dict[str, Any] | None:  # fmt: skip
        """Note what somebody decided; the suggestion as it is then, None if there is none."""
        now, made = self.clock(), list[Ask]()
        with self.lock, self.database.write(acting=True) as connection:
            found = suggestions.get_suggestion(connection, suggestion)
            if found is None:
                return None
            if verdict == "reassigned" and person is None:
                raise InputError("Say to whom: reassigned needs a person.")
            suggestions.add_feedback(
                connection, suggestion, verdict, person=person, token=token, note=note, now_ms=now
            )
            if verdict in ("accepted", "declined"):
                suggestions.set_state(connection, suggestion, verdict, now)
            if verdict == "declined" and found["escalate_ms"] is not None:
                connection.execute(  # no need to wait for silence
                    update(tables.suggestions)
                    .where(tables.suggestions.c.id == suggestion)
                    .values(escalate_ms=now)
                )
            if verdict == "reassigned" and person is not None:
                made = self._reassign(connection, found, person)
            result = suggestions.get_suggestion(connection, suggestion)
        self.asks.add(made)
        return result

    def _reassign(self, connection: Connection, found: dict[str, Any], person: int) -> list[Ask]:
        rules, now = self.settings.policy, self.clock()
        suggestions.set_state(connection, found["id"], "declined", now)
        ask = Ask(person, now, "reassigned", rules.shadow, found["id"])
        save_asks(connection, [ask])
        asked = events.question_event(connection, found["question"])
        if asked is not None and not rules.shadow and found["answered_ms"] is None:
            people = [{"user": person, "score": 0.0, "confidence": 0.0, "reasons": []}]
            self._enqueue(connection, found["id"], asked, people)
        return [ask]

    def note_ask(self, person: int, kind: str) -> None:
        """Somebody was asked outside of the service; it counts like any other ask."""
        ask = Ask(person, self.clock(), kind, shadow=False)
        with self.database.write() as connection:
            save_asks(connection, [ask])
        self.asks.add([ask])


def _question(asked: Asked) -> Question:
    return Question(asked.title, asked.body, asked.tags, asked.asker, id=asked.id)


def _in_order(given: Sequence[Event], last_ms: int) -> list[Event]:
    """The events with dates that never go back.

    What comes late counts from when it came, however many events are taken at once: so a restart,
    which takes thousands, ends where one after another did.
    """
    result: list[Event] = []
    for event in given:
        event = replace(event, at_ms=max(event.at_ms, last_ms))
        if isinstance(event, (Asked, Answered)):
            last_ms = event.at_ms
        result.append(event)
    return result


def _parts(rows: Sequence[Stored]) -> list[list[Stored]]:
    """Questions one by one, since each is routed by what was known before; the rest together."""
    parts: list[list[Stored]] = []
    for row in rows:
        alone = isinstance(row.event, Asked)
        if alone or not parts or isinstance(parts[-1][0].event, Asked):
            parts.append([row])
        else:
            parts[-1].append(row)
    return parts
