"""A history that follows a live site: events are appended to its tables, and nothing is rebuilt.

An event costs a few copies of one number for each person, whatever the site has seen. The records
that were made at once stay sorted and indexed; the few rows after them are scanned.

Time
    Events of one call are taken by date. An event dated before the last known post counts from the
    time of that post, because it was not known earlier. An acceptance or a vote counts from the end
    of its day, as those of a dump do, so that people are ranked by what the router learned from.
Events that change nothing
    A question, an answer or an acceptance that is already known; an answer to an unknown question;
    an acceptance or a vote for an unknown answer; forgetting somebody unknown. Votes have no id, so
    a vote that arrives twice counts twice.
Rare events
    Moving an acceptance to another answer and forgetting a person change the past, so the tables
    are rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from atpgraph.errors import InputError
from atpgraph_qa.data.site import NOBODY, QuestionTags
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Event, Forgotten, Voted
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import Records, end_of_day
from atpgraph_qa.timeline.tables import TextLines, extended

_ORDER = (Asked, Answered, Accepted, Voted)


class Observed(NamedTuple):
    """A history, and the events that changed nothing, each with the reason."""

    history: History
    ignored: tuple[tuple[Event, str], ...]


def observe(history: History, events: Iterable[Event]) -> Observed:
    """Return the history with some more events; the given history does not change."""
    ignored: list[tuple[Event, str]] = []
    for part in _parts(events):
        if isinstance(part, Forgotten):
            if int(history.codes(part.user)) < 0:
                ignored.append((part, "nobody has that id"))
            else:
                history = History(history.records.forgetting(part.user), history.now)
            continue
        batch = _Batch(history)
        reasons = [(event, batch.add(event)) for event in part]
        ignored += [(event, why) for event, why in reasons if why]
        history = batch.history()
    return Observed(history, tuple(ignored))


def _parts(events: Iterable[Event]) -> list[Any]:
    """Return events by date, split wherever somebody is forgotten, since that has no date."""
    parts: list[Any] = [[]]
    for event in events:
        if isinstance(event, Forgotten):
            parts += [event, []]
        elif isinstance(event, _ORDER):
            parts[-1].append(event)
        else:
            raise InputError(f"{event!r} is not an event.")
    for part in parts:
        if isinstance(part, list):
            part.sort(key=lambda event: (event.at_ms, _ORDER.index(type(event))))
    return [part for part in parts if part]


class _Batch:
    """New rows of the tables, and the history they will be appended to."""

    def __init__(self, history: History) -> None:
        records = history.records
        if history.n_questions < len(records.questions) or history.n_answers < len(records.answers):
            records = records.until(history.now)
            history = History(records, history.now)
        self.before, self.records = history, records
        self.n_questions, self.n_answers = len(records.questions), len(records.answers)
        self.last_ms = History(records).last_ms - 1
        self.asked: list[Asked] = []
        self.asked_ms: list[int] = []
        self.given: list[tuple[int, int, int, int]] = []  # moment, question, user, id
        self.accepted: dict[int, tuple[int, int]] = {}  # by question: moment, answer
        self.votes: list[tuple[int, int, int]] = []  # moment, answer, value
        self.questions: dict[int, int] = {}  # positions of new questions and answers by id
        self.answers: dict[int, int] = {}
        self.replaced: list[int] = []  # answers that are no longer the accepted one

    def add(self, event: Any) -> str:
        """Apply an event; if it changes nothing, return the reason."""
        at = max(event.at_ms, self.last_ms)
        if isinstance(event, Asked):
            if self._question(event.id) >= 0:
                return "the question is already known"
            self.questions[event.id] = self.n_questions + len(self.asked)
            self.asked.append(event)
            self.asked_ms.append(at)
            self.last_ms = at
        elif isinstance(event, Answered):
            question = self._question(event.question)
            if question < 0:
                return "the question is unknown"
            if self._answer(event.id) >= 0:
                return "the answer is already known"
            self.answers[event.id] = self.n_answers + len(self.given)
            self.given.append((at, question, event.user, event.id))
            self.last_ms = at
        elif (answer := self._answer(event.answer)) < 0:
            return "the answer is unknown"
        elif isinstance(event, Accepted):
            return self._accept(self._question(event.question), answer, end_of_day(at))
        else:
            self.votes.append((end_of_day(at), answer, event.value))
        return ""

    def _question(self, number: int) -> int:
        place = self.questions.get(number)
        return self.records.question_at(number) if place is None else place

    def _answer(self, number: int) -> int:
        place = self.answers.get(number)
        return self.records.answer_at(number) if place is None else place

    def _accept(self, question: int, answer: int, known_ms: int) -> str:
        if answer < self.n_answers:
            answered = int(self.records.answers.question[answer])
        else:
            answered = self.given[answer - self.n_answers][1]
        if answered != question:
            return "the answer is to another question"
        before = self._accepted_before(question)
        if self.accepted.get(question, (0, before))[1] == answer:
            return "the answer is already accepted"
        if before >= 0:
            self.replaced.append(before)
        self.accepted[question] = known_ms, answer
        return ""

    def _accepted_before(self, question: int) -> int:
        """Return the answer recorded as accepted, even if only from a later moment; or −1."""
        if question >= self.n_questions:
            return NOBODY
        theirs = self.before.answers_to(np.array([question]))
        later = self.records.acceptances.answer[self.before.n_acceptances :]
        hit = theirs[self.before.is_accepted[theirs] | np.isin(theirs, later)]
        return int(hit[0]) if len(hit) else NOBODY

    def history(self) -> History:
        """Return the history with the events added so far."""
        before = self.before
        if self.replaced:
            kept = ~np.isin(self.records.acceptances.answer, self.replaced)
            table = self.records.acceptances.take(kept)
            before = History(self.records.changed(acceptances=table), before.now)
        if not (self.asked or self.given or self.accepted or self.votes):
            return before
        now = max(before.now, self.last_ms + 1) if self.asked or self.given else before.now
        after = History(self._grown(before.records), now)
        return replace(after, carried=before.counts.until(after))

    def _grown(self, old: Records) -> Records:
        posters = [event.asker for event in self.asked] + [user for _, _, user, _ in self.given]
        people = np.array(posters, dtype=np.int64)
        new = people[(old.codes(people) < 0) & (people >= 0)]
        users = extended(old.users, list(dict.fromkeys(new.tolist()))) if len(new) else old.users
        codes = replace(old, users=users, before=old.base).codes(people)
        columns: dict[str, Any] = {
            "users": users,
            "acceptances": _added(old.acceptances, sorted(self.accepted.values())),
            "votes": _added(old.votes, self.votes),
        }
        if self.given:
            given_ms, question, _, number = np.array(self.given, dtype=np.int64).T
            rows = given_ms, question, codes[len(self.asked) :], number
            columns["answers"] = old.answers.appended(rows)
        index = old.tag_index
        if self.asked:
            asked = [(event.title, event.body, event.tags) for event in self.asked]
            named = [tag for _, _, tags in asked for tag in tags]
            names, fresh = old.tags.names, [tag for tag in dict.fromkeys(named) if tag not in index]
            if fresh:
                names = [*names, *fresh]
                index = index | {name: len(index) + place for place, name in enumerate(fresh)}
            ends = len(old.tags.tags) + np.cumsum([len(tags) for _, _, tags in asked])
            uses = extended(old.tags.tags, [index[tag] for tag in named])
            ids, n = [event.id for event in self.asked], len(asked)
            present = np.ones(n, dtype=np.bool_)
            columns |= {
                "questions": old.questions.appended((ids, self.asked_ms, codes[:n], present)),
                "tags": QuestionTags(names, extended(old.tags.indptr, ends), uses),
                "titles": TextLines.of(old.titles).grown(title for title, _, _ in asked),
                "corpus": old.corpus.grown(asked),
                "meaning": old.meaning and old.meaning.grown(asked),
            }
        return old.continued(index, **columns)


def _added(table: Any, rows: Sequence[tuple[int, ...]]) -> Any:
    """Return a table with rows inserted in order of their moments, usually at the end."""
    if not rows:
        return table
    columns = np.array(rows, dtype=np.int64).T
    at_end = not len(table) or columns[0][0] >= table.known_ms[-1]
    return table.appended(columns) if at_end else table.inserted(columns)
