"""Resampling against the obvious loop, and numbers that never change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.evaluation import (
    bootstrap,
    paired_bootstrap,
    percentile_interval,
    resample_counts,
)


def test_the_interval_is_that_of_resampled_means() -> None:
    values = np.random.default_rng(1).random(40)
    rng = np.random.default_rng(7)
    means = [values[rng.integers(40, size=40)].mean() for _ in range(500)]
    low, high = np.quantile(means, [0.05, 0.95])
    result = bootstrap(values, n=500, level=0.9, random_state=7)
    assert (result.mean, result.low, result.high) == pytest.approx((values.mean(), low, high))


def test_slices_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).random(30)
    whole = bootstrap(values, n=100)
    monkeypatch.setattr("atpgraph.evaluation.resampling._NUMBERS", 70)
    assert bootstrap(values, n=100) == whole


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=20))
def test_comparing_is_antisymmetric(pairs: list[tuple[float, float]]) -> None:
    first, second = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    there, back = paired_bootstrap(first, second, n=50), paired_bootstrap(second, first, n=50)
    assert there.difference.mean == pytest.approx(-back.difference.mean, nan_ok=True)
    assert there.difference.low == pytest.approx(-back.difference.high, nan_ok=True)
    assert there.p_value + back.p_value >= 1.0 - 1e-12  # both count the ties


def test_counts_are_resamples_of_all_cases() -> None:
    counts = resample_counts(25, n=400, random_state=3)
    assert counts.shape == (401, 25)
    assert np.all(counts.sum(axis=1) == 25)
    values = np.random.default_rng(3).random(25)
    rng = np.random.default_rng(3)
    means = [values[rng.integers(25, size=25)].mean() for _ in range(400)]
    assert counts[1:] @ values / 25 == pytest.approx(np.array(means), rel=1e-6)
    assert resample_counts(0, n=2).shape == (3, 0)


def test_nothing_to_resample() -> None:
    empty = bootstrap(np.zeros(0))
    assert np.isnan([empty.mean, empty.low, empty.high]).all()
    assert paired_bootstrap(np.zeros(0), np.zeros(0)).p_value == 1.0
    undefined = percentile_interval(0.5, np.array([np.nan, np.nan]))
    assert undefined.to_json() == {"mean": 0.5, "low": None, "high": None}
