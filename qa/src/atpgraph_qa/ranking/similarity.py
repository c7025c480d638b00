"""How much earlier questions are like a new one, and what few people have: tags, the nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph_qa.ranking.evidence import Likeness
from atpgraph_qa.ranking.fading import Fading
from atpgraph_qa.ranking.names import TAGS
from atpgraph_qa.timeline.query import Query

_NEAREST = 30
_LEAST, _LEAST_SHARE = 0.02, 0.5


@dataclass(frozen=True, eq=False)
class Rare:
    """A feature that is the same for all but a few.

    Attributes
    ----------
    codes : int64 array
        User codes of the few.
    values : float64 array
        The feature of each.
    usual : float
        That of everybody else.
    """

    codes: Int64Array
    values: Float64Array
    usual: float

    def column(self, n: int) -> Float64Array:
        """The feature of `n` users."""
        result = np.full(n, self.usual)
        result[self.codes] = self.values
        return result


def likeness(query: Query) -> Likeness:
    """Of every earlier question, by meaning and by words."""
    history, near = query.history, query.closeness
    ideal = 1.0
    if query.best_match > 0.0:
        ideal = max(float(sum(query.worth.tolist())), 1e-9)
    each = np.empty((history.n_questions, 2), dtype=np.float32)
    nowhere = np.zeros(history.n_questions, dtype=np.float32)
    put_side_by_side(nowhere if near is None else near, query.match, ideal, each)
    by_meaning = near is not None and history.n_questions > 0
    return Likeness(each, by_meaning, query.best_match > 0.0)


def near_feature(query: Query) -> dict[str, Rare]:
    """Answers to the questions nearest by words; nothing where there is no word in common."""
    history, match = query.history, query.match
    if query.best_match <= 0.0:
        return {}
    best = np.full(min(_NEAREST, len(match)), -1, dtype=np.int64)
    best = best[: find_largest(match, best)]
    best.sort()
    answers = history.answers_to(best)
    answers = answers[history.answers.owner[answers] >= 0]
    people, place = np.unique(history.answers.owner[answers], return_inverse=True)
    total = np.bincount(place, match[history.answers.question[answers]], minlength=len(people))
    near = np.log(total / query.best_match + _LEAST)
    return {"text_near": Rare(people, near, float(np.log(_LEAST)))}


def tag_features(query: Query, fading: Fading) -> dict[str, Rare]:
    """How much somebody answered under the question's tags; nothing where nobody did.

    ``tag_share`` is still to be lessened by the logarithm of all their answers.
    """
    history, share = query.history, tag_match(query)
    if share is None:
        return {}
    questions = np.flatnonzero(share > 0.0)  # faster than of the numbers themselves
    if not len(questions):
        return {}
    answers = history.answers_to(questions)
    people = np.empty(min(len(answers), history.n_users), dtype=np.int64)
    place = np.full(history.n_users, -1, dtype=np.int64)
    sums = np.zeros((4, len(people)))
    found = sum_tagged(
        answers,
        history.answers.owner,
        history.answers.question,
        history.is_accepted,
        fading.of(history, answers),
        share / float(share.max()),
        place,
        people,
        sums,
    )
    total, accepted, recent, same = sums[:, :found]
    least = (_LEAST, _LEAST, _LEAST_SHARE, _LEAST, _LEAST)
    return {
        name: Rare(people[:found], np.log(of + more), float(np.log(more)))
        for name, of, more in zip(TAGS, (total, accepted, total, recent, same), least, strict=True)
    }


def tag_match(query: Query) -> Float64Array | None:
    """For every question so far, the rarity of the tags it shares; None without known tags."""
    history = query.history
    if not len(query.tag_codes):
        return None
    share = np.zeros(history.n_questions)
    for questions in query.tagged:
        share[questions] += np.log1p(history.n_questions / (1.0 + len(questions)))
    return share


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


@kernel
def put_side_by_side(
    near: Float32Array, match: Float64Array, ideal: float, each: Float32Array
) -> None:
    """Likeness by meaning and by words; squares favour a few close questions over many that share
    a common word."""
    for question in range(len(each)):
        share = match[question] / ideal
        each[question, 0] = near[question]
        each[question, 1] = share * share


@kernel
def sum_tagged(
    answers: Int64Array,
    owner: Int64Array,
    question: Int64Array,
    accepted: BoolArray,
    faded: Float64Array,
    share: Float64Array,
    place: Int64Array,
    people: Int64Array,
    sums: Float64Array,
) -> int:
    """Sum over some answers, person by person, how much their questions share; how many people.

    The k-th person met is ``people[k]``, and ``place`` says which of them every user is, −1 for
    none. Sums of all, of accepted ones, of fading ones, and of cubes, which favour questions that
    share all tags.
    """
    found = 0
    for at in range(len(answers)):
        answer = answers[at]
        person = owner[answer]
        if person < 0:
            continue
        if place[person] < 0:
            place[person] = found
            people[found] = person
            found += 1
        value, to = share[question[answer]], place[person]
        sums[0, to] += value
        sums[1, to] += value * accepted[answer]
        sums[2, to] += value * faded[at]
        sums[3, to] += value * value * value
    return found
