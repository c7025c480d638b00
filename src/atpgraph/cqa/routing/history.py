"""What was known of a site at a moment: the only thing a routing method gets to see.

:class:`Records` holds all events of a site in the order in which they became known; a
:class:`History` is a prefix of each of these lists. Votes, acceptances among them, carry a date
without a time of day, so they count from the end of that day. Where the dump has no votes, an
acceptance counts as known thirty days after its answer, and scores of answers are not used at all:
those in the dump are of the day of the dump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.cqa.routing._sums import few_matching_answers, matching_answers, sum_by_owner
from atpgraph.cqa.routing.dates import FOREVER
from atpgraph.cqa.routing.records import Records, codes_of
from atpgraph.cqa.routing.text import Corpus
from atpgraph.cqa.site import NOBODY, Answers, Int64, Questions, Site

__all__ = ["Floats", "History", "Question", "Records", "SiteView"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Question:
    """A question to route.

    Attributes
    ----------
    history : History
        What is known when it is asked.
    asked_ms : int
        When it is asked.
    asker : int
        User id, −1 for somebody unknown.
    title, body : str
        Text; the body may be HTML, both may be empty.
    tags : tuple of str
        Tags; those nobody used before have no effect.
    id : int
        Id on the site, −1 for a question that is not there.
    cache : dict
        A place for what several methods need of this question.
    """

    history: History
    asked_ms: int
    asker: int = NOBODY
    title: str = ""
    body: str = ""
    tags: tuple[str, ...] = ()
    id: int = -1
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def terms(self) -> tuple[Int64, Floats]:
        """Numbers of the known words and how often each occurs."""
        return self.history.corpus.query(self.title, self.body, self.tags)

    @cached_property
    def match(self) -> Floats:
        """BM25 of every earlier question."""
        return self.history.corpus.bm25(self.terms, self.history.present)

    @cached_property
    def best_match(self) -> float:
        """The largest of them, 0 if there is none."""
        return float(self.match.max(initial=0.0))


class History:
    """A site as it was known just before `now`.

    Users are codes, positions in `users`; per-user arrays have one entry for each of them.
    """

    def __init__(self, records: Records, now: int) -> None:
        self._records = records
        self.now = now
        self.n_questions = int(np.searchsorted(records.questions.created_ms, now))
        self.n_answers = int(np.searchsorted(records.answers.created_ms, now))
        self._n_accepted = int(np.searchsorted(records.accepted_ms, now, side="right"))
        self._n_votes = int(np.searchsorted(records.vote_ms, now, side="right"))

    def __repr__(self) -> str:
        return f"History(questions={self.n_questions}, answers={self.n_answers})"

    def same_as(self, other: History) -> bool:
        """Whether the other one is of the same site and moment."""
        return self._records is other._records and self.now == other.now

    @property
    def records(self) -> Records:
        """All events; for storing a history, not for ranking."""
        return self._records

    @property
    def cache(self) -> dict[Any, Any]:
        """A place for results that several methods need; keys hold `now` and all settings."""
        return self._records.cache

    def at(self, moment_ms: int) -> History:
        """What was known at an earlier moment."""
        return History(self._records, min(int(moment_ms), self.now))

    def ask(self, position: int, known: History | None = None) -> Question:
        """A question of the past again, with what was known when it was asked (or `known`)."""
        return self._records.question(position, known)

    def answers_to(self, positions: Int64) -> Int64:
        """The answers given so far to some questions."""
        indptr, answers = self._records.by_question
        width = indptr[positions + 1] - indptr[positions]
        first = np.repeat(indptr[positions] - (np.cumsum(width) - width), width)
        found = answers[first + np.arange(len(first))]
        return found[found < self.n_answers]

    def answers_by(self, code: int) -> Int64:
        """The answers that a user gave so far, by date."""
        indptr, answers = self._records.by_owner
        found = answers[indptr[code] : indptr[code + 1]]
        return found[: int(np.searchsorted(found, self.n_answers))]

    def tagged(self, code: int) -> Int64:
        """The questions asked so far that have a tag."""
        indptr, questions = self._records.by_tag
        found = questions[indptr[code] : indptr[code + 1]]
        return found[: int(np.searchsorted(found, self.n_questions))]

    def answerers(self, position: int) -> Int64:
        """Codes of the people who answered a question."""
        owner = self._records.owner[self.answers_to(np.array([position]))]
        return np.unique(owner[owner >= 0])

    def without(self, positions: npt.ArrayLike) -> History:
        """The same, but for these questions and what belongs to them."""
        return History(self._records.without(positions), self.now)

    @property
    def last_ms(self) -> int:
        """`now`, or the time of the last post if all of time is known."""
        if self.now < FOREVER:
            return self.now
        times = [0]
        if self.n_questions:
            times.append(int(self._records.questions.created_ms[self.n_questions - 1]))
        if self.n_answers:
            times.append(int(self._records.answers.created_ms[self.n_answers - 1]))
        return max(times) + 1

    @property
    def users(self) -> Int64:
        """Ids of users, ascending."""
        return self._records.users

    @property
    def n_users(self) -> int:
        """Number of codes."""
        return len(self._records.users)

    def codes(self, ids: npt.ArrayLike) -> Int64:
        """Codes of users by id, −1 for those unknown."""
        wanted = np.asarray(ids, dtype=np.int64)
        table = self._records.code_table
        if table is None:
            return codes_of(self.users, wanted)
        there = (wanted >= 0) & (wanted < len(table) - 1)
        return table[np.where(there, wanted, -1)]

    @property
    def corpus(self) -> Corpus:
        """Words of the questions."""
        return self._records.corpus

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """For every question asked so far, whether it may be seen."""
        return self._records.present[: self.n_questions]

    @property
    def question_id(self) -> Int64:
        """Ids of the questions asked so far."""
        return self._records.questions.id[: self.n_questions]

    @property
    def question_ms(self) -> Int64:
        """When each was asked."""
        return self._records.questions.created_ms[: self.n_questions]

    @property
    def asker(self) -> Int64:
        """Code of each asker."""
        return self._records.asker[: self.n_questions]

    def title(self, position: int) -> str:
        """Title of a question."""
        return self._records.titles[position]

    @property
    def answer_question(self) -> Int64:
        """Question of each answer given so far."""
        return self._records.answers.question[: self.n_answers]

    @property
    def answer_owner(self) -> Int64:
        """Code of the owner of each answer, −1 if unknown (or not to be seen)."""
        return self._records.owner[: self.n_answers]

    @property
    def answer_ms(self) -> Int64:
        """When each was given."""
        return self._records.answers.created_ms[: self.n_answers]

    @cached_property
    def is_accepted(self) -> npt.NDArray[np.bool_]:
        """For every answer, whether it is known to be accepted."""
        result = np.zeros(self.n_answers, dtype=np.bool_)
        taken = self._records.accepted_answer[: self._n_accepted]
        result[taken[taken < self.n_answers]] = True
        return result

    @cached_property
    def best_answer(self) -> Int64:
        """For every question, its accepted answer, −1 for none."""
        result = np.full(self.n_questions, NOBODY, dtype=np.int64)
        taken = np.flatnonzero(self.is_accepted)
        result[self.answer_question[taken]] = taken
        return result

    @cached_property
    def answer_votes(self) -> Floats:
        """Votes for every answer, up minus down, as far as dated votes tell."""
        answers = self._records.vote_answer[: self._n_votes]
        values = self._records.vote_value[: self._n_votes]
        keep = answers < self.n_answers
        counted = np.bincount(answers[keep], values[keep], minlength=self.n_answers)
        return counted.astype(np.float64)

    @property
    def has_votes(self) -> bool:
        """Whether the site has dated votes for answers."""
        return len(self._records.vote_ms) > 0

    def per_user(self, weights: npt.NDArray[np.floating[Any]] | None = None) -> Floats:
        """Sum over every user's answers of a weight each (1 by default)."""
        total = np.zeros(self.n_users)
        if weights is None:
            weights = np.ones(self.n_answers)
        sum_by_owner(self.answer_owner, weights.astype(np.float64, copy=False), total)
        return total

    @cached_property
    def by_person(self) -> ByPerson:
        """The answers given so far, person by person."""
        indptr, answers = self._records.by_owner
        if self.n_answers < len(self._records.answers):
            known = answers < self.n_answers
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            answers = answers[known]
        return ByPerson(
            indptr,
            answers,
            self.answer_question[answers].astype(np.int32),
            self.is_accepted[answers],
        )

    def matching(self, weight: Floats, fresh: Floats) -> Floats:
        """Sums over every user's answers of the weight of the question each is for.

        Parameters
        ----------
        weight : float64 array
            One entry per question, none negative.
        fresh : float64 array
            A factor per answer, in the order of :attr:`by_person`.

        Returns
        -------
        float64 array of shape (4, users)
            Over all answers; over accepted ones; over all with the factor; the largest weight.
        """
        mine, result = self.by_person, np.zeros((4, self.n_users))
        matching_answers(mine.indptr, mine.question, mine.accepted, fresh, weight, result)
        return result

    def few_matching(self, weight: Floats, fresh: Floats) -> Floats:
        """As :meth:`matching`, quicker where most weights are 0; cubes instead of the largest."""
        result = np.zeros((4, self.n_users))
        few_matching_answers(
            self.answer_owner,
            self.answer_question,
            self.is_accepted,
            self.by_person.place(self.n_answers),
            fresh,
            weight,
            result,
        )
        return result

    def over_answers(self, positions: Int64, weight: Floats) -> Floats:
        """Sums over every user's answers to some questions of the weight of the question."""
        answers = self.answers_to(positions)
        owner, each = self.answer_owner[answers], weight[self.answer_question[answers]]
        known = owner >= 0
        total = np.bincount(owner[known], each[known], minlength=self.n_users)
        return np.asarray(total, dtype=np.float64)

    @cached_property
    def n_given(self) -> Floats:
        """Answers of every user."""
        return self.per_user()

    @cached_property
    def log_given(self) -> Floats:
        """log(answers + 5) of every user."""
        return np.log(self.n_given + 5.0)

    @cached_property
    def n_won(self) -> Floats:
        """Accepted answers of every user."""
        return self.per_user(self.is_accepted.astype(np.float64))

    @cached_property
    def last_answer_ms(self) -> Int64:
        """When every user last answered, 0 for never."""
        result = np.zeros(self.n_users, dtype=np.int64)
        known = self.answer_owner >= 0
        result[self.answer_owner[known]] = self.answer_ms[known]  # by date: the last one stays
        return result

    def tags_of(self, position: int) -> Int64:
        """Codes of the tags of a question."""
        return self._records.tag_codes[slice(*self._records.tag_indptr[position : position + 2])]

    def tag_codes(self, names: Sequence[str]) -> Int64:
        """Codes of tags by name; unknown names are left out."""
        index = self._records.tag_index
        return np.array(sorted({index[n] for n in names if n in index}), dtype=np.int64)

    @property
    def tag_names(self) -> list[str]:
        """Names of tags by code."""
        return self._records.tag_names

    @property
    def tag_rows(self) -> tuple[Int64, Int64]:
        """Tags of the questions asked so far, in compressed rows."""
        indptr = self._records.tag_indptr[: self.n_questions + 1]
        return indptr, self._records.tag_codes[: int(indptr[-1]) if len(indptr) else 0]

    def site(self) -> SiteView:
        """As a site, for :func:`~atpgraph.cqa.competition.competition_graph`."""
        records = self._records
        n, m = self.n_questions, self.n_answers

        def ids(codes: Int64) -> Int64:
            return np.where(codes >= 0, records.users[np.maximum(codes, 0)], NOBODY)

        nothing = np.zeros(n, dtype=np.int64)
        questions = Questions(
            self.question_id, self.question_ms, ids(self.asker), self.best_answer, nothing, nothing
        )
        answers = Answers(
            records.answers.id[:m],
            self.answer_ms,
            self.answer_question,
            ids(self.answer_owner),
            np.zeros(m, dtype=np.int64),
        )
        return SiteView(questions, answers)


@dataclass(frozen=True, eq=False)
class ByPerson:
    """Answers person by person: those of user code p are ``indptr[p] : indptr[p + 1]``."""

    indptr: Int64
    answer: Int64
    question: npt.NDArray[np.int32]
    accepted: npt.NDArray[np.bool_]

    def place(self, n: int) -> Int64:
        """Where each of `n` answers stands in this order."""
        if "_place" not in self.__dict__:
            place = np.full(n, NOBODY, dtype=np.int64)
            place[self.answer] = np.arange(len(self.answer))
            self.__dict__["_place"] = place
        kept: Int64 = self.__dict__["_place"]
        return kept


class SiteView(Site):
    """Questions and answers that look like a site."""

    def __init__(self, questions: Questions, answers: Answers) -> None:
        self.__dict__.update(questions=questions, answers=answers)

    def __repr__(self) -> str:
        return f"SiteView(questions={len(self.questions)}, answers={len(self.answers)})"
