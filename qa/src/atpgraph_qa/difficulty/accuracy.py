"""How often a method orders two questions as their bounties do.

A method is scored by the share of pairs with different bounties that it orders the same way. It may
have no opinion on a pair (a tie); the headline counts such a pair as half right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from atpgraph.evaluation.resampling import percentile_interval, resample_counts
from atpgraph.util.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from atpgraph.util.random import RandomState
from atpgraph_qa.data.site import Site
from atpgraph_qa.difficulty.truth import BountyTruth

_CHUNK = 1 << 22  # entries of a matrix of pairs that are held at a time


class Comparator(Protocol):
    """Says which of two questions is harder; questions are given by their place in the truth."""

    def harder(self, rows: Int64Array) -> Int8Array:
        """Compare each of `rows` with every question.

        Returns
        -------
        int8 array
            1 where the row is harder, −1 where the other one is, 0 for no opinion.
        """


@dataclass(frozen=True, eq=False)
class Scores:
    """A comparator by one number for every question: larger = harder, NaN = unknown.

    Examples
    --------
    >>> Scores(np.array([1.0, 3.0, np.nan])).harder(np.array([0]))
    array([[ 0, -1,  0]], dtype=int8)
    """

    values: Float64Array

    @classmethod
    def of(cls, truth: BountyTruth, site: Site, scores: Mapping[int, float]) -> Scores:
        """Take numbers by question id; questions that are not in the mapping are unknown."""
        ids = site.questions.id[truth.question].tolist()
        return cls(np.array([scores.get(number, np.nan) for number in ids], dtype=np.float64))

    def harder(self, rows: Int64Array) -> Int8Array:
        """Compare the numbers."""
        mine = self.values[rows][:, None]
        result: Int8Array = (mine > self.values).astype(np.int8)
        result -= (mine < self.values).astype(np.int8)
        return result


@dataclass(frozen=True, eq=False)
class _Subset:
    """A comparator of some of the questions only."""

    comparator: Comparator
    which: Int64Array

    def harder(self, rows: Int64Array) -> Int8Array:
        return self.comparator.harder(self.which[rows])[:, self.which]


@dataclass(frozen=True)
class Accuracy:
    """Pairwise accuracy of one method.

    Attributes
    ----------
    mean : float
        Share of pairs ordered as the bounties are, ties as ½: the headline.
    low, high : float
        95 % bootstrap interval of it, over questions.
    skip_ties : float
        Without the pairs on which the method has no opinion.
    ties_right : float
        With those pairs as right.
    pairs, ties : int
        Pairs with different bounties, and how many of them the method leaves open.
    """

    mean: float
    low: float
    high: float
    skip_ties: float
    ties_right: float
    pairs: int
    ties: int

    def to_dict(self) -> dict[str, Any]:
        """Return the form of the JSON output."""
        return {
            "accuracy": {"mean": self.mean, "low": self.low, "high": self.high},
            "accuracy_skip_ties": self.skip_ties,
            "accuracy_ties_right": self.ties_right,
            "ties": self.ties,
        }


def pairwise_accuracy(
    truth: BountyTruth,
    comparator: Comparator,
    *,
    n_bootstrap: int = 1000,
    random_state: RandomState = 0,
) -> Accuracy:
    """Measure a method over all pairs with different bounties.

    Parameters
    ----------
    truth : BountyTruth
        The questions.
    comparator : Comparator
        Compares them, for example :class:`Scores`.
    n_bootstrap : int
        Resamples of the questions for the interval. Pairs of a question with itself, which a
        resample holds, have equal bounties and do not count.
    random_state : int or generator
        Where the resamples come from; the same for all methods makes their intervals comparable.

    Examples
    --------
    >>> truth = BountyTruth(np.arange(3), np.array([50, 100, 200]))
    >>> accuracy = pairwise_accuracy(truth, Scores(np.array([1.0, 2.0, 2.0])))
    >>> accuracy.mean, accuracy.skip_ties, accuracy.ties_right
    (0.8333333333333334, 1.0, 1.0)
    """
    n = len(truth)
    times = resample_counts(n, n=n_bootstrap, random_state=random_state)
    right, tied, pairs = np.zeros((3, n_bootstrap + 1))
    step = max(1, _CHUNK // max(n, 1))
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        # Each pair once: the row has the larger bounty.
        larger = truth.amount[rows][:, None] > truth.amount
        opinion = comparator.harder(rows)
        weight = times[:, rows]
        for total, mask in (
            (right, larger & (opinion > 0)),
            (tied, larger & (opinion == 0)),
            (pairs, larger),
        ):
            total += np.einsum("br,br->b", weight, times @ mask.T.astype(np.float32))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (right + tied / 2) / pairs
        skip = right[0] / (pairs[0] - tied[0])
    interval = percentile_interval(float(shares[0]), shares[1:])
    return Accuracy(
        mean=interval.mean,
        low=interval.low,
        high=interval.high,
        skip_ties=float(skip),
        ties_right=float((right[0] + tied[0]) / pairs[0]) if pairs[0] else float("nan"),
        pairs=round(float(pairs[0])),
        ties=round(float(tied[0])),
    )


def evaluate(
    truth: BountyTruth,
    comparators: Mapping[str, Comparator],
    *,
    which: npt.ArrayLike | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> dict[str, Accuracy]:
    """Measure several methods over the same pairs and the same resamples.

    Parameters
    ----------
    truth : BountyTruth
        The questions that the comparators know.
    comparators : dict
        One for each method, by name.
    which : boolean array, optional
        Use these questions only: a half, or a tag.
    n_bootstrap, random_state : int
        As for :func:`pairwise_accuracy`.
    """
    kept = np.arange(len(truth)) if which is None else np.flatnonzero(which)
    part = truth.take(kept)
    return {
        name: pairwise_accuracy(
            part, _Subset(comparator, kept), n_bootstrap=n_bootstrap, random_state=random_state
        )
        for name, comparator in comparators.items()
    }


@dataclass(frozen=True)
class TagRow:
    """Accuracies among the questions of one tag."""

    tag: str
    questions: int
    pairs: int
    methods: dict[str, Accuracy]


def by_tag(
    site: Site,
    truth: BountyTruth,
    comparators: Mapping[str, Comparator],
    *,
    min_questions: int = 20,
    n_bootstrap: int = 200,
    random_state: int = 0,
) -> list[TagRow]:
    """Measure methods among the questions of each tag that has enough of them with a bounty.

    Returns
    -------
    list of TagRow
        Most questions first. Empty where the dump has no tags.
    """
    tags = site.tags
    place = np.full(len(tags.indptr) - 1, -1, dtype=np.int64)
    place[truth.question] = np.arange(len(truth))
    rows = place[np.repeat(np.arange(len(place)), np.diff(tags.indptr))]
    compared = rows >= 0
    rows, codes = rows[compared], tags.tags[compared]
    counts = np.bincount(codes, minlength=len(tags.names))
    result = []
    for code in np.argsort(-counts, kind="stable").tolist():
        if counts[code] < max(2, min_questions):
            break
        which: BoolArray = np.zeros(len(truth), dtype=np.bool_)
        which[rows[codes == code]] = True
        accuracies = evaluate(
            truth, comparators, which=which, n_bootstrap=n_bootstrap, random_state=random_state
        )
        part = truth.take(which)
        result.append(TagRow(tags.names[code], len(part), part.n_pairs(), accuracies))
    return result
