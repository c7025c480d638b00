"""People whose answered questions read like the new one: TF-IDF and topics."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse

from atpgraph.util.arrays import Float64Array
from atpgraph_qa.baselines.method import UserScore
from atpgraph_qa.baselines.topics import TopicSpace
from atpgraph_qa.baselines.words import known_counts, term_row
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query

PROFILES: Shelf[Any] = Shelf("profiles by text", keep=64)


class Profile(UserScore):
    """Cosine of the question's vector and the sum of the vectors of the questions answered."""

    _profiles: Any
    _width: int
    _learnt_from: int

    def fit(self, history: History) -> Self:
        """Learn vectors of texts, then the profile of every user."""
        self._width = history.corpus.n_words(history.n_questions)
        self._learnt_from = history.n_questions
        self._learn(history)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Profiles from all answers known; the vectors of texts stay as they were learnt."""
        key = self.name, self._learnt_from, self.random_state
        self._profiles = history.remember(PROFILES, key, lambda: self._profiles_of(history))
        return self

    def _profiles_of(self, history: History) -> Any:
        from sklearn.preprocessing import normalize

        vectors = self._vectors(history)
        owner, question = history.answers.owner, history.answers.question
        known = owner >= 0
        given = sparse.csr_matrix(
            (np.ones(int(known.sum())), (owner[known], question[known])),
            shape=(history.n_users, history.n_questions),
        )
        profiles = given @ vectors
        if not sparse.issparse(profiles):
            profiles = np.asarray(profiles)
        return normalize(profiles) if profiles.shape[1] else profiles

    def all_scores(self, query: Query) -> Float64Array:
        """See :meth:`UserScore.all_scores`."""
        vector = self._vector(query)
        if vector is None or not self._profiles.shape[1]:
            return np.zeros(query.history.n_users)
        values = self._profiles @ vector
        if sparse.issparse(values):
            values = values.toarray()
        return np.asarray(values).reshape(-1)

    @abstractmethod
    def _learn(self, history: History) -> None:
        """What has to be learnt from the texts known so far."""

    @abstractmethod
    def _vectors(self, history: History) -> Any:
        """A row for every question known so far."""

    @abstractmethod
    def _vector(self, query: Query) -> Any:
        """The question as a column, None for one without known words."""


class BagOfWords(Profile):
    """Words weighted by TF-IDF."""

    name = "bow"

    def _learn(self, history: History) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        self._weights = None
        if self._width:
            self._weights = TfidfTransformer(sublinear_tf=True).fit(
                known_counts(history, self._width)
            )

    def _vectors(self, history: History) -> Any:
        counts = known_counts(history, self._width)
        return counts if self._weights is None else self._weights.transform(counts)

    def _vector(self, query: Query) -> Any:
        row = term_row(query, self._width)
        return None if row is None or self._weights is None else self._weights.transform(row).T


class Topics(Profile):
    """Topics by latent Dirichlet allocation (online variational Bayes)."""

    name = "lda"
    n_topics = 30

    def _learn(self, history: History) -> None:
        self._topics = TopicSpace.of(history, self.n_topics, self.random_state)

    def _vectors(self, history: History) -> Any:
        return self._topics.of_questions(history)

    def _vector(self, query: Query) -> Any:
        vector = self._topics.of_question(query)
        return None if vector is None else vector / np.linalg.norm(vector)
