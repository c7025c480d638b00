"""Questions, their history at the moment they are asked, and who is ranked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal, Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import Float32Array, Float64Array, FloatArray, Int8Array, Int64Array
from atpgraph.util.checks import whole_number
from atpgraph.util.jit import kernel
from atpgraph_qa.data.site import DAY_MS, NOBODY
from atpgraph_qa.timeline.corpus import Terms
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import Records

_NEAREST = 30
Pool = Literal["own", "all", "new"]
"""The people who answered the question itself; everybody who answered anything before; or everybody
who asked or answered before and has given at most three answers."""
POOLS: tuple[Pool, ...] = ("own", "all", "new")
FEW_ANSWERS = 3


@dataclass(frozen=True)
class Question:
    """A question as its asker types it.

    Attributes
    ----------
    title, body : str
        Text; the body may be HTML, both may be empty.
    tags : sequence of str
        Tags; those nobody used before have no effect.
    asker : int
        User id, −1 for somebody unknown.
    at : datetime or None
        When it is asked (UTC unless it says otherwise); by default right after the last post.
    id : int
        Id on the site, −1 for a question that is not there.
    """

    title: str = ""
    body: str = ""
    tags: Sequence[str] = ()
    asker: int = NOBODY
    at: datetime | None = None
    id: int = -1

    def __post_init__(self) -> None:
        tags: object = self.tags
        if isinstance(tags, str):
            raise InputError(f"tags must be a list of names, not {tags!r}.")
        object.__setattr__(self, "tags", tuple(self.tags))
        whole_number("The asker of a question", self.asker, least=NOBODY, most=2**63 - 1)


@dataclass(frozen=True, eq=False)
class Query:
    """A question put to a history."""

    history: History  # what is known when it is asked
    asked_ms: int
    question: Question = Question()
    position: int = NOBODY  # of a question of the past among those of the site, −1 for a new one

    @classmethod
    def now(cls, history: History, question: Question) -> Self:
        """Ask a question at its own time, or right after the last post."""
        if question.at is None:
            return cls(history, history.last_ms, question)
        at = question.at if question.at.tzinfo else question.at.replace(tzinfo=UTC)
        return cls(history, int(at.timestamp() * 1000), question)

    @classmethod
    def again(cls, records: Records, position: int, history: History | None = None) -> Self:
        """Ask a past question again, given what was known then (or `history`)."""
        asked = int(records.questions.asked_ms[position])
        question = Question(
            records.titles[position],
            records.bodies[position] if position < len(records.bodies) else "",
            tuple(records.tags.of(position)),
            int(records.ids(records.questions.asker[position])),
            id=int(records.questions.id[position]),
        )
        known = History(records, asked) if history is None else history
        return cls(known, asked, question, position)

    @cached_property
    def asker(self) -> int:
        """Code of the asker, −1 if unknown."""
        asker = self.question.asker
        return int(self.history.codes([asker])[0]) if asker >= 0 else NOBODY

    @cached_property
    def tag_codes(self) -> Int64Array:
        """Codes of the known tags."""
        return self.history.tag_codes(self.question.tags)

    @cached_property
    def tagged(self) -> tuple[Int64Array, ...]:
        """For each known tag, the earlier questions that have it."""
        return tuple(self.history.tagged(code) for code in self.tag_codes.tolist())

    @cached_property
    def tag_shares(self) -> Float32Array:
        """For every earlier question, the rarity of the tags it shares."""
        n = self.history.n_questions
        share = np.zeros(n, dtype=np.float32)
        for questions in self.tagged:
            add_share(questions, np.float32(np.log1p(n / (1.0 + len(questions)))), share)
        return share

    @cached_property
    def terms(self) -> Terms:
        """Numbers of the words and how often each occurs."""
        question = self.question
        return self.history.corpus.query(question.title, question.body, question.tags)

    @cached_property
    def vector(self) -> Int8Array | None:
        """The vector of the question; None without a text model."""
        meaning, question = self.history.records.meaning, self.question
        if meaning is None:
            return None
        if self.position >= 0:
            return np.asarray(meaning.vectors[self.position])
        return meaning.vector(question.title, question.body)

    @cached_property
    def closeness(self) -> Float32Array:
        """Cosine of this and every earlier question; empty without a text model."""
        meaning = self.history.records.meaning
        if meaning is None or self.vector is None:
            return np.zeros(0, dtype=np.float32)
        return meaning.closeness(self.vector, self.history.n_questions)

    @cached_property
    def match(self) -> Float32Array:
        """BM25 of every earlier question."""
        history = self.history
        return history.corpus.bm25(
            self.terms,
            history.questions.present,
            history.mean_length,
            self.worth,
            history.word_weights,
        )

    @cached_property
    def worth(self) -> Float64Array:
        """The value of a match of each term."""
        return self.history.corpus.worth(self.terms, self.history.questions.present)

    @cached_property
    def nearest(self) -> Int64Array:
        """The questions nearest by words, best first; those without a common word are left out."""
        return largest(self.match, _NEAREST, 0.0)

    @property
    def best_match(self) -> float:
        """The largest BM25 of an earlier question, 0 if there is none."""
        return float(self.match[self.nearest[0]]) if len(self.nearest) else 0.0

    @cached_property
    def earlier_by_asker(self) -> Int64Array:
        """Positions of the asker's earlier questions."""
        if self.asker < 0:
            return np.zeros(0, dtype=np.int64)
        return self.history.asked_by(self.asker)


def active_users(query: Query, active_days: float | None = None) -> Int64Array:
    """Return ids of all who answered before (in the last `active_days`, if set), not the asker."""
    history = query.history
    since = 0 if active_days is None else history.last_ms - round(active_days * DAY_MS)
    return history.users[by_id(query, np.flatnonzero(history.last_answer_ms > max(since, 0)))]


def by_id(query: Query, codes: Int64Array) -> Int64Array:
    """Return some user codes in the order of ids, without the asker."""
    history = query.history
    codes = codes[codes != query.asker]
    return codes if history.records.in_order else codes[np.argsort(history.users[codes])]


def candidates(query: Query, pool: Pool, active_days: float | None = None) -> Int64Array:
    """Return ids of the people in a pool that does not depend on who answered the question."""
    if pool != "new":
        return active_users(query, active_days)
    history = query.history
    people = history.users[history.posted & (history.n_given <= FEW_ANSWERS)]
    return np.asarray(people[people != query.question.asker])


@kernel
def add_share(questions: Int64Array, worth: np.float32, share: Float32Array) -> None:
    """Add the value of a tag to the questions that have it."""
    for question in questions:
        share[question] += worth


def largest(values: FloatArray, count: int, above: float = -np.inf) -> Int64Array:
    """Return the positions of the largest values above a number, largest first.

    Among equal values, the first positions are chosen.
    """
    keep = values > above
    if 0 < 4 * count < len(values):
        # The largest of each of so many parts: at least `count` values reach the count-th of them.
        starts = np.arange(0, len(values), len(values) // (2 * count))
        tops = np.maximum.reduceat(values, starts)
        keep &= values >= np.partition(tops, len(tops) - count)[-count]
    places = np.flatnonzero(keep)
    return places[np.argsort(-values[places], kind="stable")[:count]]
