"""What a practitioner tries first: one formula each, nothing is learned, and little beats it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from atpgraph.util.arrays import Float64Array, FloatArray, Int64Array
from atpgraph.util.random import generator
from atpgraph_qa.baselines.method import Baseline, UserScore
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.query import Query


class Chance(Baseline):
    """Random numbers, the same for the same question and candidates."""

    name = "random"

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Baseline.score`."""
        seed = [self.random_state, abs(query.question.id), query.asked_ms]
        return generator(np.random.SeedSequence(seed)).random(len(candidates))


def _fading(query: Query) -> Float64Array:
    """Return the weight of every answer: a half for every 30 days between it and the question."""
    return np.exp2(-np.abs(query.asked_ms - query.history.answers.given_ms) / DAY_MS / 30.0)


def _answered(query: Query, of_question: FloatArray) -> Float64Array:
    """Return a number of every question by answer."""
    return of_question[query.history.answers.question].astype(np.float64)


def _similarity(query: Query) -> Float64Array:
    """Return that of every earlier question: by meaning if there are vectors, else by words."""
    near = query.closeness if query.history.records.meaning is not None else query.match
    return near.astype(np.float64)


def mean_votes(query: Query) -> Float64Array:
    """Return the mean votes of everybody's answers, shrunk to the mean of all."""
    history, votes = query.history, query.history.answer_votes
    usual = float(votes.mean()) if len(votes) else 0.0
    return (history.per_user(votes) + 3.0 * usual) / (history.n_given + 3.0)


def recent_activity(query: Query) -> Float64Array:
    """Count answers, each half as much after every thirty days."""
    return query.history.per_user(_fading(query))


def topic_activity(query: Query) -> Float64Array:
    """Return the mean similarity of the questions somebody answered × recent activity."""
    total = query.history.per_user(_answered(query, _similarity(query)))
    mean = np.maximum(total, 0.0) / np.maximum(query.history.n_given, 1.0)
    return np.asarray(mean * recent_activity(query))


def similar_activity(query: Query) -> Float64Array:
    """Sum squares of the similarity of the questions answered, halving every thirty days."""
    each = _answered(query, np.maximum(_similarity(query), 0.0) ** 2)
    return query.history.per_user(each * _fading(query))


def tag_experts(query: Query) -> Float64Array:
    """Count accepted answers, others a quarter, to questions with the same tags, rare ones more."""
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
