"""Words of questions: one tokenizer, counts in compressed columns, and BM25 on them."""

from __future__ import annotations

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
from atpgraph_qa.text.store import plain_text
from atpgraph_qa.timeline.tables import extended

_WORD = re.compile(r"[^\W_]{2,}")
_K1, _B = 1.2, 0.75  # of BM25, as everywhere
_TITLE_WEIGHT = 3  # a title says in ten words what the body takes a hundred for
Terms = tuple[Int64Array, Float64Array]  # numbers of words, ascending, and how often each occurs


def words(title: str, body: str, tags: Iterable[str]) -> list[str]:
    """Return the words of a question: lower case, no markup, no plural s, tags marked.

    Examples
    --------
    >>> words("Cheap trains?", "<p>In &amp; around Rome</p>", ["trains"])[:2]
    ['cheap', 'train']
    >>> words("", "", [])
    []
    """
    result = [_stem(word) for word in _WORD.findall(title.lower())]
    if body:
        plain = plain_text(body).lower()
        result = result * _TITLE_WEIGHT + [_stem(word) for word in _WORD.findall(plain)]
    return result + ["#" + tag for tag in tags]


def _stem(word: str) -> str:
    """Strip the s of English plurals; finer rules would harm other languages."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class Tail(NamedTuple):
    """Words of the questions that came after a corpus was counted, question by question.

    The words of the k-th of them are ``codes[indptr[k] : indptr[k + 1]]``, ascending. `length` has
    the number of words of every question, including those counted before. The vocabulary may have
    grown beyond `n_words` since.
    """

    indptr: Int64Array
    codes: Int64Array
    counts: Float64Array
    length: Float32Array
    n_words: int


@dataclass(frozen=True, eq=False)
class Corpus:
    """How often each word occurs in each question.

    Only :meth:`query`, :meth:`bm25` and :meth:`worth` know of the questions in `late`;
    :meth:`settled` gives a corpus that has them in `counts`.
    """

    vocabulary: dict[str, int]  # number of every word
    counts: Any  # questions × words, compressed columns; rows ascend: a prefix is the past
    late: Tail | None = None  # later questions

    @classmethod
    def of(
        cls, titles: Sequence[str], bodies: Sequence[str], tags: Sequence[Sequence[str]]
    ) -> Corpus:
        """Count the words of every question."""
        from scipy.sparse import csc_matrix, csr_matrix

        vocabulary: dict[str, int] = {}
        # Plain integers: a large site has tens of millions of counts.
        codes, counts = array("i"), array("i")
        indptr = np.zeros(len(titles) + 1, dtype=np.int64)
        for place, part in enumerate(zip(titles, bodies, tags, strict=True)):
            found = _numbered(vocabulary, part)
            codes.extend(found.keys())
            counts.extend(found.values())
            indptr[place + 1] = len(codes)
        shape = len(titles), len(vocabulary)
        flat = np.frombuffer(counts, np.intc), np.frombuffer(codes, np.intc)
        made = csr_matrix((*flat, indptr), shape=shape).tocsc()
        del codes, counts, flat
        data = made.data.astype(np.float64)
        return cls(vocabulary, csc_matrix((data, made.indices, made.indptr), shape=shape))

    def grown(self, texts: Iterable[tuple[str, str, Sequence[str]]]) -> Corpus:
        """Return the corpus with more questions: title, body and tags of each.

        The vocabulary is shared and grows, unless another corpus has added words to it.
        """
        tail, vocabulary = self.tail, self.vocabulary
        if self.late is None or len(vocabulary) > tail.n_words:
            vocabulary = {w: code for w, code in vocabulary.items() if code < tail.n_words}
        found = [sorted(_numbered(vocabulary, text).items()) for text in texts]
        flat = [entry for entries in found for entry in entries]
        lengths = [sum(count for _, count in entries) for entries in found]
        made = Tail(
            extended(tail.indptr, len(tail.codes) + np.cumsum([len(each) for each in found])),
            extended(tail.codes, [code for code, _ in flat]),
            extended(tail.counts, [count for _, count in flat]),
            extended(tail.length, lengths),
            len(vocabulary),
        )
        return Corpus(vocabulary, self.counts, made)

    def settled(self) -> Corpus:
        """Return an equal corpus with the words of all questions in `counts`."""
        if self.late is None:
            return self
        from scipy.sparse import csc_matrix, csr_matrix, vstack

        old, tail = self.counts, self.late
        indptr = np.append(old.indptr, np.full(tail.n_words - old.shape[1], old.indptr[-1]))
        before = csc_matrix((old.data, old.indices, indptr), shape=(old.shape[0], tail.n_words))
        shape = len(tail.indptr) - 1, tail.n_words
        after = csr_matrix((tail.counts, tail.codes, tail.indptr), shape=shape)
        counts = vstack([before, after.tocsc()])  # of one format: no detour by coordinates
        counts.sort_indices()
        kept = {word: code for word, code in self.vocabulary.items() if code < tail.n_words}
        return Corpus(kept, counts)

    def first(self, n_questions: int) -> Corpus:
        """Return the corpus of the first `n_questions` questions."""
        whole = self.settled()
        if n_questions == whole.counts.shape[0]:
            return whole
        width = whole.n_words(n_questions)
        kept = {word: code for word, code in whole.vocabulary.items() if code < width}
        return Corpus(kept, whole.counts[:n_questions, :width])

    def n_words(self, n_questions: int) -> int:
        """Return how many words occur in the first `n_questions` questions."""
        if not self.counts.shape[1]:
            return 0
        first = self.counts.indices[self.counts.indptr[:-1]]
        return int(np.searchsorted(first, n_questions))

    @cached_property
    def tail(self) -> Tail:
        """The questions added after counting; empty if there are none."""
        if self.late is not None:
            return self.late
        length = np.asarray(self.counts.sum(axis=1), dtype=np.float32).reshape(-1)
        nothing = np.zeros(0, dtype=np.int64)
        return Tail(np.zeros(1, np.int64), nothing, np.zeros(0), length, len(self.vocabulary))

    @cached_property
    def rows(self) -> Any:
        """The counts in compressed rows."""
        return self.counts.tocsr()

    def query(self, title: str, body: str, tags: Iterable[str]) -> Terms:
        """Return numbers and counts of the words of a new question.

        New words get the numbers that they would get if it was added: they match nothing, but count
        toward the score of a perfect match.
        """
        found, n = Counter(words(title, body, tags)), self.tail.n_words
        numbers = {word: self.vocabulary.get(word, n) for word in found}
        new = sorted(word for word, code in numbers.items() if code >= n)
        numbers |= {word: n + place for place, word in enumerate(new)}
        counted = sorted((numbers[word], count) for word, count in found.items())
        codes, counts = np.array(counted, dtype=np.int64).reshape(-1, 2).T
        return codes, counts.astype(np.float64)

    def knows(self, some: Iterable[str]) -> bool:
        """Return whether any of some words was used before."""
        n = self.tail.n_words
        return any(self.vocabulary.get(word, n) < n for word in some)

    def bm25(
        self,
        terms: Terms,
        present: BoolArray,
        mean_length: float | None = None,
        worth: Float64Array | None = None,
        weights: Float32Array | None = None,
    ) -> Float32Array:
        """Return the BM25 score of every question so far; `present` is False for hidden questions.

        The mean length is by default that of the questions so far. `worth` and `weights` come from
        the methods of that name, to save time.
        """
        mean_length = self.mean_length(present) if mean_length is None else mean_length
        worth = self.worth(terms, present) if worth is None else worth
        weights = self.weights(present, mean_length) if weights is None else weights
        scores, table = np.zeros(len(present), dtype=np.float32), self.counts
        add_matches(
            table.indptr, table.indices, table.shape[0], self.tail, terms[0],
            worth.astype(np.float32), weights, self._norm(present, mean_length, table.shape[0]),
            scores,
        )  # fmt: skip
        return scores

    def weights(self, present: BoolArray, mean_length: float) -> Float32Array:
        """Return the BM25 weight of every count, without the rarity of its word."""
        table = self.counts
        norm = np.full(table.shape[0], np.inf, dtype=np.float32)  # later ones match nothing
        here = self._norm(present[: table.shape[0]], mean_length)
        norm[: len(here)] = here
        return np.asarray(damped(table.data.astype(np.float32), norm[table.indices]))

    def _norm(self, present: BoolArray, mean_length: float, first: int = 0) -> Float32Array:
        """Return the term of each question's length in the denominator of BM25, from `first` on."""
        norm = np.float32(_K1 * _B / mean_length) * self.tail.length[first : len(present)]
        norm += np.float32(_K1 * (1.0 - _B))
        norm[~present[first:]] = np.inf  # what is hidden matches nothing
        return norm

    def worth(self, terms: Terms, present: BoolArray) -> Float64Array:
        """Return the value of a match of each term: its weight times its rarity.

        Their sum is about the BM25 score of a question of mean length with exactly the same words.
        """
        total, table = int(np.count_nonzero(present)), self.counts
        used = np.zeros(len(terms[0]), dtype=np.int64)
        whole = total == len(present) >= table.shape[0]  # a column then counts as it is
        count_uses(
            table.indptr, table.indices, table.shape[0], self.tail, terms[0], present, whole, used
        )
        rarity = np.log1p((total - used + 0.5) / (used + 0.5))
        # Repeats in a long question count less than linearly, as they do in a document.
        return np.asarray(rarity * np.sqrt(terms[1]))

    def mean_length(self, present: BoolArray) -> float:
        """Return the mean number of words of the first questions, except hidden ones."""
        length = self.tail.length[: len(present)]
        length = length if present.all() else length[present]
        return max(float(length.mean(dtype=np.float64)) if len(length) else 0.0, 1e-9)


def _numbered(vocabulary: dict[str, int], text: tuple[str, str, Sequence[str]]) -> dict[int, int]:
    """Return the words of a text by number; new ones are numbered by first use.

    So the words known at any moment are a prefix of all.
    """
    found = Counter(words(*text))
    for word in sorted(word for word in found if word not in vocabulary):
        vocabulary[word] = len(vocabulary)
    return {vocabulary[word]: count for word, count in found.items()}


@kernel
def count_uses(
    indptr: Int32Array, rows: Int32Array, n_rows: int, tail: Tail,
    wanted: Int64Array, present: BoolArray, whole: bool, used: Int64Array,
) -> None:  # fmt: skip
    """Count the present questions that have each wanted word."""
    for term in range(len(wanted)):
        if wanted[term] >= len(indptr) - 1:
            break  # later words stand in the tail alone
        first, last = indptr[wanted[term]], indptr[wanted[term] + 1]
        if whole:
            used[term] = last - first
            continue
        for place in range(first, last):
            if rows[place] >= len(present):
                break
            used[term] += present[rows[place]]
    for row in range(n_rows, len(present)):
        term = 0
        for place in range(tail.indptr[row - n_rows], tail.indptr[row - n_rows + 1]):
            while term < len(wanted) and wanted[term] < tail.codes[place]:
                term += 1
            if term == len(wanted):
                break
            if wanted[term] == tail.codes[place]:
                used[term] += present[row]


@kernel
def add_matches(
    indptr: Int32Array, rows: Int32Array, n_rows: int, tail: Tail, wanted: Int64Array,
    factors: Float32Array, weights: Float32Array, norm: Float32Array, scores: Float32Array,
) -> None:  # fmt: skip
    """Add BM25 of the wanted words, in their order, to the questions that have them.

    `weights` has the contribution of each count, and `norm` the term of :func:`damped` for later
    questions.
    """
    for term in range(len(wanted)):
        if wanted[term] >= len(indptr) - 1:
            break  # later words stand in the tail alone
        first, last = indptr[wanted[term]], indptr[wanted[term] + 1]
        while last > first and rows[last - 1] >= len(scores):
            last -= 1
        factor = factors[term]
        for at in range(np.uint64(first), np.uint64(last)):
            # Unsigned: for signed indices Numba handles negative ones, which doubles the time.
            scores[np.uint32(rows[at])] += factor * weights[at]
    for row in range(n_rows, len(scores)):
        term = 0
        for at in range(tail.indptr[row - n_rows], tail.indptr[row - n_rows + 1]):
            while term < len(wanted) and wanted[term] < tail.codes[at]:
                term += 1
            if term == len(wanted):
                break
            if wanted[term] == tail.codes[at]:
                count = np.float32(tail.counts[at])
                scores[row] += factors[term] * damped(count, norm[row - n_rows])


@kernel
def damped(count: np.float32, norm: np.float32) -> np.float32:
    """Return the BM25 contribution of a count in a question whose length gives `norm`."""
    return count * np.float32(_K1 + 1.0) / (count + norm)
