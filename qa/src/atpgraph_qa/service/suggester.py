"""The life of a suggestion: proposed, approved, sent, escalated, answered, withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from atpgraph.errors import InputError
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.policies import HOUR_MS, Policy
from atpgraph_qa.data.site import DAY_MS, NOBODY
from atpgraph_qa.service import outbox, suggestions, tables
from atpgraph_qa.service.engine import Advice, Engine, Store, log_bugs
from atpgraph_qa.service.events import Edited, Event, StatusChanged
from atpgraph_qa.service.outbox import MODERATORS
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.tables import Row
from atpgraph_qa.timeline.events import Asked
from atpgraph_qa.timeline.query import Question

# Rules that exclude people for some time.
PASSING = ("hours", "weekday", "holiday", "away", "capacity", "asked-recently")


class Suggester:
    """Makes suggestions, which are ranked before they are stored, and carries out decisions."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.settings = engine, engine.settings
        self.database = engine.database
        self.rules = engine.settings.policy
        engine.prepare = self.prepare

    def prepare(self, event: Event, advisor: Advisor) -> Store | None:
        """Return a function that stores the suggestion for an event, made without the event."""
        oldest = self.engine.clock() - self.rules.stale_hours * HOUR_MS
        match event:
            case Asked() if event.at_ms > oldest:
                advice = self.engine.route(_question(asdict(event)), keep=True, advisor=advisor)
                return lambda connection: self._record(connection, event.id, advice, 0)
            case Edited() | StatusChanged(state="open"):
                return self._renewal(event, advisor)
        return None

    def _renewal(self, event: Edited | StatusChanged, advisor: Advisor) -> Store | None:
        """Route a question again if its suggestion is untouched, or was withdrawn."""
        with self.database.read() as connection:
            question = tables.find_one(connection, tables.questions, event.question)
            made = suggestions.rounds(connection, event.question)
            skip = suggestions.tried(connection, made[:-1])
        if question is None or not made or question["answered_ms"] is not None:
            return None
        last, why = made[-1], "Renewed: the question was opened again."
        if isinstance(event, Edited):
            question, why = question | event.changes(), "Renewed: the question was edited."
            asked = last["sent_ms"] is not None or (last["shadow"] and last["people"])
            if not event.changes() or asked or last["state"] != "proposed":
                return None
        elif last["state"] != "withdrawn":
            return None
        advice = self.engine.route(_question(question), keep=True, skip=skip, advisor=advisor)
        return lambda connection: self._renew(connection, last["id"], advice, why)

    def _renew(self, connection: Connection, suggestion: int, advice: Advice, why: str) -> None:
        """Replace a suggestion by another of the same round, and act on it."""
        values = self._values(advice)
        values |= {"notes": [why, *values["notes"]], "sent_ms": None, "escalate_ms": None}
        suggestions.change_suggestion(connection, suggestion, **values)
        self._put_forward(connection, suggestion)

    def _values(self, advice: Advice) -> Row:
        confidence = max((person.confidence for person in advice.people), default=0.0)
        values = asdict(replace(advice, people=()) if advice.abstains else advice)
        return values | {
            "confidence": confidence, "shadow": self.engine.shadow, "mode": self.engine.mode,
            "state": "proposed", "changed_ms": self.engine.clock(),
        }  # fmt: skip

    def _record(self, connection: Connection, question: int, advice: Advice, number: int) -> None:
        """Store a suggestion and act on it."""
        values = {"question": question, "round": number, "created_ms": self.engine.clock()}
        made = suggestions.add_suggestion(connection, **values, **self._values(advice))
        if made is not None:
            self._put_forward(connection, made)

    def _put_forward(self, connection: Connection, suggestion: int) -> None:
        """Ask the people, the moderators or nobody, depending on the mode."""
        found = suggestions.get_suggestion(connection, suggestion)
        if found is None:
            return
        if not found["people"]:
            if self._may_pass(found):
                later = self.engine.clock() + HOUR_MS
                suggestions.change_suggestion(connection, suggestion, escalate_ms=later)
        elif self.engine.mode == "approve":
            self._enqueue(connection, found, found["people"], MODERATORS, "proposed")
        else:
            self._ask(connection, found, found["people"])

    def _may_pass(self, found: Row) -> bool:
        """Return whether somebody who is good enough may be asked at another time."""
        least = self.rules.least_confidence
        good = {entry["person"] for entry in found["ranking"] if entry["confidence"] >= least}
        return any(
            decision["rule"] in PASSING and decision["person"] in good
            for decision in found["decisions"]
        )

    def _ask(
        self, connection: Connection, found: Row, people: Sequence[Row], kind: str = ""
    ) -> None:
        """Ask people: record it, queue messages unless in shadow mode, and plan the escalation."""
        now, shadow, number = self.engine.clock(), self.engine.shadow, found["id"]
        kind = kind or ("escalation" if found["round"] else "suggestion")
        asked = [person["user"] for person in people]
        self.engine.note_asks(connection, asked, kind, shadow=shadow, suggestion=number)
        wait = None
        if self.rules.escalate_hours and found["round"] < self.rules.escalations:
            wait = now + round(self.rules.escalate_hours * HOUR_MS)
        values = {"escalate_ms": wait, "sent_ms": None if shadow else now}
        suggestions.change_suggestion(connection, number, **values)
        if not shadow:
            told = self.settings.deliver.adapters
            if self.engine.mode == "approve":  # moderators were told before
                told = tuple(name for name in told if name not in MODERATORS)
            self._enqueue(connection, found, people, told, "created")

    def _enqueue(
        self, connection: Connection, found: Row, people: Sequence[Row], told: Sequence[str],
        kind: str,
    ) -> None:  # fmt: skip
        named = [
            {**person, "handle": self.engine.directory[person["user"]].handle,
             "opt_out": self.opt_out_link(person["user"])}
            for person in people
        ]  # fmt: skip
        link, source = self.settings.server.public_url.rstrip("/"), found["origin"].get("source")
        data = {
            "suggestion": found["id"],
            "question": {
                "id": found["question"], "title": found["title"], "tags": found["tags"],
                "origin": found["origin"], "url": self.question_link(found),
            },
            "people": named,
            "link": f"{link}/inbox/{found['id']}" if link else "",
        }  # fmt: skip
        moment = datetime.fromtimestamp(self.engine.clock() / 1000, UTC).isoformat()
        for adapter in self.settings.deliver.adapters:
            # Discourse and GitHub get their own questions, and those of unknown origin.
            elsewhere = adapter in ("discourse", "github") and source not in (None, adapter)
            if adapter not in told or elsewhere:
                continue
            alone = adapter == "discourse" and self.settings.deliver.discourse_how == "message"
            for group in [[person] for person in named] if alone else [named]:
                content = {**data, "people": group}
                payload = {"type": f"suggestion.{kind}", "timestamp": moment, "data": content}
                outbox.enqueue(connection, found["id"], adapter, payload, self.engine.clock())

    def question_link(self, found: Row) -> str:
        """Return the link of a suggestion's question; empty if it is not known."""
        url = str(found["origin"].get("url") or "")
        if url:
            return url if url.startswith(("https://", "http://")) else ""
        if self.settings.server.question_url:
            return self.settings.server.question_url.replace("{id}", str(found["question"]))
        forum = self.settings.hooks.discourse_instance or self.settings.deliver.discourse_url
        return f"{forum.rstrip('/')}/t/{found['question']}" if forum else ""

    def opt_out_link(self, person: int) -> str:
        """Return the link for opting out without a login; empty without a public address."""
        base = self.settings.server.public_url.rstrip("/")
        return f"{base}/opt-out/{person}/{self.opt_out_code(person)}" if base else ""

    def opt_out_code(self, person: int) -> str:
        """Return the secret part of the opt-out link."""
        return self.engine.forgotten_people.digest(f"opt-out {person}")[:32]

    def escalate(self) -> None:
        """Suggest more people, of a wider group, for questions that nobody answered in time.

        A suggestion for which nobody could be asked is made again, in the same round.
        """
        t = tables.suggestions.c
        due = (t.escalate_ms <= self.engine.clock()) & t.state.in_(suggestions.OPEN)
        if not self.engine.shadow:  # nobody was asked in a trial run, so nobody was silent
            due &= t.sent_ms.is_not(None) | (t.state == "declined") | ((t.asked == 0) & ~t.shadow)
        with self.engine.lock:
            with self.database.read() as connection:
                rows = connection.execute(select(t.id, t.question).where(due).limit(100)).all()
            for suggestion, question in rows:
                done = False
                with log_bugs(suggestion=suggestion):
                    self._escalate(suggestion, question)
                    done = True
                if not done:
                    with self.database.write(acting=True) as connection:
                        suggestions.change_suggestion(connection, suggestion, escalate_ms=None)

    def _escalate(self, suggestion: int, question: int) -> None:
        with self.database.read() as connection:
            row = tables.find_one(connection, tables.questions, question)
            earlier = suggestions.rounds(connection, question)
            again = earlier[-1]["id"] == suggestion and suggestions.is_vain(earlier[-1])
            if again:
                earlier.pop()
            before = suggestions.tried(connection, earlier)
        advice, top = None, self.rules.people + len(earlier) * self.rules.escalate_people
        if len(earlier) <= self.rules.escalations and row is not None and row["closed_ms"] is None:
            advice = self.engine.route(
                _question(row), keep=True, skip=before, top=top,
                policy=self._wider_policy() if earlier else None,
            )  # fmt: skip
        with self.database.write(acting=True) as connection:
            suggestions.change_suggestion(connection, suggestion, escalate_ms=None)
            if advice is not None and again:
                self._renew(connection, suggestion, advice, "Nobody could be asked before.")
            elif advice is not None:
                self._record(connection, question, advice, len(earlier))

    def _wider_policy(self) -> Policy:
        """Return the policy of later rounds."""
        policy, wider = self.rules.policy(), self.rules.escalate_groups
        if not policy.groups:
            return policy
        return replace(policy, groups=() if "*" in wider else (*policy.groups, *wider))

    def expire(self) -> None:
        """Close suggestions that have been open too long."""
        old = (
            tables.suggestions.c.created_ms < self.engine.clock() - self.rules.expire_days * DAY_MS
        )
        with self.database.write(acting=True) as connection:
            suggestions.end_suggestions(connection, old, "expired", self.engine.clock())

    def feedback(
        self, suggestion: int, verdict: str, by: str, shown: Sequence[int] = (), *,
        once: str = "", person: int | None = None, note: str = "",
    ) -> Row | None:  # fmt: skip
        """Carry out a decision; return the suggestion, or None if it does not exist.

        Outside of shadow mode, *accepted* asks the people of a suggestion that was not sent yet,
        and *reassigned* asks somebody else. A second call with the same `once` changes nothing.
        Nobody is asked if others than those `shown` are suggested by now.
        """
        now = self.engine.clock()
        with self.engine.lock, self.database.write(acting=True) as connection:
            found = suggestions.get_suggestion(connection, suggestion)
            if found is None or not tables.is_new(connection, once, now):
                return found
            if verdict == "reassigned" and person is None:
                raise InputError("The decision 'reassigned' needs a person; name one.")
            if verdict != "comment" and found["state"] not in suggestions.OPEN:
                raise ProblemError(409, f"The suggestion is {found['state']}: nobody is asked.")
            if verdict == found["state"] != "reassigned":
                return found  # pressed twice
            people = {person["user"] for person in found["people"]}
            if verdict == "accepted" and shown and people != set(shown):
                raise ProblemError(409, "Other people are suggested by now: look at them first.")
            tables.add(
                connection, tables.feedback, suggestion=suggestion, verdict=verdict, note=note,
                given_by=by, at_ms=now, person=person,
            )  # fmt: skip
            if verdict != "comment":
                suggestions.change_suggestion(connection, suggestion, state=verdict, changed_ms=now)
                tables.note(connection, now, by, f"suggestion {suggestion}: {verdict}", person)
            if verdict == "accepted":
                self._accept(connection, found)
            elif verdict == "declined":
                outbox.cancel(connection, found["question"])
                if found["round"] < self.rules.escalations and self.rules.escalate_hours:
                    # Ask others at once.
                    suggestions.change_suggestion(connection, suggestion, escalate_ms=now)
            elif verdict == "reassigned" and person is not None:
                self._reassign(connection, found, person)
            return suggestions.get_suggestion(connection, suggestion)

    def _accept(self, connection: Connection, found: Row) -> None:
        """Ask the people of a suggestion, unless they were asked."""
        if self.engine.shadow or found["sent_ms"] is not None:
            return
        refused = {p["user"]: self.engine.why_not(p["user"]) for p in found["people"]}
        people = [person for person in found["people"] if not refused[person["user"]]]
        if not people:
            why = "; ".join(f"{self.name(user)} {text}" for user, text in refused.items())
            why = why or "the list is empty"
            raise ProblemError(409, f"None of these people may be asked now: {why}.")
        if len(people) < len(refused):
            left = [f"User {user} was not asked: {why}." for user, why in refused.items() if why]
            notes = [*found["notes"], *left]
            suggestions.change_suggestion(connection, found["id"], people=people, notes=notes)
        self._ask(connection, found, people)

    def _reassign(self, connection: Connection, found: Row, person: int) -> None:
        outbox.cancel(connection, found["question"])
        if not self.engine.knows(person):
            raise InputError("The site does not know this person.")
        if person == found["asker"]:
            raise InputError("This person asked the question.")
        if why := self.engine.why_not(person):
            raise ProblemError(409, f"{self.name(person)} may not be asked now: {why}.")
        if found["answered_ms"] is None:
            people = [{"user": person, "score": 0.0, "confidence": 0.0, "reasons": []}]
            self._ask(connection, found, people, "reassigned")

    def name(self, user: int) -> str:
        """Return a person's display name."""
        if user < 0:
            return "somebody"  # who was forgotten
        return self.engine.directory[user].handle or f"user {user}"

    def note_ask(self, person: int, kind: str, once: str = "") -> None:
        """Record that a person was asked elsewhere, which counts like any other ask."""
        with self.database.write() as connection:
            if tables.is_new(connection, once, self.engine.clock()):
                self.engine.note_asks(connection, [person], kind)


def _question(row: Row) -> Question:
    """Return the question to rank for a row or the values of an event."""
    asker = NOBODY if row["asker"] is None else row["asker"]
    return Question(row["title"], row["body"], row["tags"], asker, id=row["id"])
