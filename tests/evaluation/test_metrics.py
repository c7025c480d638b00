"""Metrics equal scikit-learn's, or a hand computation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from sklearn import metrics as sk

from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import (
    auc,
    average_precision,
    hits_at,
    mean_reciprocal_rank,
    ranks_among,
    roc_curve,
)

# Few distinct values, so that ties are common.
scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=30)


def labelled(good: list[float], bad: list[float]) -> tuple[list[int], list[float]]:
    return [1] * len(good) + [0] * len(bad), good + bad


@given(scores, scores)
def test_auc(good: list[float], bad: list[float]) -> None:
    assert auc(good, bad) == pytest.approx(sk.roc_auc_score(*labelled(good, bad)))


@given(scores, scores)
def test_average_precision(good: list[float], bad: list[float]) -> None:
    expected = sk.average_precision_score(*labelled(good, bad))
    assert average_precision(good, bad) == pytest.approx(expected)


@given(scores, scores)
def test_roc_curve(good: list[float], bad: list[float]) -> None:
    expected = sk.roc_curve(*labelled(good, bad), drop_intermediate=False)
    false, true = roc_curve(good, bad)
    assert false == pytest.approx(expected[0])
    assert true == pytest.approx(expected[1])
    assert trapezoid(true, false) == pytest.approx(auc(good, bad))


def test_roc_curve_on_a_grid() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)
    false, true = roc_curve(good, bad, points=101)
    assert len(false) == 101
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert (np.diff(true) >= 0).all()
    assert trapezoid(true, false) == pytest.approx(auc(good, bad), abs=0.01)


@given(scores, scores)
def test_ranks_among(good: list[float], bad: list[float]) -> None:
    expected = [1 + sum(b > g for b in bad) + sum(b == g for b in bad) / 2 for g in good]
    assert ranks_among(good, bad).tolist() == expected


def test_hits_and_reciprocal_ranks_by_hand() -> None:
    ranks = [1, 20, 20.5, 100]
    assert hits_at(ranks, 20) == 0.5
    assert hits_at(ranks, 100) == 1.0
    assert mean_reciprocal_rank(ranks) == pytest.approx((1 + 1 / 20 + 1 / 20.5 + 1 / 100) / 4)


def test_what_cannot_be_scored() -> None:
    with pytest.raises(InputError, match="at least one"):
        auc([], [1.0])
    with pytest.raises(InputError, match="NaN"):
        auc([float("nan")], [1.0])
