"""Doc2Vec (gensim), with the same vectors in every process."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from atpgraph.errors import MissingDependencyError
from atpgraph.util.arrays import Float64Array
from atpgraph_qa.baselines.textual import Profile
from atpgraph_qa.baselines.words import known_counts, row_words, term_row
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query

_SIZE, _EPOCHS = 64, 20


class Doc2Vec(Profile):
    """Doc2Vec, distributed bag of words."""

    name = "doc2vec"

    def _learn(self, history: History) -> None:
        self._space = history.remember(
            SPACES, self.random_state, lambda: DocumentSpace(history, self.random_state)
        )

    def _vectors(self, history: History) -> Any:
        return self._space.of_questions(history)

    def _vector(self, query: Query) -> Any:
        return self._space.of_question(query)


class DocumentSpace:
    """Vectors of the questions of a history, and of every question asked since."""

    def __init__(self, history: History, random_state: int) -> None:
        try:
            from gensim.models import doc2vec
        except ImportError:
            raise MissingDependencyError(
                "gensim", "rivals", "The row doc2vec", "atpgraph-qa"
            ) from None
        self._seed = random_state + 1
        self._width = history.corpus.n_words(history.n_questions)
        rows = known_counts(history, self._width)
        documents = [
            doc2vec.TaggedDocument(row_words(rows, int(q)), [int(q)])
            for q in np.flatnonzero(history.questions.present)
        ]
        self._rows = np.zeros((rows.shape[0], _SIZE))
        self._model: Any = None
        if any(document.words for document in documents):
            self._model = doc2vec.Doc2Vec(
                documents,
                vector_size=_SIZE,
                dm=0,
                min_count=2,
                epochs=_EPOCHS,
                workers=1,  # several would make the result depend on timing
                seed=self._seed,
            )
            for document in documents:
                q = document.tags[0]
                self._rows[q] = _unit(self._model.dv[q])

    def of_questions(self, history: History) -> Float64Array:
        """A row for every question known so far; no columns where there are no words."""
        if self._model is None:
            return np.zeros((history.n_questions, 0))
        rows, done = known_counts(history, self._width), len(self._rows)
        if history.n_questions > done:
            fresh = [self._inferred(row_words(rows, q)) for q in range(done, history.n_questions)]
            self._rows = np.vstack([self._rows, np.array(fresh)])
        return self._rows[: history.n_questions]

    def of_question(self, query: Query) -> Float64Array | None:
        """The vector of a question; None for one without known words."""
        row = term_row(query, self._width)
        return None if row is None or self._model is None else self._inferred(row_words(row, 0))

    def _inferred(self, words: list[str]) -> Float64Array:
        """As ``infer_vector``, which starts from Python's salted hash of the words."""
        from gensim.models import doc2vec

        model = self._model
        model.random.seed(self._seed)
        start = doc2vec.pseudorandom_weak_vector(
            _SIZE, seed_string=" ".join(words), hashfxn=lambda text: crc32(text.encode())
        )
        vector, work = start.reshape(1, _SIZE), np.zeros(_SIZE, dtype=np.float32)
        for alpha in np.linspace(model.alpha, model.min_alpha, _EPOCHS):
            doc2vec.train_document_dbow(
                model,
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


SPACES: Shelf[DocumentSpace] = Shelf("document spaces", keep=2)


def _unit(vector: Any) -> Float64Array:
    values = np.asarray(vector, dtype=np.float64)
    return values / max(float(np.linalg.norm(values)), 1e-12)
