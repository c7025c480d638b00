"""Sums over answers, one pass each: what makes a ranking of a hundred thousand people quick.

The tests have the plain twin of every kernel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atpgraph._jit import kernel

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@kernel
def sum_by_owner(owner: Int64, weight: Floats, total: Floats) -> None:
    """Add the weight of every answer to its owner's total; −1 owns nothing."""
    for answer in range(len(owner)):
        if owner[answer] >= 0:
            total[owner[answer]] += weight[answer]


@kernel
def matching_answers(
    indptr: Int64,
    question: npt.NDArray[np.int32],
    accepted: Flags,
    fresh: Floats,
    weight: Floats,
    result: Floats,
) -> None:
    """Sums over everybody's answers of the weight of the question that each is for.

    Answers come person by person: those of person p are ``indptr[p] : indptr[p + 1]``. Rows of
    `result`: all answers, the accepted ones, all with a factor `fresh` each, and the largest
    weight instead of a sum.
    """
    for person in range(len(indptr) - 1):
        total = won = recent = largest = 0.0
        for answer in range(indptr[person], indptr[person + 1]):
            value = weight[question[answer]]
            total += value
            if accepted[answer]:
                won += value
            recent += value * fresh[answer]
            largest = max(largest, value)
        result[0, person] = total
        result[1, person] = won
        result[2, person] = recent
        result[3, person] = largest


@kernel
def few_matching_answers(
    owner: Int64,
    question: Int64,
    accepted: Flags,
    place: Int64,
    fresh: Floats,
    weight: Floats,
    result: Floats,
) -> None:
    """The same where most weights are 0: answers by date, so that weights are read in order.

    `fresh` is still person by person; ``place`` says where an answer stands there. The last row of
    `result` is the sum of the cubes of the weights.
    """
    for answer in range(len(owner)):
        value = weight[question[answer]]
        if value == 0.0:
            continue
        person = owner[answer]
        if person < 0:
            continue
        result[0, person] += value
        if accepted[answer]:
            result[1, person] += value
        result[2, person] += value * fresh[place[answer]]
        result[3, person] += value * value * value


@kernel
def add_term(
    rows: npt.NDArray[np.int32],
    counts: Floats,
    present: Flags,
    length: Floats,
    flat: float,
    slope: float,
    k1: float,
    factor: float,
    scores: Floats,
) -> None:
    """Add one word's part of BM25 to the questions that have it."""
    for place in range(len(rows)):
        row = rows[place]
        if present[row]:
            tf = counts[place]
            scores[row] += factor * (tf * (k1 + 1.0) / (tf + (flat + slope * length[row])))


@kernel
def add_scaled(rows: npt.NDArray[np.int32], values: Floats, factor: float, scores: Floats) -> None:
    """Add values, times a factor, to the scores of some rows."""
    for place in range(len(rows)):
        scores[rows[place]] += factor * values[place]
