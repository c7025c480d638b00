"""A learned form between a question and what somebody's answers are about.

On axes that all sites share, a person's profile p is the mean of the vectors of the questions they
answered (drawn to 0 where they are few), and the form is Σ w_k q_k p_k: each product is a feature,
so that the ranker learns how much agreement along each axis is worth. With equal weights it would
be the mean closeness.
"""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float32Array, Float64Array, Int8Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.ranking.names import AXES
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import UNIT
from atpgraph_qa.timeline.query import Query

_CALM = 5.0


def profiles(history: History) -> Float32Array | None:
    """One row per user; None where there are no vectors on shared axes."""
    meaning = history.records.meaning
    if meaning is None or not meaning.is_shared:
        return None
    total = np.zeros((history.n_users, len(AXES)))
    add_vectors(history.answers.owner, history.answers.question, meaning.vectors, total)
    total /= UNIT * (history.n_given[:, None] + _CALM)
    return total.astype(np.float32)


def along_axes(query: Query) -> Float64Array | None:
    """The question's vector along the same axes."""
    return None if query.vector is None else query.vector[: len(AXES)] / UNIT


@kernel
def add_vectors(
    owner: Int64Array, question: Int64Array, vectors: Int8Array, total: Float64Array
) -> None:
    """Add the vector of every answered question to its answerer's; −1 answers nothing."""
    for answer in range(len(owner)):
        person = owner[answer]
        if person >= 0:
            for axis in range(total.shape[1]):
                total[person, axis] += vectors[question[answer], axis]
