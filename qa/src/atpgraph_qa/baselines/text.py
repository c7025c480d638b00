"""Ranking by text: people whose answered questions read like the new one.

Three spaces of vectors (TF-IDF, LDA topics, Doc2Vec) are learned from the questions of a history
and hold vectors of every question asked since; the words stay those of that history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self
from zlib import crc32

import numpy as np
from scipy import sparse

from atpgraph.errors import MissingDependencyError
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.simple import Baseline, UserScore
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query

_EPOCHS = 20  # of Doc2Vec
_DAMPING, _ROUNDS = 0.85, 30  # of PageRank


class TextSpace(ABC):
    """Vectors of the questions of a history, and of every question asked since."""

    size: ClassVar[int] = 0

    def __init__(self, history: History, random_state: int) -> None:
        self.width = history.corpus.n_words(history.n_questions)
        self.rows = np.zeros((0, self.size))
        self._last: tuple[Query | None, Float64Array | None] = None, None
        self.model = self.learn(history, random_state)

    @classmethod
    def of(cls, history: History, random_state: int) -> Self:
        """Return the space of a history, learned once for all methods that ask for it."""
        key = cls, random_state
        return history.remember("texts", key, lambda: cls(history, random_state))

    @abstractmethod
    def learn(self, history: History, random_state: int) -> Any:
        """Return a model of the texts known so far; None where there are no words."""

    @abstractmethod
    def vectors(self, counts: Any) -> Any:
        """Return a row for every row of counts of words."""

    def of_questions(self, history: History) -> Any:
        """Return a row for every question known so far; no columns where there are no words."""
        if self.model is None:
            return np.zeros((history.n_questions, 0))
        if history.n_questions > len(self.rows):
            fresh = self.vectors(self.counts(history)[len(self.rows) :])
            self.rows = np.vstack([self.rows, fresh])
        return self.rows[: history.n_questions]

    def of_question(self, query: Query) -> Float64Array | None:
        """Return the vector of a question; None for one without known words."""
        if self._last[0] is not query:
            self._last = query, self._vector(query)
        return self._last[1]

    def _vector(self, query: Query) -> Float64Array | None:
        codes, counts = query.terms
        codes, counts = codes[codes < self.width], counts[codes < self.width]
        if not len(codes) or self.model is None:
            return None
        row = sparse.csr_matrix((counts, codes, [0, len(codes)]), shape=(1, self.width))
        return np.asarray(self.vectors(row)[0])

    def counts(self, history: History) -> Any:
        """Return the words of the questions so far in sparse rows; hidden questions have none."""
        counts = history.corpus.rows[: history.n_questions, : self.width]
        present = history.questions.present
        if present.all():
            return counts
        return sparse.csr_matrix(sparse.diags(present.astype(np.float64)) @ counts)


class WordSpace(TextSpace):
    """Words weighted by TF-IDF."""

    def learn(self, history: History, random_state: int) -> Any:
        """Weigh the words."""
        from sklearn.feature_extraction.text import TfidfTransformer

        return TfidfTransformer(sublinear_tf=True).fit(self.counts(history)) if self.width else None

    def vectors(self, counts: Any) -> Any:
        return self.model.transform(counts).toarray()

    def of_questions(self, history: History) -> Any:
        counts = self.counts(history)
        return counts if self.model is None else self.model.transform(counts)


class TopicSpace(TextSpace):
    """Topics by latent Dirichlet allocation (online variational Bayes)."""

    size = 30

    def learn(self, history: History, random_state: int) -> Any:
        """Learn topics from the questions that have words."""
        from sklearn.decomposition import LatentDirichletAllocation

        counts = self.counts(history)
        counts = counts[np.diff(counts.indptr) > 0]
        model = LatentDirichletAllocation(
            self.size,
            learning_method="online",
            max_iter=5,
            batch_size=512,
            random_state=random_state,
        )
        return model.fit(counts) if counts.shape[0] else None

    def vectors(self, counts: Any) -> Any:
        return self.model.transform(counts)


class DocumentSpace(TextSpace):
    """Doc2Vec, distributed bag of words (gensim), with the same vectors in every process."""

    size = 64

    def learn(self, history: History, random_state: int) -> Any:
        """Learn vectors of the questions."""
        try:
            from gensim.models import doc2vec
        except ImportError:
            raise MissingDependencyError(
                "gensim", "rivals", "The row doc2vec", "atpgraph-qa"
            ) from None
        self._seed = random_state + 1
        words = _words(self.counts(history))
        documents = [
            doc2vec.TaggedDocument(words[q], [q])
            for q in np.flatnonzero(history.questions.present).tolist()
        ]
        self.rows = np.zeros((len(words), self.size))
        if not any(words):
            return None
        model = doc2vec.Doc2Vec(
            documents,
            vector_size=self.size,
            dm=0,
            min_count=2,
            epochs=_EPOCHS,
            workers=1,  # several would make the result depend on timing
            seed=self._seed,
        )
        for document in documents:
            self.rows[document.tags[0]] = _unit(model.dv[document.tags[0]])
        return model

    def vectors(self, counts: Any) -> Any:
        return np.array([self.inferred(words) for words in _words(counts)])

    def inferred(self, words: list[str]) -> Float64Array:
        """Infer a vector as ``infer_vector``, but not from Python's salted hash of the words."""
        from gensim.models import doc2vec

        self.model.random.seed(self._seed)
        start = doc2vec.pseudorandom_weak_vector(
            self.size, seed_string=" ".join(words), hashfxn=lambda text: crc32(text.encode())
        )
        vector, work = start.reshape(1, self.size), np.zeros(self.size, dtype=np.float32)
        for alpha in np.linspace(self.model.alpha, self.model.min_alpha, _EPOCHS):
            doc2vec.train_document_dbow(
                self.model,
                words,
                [0],
                float(alpha),
                work,
                learn_words=False,
                learn_hidden=False,
                doctag_vectors=vector,
                doctags_lockf=np.ones(1, dtype=np.float32),
            )
        return _unit(vector[0])


def _words(counts: Any) -> list[list[str]]:
    """Return the words of every row, by number, as often as they occur."""
    parts = (slice(*counts.indptr[row : row + 2]) for row in range(counts.shape[0]))
    return [
        [str(c) for c in np.repeat(counts.indices[p], counts.data[p].astype(np.int64)).tolist()]
        for p in parts
    ]


def _unit(vector: Any) -> Float64Array:
    values = np.asarray(vector, dtype=np.float64)
    return values / max(float(np.linalg.norm(values)), 1e-12)


class Profile(UserScore):
    """Rank by the cosine of the question and the sum of the questions a person answered."""

    space: ClassVar[type[TextSpace]]

    def fit(self, history: History) -> Self:
        """Learn vectors of texts, then the profile of every user."""
        self._space = self.space.of(history, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Recompute the profiles from all known answers; the vectors of texts stay."""
        self._profiles = self._sums(history)
        return self

    def _sums(self, history: History) -> Any:
        from sklearn.preprocessing import normalize

        owner, question = history.answers.owner, history.answers.question
        known = owner >= 0
        given = sparse.csr_matrix(
            (np.ones(int(known.sum())), (owner[known], question[known])),
            shape=(history.n_users, history.n_questions),
        )
        profiles = given @ self._space.of_questions(history)
        return normalize(profiles) if profiles.shape[1] else profiles

    def all_scores(self, query: Query) -> Float64Array:
        vector = self._space.of_question(query)
        if vector is None or not self._profiles.shape[1]:
            return np.zeros(query.history.n_users)
        return np.asarray(self._profiles @ vector)


class BagOfWords(Profile):
    """Profiles of words weighted by TF-IDF."""

    name = "bow"
    space = WordSpace


class Topics(Profile):
    """Profiles of topics."""

    name = "lda"
    space = TopicSpace


class Doc2Vec(Profile):
    """Profiles of Doc2Vec's vectors."""

    name = "doc2vec"
    space = DocumentSpace


class CqaRank(Baseline):
    """Topics of the people times their standing in every topic.

    Topics come from LDA over the questions. The standing is a PageRank for every topic on the graph
    asker → answerer, an edge weighing as much as its questions are about the topic, restarts going
    to people by how much they answer about it. A person scores
    (1 − JS(θ_u, θ_q)) · Σ_z θ_q(z) R_z(u), JS being the Jensen–Shannon divergence.
    """

    name = "cqarank"

    def fit(self, history: History) -> Self:
        """Learn the topics, then call :meth:`update`."""
        self._topics = TopicSpace.of(history, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Recompute interests and standings from all that is known; the topics stay."""
        seen_topics = self._topics.of_questions(history)
        if seen_topics.shape[1]:
            self._interest, self._standing = _stand(history, seen_topics)
            self._entropies = _entropy(self._interest)
        return self

    def score(self, query: Query, candidates: Int64Array) -> Float64Array:
        codes, theta = query.history.codes(candidates), self._topics.of_question(query)
        scores, known = np.zeros(len(codes)), codes >= 0
        if theta is None:
            return scores
        interest = self._interest[codes[known]]
        # The divergence is the entropy of the mean less the mean entropy.
        middle = _entropy((interest + theta) / 2)
        apart = middle - (self._entropies[codes[known]] + _entropy(theta)) / 2
        scores[known] = (1.0 - apart) * (self._standing[codes[known]] @ theta)
        return scores


def _stand(history: History, topics: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the interest and the standing of every user in every topic."""
    theta = topics[history.answers.question]
    owner, asker = history.answers.owner, history.questions.asker[history.answers.question]
    known, n = owner >= 0, history.n_users
    interest = np.full((n, topics.shape[1]), 1e-3)
    np.add.at(interest, owner[known], theta[known])
    edge = known & (asker >= 0) & (asker != owner)
    standing = np.zeros_like(interest)
    for z in range(topics.shape[1]):
        flow = sparse.csr_matrix((theta[edge, z], (owner[edge], asker[edge])), shape=(n, n))
        standing[:, z] = _pagerank(flow, interest[:, z] * history.posted)
    return interest / interest.sum(axis=1, keepdims=True), standing


def _entropy(shares: Float64Array) -> Float64Array:
    """Return the entropy of every row, in bits; no share is 0."""
    return np.asarray(-np.einsum("...i,...i", shares, np.log2(shares)))


def _pagerank(flow: Any, restart: Float64Array) -> Float64Array:
    """Return PageRank by power iteration; column j of `flow` says where j's weight goes."""
    restart = restart / max(float(restart.sum()), 1e-300)
    out = np.asarray(flow.sum(axis=0)).reshape(-1)
    rank = restart
    for _ in range(_ROUNDS):
        moved = flow @ np.divide(rank, out, out=np.zeros_like(rank), where=out > 0)
        rank = _DAMPING * moved + (1.0 - _DAMPING * moved.sum()) * restart
    return rank
