"""Topics of questions, by latent Dirichlet allocation."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.util.arrays import Float64Array
from atpgraph_qa.baselines.words import known_counts, term_row
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query


class TopicSpace:
    """Topics learnt from a history, and those of every question asked since.

    Parameters
    ----------
    history : History
    n_topics, random_state : int
    """

    def __init__(self, history: History, n_topics: int, random_state: int) -> None:
        self._width = history.corpus.n_words(history.n_questions)
        self._model = _fit_topics(history, n_topics, random_state)
        self._rows = np.zeros((0, n_topics))

    @classmethod
    def of(cls, history: History, n_topics: int, random_state: int) -> TopicSpace:
        """The topics of a history, learnt once for all methods that ask for them."""
        return history.remember(
            SPACES, (n_topics, random_state), lambda: cls(history, n_topics, random_state)
        )

    def of_questions(self, history: History) -> Float64Array:
        """A row for every question known so far; no columns where there are no words."""
        if self._model is None:
            return np.zeros((history.n_questions, 0))
        done = len(self._rows)
        if history.n_questions > done:
            fresh = self._model.transform(known_counts(history, self._width)[done:])
            self._rows = np.vstack([self._rows, fresh])
        return self._rows[: history.n_questions]

    def of_question(self, query: Query) -> Float64Array | None:
        """Topics of a question; None for one without known words."""
        row = term_row(query, self._width)
        model = self._model
        if row is None or model is None:
            return None
        memo = query.history.records.memo
        return memo.get(TOPICS, (self, query), lambda: np.asarray(model.transform(row)[0]))


SPACES: Shelf[TopicSpace] = Shelf("topic spaces", keep=2)
TOPICS: Shelf[Float64Array] = Shelf("topics of a question", keep=1)


def _fit_topics(history: History, n_topics: int, random_state: int) -> Any:
    """Learn topics from the questions so far; return None where there are no words."""
    from sklearn.decomposition import LatentDirichletAllocation

    counts = known_counts(history)
    counts = counts[np.diff(counts.indptr) > 0]
    if not counts.shape[0]:
        return None
    model = LatentDirichletAllocation(
        n_topics, learning_method="online", max_iter=5, batch_size=512, random_state=random_state
    )
    return model.fit(counts)
