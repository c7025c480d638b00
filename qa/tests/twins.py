"""Plain twins of the kernels, and a ranking that shares nothing between questions.

The benchmark times the ranking, too; neither looks at how the other gets its sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

import atpgraph_qa.ranking.features as f
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


def plain_side_by_side(
    near: np.ndarray, match: np.ndarray, ideal: float, share: np.ndarray, similar: np.ndarray
) -> None:
    """Twin of ``put_side_by_side``."""
    similar[:] = np.stack([near, (match / ideal) ** 2, share, np.zeros(len(near))], axis=1)


def plain_add_up(
    codes: np.ndarray,
    place: np.ndarray,
    posts: f.Posts,
    similar: np.ndarray,
    is_accepted: np.ndarray,
    faded: np.ndarray,
    late_faded: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Twin of ``add_up``: all answers of everybody in one table."""
    sums = sums.T
    owner = np.repeat(np.arange(len(posts.start) - 1), np.diff(posts.start))
    known = posts.answer < posts.n_answers
    first = len(is_accepted) - len(posts.late_owner)
    owner = np.concatenate([owner[known], posts.late_owner])
    answer = np.concatenate([posts.answer[known], first + np.arange(len(posts.late_owner))])
    question = np.concatenate([posts.question[known], posts.late_question])
    fade = np.concatenate([faded[known], late_faded]).T.astype(np.float64)
    mine = (owner >= 0) & (np.append(place, -1)[owner] >= 0)
    to, fade = place[owner[mine]], fade[:, mine]
    near, match, share, _ = similar[question[mine]].astype(np.float64).T
    won, square = is_accepted[answer[mine]], np.maximum(near, 0.0) ** 2
    for row, value in (
        *((f.CLOSE, square), (f.CLOSE_WON, square * won), (f.CLOSE_PLAIN, near)),
        *((f.CLOSE_RECENT, square * fade[0]), (f.CLOSE_MONTH, square * fade[1])),
        *((f.CLOSE_DAYS, square * fade[2]), (f.MONTH, fade[1]), (f.GIVEN, np.ones(len(to)))),
        *((f.WORDS, match), (f.WORDS_WON, match * won), (f.WORDS_RECENT, match * fade[0])),
        *((f.TAG, share), (f.TAG_WON, share * won), (f.TAG_RECENT, share * fade[0])),
        (f.TAG_SAME, share**3),
    ):
        np.add.at(sums[row], to, value)
    np.maximum.at(sums[f.CLOSE_MAX], to, near)
    np.maximum.at(sums[f.WORDS_MAX], to, match)
    asker = np.repeat(np.arange(len(posts.asked_start) - 1), np.diff(posts.asked_start))
    known = posts.asked < posts.n_questions
    first = len(similar) - len(posts.late_asker)
    asker = np.concatenate([asker[known], posts.late_asker])
    asked = np.concatenate([posts.asked[known], first + np.arange(len(posts.late_asker))])
    mine = (asker >= 0) & (np.append(place, -1)[asker] >= 0)
    near = np.maximum(similar[asked[mine], 0].astype(np.float64), 0.0)
    np.add.at(sums[f.ASKED], place[asker[mine]], near**2)
    np.maximum.at(sums[f.ASKED_MAX], place[asker[mine]], near)


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
            ("ranking.features.put_side_by_side", plain_side_by_side),
            ("ranking.features.add_up", plain_add_up),
        ):
            stack.enter_context(mock.patch(f"{routing}.{name}", twin))
        yield


def brute_force(router: Router, query: Query, top: int) -> list[int]:
    """Everybody but the asker, scored from a full table of features and sorted."""
    with plain_kernels():
        # Records of its own, with nothing kept, and no preparation for many questions.
        history = History(replace(query.history.records), query.history.now)
        alone = Query(history, query.asked_ms, query.question)
        people = active_users(alone)
        columns = f.Features(alone).columns(history.codes(people))
    scores = router.model_.score(columns.T.astype(np.float64))
    pairs = sorted(zip((-scores).tolist(), people.tolist(), strict=True))
    return [person for _, person in pairs[:top]]
