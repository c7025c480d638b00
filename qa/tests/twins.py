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
from atpgraph_qa.timeline.corpus import Tail
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, active_users


def plain_sums(owner: np.ndarray, weight: np.ndarray, total: np.ndarray) -> None:
    """Twin of ``sum_by_owner``."""
    np.add.at(total, owner[owner >= 0], weight[owner >= 0])


def plain_side_by_side(
    near: np.ndarray,
    questions: np.ndarray,
    match: np.ndarray,
    share: np.ndarray,
    match_scale: np.float32,
    share_scale: np.float32,
    similar: np.ndarray,
) -> None:
    """Twin of ``put_side_by_side``."""
    match, share = match[questions], share[questions]
    columns = [near, (match * match_scale) ** 2, share * share_scale, np.zeros_like(match)]
    similar[:] = np.stack(columns, axis=1)


def plain_posts(posts: f.Posts, rows: np.ndarray, similar: np.ndarray, sums: np.ndarray) -> None:
    """Twin of ``add_posts``: all answers of everybody in one table."""
    place = np.full(len(posts.start) - 1, -1)
    place[rows] = np.arange(len(rows))
    sums[:] = 0.0
    owner = np.repeat(np.arange(len(place)), np.diff(posts.start))
    _plain_answers(place[owner], posts.question, posts.worth, similar, sums)
    asker = place[np.repeat(np.arange(len(place)), np.diff(posts.asked_start))]
    near = np.maximum(similar[posts.asked[asker >= 0], 0].astype(np.float64), 0.0)
    asked = np.zeros(len(sums))
    np.add.at(asked, asker[asker >= 0], near**2)
    sums[:, f.ASKED] = asked
    np.maximum.at(sums[:, f.ASKED_MAX], asker[asker >= 0], near)


def _plain_answers(
    at: np.ndarray, question: np.ndarray, worth: np.ndarray, similar: np.ndarray, sums: np.ndarray
) -> None:
    to, fade = at[at >= 0], worth[at >= 0].T.astype(np.float64)
    near, match, share, _ = similar[question[at >= 0]].astype(np.float64).T
    won, square, total = fade[3], np.maximum(near, 0.0) ** 2, sums.astype(np.float64)
    for column, value in (
        *((f.CLOSE, square), (f.CLOSE_WON, square * won), (f.CLOSE_PLAIN, near)),
        *((f.CLOSE_RECENT, square * fade[0]), (f.CLOSE_MONTH, square * fade[1])),
        *((f.CLOSE_DAYS, square * fade[2]), (f.MONTH, fade[1]), (f.GIVEN, np.ones(len(to)))),
        *((f.WORDS, match), (f.WORDS_WON, match * won), (f.WORDS_RECENT, match * fade[0])),
        *((f.TAG, share), (f.TAG_WON, share * won), (f.TAG_RECENT, share * fade[0])),
        (f.TAG_SAME, share**3),
    ):
        np.add.at(total[:, column], to, value)
    np.maximum.at(total[:, f.CLOSE_MAX], to, near)
    np.maximum.at(total[:, f.WORDS_MAX], to, match)
    sums[:] = total


def plain_late(
    owner: np.ndarray,
    similar: np.ndarray,
    worth: np.ndarray,
    place: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Twin of ``add_late``."""
    at, rows = np.append(place, -1)[owner], np.arange(len(owner))
    _plain_answers(at, rows, worth, similar, sums)


def plain_matches(
    indptr: np.ndarray,
    rows: np.ndarray,
    counts: np.ndarray,
    n_rows: int,
    tail: Tail,
    wanted: np.ndarray,
    factors: np.ndarray,
    norm: np.ndarray,
    weights: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Twin of ``add_matches``, for a corpus that was counted at once."""
    assert len(scores) <= n_rows
    for code, factor in zip(wanted.tolist(), factors, strict=True):
        part = slice(indptr[code], indptr[code + 1])
        here = rows[part] < len(scores)
        at, count = rows[part][here], counts[part][here]
        np.add.at(scores, at, factor * (count * 2.2 / (count + norm[at])).astype(np.float32))


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Every kernel of routing as plain NumPy."""
    routing = "atpgraph_qa"
    with ExitStack() as stack:
        for name, twin in (
            ("timeline.history.sum_by_owner", plain_sums),
            ("timeline.corpus.add_matches", plain_matches),
            ("ranking.features.put_side_by_side", plain_side_by_side),
            ("ranking.features.add_posts", plain_posts),
            ("ranking.features.add_late", plain_late),
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
