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
    owner: Int64,
    question: Int64,
    accepted: Flags,
    fresh: Floats,
    weight: Floats,
    result: Floats,
) -> None:
    """Sums over every owner's answers of the weight of the question that each is for.

    Rows of `result`: all answers, the accepted ones, all with a factor `fresh` each, and the
    largest weight instead of a sum.
    """
    for answer in range(len(owner)):
        person = owner[answer]
        value = weight[question[answer]]
        if person < 0 or value <= 0.0:
            continue
        result[0, person] += value
        if accepted[answer]:
            result[1, person] += value
        result[2, person] += value * fresh[answer]
        result[3, person] = max(result[3, person], value)


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
