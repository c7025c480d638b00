"""Every event of a site, in the order in which events became known."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from atpgraph.util.arrays import Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.data.site import NOBODY, QuestionTags, Site
from atpgraph_qa.text.choice import text_model
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.timeline.corpus import Corpus
from atpgraph_qa.timeline.growth import Room
from atpgraph_qa.timeline.meaning import Meaning
from atpgraph_qa.timeline.memo import Memo
from atpgraph_qa.timeline.newcomer import Arrival
from atpgraph_qa.timeline.tables import (
    AcceptanceTable,
    AnswerTable,
    NewAnswers,
    QuestionTable,
    TextTable,
    VoteTable,
)
from atpgraph_qa.timeline.visibility import (
    acceptances,
    ballots,
    by_visibility,
    dated_votes,
)

T = TypeVar("T", AcceptanceTable, VoteTable)
_SPARSE_IDS = 64  # a table of codes by id may be this much longer than the list of users


@dataclass(frozen=True, eq=False)
class Records:
    """Every event of a site, as tables that never change.

    A :class:`~atpgraph_qa.timeline.history.History` is what of them was known at a moment.
    Users are codes: positions in `users`.

    Attributes
    ----------
    users : int64 array
        Ids of everybody who asked or answered, ascending.
    questions, answers, acceptances, votes
        The events, by the moment from which they are known.
    tags : QuestionTags
    texts : TextTable
    corpus : Corpus
        Words of the questions.
    meaning : Meaning or None
        Vectors of the questions; None where words have to do.
    newcomers : mapping
        By user id, those whose answers stand for what they declare or were added later.
    grown : Growth or None
        Where the records come from that grew into these; None if they were made at once.
    memo : Memo
        Results worth keeping as long as these records.
    """

    users: Int64Array
    questions: QuestionTable
    answers: AnswerTable
    acceptances: AcceptanceTable
    votes: VoteTable
    tags: QuestionTags
    texts: TextTable
    corpus: Corpus
    meaning: Meaning | None = None
    newcomers: Mapping[int, Arrival] = field(default_factory=dict)
    grown: Growth | None = field(default=None, repr=False)
    memo: Memo = field(default_factory=Memo, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.grown is not None:
            object.__setattr__(self, "memo", self.grown.memo)

    @classmethod
    def of(cls, site: Site, text: str | os.PathLike[str] | TextModel | None = None) -> Self:
        """Collect the events of a site.

        Parameters
        ----------
        site : Site
        text : str, path or TextModel, optional
            The text model, or its name as for :func:`~atpgraph_qa.text.choice.text_model`; without
            one, words have to do.
        """
        questions, answers = by_visibility(site.questions, site.answers)
        users = np.unique(np.concatenate([questions.asker, answers.owner]))
        users = users[users >= 0]
        votes = dated_votes(site, answers)
        texts = TextTable(site.titles(), site.question_bodies())
        tags = [site.tags.of(question) for question in range(len(questions))]
        model: TextModel | None = None
        if isinstance(text, TextModel):
            model = text
        elif text is not None:
            model = text_model(text, len(questions))
        meaning = None
        if model is not None:
            meaning = Meaning.of(model, texts.titles, texts.bodies, site.path)
        present = np.ones(len(questions), dtype=np.bool_)
        asker, owner = (codes_of(users, ids) for ids in (questions.asker, answers.owner))
        return cls(
            users=users,
            questions=QuestionTable(questions.id, questions.created_ms, asker, present),
            answers=AnswerTable(answers.created_ms, answers.question, owner, answers.id),
            acceptances=acceptances(questions, answers, votes),
            votes=ballots(votes),
            tags=site.tags,
            texts=texts,
            corpus=Corpus.of(texts.titles, texts.bodies, tags),
            meaning=meaning,
        )

    def until(self, moment_ms: int) -> Self:
        """The site as a dump made at that moment would show it."""
        if self.grown is not None:
            return self.settled().until(moment_ms)
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
            corpus=self.corpus if n == len(self.questions) else self.corpus.first(n),
            meaning=None if self.meaning is None else self.meaning.first(n),
        )

    def without(self, positions: npt.ArrayLike) -> Self:
        """The same events, but for these questions and whatever belongs to them."""
        if self.grown is not None:
            return self.settled().without(positions)
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
        )

    def with_answers(self, new: NewAnswers, newcomers: Iterable[Arrival] = ()) -> Self:
        """The same events and some more answers, by people known or unknown.

        An accepted one counts as accepted from the moment it is given. Codes of users change where
        there are new users; `newcomers` says who of them is new, and by what evidence.
        """
        if self.grown is not None:
            return self.settled().with_answers(new, newcomers)
        users = np.union1d(self.users, new.user)
        code = np.append(np.searchsorted(users, self.users), NOBODY)  # −1 stays −1
        answers = AnswerTable(
            np.concatenate([self.answers.given_ms, new.given_ms]),
            np.concatenate([self.answers.question, new.question]),
            np.concatenate([code[self.answers.owner], np.searchsorted(users, new.user)]),
            np.concatenate([self.answers.id, np.full(len(new), NOBODY, dtype=np.int64)]),
        )
        order = np.argsort(answers.given_ms, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        accepted = np.flatnonzero(new.accepted)
        known = AcceptanceTable(
            np.concatenate([self.acceptances.known_ms, new.given_ms[accepted]]),
            place[np.concatenate([self.acceptances.answer, len(self.answers) + accepted])],
        )
        return replace(
            self,
            users=users,
            questions=replace(self.questions, asker=code[self.questions.asker]),
            answers=answers.take(order),
            acceptances=known.take(np.argsort(known.known_ms, kind="stable")),
            votes=replace(self.votes, answer=place[self.votes.answer]),
            newcomers={**self.newcomers, **{who.newcomer.user: who for who in newcomers}},
        )

    @property
    def base(self) -> Records:
        """The records that were made at once, of which these are a continuation."""
        return self if self.grown is None else self.grown.base

    def settled(self) -> Self:
        """The same as if made at once: users and tags in order, nothing beside the tables."""
        if self.grown is None:
            return self
        order = np.argsort(self.users)
        code = np.full(len(order) + 1, NOBODY, dtype=np.int64)  # −1 stays −1
        code[order] = np.arange(len(order))
        return replace(
            self,
            users=self.users[order],
            questions=replace(self.questions, asker=code[self.questions.asker]),
            answers=replace(self.answers, owner=code[self.answers.owner]),
            tags=_sorted_tags(self.tags),
            corpus=self.corpus.settled(),
            grown=None,
        )

    def with_nobody(self) -> Self:
        """The same and one more user, who did nothing."""
        new = int(self.users.max(initial=0)) + 1
        return replace(self, users=np.append(self.users, new), grown=None)

    def codes(self, ids: npt.ArrayLike) -> Int64Array:
        """Codes of users by id, −1 for unknown ones."""
        wanted = np.asarray(ids, dtype=np.int64)
        if self.grown is not None:
            late, place = self._late_users
            codes = self.base.codes(wanted)
            found = codes_of(late, wanted)
            return np.where(found >= 0, place[found], codes) if len(late) else codes
        if self._code_table is None:
            return codes_of(self.users, wanted)
        there = (wanted >= 0) & (wanted < len(self._code_table) - 1)
        return self._code_table[np.where(there, wanted, -1)]

    def ids(self, codes: Int64Array) -> Int64Array:
        """Ids of users by code, −1 for −1."""
        return self._padded_users[codes]

    @cached_property
    def _late_users(self) -> tuple[Int64Array, Int64Array]:
        """Ids, ascending, and codes of the users who are not in the base."""
        first = len(self.base.users)
        order = np.argsort(self.users[first:])
        return self.users[first:][order], first + order

    def question_at(self, number: int) -> int:
        """Position of a question by id, −1 if there is none."""
        return self._place(number, "questions")

    def answer_at(self, number: int) -> int:
        """Position of an answer by id, −1 if there is none."""
        return self._place(number, "answers")

    def _place(self, number: int, table: str) -> int:
        base = self.base
        ids, places = base._question_ids if table == "questions" else base._answer_ids
        place = int(codes_of(ids, np.array([number]))[0])
        if place >= 0:
            return int(places[place])
        first = len(ids)
        late = np.flatnonzero(getattr(self, table).id[first:] == number)
        return first + int(late[0]) if len(late) else NOBODY

    @cached_property
    def _question_ids(self) -> tuple[Int64Array, Int64Array]:
        """Ids of questions, ascending, and their positions."""
        order = np.argsort(self.questions.id, kind="stable")
        return self.questions.id[order], order

    @cached_property
    def _answer_ids(self) -> tuple[Int64Array, Int64Array]:
        order = np.argsort(self.answers.id, kind="stable")
        return self.answers.id[order], order

    @cached_property
    def _padded_users(self) -> Int64Array:
        return np.append(self.users, NOBODY)

    @cached_property
    def _code_table(self) -> Int64Array | None:
        """Code of every id from 0, with −1 at the end; None if ids are too far apart."""
        if not len(self.users) or self.users[-1] > _SPARSE_IDS * len(self.users) + 1_000_000:
            return None
        table = np.full(int(self.users[-1]) + 2, NOBODY, dtype=np.int64)
        table[self.users] = np.arange(len(self.users))
        return table

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
        """Uses of every tag code, by date."""
        return Grouped.of(self.tags.tags, len(self.tags.names))

    @cached_property
    def tag_uses(self) -> Int64Array:
        """The question of every use of a tag."""
        return np.repeat(np.arange(len(self.tags.indptr) - 1), np.diff(self.tags.indptr))

    @property
    def text_model(self) -> TextModel | None:
        """What makes vectors of questions, None where words have to do."""
        return None if self.meaning is None else self.meaning.model

    @cached_property
    def tag_index(self) -> dict[str, int]:
        """Codes of tags by name."""
        if self.grown is not None:
            return self.grown.tag_index
        return {name: code for code, name in enumerate(self.tags.names)}


@dataclass(frozen=True, eq=False)
class Growth:
    """How records grew.

    Attributes
    ----------
    base : Records
        Those made at once; what is sorted and indexed there stays good.
    room : Room
        Buffers behind the tables.
    step : int
        Number of this growth; only the latest may go on in the same room.
    memo : Memo
        Shared by all that follow each other.
    tag_index : dict
        See :attr:`Records.tag_index`.
    """

    base: Records
    room: Room
    step: int
    memo: Memo
    tag_index: dict[str, int]


def _sorted_tags(tags: QuestionTags) -> QuestionTags:
    order = sorted(range(len(tags.names)), key=tags.names.__getitem__)
    code = np.empty(len(order), dtype=np.int64)
    code[order] = np.arange(len(order))
    return QuestionTags([tags.names[k] for k in order], tags.indptr, code[tags.tags])


def codes_of(users: Int64Array, ids: Int64Array) -> Int64Array:
    """Positions of ids among ascending `users`, −1 for those that are not there."""
    if not len(users):
        return np.full(ids.shape, NOBODY, dtype=np.int64)
    place = np.minimum(np.searchsorted(users, ids), len(users) - 1)
    return np.where(users[place] == ids, place, NOBODY).astype(np.int64)


def first_tags(tags: QuestionTags, n: int) -> QuestionTags:
    """Tags of the first `n` questions."""
    indptr = tags.indptr[: n + 1]
    return QuestionTags(tags.names, indptr, tags.tags[: int(indptr[-1]) if len(indptr) else 0])


def _known(table: T, moment_ms: int, n_answers: int) -> T:
    """The rows known at a moment, of answers given before it."""
    part = table.take(slice(int(np.searchsorted(table.known_ms, moment_ms, side="right"))))
    return part.take(part.answer < n_answers)


@dataclass(frozen=True, eq=False)
class Grouped:
    """Positions by key: an index of the first part of a column, whose later part is scanned.

    Attributes
    ----------
    indptr, positions : int64 arrays
        Positions of key k are ``positions[indptr[k] : indptr[k + 1]]``, ascending.
    size : int
        Length of the part that is indexed.
    """

    indptr: Int64Array
    positions: Int64Array
    size: int

    @classmethod
    def of(cls, keys: Int64Array, n: int) -> Self:
        """Index a column of keys below `n`; −1 is left out."""
        indptr, positions = np.zeros(n + 1, dtype=np.int64), np.empty(len(keys), dtype=np.int64)
        group(keys, indptr, positions)
        return cls(indptr, positions[: indptr[-1]], len(keys))

    def find(self, wanted: Sequence[int], keys: Int64Array) -> Int64Array:
        """Return where keys stand, ascending, in a column longer, or shorter, by its last part."""
        inside = [key for key in wanted if key < len(self.indptr) - 1]
        parts = [self.positions[self.indptr[key] : self.indptr[key + 1]] for key in inside]
        if len(keys) > self.size:
            parts.append(self.size + np.flatnonzero(np.isin(keys[self.size :], wanted)))
        found = np.concatenate(parts) if parts else self.positions[:0]
        if len(parts) > 1:
            found.sort()
        return found[: int(np.searchsorted(found, len(keys)))]


@kernel
def group(keys: Int64Array, indptr: Int64Array, positions: Int64Array) -> None:
    """Sort positions by key, counting: two passes, whatever the number of keys."""
    for place in range(len(keys)):
        if keys[place] >= 0:
            indptr[keys[place] + 1] += 1
    for key in range(1, len(indptr)):
        indptr[key] += indptr[key - 1]
    free = indptr[:-1].copy()
    for place in range(len(keys)):
        if keys[place] >= 0:
            positions[free[keys[place]]] = place
            free[keys[place]] += 1
