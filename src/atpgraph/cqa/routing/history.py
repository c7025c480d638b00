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

from atpgraph.cqa.routing.dates import FOREVER, acceptances, ballots, dated_votes, in_order
from atpgraph.cqa.routing.text import Corpus
from atpgraph.cqa.site import NOBODY, Answers, Int64, Questions, Site

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
        """BM25 score of every earlier question."""
        return self.history.corpus.bm25(self.terms, self.history.present)


@dataclass(frozen=True, eq=False)
class Records:
    """Every event of a site; users are codes, positions in `users`.

    Attributes
    ----------
    users : int64 array
        Ids of everybody who asked or answered, ascending.
    questions, answers : Questions, Answers
        As in the site, by date; askers and owners are user ids.
    asker, owner : int64 arrays
        Codes of askers and owners, −1 if unknown.
    accepted_ms, accepted_answer : int64 arrays
        Acceptances by the moment from which they are known.
    vote_ms, vote_answer, vote_value : int64 arrays
        Votes for answers (+1 and −1) in the same way.
    present : boolean array
        False for questions that nobody may see, with all that belongs to them.
    """

    users: Int64
    questions: Questions
    answers: Answers
    asker: Int64
    owner: Int64
    accepted_ms: Int64
    accepted_answer: Int64
    vote_ms: Int64
    vote_answer: Int64
    vote_value: Int64
    corpus: Corpus
    tag_indptr: Int64
    tag_codes: Int64
    tag_names: list[str]
    titles: Sequence[str]
    bodies: Sequence[str]
    present: npt.NDArray[np.bool_]
    cache: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site) -> Records:
        """Collect the events of a site."""
        questions, answers = in_order(site.questions, site.answers)
        people = np.unique(np.concatenate([questions.asker, answers.owner]))
        people = people[people >= 0]
        votes = dated_votes(site, answers)
        accepted_ms, accepted_answer = acceptances(questions, answers, votes)
        vote_ms, vote_answer, vote_value = ballots(votes)
        titles, bodies = site.titles(), site.question_bodies()
        tags = site.tags
        names = [tags.of(q) for q in range(len(questions))]
        return cls(
            users=people,
            questions=questions,
            answers=answers,
            asker=_codes(people, questions.asker),
            owner=_codes(people, answers.owner),
            accepted_ms=accepted_ms,
            accepted_answer=accepted_answer,
            vote_ms=vote_ms,
            vote_answer=vote_answer,
            vote_value=vote_value,
            corpus=Corpus.of(titles, bodies, names),
            tag_indptr=tags.indptr,
            tag_codes=tags.tags,
            tag_names=tags.names,
            titles=titles,
            bodies=bodies,
            present=np.ones(len(questions), dtype=np.bool_),
        )

    def without(self, positions: npt.ArrayLike) -> Records:
        """The same events, but for these questions and whatever belongs to them."""
        present = self.present.copy()
        present[np.asarray(positions, dtype=np.int64)] = False
        seen = present[self.answers.question]
        owner = np.where(seen, self.owner, NOBODY)
        taken, voted = seen[self.accepted_answer], seen[self.vote_answer]
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Records(
            **{
                **fields,
                "owner": owner,
                "asker": np.where(present, self.asker, NOBODY),
                "accepted_ms": self.accepted_ms[taken],
                "accepted_answer": self.accepted_answer[taken],
                "vote_ms": self.vote_ms[voted],
                "vote_answer": self.vote_answer[voted],
                "vote_value": self.vote_value[voted],
                "present": present,
                "cache": {},
            }
        )

    def until(self, moment_ms: int) -> Records:
        """The site as a dump made at that moment would show it; for tuning before a split."""
        n = int(np.searchsorted(self.questions.created_ms, moment_ms))
        m = int(np.searchsorted(self.answers.created_ms, moment_ms))
        taken = int(np.searchsorted(self.accepted_ms, moment_ms, side="right"))
        voted = int(np.searchsorted(self.vote_ms, moment_ms, side="right"))
        best = np.full(n, NOBODY, dtype=np.int64)
        best[self.answers.question[self.accepted_answer[:taken]]] = self.accepted_answer[:taken]
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        asked = {name: getattr(self.questions, name)[:n] for name in Questions.__dataclass_fields__}
        given = {name: getattr(self.answers, name)[:m] for name in Answers.__dataclass_fields__}
        return Records(
            **{
                **fields,
                "questions": Questions(**{**asked, "accepted": best}),
                "answers": Answers(**given),
                "asker": self.asker[:n],
                "owner": self.owner[:m],
                "accepted_ms": self.accepted_ms[:taken],
                "accepted_answer": self.accepted_answer[:taken],
                "vote_ms": self.vote_ms[:voted],
                "vote_answer": self.vote_answer[:voted],
                "vote_value": self.vote_value[:voted],
                "corpus": self.corpus.first(n),
                "tag_indptr": self.tag_indptr[: n + 1],
                "tag_codes": self.tag_codes[: int(self.tag_indptr[n])],
                "present": self.present[:n],
                "cache": {},
            }
        )

    @cached_property
    def by_question(self) -> tuple[Int64, Int64]:
        """Answers of every question, in compressed rows."""
        order = np.argsort(self.answers.question, kind="stable")
        counts = np.bincount(self.answers.question, minlength=len(self.questions))
        indptr = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=indptr[1:])
        return indptr, order

    @cached_property
    def tag_index(self) -> dict[str, int]:
        """Codes of tags by name."""
        return {name: code for code, name in enumerate(self.tag_names)}

    def at(self, moment_ms: int | None = None) -> History:
        """What was known just before a moment; everything if there is none."""
        return History(self, FOREVER if moment_ms is None else int(moment_ms))

    def question(self, position: int, history: History | None = None) -> Question:
        """A question of the site, with what was known when it was asked."""
        asked = int(self.questions.created_ms[position])
        tags = self.tag_codes[slice(*self.tag_indptr[position : position + 2])]
        return Question(
            history if history is not None else self.at(asked),
            asked,
            int(self.questions.asker[position]),
            self.titles[position],
            self.bodies[position],
            tuple(self.tag_names[tag] for tag in tags),
            int(self.questions.id[position]),
        )


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

    def answerers(self, position: int) -> Int64:
        """Codes of the people who answered a question."""
        indptr, answers = self._records.by_question
        found = answers[indptr[position] : indptr[position + 1]]
        owner = self._records.owner[found[found < self.n_answers]]
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
        return _codes(self.users, np.asarray(ids, dtype=np.int64))

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
        # Nobody, −1, is counted in a place of their own, which is cheaper than leaving them out.
        counted = np.bincount(self._owner_place, weights, minlength=self.n_users + 1)
        return counted[1:].astype(np.float64)

    @cached_property
    def _owner_place(self) -> Int64:
        return self.answer_owner + 1

    @cached_property
    def n_given(self) -> Floats:
        """Answers of every user."""
        return self.per_user()

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


class SiteView(Site):
    """Questions and answers that look like a site."""

    def __init__(self, questions: Questions, answers: Answers) -> None:
        self.__dict__.update(questions=questions, answers=answers)

    def __repr__(self) -> str:
        return f"SiteView(questions={len(self.questions)}, answers={len(self.answers)})"


def _codes(people: Int64, ids: Int64) -> Int64:
    if not len(people):
        return np.full(ids.shape, NOBODY, dtype=np.int64)
    place = np.minimum(np.searchsorted(people, ids), len(people) - 1)
    return np.where(people[place] == ids, place, NOBODY).astype(np.int64)
