"""Every event of a site, in the order in which events became known."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph_qa.data.site import NOBODY, QuestionTags, Site, find_ids
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
    TextTable,
    VoteTable,
)
from atpgraph_qa.timeline.visibility import by_visibility, dated_votes, verdicts

T = TypeVar("T", AcceptanceTable, VoteTable)


@dataclass(frozen=True, eq=False)
class Records:
    """Every event of a site, as tables that never change.

    A :class:`~atpgraph_qa.timeline.history.History` is what of them was known at a moment.
    Users are codes: positions in `users`. Tables are ordered by the moment from which a row is
    known.
    """

    users: Int64Array  # ids of all who asked or answered; those who came with later events last
    questions: QuestionTable
    answers: AnswerTable
    acceptances: AcceptanceTable
    votes: VoteTable
    tags: QuestionTags
    texts: TextTable
    corpus: Corpus
    meaning: Meaning | None = None  # vectors of the questions; None where words have to do
    newcomers: Mapping[int, Arrival] = field(default_factory=dict)  # who was welcomed, by user id
    grown: Growth | None = field(default=None, repr=False)  # None if they were made at once
    memo: Memo = field(default_factory=Memo, init=False, repr=False)  # kept as long as these

    def __post_init__(self) -> None:
        if self.grown is not None:
            object.__setattr__(self, "memo", self.grown.memo)

    @classmethod
    def of(cls, site: Site, text: str | os.PathLike[str] | TextModel | None = None) -> Self:
        """Collect the events of a site.

        Without a text model, or its name as for :func:`~atpgraph_qa.text.choice.text_model`, words
        have to do.
        """
        questions, answers = by_visibility(site.questions, site.answers)
        users = np.unique(np.concatenate([questions.asker, answers.owner]))
        users = users[users >= 0]
        texts = TextTable(site.titles(), site.question_bodies())
        tags = [site.tags.of(question) for question in range(len(questions))]
        model = text if isinstance(text, TextModel) or text is None else None
        if text is not None and model is None:
            model = text_model(text, len(questions))  # type: ignore[arg-type]
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
            texts,
            Corpus.of(texts.titles, texts.bodies, tags),
            None if model is None else Meaning.of(model, texts.titles, texts.bodies, site.path),
        )

    def until(self, moment_ms: int) -> Self:
        """Return the site as a dump made at that moment would show it."""
        n = int(np.searchsorted(self.questions.asked_ms, moment_ms))
        m = int(np.searchsorted(self.answers.given_ms, moment_ms))
        return replace(
            self,
            questions=self.questions.take(slice(n)),
            answers=self.answers.take(slice(m)),
            acceptances=_known(self.acceptances, moment_ms, m),
            votes=_known(self.votes, moment_ms, m),
            tags=first_tags(self.tags, n),
            texts=self.texts.take(slice(n)),
            corpus=self.corpus.first(n),
            meaning=None if self.meaning is None else self.meaning.first(n),
            grown=None,
        )

    def without(self, positions: npt.ArrayLike) -> Self:
        """Return the events without these questions and whatever belongs to them."""
        present = self.questions.present.copy()
        present[np.asarray(positions, dtype=np.int64)] = False
        seen = present[self.answers.question]
        asker = np.where(present, self.questions.asker, NOBODY)
        return replace(
            self,
            questions=replace(self.questions, asker=asker, present=present),
            answers=replace(self.answers, owner=np.where(seen, self.answers.owner, NOBODY)),
            acceptances=self.acceptances.take(seen[self.acceptances.answer]),
            votes=self.votes.take(seen[self.votes.answer]),
            grown=None,
        )

    def with_answers(
        self, new: AnswerTable, accepted: BoolArray, newcomers: Iterable[Arrival] = ()
    ) -> Self:
        """Return these events and some more answers, whose owners are given by user id.

        One that is `accepted` counts as such from the moment it is given. `newcomers` says who is
        new, and by what evidence.
        """
        users = np.append(self.users, np.unique(new.owner[self.codes(new.owner) < 0]))
        owner = find_ids(users, new.owner)
        order = np.argsort(np.append(self.answers.given_ms, new.given_ms), kind="stable")
        moved = np.empty(len(order), dtype=np.int64)
        moved[order] = np.arange(len(order))
        known = replace(self.acceptances, answer=moved[self.acceptances.answer])
        return replace(
            self,
            users=users,
            answers=self.answers.inserted((new.given_ms, new.question, owner, new.id)),
            acceptances=known.inserted(
                (new.given_ms[accepted], moved[len(self.answers) :][accepted])
            ),
            votes=replace(self.votes, answer=moved[self.votes.answer]),
            newcomers={**self.newcomers, **{who.newcomer.user: who for who in newcomers}},
            grown=None,
        )

    def forgetting(self, user: int) -> Self:
        """Return the same events with the author of these posts removed."""
        code = int(self.codes(user))
        moved = np.arange(len(self.users) + 1)
        moved[code + 1 :] -= 1
        moved[code] = moved[-1] = NOBODY
        return replace(
            self,
            users=np.delete(self.users, code),
            questions=replace(self.questions, asker=moved[self.questions.asker]),
            answers=replace(self.answers, owner=moved[self.answers.owner]),
            newcomers={who: arrival for who, arrival in self.newcomers.items() if who != user},
            grown=None,
        )

    @property
    def base(self) -> Records:
        """The records that were made at once, of which these are a continuation."""
        return self if self.grown is None else self.grown.base

    def settled(self) -> Self:
        """Return equal records as if made at once: users and tags sorted, words in one matrix."""
        if self.grown is None and self.corpus.late is None and self.in_order:
            return self
        order = np.argsort(self.users)
        code = np.full(len(order) + 1, NOBODY, dtype=np.int64)  # −1 stays −1
        code[order] = np.arange(len(order))
        names = sorted(self.tags.names)
        number = {name: place for place, name in enumerate(names)}
        tag = np.array([number[name] for name in self.tags.names], dtype=np.int64)
        return replace(
            self,
            users=self.users[order],
            questions=replace(self.questions, asker=code[self.questions.asker]),
            answers=replace(self.answers, owner=code[self.answers.owner]),
            tags=QuestionTags(names, self.tags.indptr, tag[self.tags.tags]),
            corpus=self.corpus.settled(),
            grown=None,
        )

    @cached_property
    def in_order(self) -> bool:
        """Whether codes of users are in the order of their ids."""
        return bool(np.all(self.users[1:] > self.users[:-1]))

    def with_nobody(self) -> Self:
        """Return these events with one more user, who did nothing."""
        new = int(self.users.max(initial=0)) + 1
        return replace(self, users=np.append(self.users, new), grown=None)

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
        if self.grown is not None:
            return self.grown.tag_index
        return {name: code for code, name in enumerate(self.tags.names)}


@dataclass(frozen=True, eq=False)
class Growth:
    """How records grew from those made at once, whose indexes stay good.

    Only the first to continue from a step shares the memo of those before it.
    """

    base: Records
    memo: Memo
    step: int
    tag_index: dict[str, int]

    @classmethod
    def after(cls, records: Records, tag_index: dict[str, int]) -> Growth:
        """Return the growth that continues some records."""
        step = 0 if records.grown is None else records.grown.step
        if records.memo.claim(step):
            return cls(records.base, records.memo, step + 1, tag_index)
        return cls(records.base, Memo(), 0, tag_index)


def first_tags(tags: QuestionTags, n: int) -> QuestionTags:
    """Return the tags of the first `n` questions."""
    indptr = tags.indptr[: n + 1]
    return QuestionTags(tags.names, indptr, tags.tags[: int(indptr[-1]) if len(indptr) else 0])


def _known(table: T, moment_ms: int, n_answers: int) -> T:
    """Return the rows known at a moment, of answers given before it."""
    part = table.take(slice(int(np.searchsorted(table.known_ms, moment_ms, side="right"))))
    return part.take(part.answer < n_answers)
