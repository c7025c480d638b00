"""Metrics against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cqa.routing.metrics import Ranks, bootstrap, paired_bootstrap, rank_of


def test_by_hand() -> None:
    # Ranks 1, 2.5 (a tie of two after one), 4, and nobody; candidates 4, 3, 5, 10.
    ranks = Ranks(np.array([1.0, 2.5, 4.0, np.inf]), np.array([4, 3, 5, 10]))
    found = {name: values.tolist() for name, values in ranks.metrics().items()}
    assert found["mrr"] == [1.0, 0.4, 0.25, 0.0]
    assert found["p@1"] == [1.0, 0.0, 0.0, 0.0]
    assert found["p@3"] == [1.0, 1.0, 0.0, 0.0]
    assert found["accuracy"] == [1.0, 0.25, 0.25, 0.0]
    assert found["hits@5"] == [1.0, 1.0, 1.0, 0.0]
    assert found["ndcg"] == pytest.approx([1.0, 1 / np.log2(3.5), 1 / np.log2(5), 0.0])


def test_a_single_candidate_is_right() -> None:
    assert Ranks(np.array([1.0]), np.array([1])).accuracy.tolist() == [1.0]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
def test_rank_is_the_mean_over_all_orders_of_equals(scores: list[int], data: st.DataObject) -> None:
    truth = data.draw(st.integers(0, len(scores) - 1))
    above = sum(s > scores[truth] for s in scores)
    equal = sum(s == scores[truth] for s in scores)
    places = range(above + 1, above + equal + 1)
    assert rank_of(scores, truth) == pytest.approx(np.mean(list(places)))


def test_intervals() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(400)
    found = bootstrap(values)
    half = 1.96 * values.std() / 20
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.006)
    assert found.high == pytest.approx(values.mean() + half, abs=0.006)


def test_paired_intervals_see_small_constant_gaps() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(100)
    better = paired_bootstrap(values + 0.01, values)
    assert better.p_value == 0.0
    assert better.difference.low == pytest.approx(0.01)
    assert paired_bootstrap(values, values).p_value == 1.0
    assert paired_bootstrap(rng.random(100), rng.random(100)).difference.low < 0.1
