"""Ranking by text: people whose answered questions read like the new one.

Three spaces of vectors (TF-IDF, LDA topics, Doc2Vec) are learned from the questions of a history
and hold vectors of every question asked since; the vocabulary stays that of the history.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self
from zlib import crc32

import numpy as np
from scipy import sparse

from atpgraph.errors import MissingDependencyError
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.baselines.simple import Baseline, UserScore
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query

_TOPICS = 30
_SIZE, _EPOCHS = 64, 20  # of Doc2Vec
_DAMPING, _ROUNDS = 0.85, 30  # of PageRank
Encode = Callable[[Any], Any]  # from counts of words to vectors, a row for every text
Learn = Callable[[History, Any, int], tuple[Encode, Any]]


class TextSpace:
    """Vectors of the questions of a history, and of every question asked since.

    `learn` gets the history, its counts of words and a seed, and returns a function that makes
    vectors of counts, and the vectors of the questions learned from, if it has them.
    """

    def __init__(self, history: History, learn: Learn, random_state: int) -> None:
        self.width = history.corpus.n_words(history.n_questions)
        self._last: tuple[Query | None, Float64Array | None] = None, None
        self._encode: Encode | None = None  # without any words there is nothing to learn
        counts = self._counts(history)
        if counts.nnz:
            self._encode, self._rows = learn(history, counts, random_state)

    def of_questions(self, history: History) -> Any:
        """Return a row for every question known so far; no columns if there are no words."""
        n = history.n_questions
        if self._encode is None:
            return np.zeros((n, 0))
        known = 0 if self._rows is None else self._rows.shape[0]
        if n > known:
            fresh = self._encode(self._counts(history)[known:])
            join = sparse.vstack if sparse.issparse(fresh) else np.vstack
            self._rows = fresh if self._rows is None else join([self._rows, fresh])
        return self._rows[:n]

    def of_question(self, query: Query) -> Float64Array | None:
        """Return the vector of a question; None for one without known words."""
        if self._last[0] is not query:
            codes, counts = query.terms
            codes, counts = codes[codes < self.width], counts[codes < self.width]
            found = None
            if len(codes) and self._encode is not None:
                row = sparse.csr_matrix((counts, codes, [0, len(codes)]), shape=(1, self.width))
                vector = self._encode(row)
                found = (vector.toarray() if sparse.issparse(vector) else vector)[0]
            self._last = query, found
        return self._last[1]

    def _counts(self, history: History) -> Any:
        """Return the words of the questions so far in sparse rows; hidden questions have none."""
        counts = history.corpus.rows[: history.n_questions, : self.width]
        present = history.questions.present
        if present.all():
            return counts
        return sparse.csr_matrix(sparse.diags(present.astype(np.float64)) @ counts)


def text_space(history: History, learn: Learn, random_state: int) -> TextSpace:
    """Return the space of a history, learned once for all methods that ask for it."""
    return history.remember(
        "texts", (learn, random_state), lambda: TextSpace(history, learn, random_state)
    )


def tfidf(history: History, counts: Any, random_state: int) -> tuple[Encode, Any]:
    """Weight words by TF-IDF."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer(sublinear_tf=True).fit(counts).transform, None


def topics(history: History, counts: Any, random_state: int) -> tuple[Encode, Any]:
    """Learn topics by latent Dirichlet allocation (online variational Bayes)."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        _TOPICS, learning_method="online", max_iter=5, batch_size=512, random_state=random_state
    )
    return model.fit(counts[np.diff(counts.indptr) > 0]).transform, None


def documents(history: History, counts: Any, random_state: int) -> tuple[Encode, Any]:
    """Learn Doc2Vec, distributed bag of words (gensim), with the same vectors in every process."""
    try:
        from gensim.models import doc2vec
    except ImportError:
        raise MissingDependencyError("gensim", "rivals", "The row doc2vec", "atpgraph-qa") from None
    words, present = _words(counts), np.flatnonzero(history.questions.present).tolist()
    model = doc2vec.Doc2Vec(
        [doc2vec.TaggedDocument(words[q], [q]) for q in present],
        vector_size=_SIZE,
        dm=0,
        min_count=2,
        epochs=_EPOCHS,
        workers=1,  # several would make the result depend on timing
        seed=random_state + 1,
    )
    rows = np.zeros((len(words), _SIZE))
    for q in present:
        rows[q] = _unit(model.dv[q])
    return partial(_inferred, model, random_state + 1), rows


def _inferred(model: Any, seed: int, counts: Any) -> Float64Array:
    """Infer vectors like ``infer_vector``, but without Python's salted hash of the words."""
    from gensim.models import doc2vec

    rows = []
    for words in _words(counts):
        model.random.seed(seed)
        start = doc2vec.pseudorandom_weak_vector(
            _SIZE, seed_string=" ".join(words), hashfxn=lambda text: crc32(text.encode())
        )
        vector, work = start.reshape(1, _SIZE), np.zeros(_SIZE, dtype=np.float32)
        for alpha in np.linspace(model.alpha, model.min_alpha, _EPOCHS).tolist():
            doc2vec.train_document_dbow(
                model, words, [0], alpha, work, learn_words=False, learn_hidden=False,
                doctag_vectors=vector, doctags_lockf=np.ones(1, dtype=np.float32),
            )  # fmt: skip
        rows.append(_unit(vector[0]))
    return np.array(rows)


def _words(counts: Any) -> list[list[str]]:
    """Return the words of every row as numbers, each as often as it occurs."""
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

    learn: ClassVar[staticmethod[[History, Any, int], tuple[Encode, Any]]]

    def fit(self, history: History) -> Self:
        """Learn vectors of texts, then the profile of every user."""
        self._space = text_space(history, self.learn, self.random_state)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Recompute the profiles from all known answers; the vectors of texts stay."""
        from sklearn.preprocessing import normalize

        owner, question = history.answers.owner, history.answers.question
        known = owner >= 0
        given = sparse.csr_matrix(
            (np.ones(int(known.sum())), (owner[known], question[known])),
            shape=(history.n_users, history.n_questions),
        )
        profiles: Any = given @ self._space.of_questions(history)
        self._profiles = normalize(profiles) if profiles.shape[1] else profiles
        return self

    def all_scores(self, query: Query) -> Float64Array:
        vector = self._space.of_question(query)
        if vector is None or not self._profiles.shape[1]:
            return np.zeros(query.history.n_users)
        return np.asarray(self._profiles @ vector)


class BagOfWords(Profile):
    """Profiles of words weighted by TF-IDF."""

    name, learn = "bow", staticmethod(tfidf)


class Topics(Profile):
    """Profiles of topics."""

    name, learn = "lda", staticmethod(topics)


class Doc2Vec(Profile):
    """Profiles of Doc2Vec's vectors."""

    name, learn = "doc2vec", staticmethod(documents)


class CqaRank(Baseline):
    """Topics of the people times their standing in every topic.

    Topics come from LDA over the questions. The standing is a PageRank for every topic on the graph
    asker → answerer, where an edge weighs as much as its questions are about the topic, and
    restarts go to people by how much they answer about it. A person scores (1 − JS(θ_u, θ_q)) · Σ_z
    θ_q(z) R_z(u), JS being the Jensen–Shannon divergence.
    """

    name = "cqarank"

    def fit(self, history: History) -> Self:
        """Learn the topics, then call :meth:`update`."""
        self._topics = text_space(history, topics, self.random_state)
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


def _stand(history: History, shares: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the interest and the standing of every user in every topic."""
    theta = shares[history.answers.question]
    owner, asker = history.answers.owner, history.questions.asker[history.answers.question]
    known, n = owner >= 0, history.n_users
    interest = np.full((n, shares.shape[1]), 1e-3)
    np.add.at(interest, owner[known], theta[known])
    edge = known & (asker >= 0) & (asker != owner)
    standing = np.zeros_like(interest)
    for z in range(shares.shape[1]):
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
