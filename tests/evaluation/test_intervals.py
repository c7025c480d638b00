"""Intervals and comparison over seeds are those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from atpgraph.evaluation.intervals import compare, interval


def test_interval_is_students() -> None:
    values = [0.91, 0.93, 0.92, 0.95, 0.90]
    found = interval(values)
    low, high = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert np.isnan(interval([0.9]).low)
    assert interval([0.9]).to_json() == {"mean": 0.9, "low": None, "high": None}


def test_comparison_is_the_paired_t_test() -> None:
    a, b = [0.91, 0.93, 0.92, 0.95], [0.90, 0.93, 0.90, 0.92]
    assert compare(a, b).p_value == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert compare(a, a).p_value == 1.0
    assert np.isnan(compare([1.0], [0.5]).p_value)
