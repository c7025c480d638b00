"""What a practitioner tries first: counts, activity, and chance."""

from __future__ import annotations

import numpy as np

from atpgraph._random import generator
from atpgraph.cqa.routing.history import Question
from atpgraph.cqa.routing.method import Floats, Int64, Method, UserScore
from atpgraph.cqa.site import DAY_MS


class Chance(Method):
    """Random numbers, the same for the same question and candidates."""

    name = "random"

    def score(self, question: Question, candidates: Int64) -> Floats:
        """See :meth:`Method.score`."""
        seed = [self.random_state, abs(question.id), question.asked_ms]
        return generator(np.random.SeedSequence(seed)).random(len(candidates))


class NumberOfAnswers(UserScore):
    """How many answers somebody gave."""

    name = "answers"

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        return question.history.n_given


class NumberAccepted(UserScore):
    """How many accepted answers somebody gave."""

    name = "accepted-answers"

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        return question.history.n_won


class RecentActivity(UserScore):
    """Answers, each counting half as much after every thirty days."""

    name = "recent-activity"

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        return question.history.per_user(fading(question, 30.0))


class MeanVotes(UserScore):
    """Mean votes of somebody's answers, shrunk to the mean of all."""

    name = "mean-votes"

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        history = question.history
        votes = history.answer_votes
        usual = float(votes.mean()) if len(votes) else 0.0
        return (history.per_user(votes) + 3.0 * usual) / (history.n_given + 3.0)


def fading(question: Question, half_life_days: float) -> Floats:
    """Weight of every answer: a half for every half-life between it and the question."""
    away = np.abs(question.asked_ms - question.history.answer_ms) / DAY_MS
    return np.exp2(-away / half_life_days)
