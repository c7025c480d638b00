"""How well a method tells which of two questions is harder, against bounties.

The truth is money: a question somebody offered more reputation for is the harder one. A method is
judged by the share of pairs with different bounties that it orders the same way. A method may have
no opinion on a pair (a tie); the headline counts such a pair as half right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from atpgraph._random import RandomState, generator
from atpgraph.cqa.site import Int64, Site
from atpgraph.errors import InputError

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_CHUNK = 1 << 22  # entries of a matrix of pairs that are held at a time


@dataclass(frozen=True, eq=False)
class BountyTruth:
    """Questions with a bounty.

    Attributes
    ----------
    question : int64 array
        Positions in :class:`~atpgraph.cqa.site.Questions`, so by date.
    amount : int64 array
        Points offered for each: the largest of its bounties. (A sum would call a question harder
        because the same small bounty was offered again.)
    """

    question: Int64
    amount: Int64

    def __len__(self) -> int:
        return len(self.question)

    def take(self, which: Int64 | Bools) -> BountyTruth:
        """Some of the questions, by mask or position."""
        return BountyTruth(self.question[which], self.amount[which])

    def n_pairs(self) -> int:
        """Number of pairs with different bounties."""
        _, sizes = np.unique(self.amount, return_counts=True)
        return int((len(self.amount) ** 2 - np.sum(sizes.astype(np.int64) ** 2)) // 2)


def bounty_truth(site: Site) -> BountyTruth:
    """The questions of a site that had a bounty, and the largest that was offered."""
    bounties = site.bounties
    question, where = np.unique(bounties.question, return_inverse=True)
    amount = np.zeros(len(question), dtype=np.int64)
    np.maximum.at(amount, where, bounties.amount)
    return BountyTruth(question, amount)


class Judge(Protocol):
    """A method that compares questions; they are given by place in the truth."""

    def harder(self, rows: Int64) -> npt.NDArray[np.int8]:
        """For each of `rows` against every question: 1 where the row is harder, −1 where the
        other one is, 0 for no opinion."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A judge with one number for every question of the truth, larger = harder, NaN = unknown.

    Examples
    --------
    >>> Scores(np.array([1.0, 3.0, np.nan])).harder(np.array([0]))
    array([[ 0, -1,  0]], dtype=int8)
    """

    values: Floats

    @classmethod
    def of(cls, truth: BountyTruth, site: Site, scores: Mapping[int, float]) -> Scores:
        """From numbers by question id; questions that are not in the mapping are unknown."""
        ids = site.questions.id[truth.question].tolist()
        return cls(np.array([scores.get(number, np.nan) for number in ids], dtype=np.float64))

    def harder(self, rows: Int64) -> npt.NDArray[np.int8]:
        """Compare the numbers."""
        mine = self.values[rows][:, None]
        result: npt.NDArray[np.int8] = (mine > self.values).astype(np.int8)
        result -= (mine < self.values).astype(np.int8)
        return result


@dataclass(frozen=True, eq=False)
class _Part:
    """A judge seen by some of the questions only."""

    judge: Judge
    which: Int64

    def harder(self, rows: Int64) -> npt.NDArray[np.int8]:
        return self.judge.harder(self.which[rows])[:, self.which]


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
        """In the form of the JSON output."""
        return {
            "accuracy": {"mean": self.mean, "low": self.low, "high": self.high},
            "accuracy_skip_ties": self.skip_ties,
            "accuracy_ties_right": self.ties_right,
            "ties": self.ties,
        }


def pairwise_accuracy(
    truth: BountyTruth, judge: Judge, *, n_bootstrap: int = 1000, random_state: RandomState = 0
) -> Accuracy:
    """Accuracy of a judge over all pairs with different bounties.

    Parameters
    ----------
    truth : BountyTruth
        The questions.
    judge : Judge
        Compares them, for example :class:`Scores`.
    n_bootstrap : int
        Resamples of the questions for the interval. Pairs of a question with itself, which a
        resample holds, have equal bounties and do not count.
    random_state : int or generator
        Where the resamples come from; the same for all methods makes their intervals comparable.

    Examples
    --------
    >>> truth = BountyTruth(np.arange(3), np.array([50, 100, 200]))
    >>> found = pairwise_accuracy(truth, Scores(np.array([1.0, 2.0, 2.0])))
    >>> found.mean, found.skip_ties, found.ties_right
    (0.8333333333333334, 1.0, 1.0)
    """
    n = len(truth)
    rng = generator(random_state)
    # How often each question is in each resample; row 0 is the sample itself.
    times = np.ones((n_bootstrap + 1, n), dtype=np.float32)
    for row in range(1, n_bootstrap + 1):
        times[row] = np.bincount(rng.integers(n, size=n), minlength=n) if n else 0
    right = np.zeros(n_bootstrap + 1)
    tied = np.zeros(n_bootstrap + 1)
    pairs = np.zeros(n_bootstrap + 1)
    step = max(1, _CHUNK // max(n, 1))
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        # Each pair once: the row has the larger bounty.
        larger = truth.amount[rows][:, None] > truth.amount
        opinion = judge.harder(rows)
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
    resampled = shares[1:][np.isfinite(shares[1:])]
    low, high = np.quantile(resampled, [0.025, 0.975]) if len(resampled) else (np.nan, np.nan)
    return Accuracy(
        mean=float(shares[0]),
        low=float(low),
        high=float(high),
        skip_ties=float(skip),
        ties_right=float((right[0] + tied[0]) / pairs[0]) if pairs[0] else float("nan"),
        pairs=round(float(pairs[0])),
        ties=round(float(tied[0])),
    )


def halves(
    truth: BountyTruth,
    *,
    by: Literal["random", "time"] = "random",
    random_state: RandomState = 0,
) -> tuple[Bools, Bools]:
    """Split the questions into a validation half and a test half.

    Anything that is chosen (a method, a number) is chosen on the first; the second only reports.

    Parameters
    ----------
    truth : BountyTruth
        The questions.
    by : {"random", "time"}
        A seeded draw, or the earlier and the later questions.
    random_state : int or generator
        Seed of the draw.

    Returns
    -------
    validation, test : boolean arrays
    """
    n = len(truth)
    if by == "time":
        validation = np.arange(n) < n // 2
    elif by == "random":
        validation = np.zeros(n, dtype=np.bool_)
        validation[generator(random_state).permutation(n)[: n // 2]] = True
    else:
        raise InputError(f"Halves are random or by time, not {by!r}.")
    return validation, ~validation


def evaluate(
    truth: BountyTruth,
    judges: Mapping[str, Judge],
    *,
    which: npt.ArrayLike | None = None,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> dict[str, Accuracy]:
    """Accuracy of several judges over the same pairs and the same resamples.

    Parameters
    ----------
    truth : BountyTruth
        The questions the judges know.
    judges : dict
        Methods by name.
    which : boolean array, optional
        Use these questions only: a half, or a tag.
    n_bootstrap, random_state : int
        As for :func:`pairwise_accuracy`.
    """
    kept = np.arange(len(truth)) if which is None else np.flatnonzero(which)
    part = truth.take(kept)
    return {
        name: pairwise_accuracy(
            part, _Part(judge, kept), n_bootstrap=n_bootstrap, random_state=random_state
        )
        for name, judge in judges.items()
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
    judges: Mapping[str, Judge],
    *,
    min_questions: int = 20,
    n_bootstrap: int = 200,
    random_state: int = 0,
    on_row: Callable[[], None] = lambda: None,
) -> list[TagRow]:
    """Accuracies among the questions of each tag that has enough of them with a bounty.

    Returns
    -------
    list of TagRow
        Most questions first. Empty where the dump has no tags.
    """
    tags = site.tags
    place = np.full(len(tags.indptr) - 1, -1, dtype=np.int64)
    place[truth.question] = np.arange(len(truth))
    rows = place[np.repeat(np.arange(len(place)), np.diff(tags.indptr))]
    found = rows >= 0
    rows, numbers = rows[found], tags.tags[found]
    counts = np.bincount(numbers, minlength=len(tags.names))
    result = []
    for number in np.argsort(-counts, kind="stable").tolist():
        if counts[number] < max(2, min_questions):
            break
        which = np.zeros(len(truth), dtype=np.bool_)
        which[rows[numbers == number]] = True
        accuracies = evaluate(
            truth, judges, which=which, n_bootstrap=n_bootstrap, random_state=random_state
        )
        part = truth.take(which)
        result.append(TagRow(tags.names[number], len(part), part.n_pairs(), accuracies))
        on_row()
    return result
