"""What a practitioner tries first: counts, activity, and chance."""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.random import generator
from atpgraph_qa.baselines.method import Baseline, UserScore
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.query import Query


class Chance(Baseline):
    """Random numbers, the same for the same question and candidates."""

    name = "random"

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        """See :meth:`Method.score`."""
        seed = [self.random_state, abs(query.question.id), query.asked_ms]
        return generator(np.random.SeedSequence(seed)).random(len(candidates))


class NumberOfAnswers(UserScore):
    """How many answers somebody gave."""

    name = "answers"

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        return query.history.n_given


class NumberAccepted(UserScore):
    """How many accepted answers somebody gave."""

    name = "accepted-answers"

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        return query.history.n_won


class RecentActivity(UserScore):
    """Answers, each counting half as much after every thirty days."""

    name = "recent-activity"

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        return query.history.per_user(fading(query, 30.0))


class MeanVotes(UserScore):
    """Mean votes of somebody's answers, shrunk to the mean of all."""

    name = "mean-votes"

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        history = query.history
        votes = history.answer_votes
        usual = float(votes.mean()) if len(votes) else 0.0
        return (history.per_user(votes) + 3.0 * usual) / (history.n_given + 3.0)


def fading(query: Query, half_life_days: float) -> Float64Array:
    """Weight of every answer: a half for every half-life between it and the question."""
    away = np.abs(query.asked_ms - query.history.answers.given_ms) / DAY_MS
    return np.exp2(-away / half_life_days)
