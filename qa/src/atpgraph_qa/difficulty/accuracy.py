"""How often a method orders two questions as their bounties do.

Of two questions, the one with the larger bounty is taken to be the harder one. A method is scored
by the share of pairs with different bounties that it orders the same way. It may have no opinion on
a pair (a tie); the headline counts such a pair as half right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.evaluation.resampling import percentile_interval, resample_counts
from atpgraph.util.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from atpgraph.util.random import RandomState, generator
from atpgraph_qa.data.site import Rows, Site

_CHUNK = 1 << 22  # entries of a matrix of pairs in memory at a time


@dataclass(frozen=True, eq=False)
class BountyTruth(Rows):
    """Questions with a bounty, by date, and the largest amount that was offered for each.

    (A sum would call a question harder because the same small bounty was offered again.)
    """

    question: Int64Array  # positions in Questions
    amount: Int64Array

    def n_pairs(self) -> int:
        """Return the number of pairs with different bounties."""
        _, sizes = np.unique(self.amount, return_counts=True)
        return int((len(self.amount) ** 2 - np.sum(sizes.astype(np.int64) ** 2)) // 2)


def bounty_truth(site: Site) -> BountyTruth:
    """Return the questions of a site that had a bounty, with the largest that was offered."""
    question, where = np.unique(site.bounties.question, return_inverse=True)
    amount = np.zeros(len(question), dtype=np.int64)
    np.maximum.at(amount, where, site.bounties.amount)
    return BountyTruth(question, amount)


def halves(
    truth: BountyTruth, *, by: Literal["random", "time"] = "random", random_state: RandomState = 0
) -> tuple[BoolArray, BoolArray]:
    """Split the questions into a validation half and a test half, as masks.

    Choices (of a method or a number) are made on the first; the second is only for reporting.
    The validation half is drawn at random, or has the earlier questions.
    """
    if by not in ("random", "time"):
        raise InputError(f"halves must be random or time, not {by!r}.")
    n = len(truth)
    order = generator(random_state).permutation(n) if by == "random" else np.arange(n)
    validation = np.zeros(n, dtype=np.bool_)
    validation[order[: n // 2]] = True
    return validation, ~validation


class Comparator(Protocol):
    """Compare the difficulty of two questions, given by their position in the truth."""

    def harder(self, rows: Int64Array) -> Int8Array:
        """Compare each of `rows` with every question: 1 harder, −1 easier, 0 for no opinion."""


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
        return (mine > self.values).astype(np.int8) - (mine < self.values).astype(np.int8)


@dataclass(frozen=True)
class Accuracy:
    """Pairwise accuracy of one method."""

    mean: float  # share of pairs ordered as the bounties are, ties as ½: the headline
    low: float  # ends of its 95 % interval, bootstrap over questions
    high: float
    skip_ties: float  # without the pairs on which the method has no opinion
    ties_right: float  # with those pairs as right
    pairs: int  # with different bounties
    ties: int  # how many of them the method leaves open

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the JSON output."""
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
    which: npt.ArrayLike | None = None,
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
    which : boolean array, optional
        Use these questions only: a half, or a tag.
    n_bootstrap : int
        Resamples of the questions for the interval. Pairs of a question with itself, which a
        resample contains, have equal bounties and do not count.
    random_state : int or generator
        Seed of the resamples; use the same for all methods, so that their intervals are comparable.

    Examples
    --------
    >>> truth = BountyTruth(np.arange(3), np.array([50, 100, 200]))
    >>> accuracy = pairwise_accuracy(truth, Scores(np.array([1.0, 2.0, 2.0])))
    >>> accuracy.mean, accuracy.skip_ties, accuracy.ties_right
    (0.8333333333333334, 1.0, 1.0)
    """
    kept = np.arange(len(truth)) if which is None else np.flatnonzero(which)
    amount, n = truth.amount[kept], len(kept)
    times = resample_counts(n, n=n_bootstrap, random_state=random_state)
    right, tied, pairs = np.zeros((3, n_bootstrap + 1))
    step = max(1, _CHUNK // max(len(truth), 1))
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        # Each pair once: the row has the larger bounty.
        larger = amount[rows][:, None] > amount
        opinion = comparator.harder(kept[rows])[:, kept]
        masks = larger & (opinion > 0), larger & (opinion == 0), larger
        for total, mask in zip((right, tied, pairs), masks, strict=True):
            total += np.einsum("br,br->b", times[:, rows], times @ mask.T.astype(np.float32))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (right + tied / 2) / pairs
        skip, ties_right = right[0] / (pairs[0] - tied[0]), (right[0] + tied[0]) / pairs[0]
    ends = percentile_interval(float(shares[0]), shares[1:])
    counts = round(float(pairs[0])), round(float(tied[0]))
    return Accuracy(ends.mean, ends.low, ends.high, float(skip), float(ties_right), *counts)


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
    random_state: int = 0,
) -> list[TagRow]:
    """Measure methods among the questions of each tag that has enough of them with a bounty.

    The tag with the most questions comes first; a dump without tags gives none.
    """
    tags = site.tags
    place = np.full(len(tags.indptr) - 1, -1, dtype=np.int64)
    place[truth.question] = np.arange(len(truth))
    rows = np.repeat(place, np.diff(tags.indptr))
    rows, codes = rows[rows >= 0], tags.tags[rows >= 0]
    counts = np.bincount(codes, minlength=len(tags.names))
    result = []
    for code in np.argsort(-counts, kind="stable").tolist():
        if counts[code] < max(2, min_questions):
            break
        which = np.isin(np.arange(len(truth)), rows[codes == code])
        found = {
            name: pairwise_accuracy(
                truth, each, which=which, n_bootstrap=200, random_state=random_state
            )
            for name, each in comparators.items()
        }
        part = truth.take(which)
        result.append(TagRow(tags.names[code], len(part), part.n_pairs(), found))
    return result
