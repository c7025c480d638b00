"""The life of a suggestion: proposed, approved, sent, escalated, answered, withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from atpgraph.errors import AtpError, InputError
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.policies import HOUR_MS
from atpgraph_qa.data.site import DAY_MS, NOBODY
from atpgraph_qa.service.engine import Advice, Asks, Engine, Work
from atpgraph_qa.service.links import opt_out_link, question_link
from atpgraph_qa.service.store import audit, outbox, suggestions, tables
from atpgraph_qa.service.store.asks import Ask, save_asks
from atpgraph_qa.service.store.events import Edited, Event, Reopened
from atpgraph_qa.timeline.events import Asked
from atpgraph_qa.timeline.query import Question

MODERATORS = ("slack",)  # adapters that tell moderators; the others ask people


class ConflictError(AtpError):
    """What was wanted is not possible as things are now."""


class Suggester:
    """Makes suggestions and carries out what moderators decide about them.

    Methods that need a ranking compute it before the transaction that stores it.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.database, self.clock = engine.database, engine.clock
        self.rules = engine.settings.policy
        engine.prepare = self.prepare

    # --- from events -----------------------------------------------------------------------------

    def prepare(self, event: Event, advisor: Advisor) -> Work | None:
        """Return what is to be stored because of an event; None for nothing.

        `advisor` is what was known before the event: a question's own words are no match.
        """
        if isinstance(event, Asked) and self.engine.is_fresh(event.at_ms):
            values = asdict(event)
            advice = self.engine.route(question_of(values), keep=True, advisor=advisor)
            return lambda connection: self._record(connection, event.id, advice, 0)
        if isinstance(event, (Edited, Reopened)):
            return self._renewal(event, advisor)
        return None

    def _renewal(self, event: Edited | Reopened, advisor: Advisor) -> Work | None:
        """Route a question anew whose suggestion nobody has acted on, or which was withdrawn."""
        with self.database.read() as connection:
            question = suggestions.get_question(connection, event.question)
            made = suggestions.rounds(connection, event.question)
        if question is None or not made or question["answered_ms"] is not None:
            return None
        last = made[-1]
        if isinstance(event, Edited):
            if last["state"] != "proposed" or last["sent_ms"] is not None:
                return None
            question |= event.changes()
            why = "Renewed: the question was edited."
        elif last["state"] == "withdrawn":
            why = "Renewed: the question was opened again."
        else:
            return None
        skip = {person["user"] for row in made[:-1] for person in row["people"]}
        advice = self.engine.route(question_of(question), keep=True, skip=skip, advisor=advisor)

        def work(connection: Connection) -> Asks:
            values = self._values(advice)
            values["notes"] = [why, *values["notes"]]
            suggestions.change_suggestion(
                connection, last["id"], state="proposed", mode=self.engine.mode,
                shadow=self.engine.shadow, changed_ms=self.clock(), sent_ms=None, **values,
            )  # fmt: skip
            return self._put_forward(connection, last["id"], question, values["people"], made)

        return work

    def _values(self, advice: Advice) -> dict[str, Any]:
        found = advice.found
        people = [] if found.abstains else [asdict(person) for person in found.people]
        return {
            "model": advice.model, "people": people, "baseline": list(advice.baseline),
            "ranking": [asdict(entry) for entry in advice.ranking],
            "decisions": [asdict(decision) for decision in advice.decisions],
            "notes": list(found.notes), "abstains": found.abstains, "candidates": found.candidates,
            "confidence": max((p.confidence for p in found.people), default=0.0),
        }  # fmt: skip

    def _record(self, connection: Connection, question: int, advice: Advice, number: int) -> Asks:
        """Store a suggestion; return the asks it makes."""
        now, values = self.clock(), self._values(advice)
        suggestion = suggestions.add_suggestion(
            connection,
            {"question": question, "round": number, "created_ms": now, "changed_ms": now,
             "shadow": self.engine.shadow, "mode": self.engine.mode, "state": "proposed", **values},
        )  # fmt: skip
        row = suggestions.get_question(connection, question)
        if suggestion is None or row is None:
            return []
        return self._put_forward(connection, suggestion, row, values["people"], [None] * number)

    def _put_forward(
        self, connection: Connection, suggestion: int, question: dict[str, Any],
        people: list[dict[str, Any]], earlier: Sequence[Any],
    ) -> Asks:  # fmt: skip
        """Ask the people, or the moderators, or nobody: as the mode says."""
        kind = "escalation" if earlier else "suggestion"
        if not people:
            return []
        if self.engine.mode == "approve":
            self._enqueue(connection, suggestion, question, people, MODERATORS, "proposed")
            return []
        return self._ask(connection, suggestion, question, people, kind)

    def _ask(
        self, connection: Connection, suggestion: int, question: dict[str, Any],
        people: list[dict[str, Any]], kind: str,
    ) -> Asks:  # fmt: skip
        """Ask people: note it, send messages unless in shadow mode, and set the alarm."""
        now, shadow = self.clock(), self.engine.shadow
        save_asks(connection, [Ask(p["user"], now, kind, shadow, suggestion) for p in people])
        found = suggestions.get_suggestion(connection, suggestion)
        wait = None
        if self.rules.escalate_hours and found and found["round"] < self.rules.escalations:
            wait = now + round(self.rules.escalate_hours * HOUR_MS)
        values = {"escalate_ms": wait, "sent_ms": None if shadow else now}
        suggestions.change_suggestion(connection, suggestion, **values)
        if not shadow:
            told = self.engine.settings.deliver.adapters
            if self.engine.mode == "approve":  # moderators know already
                told = tuple(name for name in told if name not in MODERATORS)
            self._enqueue(connection, suggestion, question, people, told, "created")
        return [(p["user"], now) for p in people]

    def _enqueue(
        self, connection: Connection, suggestion: int, question: dict[str, Any],
        people: list[dict[str, Any]], adapters: Sequence[str], kind: str,
    ) -> None:  # fmt: skip
        settings = self.engine.settings
        link = settings.server.public_url.rstrip("/")
        named = [
            {**person, "handle": self.engine.directory[person["user"]].handle,
             "opt_out": opt_out_link(settings, person["user"])}
            for person in people
        ]  # fmt: skip
        about = {name: question[name] for name in ("id", "title", "tags", "origin")}
        data = {
            "suggestion": suggestion,
            "question": {**about, "url": question_link(settings, question)},
            "people": named,
            "link": f"{link}/inbox/{suggestion}" if link else "",
        }
        payload = {
            "type": f"suggestion.{kind}",
            "timestamp": datetime.fromtimestamp(self.clock() / 1000, UTC).isoformat(),
            "data": data,
        }
        source = question["origin"].get("source")
        for adapter in settings.deliver.adapters:
            # Each site gets questions of its own; who does not say where one is from gets all.
            if adapter not in adapters or (
                adapter in ("discourse", "github") and source not in (None, adapter)
            ):
                continue
            if adapter == "discourse" and settings.deliver.discourse_how == "message":
                for person in named:  # a message each, no broadcast
                    one = {**payload, "data": {**data, "people": [person]}}
                    outbox.enqueue(connection, suggestion, adapter, one, self.clock())
            else:
                outbox.enqueue(connection, suggestion, adapter, payload, self.clock())

    # --- in time ---------------------------------------------------------------------------------

    def escalate(self) -> int:
        """Go on to more people where there was silence; return how many questions."""
        table = tables.suggestions.c
        with self.engine.lock:
            due = select(table.id, table.question).where(
                table.escalate_ms <= self.clock(), table.state.in_(suggestions.OPEN)
            )
            with self.database.read() as connection:
                rows = connection.execute(due.limit(100)).all()
            for row in rows:
                self._escalate(row.id, row.question)
        return len(rows)

    def _escalate(self, suggestion: int, question: int) -> None:
        """Ask a wider group: more people, of more groups, none of those asked before."""
        with self.database.read() as connection:
            row = suggestions.get_question(connection, question)
            earlier = suggestions.rounds(connection, question)
        advice = None
        if row is not None and row["closed_ms"] is None:
            before = {person["user"] for made in earlier for person in made["people"]}
            rules = self.rules.rules()
            if rules.groups:
                wider = () if "*" in self.rules.escalate_groups else self.rules.escalate_groups
                rules = replace(rules, groups=(*rules.groups, *wider) if wider else ())
                if not self.rules.escalate_groups:
                    rules = self.rules.rules()
            top = self.rules.people + len(earlier) * self.rules.escalate_people
            advice = self.engine.route(
                question_of(row), keep=True, skip=before, top=top, policy=rules
            )
        asked: Asks = []
        with self.database.write(acting=True) as connection:
            suggestions.change_suggestion(connection, suggestion, escalate_ms=None)
            if advice is not None:
                asked = self._record(connection, question, advice, len(earlier))
        self.engine.asks.record_all(asked)

    def expire(self) -> None:
        """Close suggestions that nobody answered for long."""
        before = self.clock() - round(self.rules.expire_days * DAY_MS)
        old = tables.suggestions.c.created_ms < before
        with self.database.write(acting=True) as connection:
            suggestions.end_suggestions(connection, old, "expired", self.clock())

    # --- by people -------------------------------------------------------------------------------

    def feedback(
        self, suggestion: int, verdict: str, *, by: str, person: int | None = None,
        token: int | None = None, note: str = "",
    ) -> dict[str, Any] | None:  # fmt: skip
        """Carry out what somebody decided; return the suggestion, None if there is none.

        Outside of shadow mode, *accepted* asks the people of a suggestion that was not sent yet,
        and *reassigned* asks somebody else.
        """
        now, asked = self.clock(), Asks()
        with self.engine.lock, self.database.write(acting=True) as connection:
            found = suggestions.get_suggestion(connection, suggestion)
            if found is None:
                return None
            if verdict == "reassigned" and person is None:
                raise InputError("Say to whom: reassigned needs a person.")
            if verdict != "comment" and found["state"] not in suggestions.OPEN:
                raise ConflictError(f"The suggestion is {found['state']}: nobody is asked.")
            if verdict == "accepted" and found["state"] == "accepted":
                return found  # pressed twice
            suggestions.add_feedback(
                connection, suggestion, verdict, person=person, token=token, note=note,
                given_by=by, at_ms=now,
            )  # fmt: skip
            if verdict != "comment":
                suggestions.set_state(connection, suggestion, verdict, now)
                audit.note(connection, now, by, f"suggestion {suggestion}: {verdict}", person)
            if verdict == "accepted":
                asked = self._accept(connection, found)
            elif verdict == "declined":
                outbox.cancel(connection, found["question"])
                if found["round"] < self.rules.escalations and self.rules.escalate_hours:
                    # No need to wait for silence.
                    suggestions.change_suggestion(connection, suggestion, escalate_ms=now)
            elif verdict == "reassigned" and person is not None:
                asked = self._reassign(connection, found, person)
            result = suggestions.get_suggestion(connection, suggestion)
        self.engine.asks.record_all(asked)
        return result

    def _accept(self, connection: Connection, found: dict[str, Any]) -> Asks:
        """Ask the people of a suggestion, if nobody did."""
        question = suggestions.get_question(connection, found["question"])
        if self.engine.shadow or found["sent_ms"] is not None or question is None:
            return []
        dispatcher = self.engine.dispatcher()
        refused = {
            person["user"]: dispatcher.why_not(self.engine.directory[person["user"]], self.clock())
            for person in found["people"]
        }
        people = [person for person in found["people"] if refused[person["user"]] is None]
        if not people:
            why = "; ".join(f"{self.name(no.person)} {no.text}" for no in refused.values() if no)
            raise ConflictError(f"Nobody of these may be asked now: {why or 'the list is empty'}.")
        kind = "escalation" if found["round"] else "suggestion"
        return self._ask(connection, found["id"], question, people, kind)

    def _reassign(self, connection: Connection, found: dict[str, Any], person: int) -> Asks:
        outbox.cancel(connection, found["question"])
        known = self.engine.current().history.codes([person])[0] >= 0
        if not known and person not in self.engine.directory:
            raise InputError("The site does not know this person.")
        no = self.engine.dispatcher().why_not(self.engine.directory[person], self.clock())
        if no is not None:
            raise ConflictError(f"{self.name(person)} may not be asked now: {no.text}.")
        question = suggestions.get_question(connection, found["question"])
        if question is None or found["answered_ms"] is not None:
            return []
        people = [{"user": person, "score": 0.0, "confidence": 0.0, "reasons": []}]
        return self._ask(connection, found["id"], question, people, "reassigned")

    def name(self, user: int) -> str:
        """Return what people call somebody."""
        if user < 0:
            return "somebody"  # who was forgotten
        return self.engine.directory[user].handle or f"user {user}"

    def note_ask(self, person: int, kind: str) -> None:
        """Note that somebody was asked outside of the service; it counts like any other ask."""
        ask = Ask(person, self.clock(), kind, shadow=False)
        with self.database.write() as connection:
            save_asks(connection, [ask])
        self.engine.asks.record([person], ask.at_ms)


def question_of(row: dict[str, Any]) -> Question:
    """Return the question of a row, or of an event's values, for routing."""
    asker = NOBODY if row["asker"] is None else row["asker"]
    return Question(row["title"], row["body"], tuple(row["tags"]), asker, id=row["id"])
