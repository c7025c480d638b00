"""Words of questions as sparse rows, for methods that learn from text."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query


def known_counts(history: History, width: int | None = None) -> Any:
    """Words of the questions so far in compressed rows; rows of hidden questions are empty.

    Only the first `width` words, by default all that have been used so far.
    """
    width = history.corpus.n_words(history.n_questions) if width is None else width
    counts = history.corpus.rows[: history.n_questions, :width]
    if history.questions.present.all():
        return counts
    keep = sparse.diags(history.questions.present.astype(np.float64))
    return sparse.csr_matrix(keep @ counts)


def term_row(query: Query, width: int) -> Any:
    """Those of the first `width` words that a question has, as a sparse row; None for none."""
    codes, counts = query.terms
    codes, counts = codes[codes < width], counts[codes < width]
    if not len(codes):
        return None
    return sparse.csr_matrix((counts, codes, [0, len(codes)]), shape=(1, width))


def row_words(counts: Any, row: int) -> list[str]:
    """Words of a row, by number, as often as they occur."""
    part = slice(counts.indptr[row], counts.indptr[row + 1])
    repeated = np.repeat(counts.indices[part], counts.data[part].astype(np.int64))
    return [str(code) for code in repeated.tolist()]
