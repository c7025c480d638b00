"""How good a ranking of people is, with intervals over the questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph._random import RandomState, generator
from atpgraph.linkpred.statistics import Interval

Floats = npt.NDArray[np.float64]


def rank_of(scores: npt.ArrayLike, truth: int) -> float:
    """Rank from 1 of the entry at `truth`, larger scores first, the mean rank among equals.

    Examples
    --------
    >>> rank_of([0.2, 0.9, 0.2, 0.1], 0)
    2.5
    """
    values = np.asarray(scores, dtype=np.float64)
    above = np.count_nonzero(values > values[truth])
    equal = np.count_nonzero(values == values[truth])
    return float(above + (equal + 1) / 2)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where the right person stood, question by question.

    Attributes
    ----------
    rank : float64 array
        From 1; infinite where the right person was not among the candidates.
    candidates : int64 array
        How many people were ranked.
    """

    rank: Floats
    candidates: npt.NDArray[np.int64]

    @property
    def reciprocal(self) -> Floats:
        """1 / rank, for MRR."""
        return 1.0 / self.rank

    def hits(self, k: int) -> Floats:
        """Whether the right person is in the first k, for P@k and Hits@k."""
        return (self.rank <= k).astype(np.float64)

    @property
    def accuracy(self) -> Floats:
        """(|R| − rank) / (|R| − 1); 1 for a single candidate, 0 if the right one is not there."""
        found = np.isfinite(self.rank)
        rank = np.where(found, self.rank, 1.0)
        value = (self.candidates - rank) / np.maximum(self.candidates - 1, 1)
        return np.where(found, np.where(self.candidates > 1, value, 1.0), 0.0)

    @property
    def ndcg(self) -> Floats:
        """1 / log2(1 + rank): the gain of one relevant person, the ideal being 1."""
        return 1.0 / np.log2(1.0 + self.rank)

    def metrics(self) -> dict[str, Floats]:
        """Every metric by name, one value per question."""
        return {
            "mrr": self.reciprocal,
            "p@1": self.hits(1),
            "p@3": self.hits(3),
            "accuracy": self.accuracy,
            "ndcg": self.ndcg,
            "hits@5": self.hits(5),
            "hits@10": self.hits(10),
        }


def bootstrap(
    values: Floats, *, n: int = 2000, level: float = 0.95, random_state: RandomState = 0
) -> Interval:
    """Mean and percentile interval over resampled questions.

    Examples
    --------
    >>> bootstrap(np.ones(5)).low
    1.0
    """
    if not len(values):
        return Interval(float("nan"), float("nan"), float("nan"))
    means = _resampled(values, n, random_state)
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(values.mean()), float(low), float(high))


@dataclass(frozen=True)
class Paired:
    """How far one method is above another on the same questions.

    Attributes
    ----------
    difference : Interval
        Mean of first − second, with its percentile interval over resampled questions.
    p_value : float
        Share of resamples in which the first is not above the second.
    """

    difference: Interval
    p_value: float


def paired_bootstrap(
    first: Floats, second: Floats, *, n: int = 10_000, random_state: RandomState = 0
) -> Paired:
    """Resample questions, both methods on the same ones.

    Examples
    --------
    >>> paired_bootstrap(np.array([1.0, 0.5, 1.0]), np.array([0.5, 0.25, 0.5])).p_value
    0.0
    """
    gap = first - second
    if not len(gap):
        return Paired(bootstrap(gap), 1.0)
    means = _resampled(gap, n, random_state)
    low, high = np.quantile(means, [0.025, 0.975])
    difference = Interval(float(gap.mean()), float(low), float(high))
    return Paired(difference, float(np.mean(means <= 0)))


ABSTAIN_BELOW = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)


def reliability(stated: Floats, right: Floats, groups: int = 8) -> dict[str, Any]:
    """How far stated confidences are to be believed, and what abstaining would do.

    Parameters
    ----------
    stated, right : float64 arrays
        Confidence in the first choice of every question, and whether it was right.
    groups : int
        At most so many groups of equal size, by confidence, of five questions or more.

    Returns
    -------
    dict
        ``bins``; ``error``, the mean distance between stated and observed over them; ``brier``, and
        ``brier_constant`` for always stating the share that is right; ``abstention``, the share of
        questions answered and of those right if nothing is said below a confidence.

    Examples
    --------
    >>> reliability(np.full(8, 0.5), np.tile([0.0, 1.0], 4))["error"]
    0.0
    """
    if not len(stated):
        return {"bins": [], "error": None, "brier": None, "brier_constant": None, "abstention": []}
    order = np.argsort(stated, kind="stable")
    parts = np.array_split(order, min(groups, max(1, len(order) // 5)))
    bins = [
        {
            "questions": len(part),
            "stated": float(stated[part].mean()),
            "right": float(right[part].mean()),
        }
        for part in parts
    ]
    away = sum(b["questions"] * abs(b["stated"] - b["right"]) for b in bins)
    abstention = []
    for least in ABSTAIN_BELOW:
        kept = stated >= least
        if kept.any():
            share, good = float(kept.mean()), float(right[kept].mean())
            abstention.append({"least": least, "answered": share, "right": good})
    return {
        "bins": bins,
        "error": away / len(stated),
        "brier": float(np.mean((stated - right) ** 2)),
        "brier_constant": float(np.mean((right.mean() - right) ** 2)),
        "abstention": abstention,
    }


def _resampled(values: Floats, n: int, random_state: RandomState) -> Floats:
    rng = generator(random_state)
    size = len(values)
    # In slices, so that a long test set does not need n × size numbers at once.
    step = max(1, 2_000_000 // size)
    parts = [
        values[rng.integers(size, size=(min(step, n - done), size))].mean(axis=1)
        for done in range(0, n, step)
    ]
    return np.concatenate(parts)
