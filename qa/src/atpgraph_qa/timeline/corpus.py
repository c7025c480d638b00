"""Words of questions: one tokeniser, counts in compressed columns, and BM25 on them."""

from __future__ import annotations

import html
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.timeline.growth import Room

_MARKUP = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[^\W_]{2,}")
_K1, _B = 1.2, 0.75  # of BM25, as everywhere
_TITLE_WEIGHT = 3  # a title says in ten words what the body takes a hundred for


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


class Tail(NamedTuple):
    """Words of the questions that came after a corpus was counted, question by question.

    Attributes
    ----------
    indptr : int64 array
        The words of the k-th of them are ``codes[indptr[k] : indptr[k + 1]]``, ascending.
    codes : int64 array
    counts : float64 array
    length : float64 array
        Words of every question, those counted before included.
    n_words : int
        Words known now; the vocabulary may have grown since.
    """

    indptr: Int64Array
    codes: Int64Array
    counts: Float64Array
    length: Float64Array
    n_words: int


@dataclass(frozen=True, eq=False)
class Corpus:
    """How often every word stands in every question.

    Attributes
    ----------
    vocabulary : dict
        Number of every word.
    counts : sparse matrix in compressed columns
        Questions × words; the rows in a column ascend, so a column's prefix is its past.
    tail : Tail or None
        Later questions; only :meth:`query`, :meth:`bm25` and :meth:`worth` know of them, and
        :meth:`settled` gives a corpus that has them in `counts`.
    """

    vocabulary: dict[str, int]
    counts: Any
    tail: Tail | None = None

    @classmethod
    def of(
        cls, titles: Sequence[str], bodies: Sequence[str], tags: Sequence[Sequence[str]]
    ) -> Corpus:
        """Count the words of every question."""
        from scipy.sparse import csc_matrix, csr_matrix

        # Numbers by first use, so that the words known at any moment are a prefix of the columns.
        vocabulary: dict[str, int] = {}
        # Plain integers: a large site has tens of millions of counts.
        codes, counts = array("i"), array("i")
        indptr = np.zeros(len(titles) + 1, dtype=np.int64)
        for place, part in enumerate(zip(titles, bodies, tags, strict=True)):
            found = Counter(words(*part))
            for word in sorted(word for word in found if word not in vocabulary):
                vocabulary[word] = len(vocabulary)
            codes.extend([vocabulary[word] for word in found])
            counts.extend(found.values())
            indptr[place + 1] = len(codes)
        shape = len(titles), len(vocabulary)
        flat = np.frombuffer(counts, np.intc), np.frombuffer(codes, np.intc)
        made = csr_matrix((*flat, indptr), shape=shape).tocsc()
        del codes, counts, flat
        data = made.data.astype(np.float64)
        return cls(vocabulary, csc_matrix((data, made.indices, made.indptr), shape=shape))

    def grown(self, room: Room, texts: Iterable[tuple[str, str, Sequence[str]]]) -> Corpus:
        """The corpus with more questions: title, body and tags of each.

        The vocabulary is shared and grows; the caller sees to it that nobody else grows it.
        """
        nothing = np.zeros(0, dtype=np.int64)
        tail = self.tail or Tail(nothing, nothing, np.zeros(0), self.length, len(self.vocabulary))
        vocabulary = self.vocabulary
        if self.tail is None or len(vocabulary) > tail.n_words:
            vocabulary = {w: code for w, code in vocabulary.items() if code < tail.n_words}
        ends, codes, counts, lengths = [], [], [], []
        used = len(tail.codes)
        for text in texts:
            found = Counter(words(*text))
            for word in sorted(word for word in found if word not in vocabulary):
                vocabulary[word] = len(vocabulary)
            entries = sorted((vocabulary[word], count) for word, count in found.items())
            codes += [code for code, _ in entries]
            counts += [float(count) for _, count in entries]
            lengths.append(float(sum(found.values())))
            used += len(entries)
            ends.append(used)
        indptr = tail.indptr if len(tail.indptr) else np.zeros(1, dtype=np.int64)
        made = Tail(
            room.extend("tail_indptr", indptr, ends),
            room.extend("tail_codes", tail.codes, codes),
            room.extend("tail_counts", tail.counts, counts),
            room.extend("tail_length", tail.length, lengths),
            len(vocabulary),
        )
        return Corpus(vocabulary, self.counts, made)

    def settled(self) -> Corpus:
        """The same with the words of all questions in `counts`."""
        tail = self.tail
        if tail is None:
            return self
        from scipy.sparse import csc_matrix, csr_matrix, vstack

        width = tail.n_words
        old = self.counts
        indptr = np.append(old.indptr, np.full(width - old.shape[1], old.indptr[-1]))
        before = csc_matrix((old.data, old.indices, indptr), shape=(old.shape[0], width))
        shape = (len(tail.indptr) - 1, width)
        after = csr_matrix((tail.counts, tail.codes, tail.indptr), shape=shape)
        counts = vstack([before, after]).tocsc()
        counts.sort_indices()
        kept = {word: code for word, code in self.vocabulary.items() if code < width}
        return Corpus(kept, counts)

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
        if self.tail is not None:
            return self.tail.length
        return np.asarray(self.counts.sum(axis=1)).reshape(-1)

    @cached_property
    def rows(self) -> Any:
        """The counts in compressed rows."""
        return self.counts.tocsr()

    def query(self, title: str, body: str, tags: Iterable[str]) -> tuple[Int64Array, Float64Array]:
        """Numbers and counts of the known words of a new question."""
        known = [self.vocabulary[w] for w in words(title, body, tags) if w in self.vocabulary]
        codes, counts = np.unique(np.array(known, dtype=np.int64), return_counts=True)
        if self.tail is not None:  # others may have added words since
            counts, codes = counts[codes < self.tail.n_words], codes[codes < self.tail.n_words]
        return codes, counts.astype(np.float64)

    def bm25(
        self,
        terms: tuple[Int64Array, Float64Array],
        present: BoolArray,
        mean_length: float | None = None,
        worth: Float64Array | None = None,
        damped: Float32Array | None = None,
    ) -> Float32Array:
        """Return BM25 of every question so far (one entry of `present` each).

        Parameters
        ----------
        terms
            Words of a question, from :meth:`query`.
        present : boolean array
            False for hidden questions.
        mean_length : float, optional
            By default that of the questions so far.
        worth : float64 array, optional
            From :meth:`worth`, to save time.
        damped : float32 array, optional
            From :meth:`damped`, for the same mean, to save time where no question is hidden.
        """
        mean_length = self.mean_length(present) if mean_length is None else mean_length
        worth = self.worth(terms, present) if worth is None else worth
        scores, codes = np.zeros(len(present), dtype=np.float32), terms[0]
        factors, slope = worth.astype(np.float32), _K1 * _B / mean_length
        uses = self._uses(codes, len(present)).tolist()
        for (start, end), factor in zip(uses, factors, strict=True):
            rows = self.counts.indices[start:end]
            if damped is not None:
                add_scaled(rows, damped[start:end], factor, scores)
            else:
                counts = self.counts.data[start:end]
                add_term(rows, counts, present, self.length, slope, factor, scores)
        first, tail = self.counts.shape[0], self.tail
        if tail is not None and len(present) > first:
            add_tail(tail, codes, factors, slope, first, present, scores)
        return scores

    def worth(self, terms: tuple[Int64Array, Float64Array], present: BoolArray) -> Float64Array:
        """What a match of each term is worth: its weight, and its rarity in the questions so far.

        Their sum is about the BM25 score of a question of mean length with the very same words.
        """
        total = int(np.count_nonzero(present))
        uses = self._uses(terms[0], len(present))
        used = uses[:, 1] - uses[:, 0]
        if total < len(present):
            rows, counted = self.counts.indices, np.count_nonzero
            found = [counted(present[rows[start:end]]) for start, end in uses.tolist()]
            used = np.array(found, dtype=np.int64)
        first, tail = self.counts.shape[0], self.tail
        if tail is not None and len(present) > first:
            count_tail(tail.indptr, tail.codes, terms[0], present[first:], used)
        rarity = np.log1p((total - used + 0.5) / (used + 0.5))
        # Repeats in a long question count less than linearly, as they do in a document.
        return np.asarray(rarity * np.sqrt(terms[1]))

    def mean_length(self, present: BoolArray) -> float:
        """Return the mean number of words of the first questions, hidden ones left out."""
        length = self.length[: len(present)]
        length = length if present.all() else length[present]
        return max(float(length.mean()) if len(length) else 0.0, 1e-9)

    def damped(self, mean_length: float) -> Float32Array:
        """Return BM25 of every count, less the rarity of its word: a pass over the corpus."""
        result = np.empty(self.counts.nnz, dtype=np.float32)
        slope, length = _K1 * _B / mean_length, self.length
        damp(self.counts.data, self.counts.indices, length, slope, result)
        return result

    def _uses(self, words: Int64Array, n_questions: int) -> Int64Array:
        """Return from where to where each word stands in the first `n_questions` of `counts`."""
        indptr, rows = self.counts.indptr, self.counts.indices
        known = words < len(indptr) - 1
        result = np.zeros((len(words), 2), dtype=np.int64)
        for end in (0, 1):
            result[known, end] = indptr[words[known] + end]
        if n_questions < self.counts.shape[0]:
            for use in result:
                use[1] = use[0] + np.searchsorted(rows[use[0] : use[1]], n_questions)
        return result


@kernel
def damped_count(count: float, length: float, slope: float) -> np.float32:
    """Return what a count adds to BM25 in a question of some length."""
    return np.float32(count * (_K1 + 1.0) / (count + (_K1 * (1.0 - _B) + slope * length)))


@kernel
def damp(
    counts: Float64Array,
    rows: Int32Array,
    length: Float64Array,
    slope: float,
    result: Float32Array,
) -> None:
    """Write the damped counts of a whole corpus."""
    for place in range(len(rows)):
        result[place] = damped_count(counts[place], length[rows[place]], slope)


@kernel
def add_term(
    rows: Int32Array,
    counts: Float64Array,
    present: BoolArray,
    length: Float64Array,
    slope: float,
    factor: np.float32,
    scores: Float32Array,
) -> None:
    """Add one word's part of BM25 to the questions that have it."""
    for place in range(len(rows)):
        row = rows[place]
        if present[row]:
            scores[row] += factor * damped_count(counts[place], length[row], slope)


@kernel
def add_scaled(
    rows: Int32Array, values: Float32Array, factor: np.float32, scores: Float32Array
) -> None:
    """Add values, times a factor, to the scores of some rows."""
    for place in range(len(rows)):
        scores[rows[place]] += factor * values[place]


@kernel
def count_tail(
    indptr: Int64Array, codes: Int64Array, wanted: Int64Array, present: BoolArray, used: Int64Array
) -> None:
    """Add to `used` how many of the questions in compressed rows have each wanted word."""
    for row in range(len(present)):
        if not present[row]:
            continue
        term = 0
        for place in range(indptr[row], indptr[row + 1]):
            while term < len(wanted) and wanted[term] < codes[place]:
                term += 1
            if term == len(wanted):
                break
            if wanted[term] == codes[place]:
                used[term] += 1


@kernel
def add_tail(
    tail: Tail,
    wanted: Int64Array,
    factors: Float32Array,
    slope: float,
    first: int,
    present: BoolArray,
    scores: Float32Array,
) -> None:
    """Add BM25 of the wanted words to the questions of the tail, from number `first` on."""
    for row in range(len(present) - first):
        if not present[first + row]:
            continue
        term = 0
        for place in range(tail.indptr[row], tail.indptr[row + 1]):
            while term < len(wanted) and wanted[term] < tail.codes[place]:
                term += 1
            if term == len(wanted):
                break
            if wanted[term] == tail.codes[place]:
                part = damped_count(tail.counts[place], tail.length[first + row], slope)
                scores[first + row] += factors[term] * part
