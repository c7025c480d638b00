"""Words of questions: one tokeniser, counts in compressed columns, and BM25 on them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from atpgraph._jit import kernel
from atpgraph._typing import BoolArray, Float64Array, Int32Array, Int64Array
from atpgraph.errors import MissingDependencyError

_MARKUP = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[^\W_]{2,}")
_K1, _B = 1.2, 0.75  # of BM25, as everywhere
_TITLE_WEIGHT = 3  # a title says in ten words what the body takes a hundred for


def load_sklearn() -> Any:
    """scikit-learn, or a sentence that says how to get it."""
    try:
        import sklearn
    except ImportError:
        raise MissingDependencyError("scikit-learn", "cqa", "Text of questions") from None
    return sklearn


def words(title: str, body: str, tags: Iterable[str]) -> list[str]:
    """The words of a question: lower case, no markup, plural and singular alike, tags marked.

    Examples
    --------
    >>> words("Cheap trains?", "<p>In &amp; around Rome</p>", ["trains"])[:2]
    ['cheap', 'train']
    >>> words("", "", [])
    []
    """
    result = [_stem(word) for word in _WORD.findall(title.lower())]
    if body:
        plain = html.unescape(_MARKUP.sub(" ", body)).lower()
        result = result * _TITLE_WEIGHT + [_stem(word) for word in _WORD.findall(plain)]
    return result + ["#" + tag for tag in tags]


def _stem(word: str) -> str:
    """English plurals without their s; nothing finer, so that other languages suffer little."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@dataclass(frozen=True, eq=False)
class Corpus:
    """How often every word stands in every question.

    Attributes
    ----------
    vocabulary : dict
        Number of every word.
    counts : sparse matrix in compressed columns
        Questions × words; the rows in a column ascend, so a column's prefix is its past.
    """

    vocabulary: dict[str, int]
    counts: Any

    @classmethod
    def of(
        cls, titles: Sequence[str], bodies: Sequence[str], tags: Sequence[Sequence[str]]
    ) -> Corpus:
        """Count the words of every question."""
        load_sklearn()
        from scipy.sparse import csc_matrix
        from sklearn.feature_extraction.text import CountVectorizer

        # Word by word, never all words of the site at once.
        parts = zip(titles, bodies, tags, strict=True)
        counter = CountVectorizer(analyzer=lambda part: words(*part))
        try:
            counts = counter.fit_transform(parts).tocsc().astype(np.float64)
        except ValueError:  # there is not one word
            return cls({}, csc_matrix((len(titles), 0), dtype=np.float64))
        counts.sort_indices()
        # By first use, so that the words known at any moment are a prefix of the columns.
        words_, codes = zip(*sorted(counter.vocabulary_.items()), strict=True)
        first = counts.indices[counts.indptr[np.array(codes)]]
        order = np.argsort(first, kind="stable")
        counts = counts[:, np.array(codes)[order]]
        vocabulary = {words_[place]: code for code, place in enumerate(order.tolist())}
        return cls(vocabulary, counts)

    def first(self, n_questions: int) -> Corpus:
        """The corpus of the first `n_questions` questions."""
        width = self.n_words(n_questions)
        kept = {word: code for word, code in self.vocabulary.items() if code < width}
        return Corpus(kept, self.counts[:n_questions, :width])

    def n_words(self, n_questions: int) -> int:
        """How many words occur in the first `n_questions` questions."""
        if not self.counts.shape[1]:
            return 0
        first = self.counts.indices[self.counts.indptr[:-1]]
        return int(np.searchsorted(first, n_questions))

    @cached_property
    def length(self) -> Float64Array:
        """Words of every question."""
        return np.asarray(self.counts.sum(axis=1)).reshape(-1)

    @cached_property
    def rows(self) -> Any:
        """The counts in compressed rows."""
        return self.counts.tocsr()

    def query(self, title: str, body: str, tags: Iterable[str]) -> tuple[Int64Array, Float64Array]:
        """Numbers and counts of the known words of a new question."""
        known = [self.vocabulary[w] for w in words(title, body, tags) if w in self.vocabulary]
        codes, counts = np.unique(np.array(known, dtype=np.int64), return_counts=True)
        return codes, counts.astype(np.float64)

    def bm25(
        self,
        terms: tuple[Int64Array, Float64Array],
        present: BoolArray,
        damped: Float64Array | None = None,
    ) -> Float64Array:
        """BM25 of every question so far (one entry of `present` each) for the terms of another.

        Everything, the rarity of a word included, is counted over the questions so far. `damped`,
        where given, is :meth:`damped` of the same questions; the result does not depend on it.
        """
        scores = np.zeros(len(present))
        total = int(np.count_nonzero(present))
        if not total or not len(terms[0]):
            return scores
        whole = total == len(present)
        length, flat, slope = self._lengths(present)
        indices, data = self.counts.indices, self.counts.data
        for code, weight in zip(terms[0].tolist(), terms[1].tolist(), strict=True):
            start, end = self._uses(code, len(present))
            rows = indices[start:end]
            used = end - start if whole else int(np.count_nonzero(present[rows]))
            if not used:
                continue
            # Repeats in a long question count less than linearly, as they do in a document.
            factor = float(_rarity(used, total) * np.sqrt(weight))
            if damped is not None:
                add_scaled(rows, damped[start:end], factor, scores)
            else:
                add_term(rows, data[start:end], present, length, flat, slope, _K1, factor, scores)
        return scores

    def damped(self, present: BoolArray) -> Float64Array | None:
        """BM25 of every count, less the rarity of its word: a pass over the corpus.

        It pays where many questions are asked of the same past. None if questions are hidden.
        """
        if not len(present) or not present.all():
            return None
        length, flat, slope = self._lengths(present)
        padded = np.zeros(self.counts.shape[0])
        padded[: len(length)] = length
        counts = self.counts.data
        result: Float64Array = (
            counts * (_K1 + 1.0) / (counts + (flat + slope * padded[self.counts.indices]))
        )
        return result

    def _uses(self, code: int, n_questions: int) -> tuple[int, int]:
        """Where the counts of a word in the first `n_questions` questions begin and end."""
        start, end = int(self.counts.indptr[code]), int(self.counts.indptr[code + 1])
        if n_questions < self.counts.shape[0]:
            end = start + int(np.searchsorted(self.counts.indices[start:end], n_questions))
        return start, end

    def _lengths(self, present: BoolArray) -> tuple[Float64Array, float, float]:
        """Words of every question so far, and how length damps a count: intercept and slope."""
        length = self.length[: len(present)]
        mean = max(float(length.mean() if present.all() else length[present].mean()), 1e-9)
        return length, _K1 * (1 - _B), _K1 * _B / mean

    def ideal(self, terms: tuple[Int64Array, Float64Array], present: BoolArray) -> float:
        """About the BM25 score of a question of mean length that has the very same words."""
        n = len(present)
        total = int(np.count_nonzero(present))
        score = 0.0
        for code, weight in zip(terms[0].tolist(), terms[1].tolist(), strict=True):
            start, end = self._uses(code, n)
            used = end - start
            if total < n:
                used = int(np.count_nonzero(present[self.counts.indices[start:end]]))
            score += _rarity(used, total) * np.sqrt(weight)
        return float(score)


def _rarity(used: int, total: int) -> float:
    """What a word is worth that stands in `used` of `total` questions."""
    return float(np.log1p((total - used + 0.5) / (used + 0.5)))


@kernel
def add_term(
    rows: Int32Array,
    counts: Float64Array,
    present: BoolArray,
    length: Float64Array,
    flat: float,
    slope: float,
    k1: float,
    factor: float,
    scores: Float64Array,
) -> None:
    """Add one word's part of BM25 to the questions that have it."""
    for place in range(len(rows)):
        row = rows[place]
        if present[row]:
            tf = counts[place]
            scores[row] += factor * (tf * (k1 + 1.0) / (tf + (flat + slope * length[row])))


@kernel
def add_scaled(rows: Int32Array, values: Float64Array, factor: float, scores: Float64Array) -> None:
    """Add values, times a factor, to the scores of some rows."""
    for place in range(len(rows)):
        scores[rows[place]] += factor * values[place]
