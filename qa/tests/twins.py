"""Plain twins of the kernels, and a ranking that shares nothing between questions.

The benchmark times the ranking, too; neither looks at how the other gets its sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

import atpgraph_qa.ranking.evidence as e
from atpgraph_qa.advisor.suggest import HOUR_MS
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.candidates import active_users
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query


def plain_sums(owner: np.ndarray, weight: np.ndarray, total: np.ndarray) -> None:
    """Twin of ``sum_by_owner``."""
    np.add.at(total, owner[owner >= 0], weight[owner >= 0])


def plain_answers(
    questions: np.ndarray,
    indptr: np.ndarray,
    answers: np.ndarray,
    limit: int,
    late_question: np.ndarray,
    late_answer: np.ndarray,
    found: np.ndarray,
) -> int:
    """Twin of ``list_answers``."""
    listing: list[int] = []
    for question in questions.tolist():
        early = (
            answers[indptr[question] : indptr[question + 1]] if question < len(indptr) - 1 else []
        )
        listing += [answer for answer in early if answer < limit]
        listing += late_answer[late_question == question].tolist()
    found[: len(listing)] = listing
    return len(listing)


def plain_fetch(question: np.ndarray, like: np.ndarray, found: np.ndarray) -> None:
    """Twin of ``fetch``."""
    found[: len(question)] = like[np.minimum(question, len(like) - 1)]


def plain_sum_answers(codes: np.ndarray, answers: e.Given, rows: np.ndarray) -> None:
    """Twin of ``sum_answers``."""
    indptr, accepted, faded, first, found = answers
    place, answer = listed(codes, indptr)
    near, match = found[answer - first].astype(np.float64).T
    square, won, fade = np.maximum(near, 0.0) ** 2, accepted[answer], faded[answer].T
    for row, value in (
        *((e.CLOSE, square), (e.CLOSE_WON, square * won), (e.CLOSE_PLAIN, near)),
        *((e.CLOSE_RECENT, square * fade[0]), (e.CLOSE_MONTH, square * fade[1])),
        *((e.CLOSE_DAYS, square * fade[2]), (e.MONTH, fade[1]), (e.GIVEN, np.ones(len(place)))),
        *((e.WORDS, match), (e.WORDS_WON, match * won), (e.WORDS_RECENT, match * fade[0])),
    ):
        np.add.at(rows[row], place, value)
    np.maximum.at(rows[e.CLOSE_MAX], place, near)
    np.maximum.at(rows[e.WORDS_MAX], place, match)


def plain_sum_asked(codes: np.ndarray, asked: e.Asked, n_questions: int, rows: np.ndarray) -> None:
    """Twin of ``sum_asked``."""
    indptr, questions, first, found = asked
    place, at = listed(codes, indptr)
    known = questions[at] < n_questions
    near = np.maximum(found[at[known] - first, 0].astype(np.float64), 0.0)
    np.add.at(rows[e.ASKED], place[known], near**2)
    np.maximum.at(rows[e.ASKED_MAX], place[known], near)


def plain_gather(
    codes: np.ndarray,
    given: e.Given,
    given_late: e.Given,
    asked: e.Asked,
    asked_late: e.Asked,
    n_questions: int,
    since: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Twin of ``gather``."""
    rows[:] = 0.0
    for answers in (given, given_late):
        plain_sum_answers(codes, answers, rows)
    for questions in (asked, asked_late):
        plain_sum_asked(codes, questions, n_questions, rows)
    e.finish(rows, since)


def plain_likeness(near: np.ndarray, match: np.ndarray, ideal: float, each: np.ndarray) -> None:
    """Twin of ``put_side_by_side``."""
    each[:] = np.stack([near, (match / ideal) ** 2], axis=1)


def plain_sum_tagged(
    answers: np.ndarray,
    owner: np.ndarray,
    question: np.ndarray,
    accepted: np.ndarray,
    faded: np.ndarray,
    share: np.ndarray,
    place: np.ndarray,
    people: np.ndarray,
    sums: np.ndarray,
) -> int:
    """Twin of ``sum_tagged``, but that people come by code."""
    seen = owner[answers] >= 0
    mine, faded = answers[seen], faded[seen]
    found, to = np.unique(owner[mine], return_inverse=True)
    people[: len(found)] = found
    place[found] = np.arange(len(found))
    each = share[question[mine]]
    for row, part in enumerate((each, each * accepted[mine], each * faded, each**3)):
        np.add.at(sums[row], to, part)
    return len(found)


def listed(codes: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of people, and positions of what each has in compressed rows, as two flat lists."""
    if len(indptr) < 2:
        return np.zeros((2, 0), dtype=np.int64)
    there = np.minimum(codes, len(indptr) - 2)
    width = np.diff(indptr)[there] * (codes < len(indptr) - 1)
    place = np.repeat(np.arange(len(codes)), width)
    step = np.arange(len(place)) - np.repeat(np.cumsum(width) - width, width)
    return place, np.repeat(indptr[there], width) + step


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
    routing = "atpgraph_qa"
    with ExitStack() as stack:
        for name, twin in (
            ("timeline.history.sum_by_owner", plain_sums),
            ("timeline.history.list_answers", plain_answers),
            ("timeline.corpus.add_term", plain_term),
            ("ranking.similarity.put_side_by_side", plain_likeness),
            ("ranking.similarity.sum_tagged", plain_sum_tagged),
            ("ranking.evidence.fetch", plain_fetch),
            ("ranking.evidence.gather", plain_gather),
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
