"""AUC, average precision, ROC curve, ranks, Hits@K and mean reciprocal rank.

Each is a few lines on top of ranks and a sort, so scikit-learn is not a run-time dependency; the
tests compare them with scikit-learn's values. Ties never help or hurt: a score tied with others
gets the mean of the ranks it could have.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.util.arrays import AnyArray, Float64Array, average_ranks


def auc(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> float:
    """Return the area under the ROC curve: P(positive above negative) + ½ P(tie).

    Examples
    --------
    >>> auc([0.9, 0.4], [0.4, 0.1])
    0.875
    """
    good, bad = _scores(positives, negatives)
    ranks = average_ranks(np.concatenate([good, bad]))
    above = ranks[: len(good)].sum() - len(good) * (len(good) + 1) / 2
    return float(above / (len(good) * len(bad)))


def average_precision(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> float:
    """Σ (R_k − R_{k−1}) P_k over the distinct thresholds k, highest first.

    Examples
    --------
    >>> average_precision([0.9, 0.4], [0.4, 0.1])
    0.8333333333333333
    """
    good, bad = _scores(positives, negatives)
    true, false = _cumulative(good, bad)
    steps = np.diff(true, prepend=0.0)
    return float((steps * true / (true + false)).sum() / len(good))


def hits_at(ranks: npt.ArrayLike, k: int) -> float:
    """Return the share of ranks (from 1) that are at most `k`.

    Examples
    --------
    >>> hits_at([1, 2.5, 40], 20)
    0.6666666666666666
    """
    return float(np.mean(np.asarray(ranks, dtype=np.float64) <= k))


def mean_reciprocal_rank(ranks: npt.ArrayLike) -> float:
    """Return the mean of 1 / rank.

    Examples
    --------
    >>> mean_reciprocal_rank([1, 2, 4])
    0.5833333333333334
    """
    return float(np.mean(1.0 / np.asarray(ranks, dtype=np.float64)))


def rank_of(scores: npt.ArrayLike, truth: int) -> float:
    """Return the rank from 1 of the entry at `truth`, larger scores first, the mean rank for ties.

    Examples
    --------
    >>> rank_of([0.2, 0.9, 0.2, 0.1], 0)
    2.5
    """
    values = np.asarray(scores, dtype=np.float64)
    above = np.count_nonzero(values > values[truth])
    equal = np.count_nonzero(values == values[truth])
    return float(above + (equal + 1) / 2)


def ranks_among(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> Float64Array:
    """Return the rank of each positive among all negatives: 1 + higher ones + ½ equal ones.

    Examples
    --------
    >>> ranks_among([0.9, 0.4, 0.0], [0.4, 0.1]).tolist()
    [1.0, 1.5, 3.0]
    """
    good, bad = _scores(positives, negatives)
    bad = np.sort(bad)
    below = np.searchsorted(bad, good, side="left")
    up_to = np.searchsorted(bad, good, side="right")
    ranks: Float64Array = 1.0 + (len(bad) - up_to) + 0.5 * (up_to - below)
    return ranks


def roc_curve(
    positives: npt.ArrayLike, negatives: npt.ArrayLike, points: int | None = None
) -> tuple[Float64Array, Float64Array]:
    """Return false and true positive rates, from (0, 0) to (1, 1), one corner per distinct score.

    Parameters
    ----------
    positives, negatives : arrays of scores
    points : int, optional
        Read the curve at this many evenly spaced false positive rates instead.

    Examples
    --------
    >>> false, true = roc_curve([3, 2], [1, 0])
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0, 1.0])
    """
    good, bad = _scores(positives, negatives)
    true, false = _cumulative(good, bad)
    x = np.concatenate([[0.0], false / len(bad)])
    y = np.concatenate([[0.0], true / len(good)])
    if points is None:
        return x, y
    grid = np.linspace(0.0, 1.0, points)
    # np.interp reads the top of a vertical rise: the last y of equal x.
    keep = np.append(np.flatnonzero(np.diff(x) > 0), len(x) - 1)
    knots_x, knots_y = np.concatenate([[0.0], x[keep]]), np.concatenate([[0.0], y[keep]])
    values = np.interp(grid, knots_x, knots_y)
    values[0] = 0.0
    return grid, values


def _scores(
    positives: npt.ArrayLike, negatives: npt.ArrayLike
) -> tuple[Float64Array, Float64Array]:
    good = np.asarray(positives, dtype=np.float64).reshape(-1)
    bad = np.asarray(negatives, dtype=np.float64).reshape(-1)
    if not len(good) or not len(bad):
        raise InputError("A metric needs at least one positive and one negative score.")
    if np.isnan(good).any() or np.isnan(bad).any():
        raise InputError("A score is not a number (NaN); scores must be comparable.")
    return good, bad


def _cumulative(good: Float64Array, bad: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return true and false positives at each distinct threshold, highest threshold first."""
    scores = np.concatenate([good, bad])
    hit = np.concatenate([np.ones(len(good)), np.zeros(len(bad))])
    order = np.argsort(-scores, kind="stable")
    scores, hit = scores[order], hit[order]
    last: AnyArray = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    true = np.cumsum(hit)[last]
    return true, last + 1.0 - true
