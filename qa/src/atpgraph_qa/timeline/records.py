"""Every event of a site, in the order in which events became known.

Votes, acceptances among them, carry a date without a time of day, so they count from the end of
that day. If the dump has no votes, an acceptance counts as known thirty days after its answer.
Scores of answers are not used, because those in a dump are as of the day of the dump.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph_qa.data.site import DAY_MS, NOBODY, Answers, Questions, QuestionTags, Site, find_ids
from atpgraph_qa.text.choice import text_model
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.timeline.corpus import Corpus
from atpgraph_qa.timeline.events import Arrival
from atpgraph_qa.timeline.meaning import Meaning
from atpgraph_qa.timeline.memo import Memo
from atpgraph_qa.timeline.tables import (
    AcceptanceTable,
    AnswerTable,
    Grouped,
    Ids,
    QuestionTable,
    VoteTable,
)

T = TypeVar("T", AcceptanceTable, VoteTable)
ACCEPTED, UP, DOWN = 1, 2, 3  # VoteTypeId
SETTLE_DAYS = 30.0
FOREVER = int(np.iinfo(np.int64).max)
WEEK_MS = 7 * DAY_MS
_MONDAY = 4 * DAY_MS  # 1970-01-05


@dataclass(frozen=True, eq=False)
class Records:
    """Every event of a site, as tables that never change.

    A :class:`~atpgraph_qa.timeline.history.History` is the part of them that was known at a moment.
    Users are codes: positions in `users`. Tables are ordered by the moment from which a row is
    known.
    """

    users: Int64Array  # ids of all who asked or answered; those who came with later events last
    questions: QuestionTable
    answers: AnswerTable
    acceptances: AcceptanceTable
    votes: VoteTable
    tags: QuestionTags
    titles: Sequence[str]
    corpus: Corpus
    meaning: Meaning | None = None  # vectors of the questions; None where words have to do
    bodies: Sequence[str] = ()  # HTML; not of questions that came with a model or an event
    newcomers: Mapping[int, Arrival] = field(default_factory=dict)  # who was welcomed, by user id
    before: Records | None = field(default=None, repr=False)  # whose indexes these continue

    @classmethod
    def of(cls, site: Site, text: str | os.PathLike[str] | TextModel | None = None) -> Self:
        """Collect the events of a site.

        `text` is a text model or a name, as for :func:`~atpgraph_qa.text.choice.text_model`;
        without one, questions are compared by words.
        """
        questions, answers = by_visibility(site.questions, site.answers)
        users = np.unique(np.concatenate([questions.asker, answers.owner]))
        users = users[users >= 0]
        titles, bodies = site.titles(), site.question_bodies()
        tags = [site.tags.of(question) for question in range(len(questions))]
        if text is not None and not isinstance(text, TextModel):
            text = text_model(text, len(questions))
        present = np.ones(len(questions), dtype=np.bool_)
        asker, owner = (find_ids(users, ids) for ids in (questions.asker, answers.owner))
        acceptances, votes = verdicts(questions, answers, dated_votes(site, answers))
        return cls(
            users,
            QuestionTable(questions.id, questions.created_ms, asker, present),
            AnswerTable(answers.created_ms, answers.question, owner, answers.id),
            acceptances,
            votes,
            site.tags,
            titles,
            Corpus.of(titles, bodies, tags),
            None if text is None else Meaning.of(text, titles, bodies, site.path),
            bodies,
        )

    def changed(self, **columns: Any) -> Self:
        """Return these events with other columns, and without indexes and cached results."""
        return replace(self, before=None, **columns)

    def continued(self, tag_index: dict[str, int], **columns: Any) -> Self:
        """Return these events with longer columns; indexes and cached results stay valid."""
        made = replace(self, before=self.base, **columns)
        vars(made).update(tag_index=tag_index, memo=self.memo.copy())
        return made

    def until(self, moment_ms: int) -> Self:
        """Return the site as a dump made at that moment would show it."""
        n = int(np.searchsorted(self.questions.asked_ms, moment_ms))
        m = int(np.searchsorted(self.answers.given_ms, moment_ms))
        return self.changed(
            questions=self.questions.take(slice(n)),
            answers=self.answers.take(slice(m)),
            acceptances=_known(self.acceptances, moment_ms, m),
            votes=_known(self.votes, moment_ms, m),
            tags=first_tags(self.tags, n),
            titles=self.titles[:n],
            bodies=self.bodies[:n],
            corpus=self.corpus.first(n),
            meaning=self.meaning and replace(self.meaning, vectors=self.meaning.vectors[:n]),
        )

    def without(self, positions: npt.ArrayLike) -> Self:
        """Return the events without these questions and whatever belongs to them."""
        present = self.questions.present.copy()
        present[np.asarray(positions, dtype=np.int64)] = False
        seen = present[self.answers.question]
        asker = np.where(present, self.questions.asker, NOBODY)
        return self.changed(
            questions=replace(self.questions, asker=asker, present=present),
            answers=replace(self.answers, owner=np.where(seen, self.answers.owner, NOBODY)),
            acceptances=self.acceptances.take(seen[self.acceptances.answer]),
            votes=self.votes.take(seen[self.votes.answer]),
        )

    def with_answers(
        self, new: AnswerTable, accepted: BoolArray, newcomers: Iterable[Arrival] = ()
    ) -> Self:
        """Return these events and some more answers, whose owners are given by user id.

        An `accepted` answer counts as accepted from the moment it is given. `newcomers` lists the
        new people with the evidence about them.
        """
        users = np.append(self.users, np.unique(new.owner[self.codes(new.owner) < 0]))
        owner = find_ids(users, new.owner)
        order = np.argsort(np.append(self.answers.given_ms, new.given_ms), kind="stable")
        moved = np.empty(len(order), dtype=np.int64)
        moved[order] = np.arange(len(order))
        known = replace(self.acceptances, answer=moved[self.acceptances.answer])
        fresh = new.given_ms[accepted], moved[len(self.answers) :][accepted]
        return self.changed(
            users=users,
            answers=self.answers.inserted((new.given_ms, new.question, owner, new.id)),
            acceptances=known.inserted(fresh),
            votes=replace(self.votes, answer=moved[self.votes.answer]),
            newcomers={**self.newcomers, **{who.newcomer.user: who for who in newcomers}},
        )

    def forgetting(self, user: int) -> Self:
        """Return the same events with the author of these posts removed."""
        gone = int(self.codes(user))
        code = np.arange(len(self.users) + 1)
        code[gone + 1 :] -= 1
        code[gone] = code[-1] = NOBODY
        newcomers = {who: arrival for who, arrival in self.newcomers.items() if who != user}
        return self._renumbered(np.delete(self.users, gone), code).changed(newcomers=newcomers)

    def _renumbered(self, users: Int64Array, code: Int64Array) -> Self:
        """Return the same events with other users; `code` has the new code of each, −1 last."""
        return self.changed(
            users=users,
            questions=replace(self.questions, asker=code[self.questions.asker]),
            answers=replace(self.answers, owner=code[self.answers.owner]),
        )

    @property
    def base(self) -> Records:
        """The records, built at once, that these extend."""
        return self.before or self

    @property
    def n_recent(self) -> int:
        """Number of rows that came after the indexes were made, and are scanned."""
        tables = ("questions", "answers", "acceptances", "votes")
        return sum(len(getattr(self, name)) - len(getattr(self.base, name)) for name in tables)

    @cached_property
    def memo(self) -> Memo:
        """Results that are cached as long as these records exist."""
        return Memo()

    def settled(self) -> Self:
        """Return equal records as if built at once: users and tags sorted, words in one matrix."""
        if self.before is None and self.corpus.late is None and self.in_order:
            return self
        order = np.argsort(self.users)
        code = np.full(len(order) + 1, NOBODY, dtype=np.int64)
        code[order] = np.arange(len(order))
        names = sorted(self.tags.names)
        number = {name: place for place, name in enumerate(names)}
        tag = np.array([number[name] for name in self.tags.names], dtype=np.int64)
        return self._renumbered(self.users[order], code).changed(
            tags=QuestionTags(names, self.tags.indptr, tag[self.tags.tags]),
            corpus=self.corpus.settled(),
        )

    @cached_property
    def in_order(self) -> bool:
        """Whether codes of users are in the order of their ids."""
        return bool(np.all(self.users[1:] > self.users[:-1]))

    def with_nobody(self) -> Self:
        """Return these events with one more user, who has no posts."""
        new = int(self.users.max(initial=0)) + 1
        return self.changed(users=np.append(self.users, new))

    def codes(self, ids: npt.ArrayLike) -> Int64Array:
        """Return codes of users by id, −1 for unknown ones."""
        return self.base._user_ids.find(ids, self.users)

    def ids(self, codes: Int64Array) -> Int64Array:
        """Return ids of users by code, −1 for −1."""
        return np.where(codes >= 0, self.users[codes], NOBODY) if len(self.users) else codes

    def question_at(self, number: int) -> int:
        """Return the position of a question by id, −1 if there is none."""
        return int(self.base._question_ids.find(number, self.questions.id))

    def answer_at(self, number: int) -> int:
        """Return the position of an answer by id, −1 if there is none."""
        return int(self.base._answer_ids.find(number, self.answers.id))

    # Indexes, of `base` only: rows that came later are few and are scanned.

    @cached_property
    def _user_ids(self) -> Ids:
        return Ids(self.users)

    @cached_property
    def _question_ids(self) -> Ids:
        return Ids(self.questions.id)

    @cached_property
    def _answer_ids(self) -> Ids:
        return Ids(self.answers.id)

    @cached_property
    def by_question(self) -> Grouped:
        """Answers of every question."""
        return Grouped.of(self.answers.question, len(self.questions))

    @cached_property
    def by_owner(self) -> Grouped:
        """Answers of every user code, by date."""
        return Grouped.of(self.answers.owner, len(self.users))

    @cached_property
    def by_asker(self) -> Grouped:
        """Questions of every user code, by date."""
        return Grouped.of(self.questions.asker, len(self.users))

    @cached_property
    def by_tag(self) -> Grouped:
        """Questions of every tag code, by date; `size` is the number of uses of tags."""
        uses = Grouped.of(self.tags.tags, len(self.tags.names))
        question = np.repeat(np.arange(len(self.tags.indptr) - 1), np.diff(self.tags.indptr))
        return replace(uses, positions=question[uses.positions])

    @property
    def text_model(self) -> TextModel | None:
        """The text model that makes vectors of questions; None to use words only."""
        return None if self.meaning is None else self.meaning.model

    @cached_property
    def tag_index(self) -> dict[str, int]:
        """Codes of tags by name."""
        return {name: code for code, name in enumerate(self.tags.names)}


def first_tags(tags: QuestionTags, n: int) -> QuestionTags:
    """Return the tags of the first `n` questions."""
    indptr = tags.indptr[: n + 1]
    return QuestionTags(tags.names, indptr, tags.tags[: int(indptr[-1]) if len(indptr) else 0])


def _known(table: T, moment_ms: int, n_answers: int) -> T:
    """Return the rows known at a moment that belong to answers given before it."""
    part = table.take(slice(int(np.searchsorted(table.known_ms, moment_ms, side="right"))))
    return part.take(part.answer < n_answers)


def monday(moment_ms: int) -> int:
    """Return the start of the week of a moment."""
    return (moment_ms - _MONDAY) // WEEK_MS * WEEK_MS + _MONDAY


def end_of_day(moment_ms: Any) -> Any:
    """Return the moment from which a vote of that day is known."""
    return moment_ms // DAY_MS * DAY_MS + DAY_MS


def by_visibility(questions: Questions, answers: Answers) -> tuple[Questions, Answers]:
    """Order answers by the moment from which they can be seen: not before their question.

    A few answers are older than their question, because questions were merged.
    """
    if not len(answers):
        return questions, answers
    seen = np.maximum(answers.created_ms, questions.created_ms[answers.question])
    order = np.argsort(seen, kind="stable")
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), NOBODY
    rest = (getattr(answers, name)[order] for name in ("question", "owner", "score"))
    made = Answers(answers.id[order], seen[order], *rest)
    return replace(questions, accepted=place[questions.accepted]), made


def dated_votes(site: Site, answers: Answers) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the votes for these answers: position of the answer, type, end of the day."""
    table = site.read("votes", ["post_id", "type", "created_ms"])
    post, kind, created = (table[n].to_numpy().astype(np.int64) for n in table.column_names)
    answer = find_ids(answers.id, post)
    keep = answer >= 0
    return answer[keep], kind[keep], end_of_day(created[keep])


def verdicts(
    questions: Questions, answers: Answers, votes: tuple[Int64Array, Int64Array, Int64Array]
) -> tuple[AcceptanceTable, VoteTable]:
    """Return acceptances, and votes up and down, by the moment from which they are known."""
    answer, kind, known = votes
    best = questions.accepted[questions.accepted >= 0]
    first = np.full(len(answers), FOREVER, dtype=np.int64)
    accepting = kind == ACCEPTED
    np.minimum.at(first, answer[accepting], known[accepting])
    settled = answers.created_ms[best] + round(SETTLE_DAYS * DAY_MS)
    dated = np.maximum(first[best], answers.created_ms[best])
    since = np.where(first[best] < FOREVER, dated, settled)
    keep = (kind == UP) | (kind == DOWN)
    value = np.where(kind[keep] == UP, 1, -1).astype(np.int64)
    return (
        AcceptanceTable(since, best).take(np.argsort(since, kind="stable")),
        VoteTable(known[keep], answer[keep], value).take(np.argsort(known[keep], kind="stable")),
    )
