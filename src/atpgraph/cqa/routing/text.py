"""Words of questions: one tokeniser, counts in compressed columns, and BM25 on them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.cqa.routing._sums import add_scaled, add_term
from atpgraph.errors import MissingDependencyError

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_MARKUP = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[^\W_]{2,}")
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
    found = [_stem(word) for word in _WORD.findall(title.lower())]
    if body:
        plain = html.unescape(_MARKUP.sub(" ", body)).lower()
        found = found * _TITLE_WEIGHT + [_stem(word) for word in _WORD.findall(plain)]
    return found + ["#" + tag for tag in tags]


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
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

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
        # By first use, so that the words known at any time are the first so many columns.
        words_, codes = zip(*sorted(counter.vocabulary_.items()), strict=True)
        first = counts.indices[counts.indptr[np.array(codes)]]
        order = np.argsort(first, kind="stable")
        counts = counts[:, np.array(codes)[order]]
        vocabulary = {words_[place]: code for code, place in enumerate(order.tolist())}
        return cls(vocabulary, counts)

    def first(self, n_questions: int) -> Corpus:
        """That of the first so many questions."""
        width = self.n_words(n_questions)
        kept = {word: code for word, code in self.vocabulary.items() if code < width}
        return Corpus(kept, self.counts[:n_questions, :width])

    def n_words(self, n_questions: int) -> int:
        """How many words occur in the first so many questions."""
        if not self.counts.shape[1]:
            return 0
        first = self.counts.indices[self.counts.indptr[:-1]]
        return int(np.searchsorted(first, n_questions))

    @cached_property
    def length(self) -> Floats:
        """Words of every question."""
        return np.asarray(self.counts.sum(axis=1)).reshape(-1)

    @cached_property
    def rows(self) -> Any:
        """The counts in compressed rows."""
        return self.counts.tocsr()

    def query(self, title: str, body: str, tags: Iterable[str]) -> tuple[Int64, Floats]:
        """Numbers and counts of the known words of a new question."""
        known = [self.vocabulary[w] for w in words(title, body, tags) if w in self.vocabulary]
        codes, counts = np.unique(np.array(known, dtype=np.int64), return_counts=True)
        return codes, counts.astype(np.float64)

    def bm25(
        self,
        terms: tuple[Int64, Floats],
        present: npt.NDArray[np.bool_],
        k1: float = 1.2,
        b: float = 0.75,
    ) -> Floats:
        """BM25 of every question so far (one entry of `present` each) for the terms of another.

        Everything, the rarity of a word included, is counted over the questions so far.
        """
        n = len(present)
        scores = np.zeros(n)
        total = int(np.count_nonzero(present))
        if not total or not len(terms[0]):
            return scores
        whole = total == n
        length = self.length[:n]
        mean = max(float(length.mean() if whole else length[present].mean()), 1e-9)
        indptr, indices, data = self.counts.indptr, self.counts.indices, self.counts.data
        flat, slope = k1 * (1 - b), k1 * b / mean
        damped = self._damped(n, flat, slope, k1) if whole else None
        for code, weight in zip(terms[0].tolist(), terms[1].tolist(), strict=True):
            start, end = int(indptr[code]), int(indptr[code + 1])
            end = start + int(np.searchsorted(indices[start:end], n))
            rows = indices[start:end]
            found = end - start if whole else int(np.count_nonzero(present[rows]))
            if not found:
                continue
            rarity = np.log1p((total - found + 0.5) / (found + 0.5))
            # Repeats in a long question count less than linearly, as they do in a document.
            factor = float(rarity * np.sqrt(weight))
            if damped is not None:
                add_scaled(rows, damped[start:end], factor, scores)
                continue
            tf = data[start:end]
            add_term(rows, tf, present, length, flat, slope, k1, factor, scores)
        return scores

    def ideal(self, terms: tuple[Int64, Floats], present: npt.NDArray[np.bool_]) -> float:
        """About the BM25 score of a question of mean length that has the very same words."""
        n = len(present)
        total = int(np.count_nonzero(present))
        score = 0.0
        for code, weight in zip(terms[0].tolist(), terms[1].tolist(), strict=True):
            rows = self.counts.indices[self.counts.indptr[code] : self.counts.indptr[code + 1]]
            used = int(np.searchsorted(rows, n))
            if total < n:
                used = int(np.count_nonzero(present[rows[:used]]))
            score += np.log1p((total - used + 0.5) / (used + 0.5)) * np.sqrt(weight)
        return float(score)

    def _damped(self, n: int, flat: float, slope: float, k1: float) -> Floats | None:
        """BM25 of every count, less the rarity, kept if the questions so far stay the same.

        The first call for some questions only takes note of them: most histories see one question.
        """
        key = n, flat, slope, k1
        if self._kept.get("key") != key:
            self._kept.clear()
            self._kept["key"] = key
            return None
        if "damped" not in self._kept:
            length = np.zeros(self.counts.shape[0])
            length[:n] = self.length[:n]
            tf = self.counts.data
            self._kept["damped"] = (
                tf * (k1 + 1.0) / (tf + (flat + slope * length[self.counts.indices]))
            )
        found: Floats = self._kept["damped"]
        return found
