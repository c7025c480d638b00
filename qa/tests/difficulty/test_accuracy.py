from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa import BountyTruth, Scores, pairwise_accuracy

cases = st.lists(
    st.tuples(
        st.sampled_from([50, 100, 200]),
        st.sampled_from([0.0, 1.0, 2.0, float("inf"), float("nan")]),
    ),
    min_size=2,
    max_size=15,
)


def truth_of(amounts: list[int]) -> BountyTruth:
    return BountyTruth(np.arange(len(amounts)), np.array(amounts))


@given(cases)
def test_accuracy_against_a_loop_over_pairs(rows):
    truth = truth_of([amount for amount, _ in rows])
    right = tied = pairs = 0
    for amount, score in rows:
        for other, less in rows:
            if amount > other:
                pairs += 1
                right += score > less
                tied += not (score > less or score < less)
    found = pairwise_accuracy(truth, Scores(np.array([s for _, s in rows])), n_bootstrap=20)
    assert (found.pairs, found.ties, truth.n_pairs()) == (pairs, tied, pairs)
    if pairs:
        assert found.mean == pytest.approx((right + tied / 2) / pairs)
        assert found.ties_right == pytest.approx((right + tied) / pairs)
        if pairs > tied:
            assert found.skip_ties == pytest.approx(right / (pairs - tied))
        assert 0 <= found.low <= found.high <= 1


def test_the_interval_is_that_of_resampled_questions():
    rng = np.random.default_rng(1)
    amounts = rng.choice([50, 100, 200], 40)
    scores = amounts + rng.normal(0, 80, 40)
    found = pairwise_accuracy(truth_of(amounts), Scores(scores), n_bootstrap=300, random_state=5)
    draws = np.random.default_rng(5)
    shares = []
    for _ in range(300):
        which = draws.integers(40, size=40)
        again = pairwise_accuracy(truth_of(amounts[which]), Scores(scores[which]), n_bootstrap=1)
        shares.append(again.mean)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(shares, [0.025, 0.975])))


def test_a_part_is_judged_as_if_it_were_alone():
    rng = np.random.default_rng(2)
    truth = truth_of(rng.choice([50, 100], 30))
    scores = rng.random(30)
    which = rng.random(30) < 0.5
    part = pairwise_accuracy(truth, Scores(scores), which=which)
    assert part == pairwise_accuracy(truth.take(which), Scores(scores[which]))
