"""Means with intervals over independent runs, and paired comparison of two methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Interval:
    """A mean and the ends of its interval.

    Attributes
    ----------
    mean, low, high : float
        `low` and `high` are NaN where there is no interval, as for a single value.
    """

    mean: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        """Return the mean and both ends, None for unknown ends."""
        known = bool(np.isfinite(self.low))
        return {
            "mean": self.mean,
            "low": self.low if known else None,
            "high": self.high if known else None,
        }


def interval(
    values: npt.ArrayLike,
    level: float = 0.95,
    *,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """Return the mean and Student's t interval of independent runs.

    The ends are cut to `within`, the range of the quantity. The t interval suits a handful of
    seeds, where a bootstrap over five values would be far too narrow. It covers the randomness of
    the split and of the method, not the choice of the graph.

    Examples
    --------
    >>> interval([0.75, 0.8125, 0.875]).mean
    0.8125
    >>> round(interval([0.90, 0.92, 0.94]).low, 4)
    0.8703
    >>> interval([0.0, 0.5], within=(0.0, 1.0)).high
    1.0
    """
    x = np.asarray(values, dtype=np.float64).reshape(-1)
    mean = float(x.mean())
    if len(x) < 2:
        return Interval(mean, float("nan"), float("nan"))
    from scipy.stats import t as student  # takes half a second

    half = float(student.ppf(0.5 + level / 2, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)))
    return Interval(mean, max(mean - half, within[0]), min(mean + half, within[1]))


@dataclass(frozen=True)
class Comparison:
    """The lead of one method over another on the same cases.

    Attributes
    ----------
    difference : Interval
        Mean of first − second.
    p_value : float
        As the function that compares defines it.
    """

    difference: Interval
    p_value: float


def compare(first: npt.ArrayLike, second: npt.ArrayLike) -> Comparison:
    """Compare two methods over seeds, in pairs: both saw the same splits.

    The p-value is that of a two-sided paired t-test, NaN with fewer than two seeds.

    Examples
    --------
    >>> result = compare([0.91, 0.93, 0.92], [0.90, 0.91, 0.90])
    >>> round(result.difference.mean, 4), result.p_value < 0.05
    (0.0167, True)
    """
    gap = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    difference = interval(gap)
    if len(gap) < 2:
        return Comparison(difference, float("nan"))
    spread = gap.std(ddof=1)
    if spread == 0:
        return Comparison(difference, 1.0 if difference.mean == 0 else 0.0)
    from scipy.stats import t as student  # takes half a second

    statistic = abs(difference.mean) / (spread / np.sqrt(len(gap)))
    return Comparison(difference, float(2 * student.sf(statistic, len(gap) - 1)))
