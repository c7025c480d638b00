"""Who is active, and about such questions: nothing is learnt, and little beats it."""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float64Array
from atpgraph_qa.baselines.method import UserScore
from atpgraph_qa.baselines.popularity import fading
from atpgraph_qa.timeline.query import Query


class TopicActivity(UserScore):
    """Mean similarity of the questions somebody answered × activity fading over thirty days.

    Similarity is the cosine of the vectors of a text model, or BM25 where there is none.
    """

    name = "topic-activity"

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        history = query.history
        total = history.per_user(similarity(query)[history.answers.question])
        mean = np.maximum(total, 0.0) / np.maximum(history.n_given, 1.0)
        return np.asarray(mean * history.per_user(fading(query, 30.0)))


class SimilarActivity(UserScore):
    """Squares of the similarity of the questions somebody answered, halving every thirty days."""

    name = "similar-activity"

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        history = query.history
        each = np.maximum(similarity(query), 0.0)[history.answers.question] ** 2
        return history.per_user(each * fading(query, 30.0))


def similarity(query: Query) -> Float64Array:
    """Of every earlier question: by meaning if there are vectors, else by words."""
    near = query.closeness if query.history.records.meaning is not None else query.match
    return near.astype(np.float64)
