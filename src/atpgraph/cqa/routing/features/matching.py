"""Sums over people's answers of how well the answered question matches a new one.

One pass over the answers each: what makes a ranking of a hundred thousand people quick. The tests
have the plain twin of every kernel.
"""

from __future__ import annotations

import numpy as np

from atpgraph._jit import kernel
from atpgraph._typing import BoolArray, Float64Array, Int32Array, Int64Array
from atpgraph.cqa.routing.timeline.history import History


def matching(history: History, weight: Float64Array, fresh: Float64Array) -> Float64Array:
    """Sums over every user's answers of the weight of the question each is for.

    Parameters
    ----------
    history : History
    weight : float64 array
        One entry per question, none negative.
    fresh : float64 array
        A factor per answer, in the order of :attr:`History.by_person`.

    Returns
    -------
    float64 array of shape (4, users)
        Over all answers; over accepted ones; over all with the factor; the largest weight.
    """
    mine, result = history.by_person, np.zeros((4, history.n_users))
    matching_answers(mine.indptr, mine.question, mine.accepted, fresh, weight, result)
    late = slice(int(mine.indptr[-1]), None)
    late_matching_answers(
        mine.late_owner, mine.question[late], mine.accepted[late], fresh[late], weight, result
    )
    return result


def few_matching(history: History, weight: Float64Array, fresh: Float64Array) -> Float64Array:
    """As :func:`matching`, quicker where most weights are 0; cubes instead of the largest."""
    answers, result = history.answers, np.zeros((4, history.n_users))
    few_matching_answers(
        answers.owner,
        answers.question,
        history.is_accepted,
        history.by_person.place,
        fresh,
        weight,
        result,
    )
    return result


def matching_some(history: History, positions: Int64Array, weight: Float64Array) -> Float64Array:
    """Sums over every user's answers to some questions of the weight of the question."""
    answers = history.answers_to(positions)
    owner, each = history.answers.owner[answers], weight[history.answers.question[answers]]
    known = owner >= 0
    total = np.bincount(owner[known], each[known], minlength=history.n_users)
    return np.asarray(total, dtype=np.float64)


@kernel
def matching_answers(
    indptr: Int64Array,
    question: Int32Array,
    accepted: BoolArray,
    fresh: Float64Array,
    weight: Float64Array,
    result: Float64Array,
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
def late_matching_answers(
    owner: Int64Array,
    question: Int32Array,
    accepted: BoolArray,
    fresh: Float64Array,
    weight: Float64Array,
    result: Float64Array,
) -> None:
    """Go on from :func:`matching_answers` with later answers, which come by date."""
    for answer in range(len(owner)):
        person, value = owner[answer], weight[question[answer]]
        result[0, person] += value
        if accepted[answer]:
            result[1, person] += value
        result[2, person] += value * fresh[answer]
        result[3, person] = max(result[3, person], value)


@kernel
def few_matching_answers(
    owner: Int64Array,
    question: Int64Array,
    accepted: BoolArray,
    place: Int64Array,
    fresh: Float64Array,
    weight: Float64Array,
    result: Float64Array,
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
def find_largest(values: Float64Array, best: Int64Array) -> int:
    """Write the places of the largest values above 0 to `best`, the largest first; how many.

    Of equals the first ones. One pass: after a few values hardly any is among the largest so far.
    """
    found = 0
    for place in range(len(values)):
        value = values[place]
        if value <= 0.0 or (found == len(best) and value <= values[best[found - 1]]):
            continue
        at = found if found < len(best) else found - 1
        found = max(found, at + 1)
        while at > 0 and values[best[at - 1]] < value:
            best[at] = best[at - 1]
            at -= 1
        best[at] = place
    return found
