"""People whose answered questions read like the new one: BM25, tags, TF-IDF, topics, Doc2Vec."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import partial
from typing import Any, Self
from unittest import mock
from zlib import crc32

import numpy as np
from scipy import sparse

from atpgraph.cqa.routing.history import History, Question
from atpgraph.cqa.routing.method import Floats, UserScore
from atpgraph.cqa.routing.text import load_sklearn
from atpgraph.errors import MissingDependencyError


class Bm25(UserScore):
    """Sum of the BM25 scores of the questions somebody answered."""

    name = "bm25"

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        history = question.history
        return history.per_user(question.match[history.answer_question])


class TagExperts(UserScore):
    """Accepted answers, and a quarter for others, to questions with the same tags.

    A rare tag counts more than a common one; without tags everybody is equal.
    """

    name = "tag-experts"

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        history = question.history
        share = tag_match(question)
        if share is None:
            return np.zeros(history.n_users)
        worth = np.where(history.is_accepted, 1.0, 0.25)
        return history.per_user(share[history.answer_question] * worth)


def tag_match(question: Question) -> Floats | None:
    """For every question so far, the rarity of the tags it shares; None without known tags."""
    history = question.history
    codes = history.tag_codes(question.tags)
    if not len(codes):
        return None
    share = np.zeros(history.n_questions)
    for code in codes.tolist():
        questions = history.tagged(code)
        share[questions] += np.log1p(history.n_questions / (1.0 + len(questions)))
    return share


class Profile(UserScore):
    """Cosine of the question's vector and the sum of the vectors of the questions answered."""

    _profiles: Any
    _width: int

    def fit(self, history: History) -> Self:
        """Learn vectors of texts, then the profile of every user."""
        load_sklearn()
        self._width = history.corpus.n_words(history.n_questions)
        self._learn(history)
        return self.update(history)

    def update(self, history: History) -> Self:
        """Profiles from all answers known; the vectors of texts stay as they were learnt."""
        from sklearn.preprocessing import normalize

        vectors = self._vectors(history)
        owner, question = history.answer_owner, history.answer_question
        known = owner >= 0
        given = sparse.csr_matrix(
            (np.ones(int(known.sum())), (owner[known], question[known])),
            shape=(history.n_users, history.n_questions),
        )
        profiles = given @ vectors
        if not sparse.issparse(profiles):
            profiles = np.asarray(profiles)
        self._profiles = normalize(profiles) if profiles.shape[1] else profiles
        self._users = history.users
        return self

    def all_scores(self, question: Question) -> Floats:
        """See :meth:`UserScore.all_scores`."""
        vector = self._vector(question)
        if vector is None or not self._profiles.shape[1]:
            return np.zeros(question.history.n_users)
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
    def _vector(self, question: Question) -> Any:
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

    def _vector(self, question: Question) -> Any:
        row = term_row(question, self._width)
        return None if row is None or self._weights is None else self._weights.transform(row).T


class Topics(Profile):
    """Topics by latent Dirichlet allocation (scikit-learn, online variational Bayes)."""

    name = "lda"
    n_topics = 30

    def _learn(self, history: History) -> None:
        self._topics = TopicSpace.of(history, self.n_topics, self.random_state)

    def _vectors(self, history: History) -> Any:
        return self._topics.of_questions(history)

    def _vector(self, question: Question) -> Any:
        vector = self._topics.of_question(question)
        return None if vector is None else vector / np.linalg.norm(vector)


class Paragraphs(Profile):
    """Doc2Vec (gensim, distributed bag of words)."""

    name = "doc2vec"

    def _learn(self, history: History) -> None:
        key = ("doc2vec", history.now, self.random_state)
        if key not in history.cache:
            history.cache[key] = self._trained(history)
        # The vectors of later questions are added for everybody who shares the model.
        self._kept: dict[str, Any] = history.cache[key]
        self._model = self._kept["model"]

    def _trained(self, history: History) -> dict[str, Any]:
        try:
            from gensim.models.doc2vec import Doc2Vec, TaggedDocument
        except ImportError:
            raise MissingDependencyError("gensim", "rivals", "The row doc2vec") from None
        rows = known_counts(history, self._width)
        documents = [
            TaggedDocument(row_words(rows, q), [q])
            for q in range(rows.shape[0])
            if history.present[q]
        ]
        vectors = np.zeros((rows.shape[0], 64))
        if not any(document.words for document in documents):
            return {"model": None, "vectors": vectors}
        model = Doc2Vec(
            documents,
            vector_size=64,
            dm=0,
            min_count=2,
            epochs=20,
            workers=1,  # several would make the result depend on timing
            seed=self.random_state + 1,
        )
        trained = [document.tags[0] for document in documents]
        found = np.stack([model.dv[q] for q in trained]).astype(np.float64)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        vectors[trained] = found / np.maximum(lengths, 1e-12)
        return {"model": model, "vectors": vectors}

    def _infer(self, words: list[str]) -> Floats:
        from gensim.models import doc2vec

        model: Any = self._model
        model.random.seed(self.random_state + 1)
        # gensim starts from a vector made with Python's salted hash, another one in every process.
        start = partial(doc2vec.pseudorandom_weak_vector, hashfxn=lambda text: crc32(text.encode()))
        with mock.patch.object(doc2vec, "pseudorandom_weak_vector", start):
            vector = model.infer_vector(words, epochs=20)
        length = float(np.linalg.norm(vector))
        return np.asarray(vector, dtype=np.float64) / (length or 1.0)

    def _vectors(self, history: History) -> Any:
        if self._model is None:
            return np.zeros((history.n_questions, 0))
        rows = known_counts(history, self._width)
        done = len(self._kept["vectors"])
        if history.n_questions > done:
            fresh = [self._infer(row_words(rows, q)) for q in range(done, history.n_questions)]
            self._kept["vectors"] = np.vstack([self._kept["vectors"], np.array(fresh)])
        return self._kept["vectors"][: history.n_questions]

    def _vector(self, question: Question) -> Any:
        row = term_row(question, self._width)
        return None if row is None or self._model is None else self._infer(row_words(row, 0))


def known_counts(history: History, width: int | None = None) -> Any:
    """Words of the questions so far in compressed rows; rows not to be seen are empty.

    Only the first `width` words, by default all that have been used so far.
    """
    width = history.corpus.n_words(history.n_questions) if width is None else width
    counts = history.corpus.rows[: history.n_questions, :width]
    if history.present.all():
        return counts
    keep = sparse.diags(history.present.astype(np.float64))
    return sparse.csr_matrix(keep @ counts)


def term_row(question: Question, width: int) -> Any:
    """Those of the first `width` words that a question has, as a sparse row; None for none."""
    codes, counts = question.terms
    codes, counts = codes[codes < width], counts[codes < width]
    if not len(codes):
        return None
    return sparse.csr_matrix((counts, codes, [0, len(codes)]), shape=(1, width))


def row_words(counts: Any, row: int) -> list[str]:
    """Words of a row, by number, as often as they occur."""
    part = slice(counts.indptr[row], counts.indptr[row + 1])
    repeated = np.repeat(counts.indices[part], counts.data[part].astype(np.int64))
    return [str(code) for code in repeated.tolist()]


class TopicSpace:
    """Topics by LDA, learnt once from a history, and those of every question asked since.

    Attributes
    ----------
    n_topics : int
    """

    def __init__(self, history: History, n_topics: int, random_state: int) -> None:
        self.n_topics = n_topics
        self._width = history.corpus.n_words(history.n_questions)
        self._model = _fit_topics(history, n_topics, random_state)
        self._seen = np.zeros((0, n_topics))
        self._asked: dict[int, Floats] = {}

    @classmethod
    def of(cls, history: History, n_topics: int, random_state: int) -> TopicSpace:
        """The topics of a history, learnt once for all methods that ask for them."""
        key = ("topics", history.now, n_topics, random_state)
        if key not in history.cache:
            history.cache[key] = cls(history, n_topics, random_state)
        found: TopicSpace = history.cache[key]
        return found

    def of_questions(self, history: History) -> Floats:
        """A row for every question known so far; no columns where there are no words."""
        if self._model is None:
            return np.zeros((history.n_questions, 0))
        done = len(self._seen)
        if history.n_questions > done:
            fresh = self._model.transform(known_counts(history, self._width)[done:])
            self._seen = np.vstack([self._seen, fresh])
        return self._seen[: history.n_questions]

    def of_question(self, question: Question) -> Floats | None:
        """Topics of a question; None for one without known words."""
        row = term_row(question, self._width)
        if row is None or self._model is None:
            return None
        if question.id < 0:
            return np.asarray(self._model.transform(row)[0])
        if question.id not in self._asked:
            self._asked[question.id] = self._model.transform(row)[0]
        return self._asked[question.id]


def _fit_topics(history: History, n_topics: int, random_state: int) -> Any:
    """LDA over the questions so far; None where there are no words."""
    load_sklearn()
    from sklearn.decomposition import LatentDirichletAllocation

    counts = known_counts(history)
    counts = counts[np.diff(counts.indptr) > 0]
    if not counts.shape[0]:
        return None
    model = LatentDirichletAllocation(
        n_topics,
        learning_method="online",
        max_iter=5,
        batch_size=512,
        random_state=random_state,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(counts)
