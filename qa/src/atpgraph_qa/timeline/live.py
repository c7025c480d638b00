"""A history that goes on: events are added to the end of its tables, nothing is made anew.

An event costs a few copies of one number for each person, whatever the site has seen. What is
sorted and indexed in the records that were made at once stays as it is; the rows after them are few
and are looked through.

Time
    Events of one call are taken by date. One that is dated before the last post known is taken as
    of that post: what came late was not known earlier. An acceptance or a vote counts from the end
    of its day, as those of a dump do, so that people are ranked by what the router learnt from.
What changes nothing
    A question or an answer that is there already, an answer to an unknown question, an acceptance
    or a vote for an unknown answer, an acceptance that is there already, somebody unknown to be
    forgotten. Votes have no id: one that comes twice counts twice.
What is rare
    An acceptance that moves to another answer, and a person to be forgotten, change the past, so
    the tables are made anew for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import Int64Array
from atpgraph_qa.data.site import DAY_MS, NOBODY, QuestionTags
from atpgraph_qa.timeline.events import (
    Accepted,
    Answered,
    Asked,
    Event,
    Forgotten,
    Voted,
)
from atpgraph_qa.timeline.growth import Room, TextLines
from atpgraph_qa.timeline.history import Counts, History
from atpgraph_qa.timeline.memo import Memo
from atpgraph_qa.timeline.records import Growth, Records, codes_of
from atpgraph_qa.timeline.tables import (
    TextTable,
)

_ORDER = (Asked, Answered, Accepted, Voted)


@dataclass(frozen=True, eq=False)
class Observed:
    """A history and what became of the events.

    Attributes
    ----------
    history : History
    ignored : tuple
        Events that changed nothing, each with why.
    """

    history: History
    ignored: tuple[tuple[Event, str], ...]


def observe(history: History, events: Iterable[Event]) -> Observed:
    """The history with some events more; the one given stays as it is."""
    ignored: list[tuple[Event, str]] = []
    for part in _parts(list(events)):
        if isinstance(part, Forgotten):
            if int(history.codes(part.user)) < 0:
                ignored.append((part, "nobody has that id"))
                continue
            history = forget(history, part.user)
        else:
            batch = _Batch(history)
            for event in part:
                why = batch.add(event)
                if why:
                    ignored.append((event, why))
            history = batch.history()
    return Observed(history, tuple(ignored))


def _parts(events: Sequence[Event]) -> list[Any]:
    """Events by date, cut where somebody is forgotten, which has no date."""
    parts: list[Any] = []
    run: list[Any] = []
    for event in events:
        if isinstance(event, Forgotten):
            parts += [run, event] if run else [event]
            run = []
        elif isinstance(event, _ORDER):
            run.append(event)
        else:
            raise InputError(f"{event!r} is not an event.")
    for part in [*parts, run]:
        if isinstance(part, list):
            part.sort(key=lambda event: (event.at_ms, _ORDER.index(type(event))))
    return [*parts, run] if run else parts


def forget(history: History, user: int) -> History:
    """The same history without a name under what somebody posted."""
    records = history.records.settled()
    code = int(records.codes(user))
    moved = np.arange(len(records.users) + 1)
    moved[code + 1 :] -= 1
    moved[code] = moved[-1] = NOBODY
    made = replace(
        records,
        users=np.delete(records.users, code),
        questions=replace(records.questions, asker=moved[records.questions.asker]),
        answers=replace(records.answers, owner=moved[records.answers.owner]),
        newcomers={who: arrival for who, arrival in records.newcomers.items() if who != user},
    )
    return History(made, history.now, history.shared)


class _Batch:
    """Events on their way into a history."""

    def __init__(self, history: History) -> None:
        records = history.records
        if history.n_questions < len(records.questions) or history.n_answers < len(records.answers):
            records = records.until(history.now)
            history = History(records, history.now, history.shared)
        self.before = history
        self.n_questions, self.n_answers = len(records.questions), len(records.answers)
        ends = (records.questions.asked_ms[-1:], records.answers.given_ms[-1:])
        self.last_ms = max([0, *(int(end[0]) for end in ends if len(end))])
        self.asked: list[Asked] = []
        self.asked_ms: list[int] = []
        self.given: list[tuple[int, int, int, int]] = []  # moment, question, user, id
        self.accepted: dict[int, tuple[int, int]] = {}  # by question: moment, answer
        self.votes: list[tuple[int, int, int]] = []  # moment, answer, value
        self._questions: dict[int, int] = {}
        self._answers: dict[int, int] = {}
        self._replaced: set[int] = set()

    def add(self, event: Event) -> str:
        """Take in an event; returns why not, if it changes nothing."""
        at = max(event.at_ms, self.last_ms) if not isinstance(event, Forgotten) else self.last_ms
        if isinstance(event, Asked):
            if self._question(event.id) >= 0:
                return "the question is there already"
            self._questions[event.id] = self.n_questions + len(self.asked)
            self.asked.append(event)
            self.asked_ms.append(at)
            self.last_ms = at
        elif isinstance(event, Answered):
            question = self._question(event.question)
            if question < 0:
                return "the question is unknown"
            if self._answer(event.id) >= 0:
                return "the answer is there already"
            self._answers[event.id] = self.n_answers + len(self.given)
            self.given.append((at, question, event.user, event.id))
            self.last_ms = at
        elif isinstance(event, Accepted):
            return self._accept(event, _end_of_day(at))
        elif isinstance(event, Voted):
            answer = self._answer(event.answer)
            if answer < 0:
                return "the answer is unknown"
            self.votes.append((_end_of_day(at), answer, event.value))
        return ""

    def _question(self, number: int) -> int:
        if number in self._questions:
            return self._questions[number]
        return self.before.records.question_at(number)

    def _answer(self, number: int) -> int:
        if number in self._answers:
            return self._answers[number]
        return self.before.records.answer_at(number)

    def _accept(self, event: Accepted, known_ms: int) -> str:
        answer, question = self._answer(event.answer), self._question(event.question)
        if answer < 0:
            return "the answer is unknown"
        records = self.before.records
        if answer < self.n_answers:
            owner_question = int(records.answers.question[answer])
        else:
            owner_question = self.given[answer - self.n_answers][1]
        if owner_question != question:
            return "the answer is to another question"
        there = self.accepted.get(question, (0, self._accepted_before(question)))[1]
        if there == answer:
            return "the answer is accepted already"
        if there >= 0 and question not in self.accepted:
            self._replaced.add(there)
        self.accepted[question] = known_ms, answer
        return ""

    def _accepted_before(self, question: int) -> int:
        """The answer whose acceptance is recorded, even if it counts only from later on; or −1."""
        if question >= self.n_questions:
            return NOBODY
        theirs = self.before.answers_to(np.array([question]))
        later = self.before.records.acceptances.answer[self.before.n_acceptances :]
        hit = theirs[self.before.is_accepted[theirs] | np.isin(theirs, later)]
        return int(hit[0]) if len(hit) else NOBODY

    def history(self) -> History:
        """The history with what was taken in."""
        before = self.before
        if self._replaced:
            before = _without_acceptances(before, np.array(sorted(self._replaced)))
        if not (self.asked or self.given or self.accepted or self.votes):
            return before
        old = before.records
        room, memo = Room(), Memo()
        if old.grown is None:
            memo = old.memo if old.memo.claim() else memo
        elif old.grown.room.claim(old.grown.step):
            room, memo = old.grown.room, old.grown.memo
        records = self._records(old, room, memo)
        now = max(before.now, self.last_ms + 1) if self.asked or self.given else before.now
        plain = History(records, now, before.shared)
        return replace(plain, counts=self._counts(before, plain, room))

    def _records(self, old: Records, room: Room, memo: Memo) -> Records:
        posters = [event.asker for event in self.asked] + [user for _, _, user, _ in self.given]
        new = [user for user in dict.fromkeys(posters) if user >= 0]
        known = old.codes(np.array(new, dtype=np.int64))
        new = [user for user, code in zip(new, known.tolist(), strict=True) if code < 0]
        users = room.extend("users", old.users, new) if new else old.users
        codes = old.codes(np.array(posters, dtype=np.int64))
        place = codes_of(np.sort(np.array(new, dtype=np.int64)), np.array(posters, dtype=np.int64))
        late = len(old.users) + np.argsort(np.array(new, dtype=np.int64))
        codes = np.where(place >= 0, np.append(late, NOBODY)[place], codes)
        asker, owner = codes[: len(self.asked)], codes[len(self.asked) :]
        question_rows = ([e.id for e in self.asked], self.asked_ms, asker, [True] * len(asker))
        given = np.array(self.given, dtype=np.int64).reshape(-1, 4)
        answer_rows = given[:, 0], given[:, 1], owner, given[:, 3]
        votes = np.array(self.votes, dtype=np.int64).reshape(-1, 3)
        fresh = np.array(sorted(self.accepted.values()), dtype=np.int64).reshape(-1, 2)
        texts, meaning = [(e.title, e.body, e.tags) for e in self.asked], old.meaning
        lines = (
            TextLines.of(old.texts.titles).grown(room, "titles", [e.title for e in self.asked]),
            TextLines.of(old.texts.bodies).grown(room, "bodies", [""] * len(self.asked)),
        )
        return replace(
            old,
            users=users,
            questions=_extended(room, old.questions, question_rows),
            answers=_extended(room, old.answers, answer_rows),
            acceptances=_inserted(room, old.acceptances, (fresh[:, 0], fresh[:, 1])),
            votes=_inserted(room, old.votes, (votes[:, 0], votes[:, 1], votes[:, 2])),
            tags=self._tags(old, room) if self.asked else old.tags,
            texts=TextTable(*lines) if self.asked else old.texts,
            corpus=old.corpus.grown(room, texts) if self.asked else old.corpus,
            meaning=meaning.grown(room, texts) if meaning and self.asked else meaning,
            grown=Growth(old.base, room, room.step, memo, self._tag_index(old)),
        )

    def _tags(self, old: Records, room: Room) -> QuestionTags:
        """Tags with those of new questions; new names come at the end."""
        tags, index = old.tags, self._tag_index(old)
        new = list(index)[len(tags.names) :]
        codes = [[index[tag] for tag in event.tags] for event in self.asked]
        ends = len(tags.tags) + np.cumsum([len(part) for part in codes])
        return QuestionTags(
            [*tags.names, *new] if new else tags.names,
            room.extend("tag_indptr", tags.indptr, ends),
            room.extend("tags", tags.tags, [code for part in codes for code in part]),
        )

    def _tag_index(self, old: Records) -> dict[str, int]:
        """Codes of tags by name; the same object if no name is new."""
        index = old.tag_index
        names = dict.fromkeys(tag for event in self.asked for tag in event.tags)
        new = [name for name in names if name not in index]
        return {**index, **{name: len(index) + k for k, name in enumerate(new)}} if new else index

    def _counts(self, before: History, after: History, room: Room) -> Counts:
        """Counts of the history before, carried on."""
        old, start, n = Counts.of(before), before.n_answers, after.n_users
        answers = after.answers.take(slice(start, None))
        won = after.records.acceptances.answer[: after.n_acceptances]
        is_accepted = room.extend("accepted", old.is_accepted, [False] * len(answers))
        best = room.extend(
            "best", old.best_answer, [NOBODY] * (after.n_questions - len(old.best_answer))
        )
        fresh = won[~is_accepted[won]]
        n_given, n_won, last = (
            _wider(column, n) for column in (old.n_given, old.n_won, old.last_answer_ms)
        )
        owned = answers.owner >= 0
        owner = answers.owner[owned]
        np.add.at(n_given, owner, 1.0)
        last[owner] = answers.given_ms[owned]
        if len(fresh):
            is_accepted, best = is_accepted.copy(), best.copy()
            is_accepted[fresh] = True
            best[after.answers.question[fresh]] = fresh
            winner = after.answers.owner[fresh]
            np.add.at(n_won, winner[winner >= 0], 1.0)
        return Counts(is_accepted, best, n_given, n_won, last)


def _wider(column: Any, n: int) -> Any:
    """A copy of a column with zeros for more users."""
    result = np.zeros(n, dtype=column.dtype)
    result[: len(column)] = column
    return result


def _extended(room: Room, table: Any, rows: Sequence[Any]) -> Any:
    """A table with rows at its end."""
    if not len(rows[0]):
        return table
    return type(table)(
        *(
            room.extend(f"{type(table).__name__}.{name}", getattr(table, name), more)
            for name, more in zip(table.__dataclass_fields__, rows, strict=True)
        )
    )


def _inserted(room: Room, table: Any, rows: Sequence[Int64Array]) -> Any:
    """A table with rows where their moments belong, which is mostly the end."""
    if not len(rows[0]):
        return table
    if not len(table) or rows[0][0] >= table.known_ms[-1]:
        return _extended(room, table, rows)
    joined = type(table)(
        *(
            np.concatenate([getattr(table, name), more])
            for name, more in zip(table.__dataclass_fields__, rows, strict=True)
        )
    )
    return joined.take(np.argsort(joined.known_ms, kind="stable"))


def _without_acceptances(history: History, answers: Int64Array) -> History:
    """A history in which these answers were never accepted."""
    records = history.records.settled()
    kept = ~np.isin(records.acceptances.answer, answers)
    made = replace(records, acceptances=records.acceptances.take(kept))
    return History(made, history.now, history.shared)


def _end_of_day(moment_ms: int) -> int:
    return moment_ms // DAY_MS * DAY_MS + DAY_MS
