"""The interface of all baselines, and the simple ones that a practitioner tries first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np

from atpgraph.util.arrays import BoolArray, Float64Array, FloatArray, Int64Array
from atpgraph.util.random import generator
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Pool, Query

EVERY = 5
MOST_ANSWERS = 10


class Baseline(ABC):
    """A way to rank people; it learns nothing unless a subclass does.

    Only methods that learn use `pool`, which says whom they will rank.
    """

    name: ClassVar[str]  # its row in tables

    def __init__(self, pool: Pool = "all", random_state: int = 0) -> None:
        self.pool = pool
        self.random_state = random_state

    def fit(self, history: History) -> Self:
        """Learn from a history."""
        return self

    def update(self, history: History) -> Self:
        """Update with what has become known since; by default, learn again."""
        return self.fit(history)

    @abstractmethod
    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """Return a number for each candidate (user id); larger ones should be asked first."""


class UserScore(Baseline):
    """A method that scores every user of the question's history at once."""

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        return np.append(self.all_scores(query), 0.0)[query.history.codes(candidates)]

    @abstractmethod
    def all_scores(self, query: Query) -> Float64Array:
        """Return one number per user code of the query's history."""


Method = Baseline | Router


class Chance(Baseline):
    """Random numbers, the same for the same question and candidates."""

    name = "random"

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        seed = [self.random_state, abs(query.question.id), query.asked_ms]
        return generator(np.random.SeedSequence(seed)).random(len(candidates))


def _fading(query: Query) -> Float64Array:
    """Return the weight of every answer, halved for every 30 days between it and the question."""
    return np.exp2(-np.abs(query.asked_ms - query.history.answers.given_ms) / DAY_MS / 30.0)


def _answered(query: Query, of_question: FloatArray) -> Float64Array:
    """Return, for each answer, the given number of its question."""
    return of_question[query.history.answers.question].astype(np.float64)


def _similarity(query: Query) -> Float64Array:
    """Return the similarity of every earlier question, by vectors if possible, else by words."""
    near = query.closeness if query.history.records.meaning is not None else query.match
    return near.astype(np.float64)


def mean_votes(query: Query) -> Float64Array:
    """Return the mean votes of everybody's answers, shrunk to the mean of all."""
    history, votes = query.history, query.history.answer_votes
    usual = float(votes.mean()) if len(votes) else 0.0
    return (history.per_user(votes) + 3.0 * usual) / (history.n_given + 3.0)


def recent_activity(query: Query) -> Float64Array:
    """Count answers, with a half-life of thirty days."""
    return query.history.per_user(_fading(query))


def topic_activity(query: Query) -> Float64Array:
    """Return the mean similarity of the questions a person answered × recent activity."""
    total = query.history.per_user(_answered(query, _similarity(query)))
    mean = np.maximum(total, 0.0) / np.maximum(query.history.n_given, 1.0)
    return np.asarray(mean * recent_activity(query))


def similar_activity(query: Query) -> Float64Array:
    """Sum squared similarities of the questions answered, with a half-life of thirty days."""
    each = _answered(query, np.maximum(_similarity(query), 0.0) ** 2)
    return query.history.per_user(each * _fading(query))


def tag_experts(query: Query) -> Float64Array:
    """Count answers to questions with the same tags: accepted fully, others ¼; rare tags more."""
    worth = np.where(query.history.is_accepted, 1.0, 0.25)
    return query.history.per_user(_answered(query, query.tag_shares) * worth)


def _row(name: str, formula: Callable[[Query], Float64Array]) -> type[UserScore]:
    def all_scores(self: UserScore, query: Query) -> Float64Array:
        return formula(query)

    return type(name, (UserScore,), {"name": name, "all_scores": all_scores})


RecentActivity = _row("recent-activity", recent_activity)
TopicActivity = _row("topic-activity", topic_activity)
SIMPLE: tuple[type[Baseline], ...] = (
    _row("answers", lambda query: query.history.n_given),
    _row("accepted-answers", lambda query: query.history.n_won),
    _row("mean-votes", mean_votes),
    RecentActivity,
    TopicActivity,
    _row("similar-activity", similar_activity),
    _row("bm25", lambda query: query.history.per_user(_answered(query, query.match))),
    _row("tag-experts", tag_experts),
    Chance,
)


class RouterWithNewcomers(Router):
    """The router with every fifth place reserved for somebody with at most ten answers.

    Sorted by probability, people with few answers come last: there are thousands of them, and each
    is unlikely. A :class:`~atpgraph_qa.Policy` with a share of 0.2 and five suggestions does this.
    """

    name: ClassVar[str] = "router-newcomers"

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """Return minus the place of every candidate."""
        scores = super().score(query, candidates)
        if self.pool != "all":
            return scores
        given = np.append(query.history.n_given, 0.0)[query.history.codes(candidates)]
        return -open_places(scores, given <= MOST_ANSWERS, EVERY).astype(np.float64)


def open_places(scores: Float64Array, few: BoolArray, every: int) -> Int64Array:
    """Return places, from 1, by score; every `every`-th is for the best of `few` not yet placed.

    Equal scores keep their order.

    Examples
    --------
    >>> scores, few = np.array([9.0, 8.0, 7.0, 6.0, 5.0]), np.array([False] * 3 + [True] * 2)
    >>> open_places(scores, few, 2)
    array([1, 3, 5, 2, 4])
    """
    order = np.argsort(-scores, kind="stable")
    others, open_to = order[~few[order]], order[few[order]]
    natural = np.flatnonzero(few[order]) + 1
    number = np.arange(1, len(open_to) + 1)
    # The j-th of the few has a place at every · j at the latest, unless the others run out.
    wanted = np.minimum(natural, every * number)
    places = np.empty(len(scores), dtype=np.int64)
    places[open_to] = number + np.minimum(wanted - number, len(others))
    places[others] = np.setdiff1d(np.arange(1, len(scores) + 1), places[open_to])
    return places
