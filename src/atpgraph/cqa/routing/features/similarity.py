"""How much a question is like those that somebody answered, by words and by tags."""

from __future__ import annotations

import numpy as np

from atpgraph._typing import Float64Array
from atpgraph.cqa.data.site import DAY_MS
from atpgraph.cqa.routing.features.activity import log_count
from atpgraph.cqa.routing.features.matching import (
    few_matching,
    find_largest,
    matching,
    matching_some,
)
from atpgraph.cqa.routing.features.names import TAGS, TEXT
from atpgraph.cqa.routing.timeline.query import Query

_NEAREST = 30
_HALF_LIFE_DAYS = 180.0


def freshness(query: Query) -> Float64Array:
    """A factor for every answer, person by person, that halves every 180 days."""
    history = query.history
    away = np.abs(query.asked_ms - history.answers.given_ms[history.by_person.answer]) / DAY_MS
    return np.exp2(-away / _HALF_LIFE_DAYS)


def text_features(
    query: Query, fresh: Float64Array, log_given: Float64Array
) -> dict[str, Float64Array]:
    """Similarity by words.

    Parameters
    ----------
    query : Query
    fresh : float64 array
        See :func:`freshness`.
    log_given : float64 array
        log(answers + 5) of every user.
    """
    history, match = query.history, query.match
    if not match.any():
        return {name: np.zeros(history.n_users) for name in TEXT}
    best = np.full(min(_NEAREST, len(match)), -1, dtype=np.int64)
    best = best[: find_largest(match, best)]
    best.sort()
    near = matching_some(history, best, match) / query.best_match
    ideal = max(history.corpus.ideal(query.terms, history.questions.present), 1e-9)
    # Squares favour a few close questions over many that share a common word.
    total, accepted, recent, largest = matching(history, (match / ideal) ** 2, fresh)
    return {
        "text_sum": log_count(total),
        "text_max": np.sqrt(largest),
        "text_near": log_count(near, some=np.flatnonzero(near)),
        "text_recent": log_count(recent),
        "text_accepted": log_count(accepted),
        "text_mean": log_count(total, 0.05) - log_given,
    }


def tag_features(
    query: Query, fresh: Float64Array, log_given: Float64Array
) -> dict[str, Float64Array]:
    """How much somebody answered under the question's tags; parameters as for words."""
    history, share = query.history, tag_match(query)
    if share is None or not share.any():
        return {name: np.zeros(history.n_users) for name in TAGS}
    # Cubes favour questions that share all tags.
    total, accepted, recent, same = few_matching(history, share / float(share.max()), fresh)
    some = np.flatnonzero(total)
    return {
        "tag_sum": log_count(total, some=some),
        "tag_accepted": log_count(accepted, some=some),
        "tag_share": log_count(total, 0.5, some) - log_given,
        "tag_recent": log_count(recent, some=some),
        "tag_same": log_count(same, some=some),
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
