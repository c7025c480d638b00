"""How much earlier questions are like a new one, and what few people have: tags, the nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph._jit import kernel
from atpgraph._typing import Float64Array, Int64Array
from atpgraph.cqa.routing.features.evidence import Likeness
from atpgraph.cqa.routing.features.fading import Fading
from atpgraph.cqa.routing.features.names import TAGS
from atpgraph.cqa.routing.timeline.query import Query

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
    history, closeness = query.history, query.closeness
    each = np.zeros((history.n_questions, 2), dtype=np.float32)
    if closeness is not None:
        each[:, 0] = closeness
    if query.best_match > 0.0:
        ideal = max(history.corpus.ideal(query.terms, history.questions.present), 1e-9)
        # Squares favour a few close questions over many that share a common word.
        each[:, 1] = (query.match / ideal) ** 2
    by_meaning = closeness is not None and history.n_questions > 0
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
    questions = np.flatnonzero(share)
    answers = history.answers_to(questions)
    answers = answers[history.answers.owner[answers] >= 0]
    if not len(questions):
        return {}
    owner, weight = history.answers.owner[answers], share / float(share.max())
    people = np.flatnonzero(np.bincount(owner, minlength=history.n_users))
    place = np.zeros(history.n_users, dtype=np.int64)
    place[people] = np.arange(len(people))
    each = weight[history.answers.question[answers]]
    # Cubes favour questions that share all tags.
    parts = each, each * history.is_accepted[answers], each * fading.of(history, answers), each**3
    total, accepted, recent, same = (
        np.bincount(place[owner], part, minlength=len(people)) for part in parts
    )
    sums = (total, accepted, total, recent, same)
    least = (_LEAST, _LEAST, _LEAST_SHARE, _LEAST, _LEAST)
    return {
        name: Rare(people, np.log(of + more), float(np.log(more)))
        for name, of, more in zip(TAGS, sums, least, strict=True)
    }


def tag_match(query: Query) -> Float64Array | None:
    """For every question so far, the rarity of the tags it shares; None without known tags."""
    history = query.history
    if not len(query.tag_codes):
        return None
    share = np.zeros(history.n_questions)
    for code in query.tag_codes.tolist():
        questions = history.tagged(code)
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
