"""Intervals and paired comparison by resampling the evaluated cases."""

from __future__ import annotations

import numpy as np

from atpgraph.evaluation.intervals import Comparison, Interval
from atpgraph.util.arrays import Float32Array, Float64Array
from atpgraph.util.random import RandomState, generator

_NUMBERS = 2_000_000  # drawn at a time


def bootstrap(
    values: Float64Array, *, n: int = 2000, level: float = 0.95, random_state: RandomState = 0
) -> Interval:
    """Return the mean of one value per case, with its percentile interval over resampled cases.

    Examples
    --------
    >>> bootstrap(np.ones(5)).low
    1.0
    """
    if not len(values):
        return percentile_interval(float("nan"), np.zeros(0))
    return percentile_interval(float(values.mean()), _means(values, n, random_state), level)


def paired_bootstrap(
    first: Float64Array, second: Float64Array, *, n: int = 10_000, random_state: RandomState = 0
) -> Comparison:
    """Return the mean lead of one method over another on the same cases, resampled together.

    The p-value is one-sided: the share of resamples in which the first method is not better.

    Examples
    --------
    >>> paired_bootstrap(np.array([1.0, 0.5, 1.0]), np.array([0.5, 0.25, 0.5])).p_value
    0.0
    """
    gap = first - second
    if not len(gap):
        return Comparison(bootstrap(gap), 1.0)
    means = _means(gap, n, random_state)
    return Comparison(percentile_interval(float(gap.mean()), means), float(np.mean(means <= 0)))


def resample_counts(cases: int, *, n: int = 1000, random_state: RandomState = 0) -> Float32Array:
    """Return how often each case is in each resample, for statistics that are not plain means.

    Returns
    -------
    float32 array of shape (n + 1, cases)
        Row 0 is the sample itself, every case once.

    Examples
    --------
    >>> counts = resample_counts(4, n=2)
    >>> counts[0].tolist(), counts.sum(axis=1).tolist()
    ([1.0, 1.0, 1.0, 1.0], [4.0, 4.0, 4.0])
    """
    rng = generator(random_state)
    counts = np.ones((n + 1, cases), dtype=np.float32)
    for row in range(1, n + 1):
        counts[row] = np.bincount(rng.integers(cases, size=cases), minlength=cases) if cases else 0
    return counts


def percentile_interval(value: float, resampled: Float64Array, level: float = 0.95) -> Interval:
    """Return a statistic with the interval that contains this share of its resampled values.

    Resamples in which the statistic is not defined (NaN) do not count.

    Examples
    --------
    >>> percentile_interval(0.5, np.array([0.25, 0.5, np.nan, 0.75]), level=1.0)
    Interval(mean=0.5, low=0.25, high=0.75)
    """
    defined = resampled[np.isfinite(resampled)]
    if not len(defined):
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(defined, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(value, float(low), float(high))


def _means(values: Float64Array, n: int, random_state: RandomState) -> Float64Array:
    rng = generator(random_state)
    size = len(values)
    # In slices, so that a long test set does not need n × size numbers at once.
    step = max(1, _NUMBERS // size)
    parts = [
        values[rng.integers(size, size=(min(step, n - done), size))].mean(axis=1)
        for done in range(0, n, step)
    ]
    return np.concatenate(parts)
