from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.ranking.user_stats import SCALE, SETTLED_MS, STEP, elo_ratings, play
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import Records


def plain_play(
    starts: np.ndarray, owner: np.ndarray, score: np.ndarray, rating: np.ndarray
) -> None:
    """Twin of ``play``, match by match."""
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        before = rating.copy()
        for one, other in permutations(range(first, last), 2):
            expected = 1 / (1 + 10 ** ((before[owner[other]] - before[owner[one]]) / SCALE))
            won = 0.5 + 0.5 * np.sign(score[one] - score[other])
            rating[owner[one]] += (won - expected) * STEP / (last - first - 1)


@given(st.integers(0, 2**32 - 1), st.integers(0, 30), st.integers(1, 6))
def test_matches_one_by_one(seed: int, answers: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.searchsorted(np.sort(rng.integers(0, 8, answers)), np.arange(9))
    owner, score = rng.integers(0, people, answers), rng.integers(-2, 5, answers) * 1.0
    one, two = np.zeros((2, people))
    play(starts, owner, score, one)
    plain_play(starts, owner, score, two)
    np.testing.assert_allclose(one, two, atol=1e-9)
    assert one.sum() == pytest.approx(0.0, abs=1e-9)  # what one wins another loses


def test_ratings_by_hand(records: Records) -> None:
    history = History(records, int(records.questions.asked_ms[500]))
    rating, votes = np.zeros(history.n_users), records.votes
    for question in range(history.n_questions):
        until = int(records.questions.asked_ms[question]) + SETTLED_MS
        if until >= history.now:
            break
        answers = np.flatnonzero(
            (records.answers.question == question)
            & (records.answers.owner >= 0)
            & (records.answers.given_ms < until)
        )
        score = [
            votes.value[(votes.answer == a) & (votes.known_ms <= until)].sum() for a in answers
        ]
        plain_play(
            np.array([0, len(answers)]), records.answers.owner[answers], np.array(score), rating
        )
    assert len(np.unique(rating)) > 20
    np.testing.assert_allclose(elo_ratings(history), rating / 100, atol=1e-9)


def test_votes_that_come_later_do_not_count(records: Records) -> None:
    moment = int(records.questions.asked_ms[500])
    late = records.votes.known_ms > moment
    other = replace(
        records, votes=replace(records.votes, value=np.where(late, -1, records.votes.value))
    )
    assert late.any()
    np.testing.assert_array_equal(
        elo_ratings(History(records, moment)), elo_ratings(History(other, moment))
    )
