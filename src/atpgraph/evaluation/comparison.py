"""Paired comparison of two methods over seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atpgraph.evaluation.intervals import Interval, interval


@dataclass(frozen=True)
class Comparison:
    """How far one method is above another on the same cases.

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
    """Paired comparison over seeds: both methods saw the same splits.

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
