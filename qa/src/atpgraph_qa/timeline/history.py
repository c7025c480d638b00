"""The data of a site as of a moment; a routing method sees nothing else."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, FloatArray, Int64Array
from atpgraph_qa.data.site import NOBODY, Answers, Questions, QuestionTags
from atpgraph_qa.timeline.corpus import Corpus
from atpgraph_qa.timeline.records import FOREVER, Records, first_tags, monday
from atpgraph_qa.timeline.tables import AnswerTable, QuestionTable, extended

if TYPE_CHECKING:
    from atpgraph_qa.competition import Posts

T = TypeVar("T")
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class History:
    """A site as it was known just before a moment: a prefix of each table of its records.

    Users are codes, positions in `users`; per-user arrays have one entry for each of them.
    """

    records: Records  # everything, later events included: not for ranking
    now: int = FOREVER  # the moment; by default the end of time
    carried: Counts | None = field(default=None, repr=False)  # from an earlier history

    def __repr__(self) -> str:
        return f"History(questions={self.n_questions}, answers={self.n_answers})"

    @classmethod
    def latest(cls, records: Records) -> History:
        """Return the history right after the last post."""
        return cls(records, cls(records).last_ms)

    def later(self, moment_ms: int) -> History:
        """Return the history at a later moment, if nothing was posted until then.

        Acceptances and votes count from the end of their day, and statistics from Monday on.
        """
        made = History(self.records, moment_ms)
        return replace(made, carried=self.counts.until(made))

    def without(self, positions: npt.ArrayLike) -> History:
        """Return the history without these questions and what belongs to them."""
        return History(self.records.without(positions), self.now)

    @cached_property
    def n_questions(self) -> int:
        """Questions asked so far."""
        return int(np.searchsorted(self.records.questions.asked_ms, self.now))

    @cached_property
    def n_answers(self) -> int:
        """Answers given so far."""
        return int(np.searchsorted(self.records.answers.given_ms, self.now))

    @cached_property
    def n_acceptances(self) -> int:
        """Acceptances known so far."""
        return int(np.searchsorted(self.records.acceptances.known_ms, self.now, side="right"))

    @cached_property
    def n_votes(self) -> int:
        """Votes known so far."""
        return int(np.searchsorted(self.records.votes.known_ms, self.now, side="right"))

    def remember(self, kind: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, cached until something new is known; see :class:`.Memo`."""
        extent = self.n_questions, self.n_answers, self.n_acceptances, self.n_votes
        return self.records.memo.get(kind, (extent, key), make)

    @property
    def last_ms(self) -> int:
        """`now`, or the time after the last post if all of time is known."""
        if self.now < FOREVER:
            return self.now
        ends = self.questions.asked_ms[-1:], self.answers.given_ms[-1:]
        return 1 + int(np.concatenate(ends).max(initial=0))

    @property
    def users(self) -> Int64Array:
        """Ids of users."""
        return self.records.users

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.records.users)

    def codes(self, ids: npt.ArrayLike) -> Int64Array:
        """Return codes of users by id, −1 for unknown ones."""
        return self.records.codes(ids)

    @cached_property
    def questions(self) -> QuestionTable:
        """The questions asked so far."""
        return self.records.questions.take(slice(self.n_questions))

    @cached_property
    def answers(self) -> AnswerTable:
        """The answers given so far."""
        return self.records.answers.take(slice(self.n_answers))

    @property
    def corpus(self) -> Corpus:
        """Words of the questions."""
        return self.records.corpus

    @cached_property
    def week_ms(self) -> int:
        """The start of the week for which people are counted, or FOREVER."""
        return self.now if self.now == FOREVER else min(monday(self.now), self.now)

    @cached_property
    def mean_length(self) -> float:
        """Mean number of words of a question, as of the start of the week."""
        asked, present = self.questions.asked_ms, self.questions.present
        n = int(np.searchsorted(asked, self.week_ms)) or self.n_questions
        return self.corpus.mean_length(present[:n])

    @property
    def word_weights(self) -> Float32Array:
        """See :meth:`.Corpus.weights`; kept for the week."""
        present, mean = self.records.questions.present, self.mean_length
        get = self.records.memo.get
        return get("weights of words", self.week_ms, lambda: self.corpus.weights(present, mean), 1)

    @cached_property
    def counts(self) -> Counts:
        """Sums over all answers."""
        return self.carried or Counts.of(self)

    @property
    def is_accepted(self) -> BoolArray:
        """For every answer, whether it is known to be accepted."""
        return self.counts.is_accepted

    @property
    def best_answer(self) -> Int64Array:
        """For every question, its accepted answer, −1 for none."""
        return self.counts.best_answer

    @property
    def n_given(self) -> Float64Array:
        """Answers of every user."""
        return self.counts.n_given

    @property
    def n_won(self) -> Float64Array:
        """Accepted answers of every user."""
        return self.counts.n_won

    @property
    def last_answer_ms(self) -> Int64Array:
        """When every user last answered, 0 for never."""
        return self.counts.last_answer_ms

    @property
    def posted(self) -> BoolArray:
        """For every user, whether they have asked or answered so far."""
        found = self.n_given > 0
        found[self.questions.asker[self.questions.asker >= 0]] = True
        return found

    @cached_property
    def answer_votes(self) -> Float64Array:
        """Votes for every answer, up minus down, from dated votes only."""
        votes = self.records.votes.take(slice(self.n_votes))
        answers, values = votes.answer, votes.value
        keep = answers < self.n_answers
        counted = np.bincount(answers[keep], values[keep], minlength=self.n_answers)
        return counted.astype(np.float64)

    def answers_to(self, positions: Int64Array) -> Int64Array:
        """Return the answers given so far to some questions, by date."""
        return self.records.base.by_question.find(positions.tolist(), self.answers.question)

    def asked_by(self, code: int) -> Int64Array:
        """Return positions of the questions that a user asked so far, by date."""
        return self.records.base.by_asker.find([code], self.questions.asker)

    def answers_by(self, code: int) -> Int64Array:
        """Return the answers that a user gave so far, by date."""
        return self.records.base.by_owner.find([code], self.answers.owner)

    def answerers(self, position: int) -> Int64Array:
        """Return codes of the people who answered a question."""
        owner = self.answers.owner[self.answers_to(np.array([position]))]
        return np.unique(owner[owner >= 0])

    def answerer_counts(self, *, but_asker: bool = False) -> Int64Array:
        """Return the number of people who answered each question, the asker included or not."""
        owner, question = self.answers.owner, self.answers.question
        counts = owner >= 0
        if but_asker:
            counts &= owner != self.questions.asker[question]
        width = self.n_users + 1
        pairs = np.unique(question[counts] * width + owner[counts])
        return np.bincount(pairs // width, minlength=self.n_questions).astype(np.int64)

    def per_user(self, weights: FloatArray) -> Float64Array:
        """Return for every user the sum of a weight over their answers."""
        owner, weight = self.answers.owner + 1, weights.astype(np.float64, copy=False)
        return np.asarray(np.bincount(owner, weight, self.n_users + 1)[1:])  # the first is nobody

    @cached_property
    def tags(self) -> QuestionTags:
        """Tags of the questions asked so far."""
        return first_tags(self.records.tags, self.n_questions)

    def tag_codes(self, names: Sequence[str]) -> Int64Array:
        """Return the codes of known tags, in the order of their names."""
        index = self.records.tag_index
        return np.array([index[n] for n in sorted(set(names)) if n in index], dtype=np.int64)

    def tagged(self, code: int) -> Int64Array:
        """Return the questions asked so far that have a tag."""
        index, tags = self.records.base.by_tag, self.tags
        inside = code < len(index.indptr) - 1
        known = index.positions[index.indptr[code] : index.indptr[code + 1]] if inside else _NONE
        uses = index.size + np.flatnonzero(tags.tags[index.size :] == code)
        found = np.append(known, np.searchsorted(tags.indptr, uses, side="right") - 1)
        return found[: int(np.searchsorted(found, self.n_questions))]

    def posts(self) -> Posts:
        """Return the posts as a site has them, for the competition graph."""
        from atpgraph_qa.competition import Posts

        asked, given = self.questions, self.answers
        nothing = np.zeros(max(len(asked), len(given)), dtype=np.int64)
        unknown, scores = nothing[: len(asked)], nothing[: len(given)]
        asker, owner = self.records.ids(asked.asker), self.records.ids(given.owner)
        return Posts(
            Questions(asked.id, asked.asked_ms, asker, self.best_answer, unknown, unknown),
            Answers(scores, given.given_ms, given.question, owner, scores),
            self.tags,
        )


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts over all answers of a history; see the properties of :class:`History`."""

    is_accepted: BoolArray
    best_answer: Int64Array
    n_given: Float64Array
    n_won: Float64Array
    last_answer_ms: Int64Array
    n_acceptances: int = 0

    @classmethod
    def of(cls, history: History) -> Counts:
        """Count from nothing."""
        none = np.zeros(0)
        return cls(_NONE.astype(np.bool_), _NONE, none, none, _NONE).until(history)

    def until(self, history: History) -> Counts:
        """Return the counts updated to a later history."""
        start, n, m = len(self.is_accepted), history.n_users, history.n_answers
        owner, question = history.answers.owner, history.answers.question
        accepted = extended(self.is_accepted, np.zeros(m - start, dtype=np.bool_))
        more = history.n_questions - len(self.best_answer)
        best = extended(self.best_answer, np.full(more, NOBODY, dtype=np.int64))
        columns: Any = (self.n_given, self.n_won, self.last_answer_ms)
        given, won, last = (
            np.append(column, np.zeros(n - len(column), column.dtype)) for column in columns
        )
        late = start + np.flatnonzero(owner[start:] >= 0)
        np.add.at(given, owner[late], 1.0)
        last[owner[late]] = history.answers.given_ms[late]  # by date: the last one stays
        known = history.records.acceptances.answer[self.n_acceptances : history.n_acceptances]
        unseen = np.flatnonzero(known >= m)  # known, but of an answer that is not yet
        done = self.n_acceptances + int(unseen[0] if len(unseen) else len(known))
        fresh = known[known < m]
        fresh = fresh[~accepted[fresh]]
        if len(fresh):
            accepted, best = accepted.copy(), best.copy()  # earlier histories see the old ones
            accepted[fresh] = True
            best[question[fresh]] = fresh
            np.add.at(won, owner[fresh[owner[fresh] >= 0]], 1.0)
        return Counts(accepted, best, given, won, last, done)
