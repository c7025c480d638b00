"""Which of two questions is harder, as far as anybody knows: the one with the larger bounty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph.util.random import RandomState, generator
from atpgraph_qa.data.site import Site


@dataclass(frozen=True, eq=False)
class BountyTruth:
    """Questions with a bounty.

    Attributes
    ----------
    question : int64 array
        Positions in :class:`~atpgraph_qa.data.site.Questions`, so by date.
    amount : int64 array
        Points offered for each: the largest of its bounties. (A sum would call a question harder
        because the same small bounty was offered again.)
    """

    question: Int64Array
    amount: Int64Array

    def __len__(self) -> int:
        return len(self.question)

    def take(self, which: Int64Array | BoolArray) -> BountyTruth:
        """Return some of the questions, by mask or place."""
        return BountyTruth(self.question[which], self.amount[which])

    def n_pairs(self) -> int:
        """Return the number of pairs with different bounties."""
        _, sizes = np.unique(self.amount, return_counts=True)
        return int((len(self.amount) ** 2 - np.sum(sizes.astype(np.int64) ** 2)) // 2)


def bounty_truth(site: Site) -> BountyTruth:
    """Return the questions of a site that had a bounty, with the largest that was offered."""
    bounties = site.bounties
    question, where = np.unique(bounties.question, return_inverse=True)
    amount = np.zeros(len(question), dtype=np.int64)
    np.maximum.at(amount, where, bounties.amount)
    return BountyTruth(question, amount)


def halves(
    truth: BountyTruth,
    *,
    by: Literal["random", "time"] = "random",
    random_state: RandomState = 0,
) -> tuple[BoolArray, BoolArray]:
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
