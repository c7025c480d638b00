"""Plain twins of the kernels, and a ranking that shares nothing between questions.

The benchmark times the ranking, too; neither looks at how the other gets its sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

from atpgraph.cqa.routing.advice.suggest import HOUR_MS
from atpgraph.cqa.routing.model.router import Router
from atpgraph.cqa.routing.timeline.candidates import active_users
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.query import Query


def plain_sums(owner: np.ndarray, weight: np.ndarray, total: np.ndarray) -> None:
    """Twin of ``sum_by_owner``."""
    np.add.at(total, owner[owner >= 0], weight[owner >= 0])


def plain_matching(
    indptr: np.ndarray,
    question: np.ndarray,
    accepted: np.ndarray,
    fresh: np.ndarray,
    weight: np.ndarray,
    result: np.ndarray,
) -> None:
    """Twin of ``matching_answers``."""
    people, each = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), weight[question]
    np.add.at(result[0], people, each)
    np.add.at(result[1], people, each * accepted)
    np.add.at(result[2], people, each * fresh)
    np.maximum.at(result[3], people, each)


def plain_few_matching(
    owner: np.ndarray,
    question: np.ndarray,
    accepted: np.ndarray,
    place: np.ndarray,
    fresh: np.ndarray,
    weight: np.ndarray,
    result: np.ndarray,
) -> None:
    """Twin of ``few_matching_answers``."""
    known = owner >= 0
    people, each = owner[known], weight[question[known]]
    np.add.at(result[0], people, each)
    np.add.at(result[1], people, each * accepted[known])
    np.add.at(result[2], people, each * fresh[place[known]])
    np.add.at(result[3], people, each**3)


def plain_term(
    rows: np.ndarray,
    counts: np.ndarray,
    present: np.ndarray,
    length: np.ndarray,
    flat: float,
    slope: float,
    k1: float,
    factor: float,
    scores: np.ndarray,
) -> None:
    """Twin of ``add_term``."""
    part = counts * (k1 + 1.0) / (counts + (flat + slope * length[rows]))
    np.add.at(scores, rows, np.where(present[rows], factor * part, 0.0))


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Every kernel of routing as plain NumPy."""
    routing = "atpgraph.cqa.routing"
    with ExitStack() as stack:
        for name, twin in (
            ("timeline.history.sum_by_owner", plain_sums),
            ("timeline.corpus.add_term", plain_term),
            ("features.matching.matching_answers", plain_matching),
            ("features.matching.few_matching_answers", plain_few_matching),
        ):
            stack.enter_context(mock.patch(f"{routing}.{name}", twin))
        yield


def brute_force(router: Router, query: Query, top: int) -> list[int]:
    """Everybody but the asker, scored from a full table of features and sorted."""
    with plain_kernels():
        # Records of its own, with nothing kept, and no preparation for many questions.
        history = History(replace(query.history.records), query.history.now)
        alone = Query(history, query.asked_ms // HOUR_MS * HOUR_MS, query.question)
        people = active_users(alone)
        scores = router.model_.score(router.space.rows(alone, history.codes(people)))
    pairs = sorted(zip((-scores).tolist(), people.tolist(), strict=True))
    return [person for _, person in pairs[:top]]
