"""Which questions have a word: rows by word, as an index of a book has pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from atpgraph.util.arrays import Float64Array, Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class Postings:
    """The questions of every word, among some that follow each other.

    Attributes
    ----------
    first, size : int
        Position of the first of these questions, and how many they are.
    words : int64 array or None
        Numbers of the words that occur, ascending; None for all words from 0.
    indptr : int64 array
        The questions of the k-th word are ``rows[indptr[k] : indptr[k + 1]]``, ascending.
    rows : int32 array
        Questions, counted from the first one.
    counts : float64 array
        How often the word stands in each.
    """

    first: int
    size: int
    words: Int64Array | None
    indptr: Int64Array
    rows: Int32Array
    counts: Float64Array

    @classmethod
    def of(cls, first: int, indptr: Int64Array, codes: Int64Array, counts: Float64Array) -> Self:
        """From words question by question: those of the k-th are ``indptr[k] : indptr[k + 1]``."""
        size = len(indptr) - 1
        order = np.argsort(codes, kind="stable")
        words, starts = np.unique(codes[order], return_index=True)
        rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(indptr))[order]
        return cls(first, size, words, np.append(starts, len(codes)), rows, counts[order])

    def uses(self, words: Int64Array, n_questions: int) -> Int64Array:
        """Where the rows of words begin and end, of the first `n_questions` of all questions."""
        place, known = words, words < len(self.indptr) - 1
        if self.words is not None:
            place = np.searchsorted(self.words, words)
            known = np.append(self.words, -1)[place] == words
        result = np.zeros((len(words), 2), dtype=np.int64)
        for end in (0, 1):
            result[known, end] = self.indptr[place[known] + end]
        if n_questions < self.first + self.size:
            last = n_questions - self.first
            for use in result:
                use[1] = use[0] + np.searchsorted(self.rows[use[0] : use[1]], last)
        return result
