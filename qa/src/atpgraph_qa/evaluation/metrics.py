"""Where the right person stood, and what that is worth by several metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where the right person stood, question by question.

    Attributes
    ----------
    rank : float64 array
        From 1; infinite where the right person was not among the candidates.
    candidates : int64 array
        How many people were ranked.
    answered : float64 array or None
        Rank of the first person who answered at all, accepted or not.
    """

    rank: Float64Array
    candidates: Int64Array
    answered: Float64Array | None = None

    @property
    def reciprocal(self) -> Float64Array:
        """1 / rank, for MRR."""
        return 1.0 / self.rank

    def hits(self, k: int) -> Float64Array:
        """Whether the right person is in the first k, for P@k and Hits@k."""
        return (self.rank <= k).astype(np.float64)

    @property
    def accuracy(self) -> Float64Array:
        """(|R| − rank) / (|R| − 1); 1 for a single candidate, 0 if the right one is not there."""
        there = np.isfinite(self.rank)
        rank = np.where(there, self.rank, 1.0)
        value = (self.candidates - rank) / np.maximum(self.candidates - 1, 1)
        return np.where(there, np.where(self.candidates > 1, value, 1.0), 0.0)

    @property
    def ndcg(self) -> Float64Array:
        """1 / log2(1 + rank): the gain of one relevant person, the ideal being 1."""
        return 1.0 / np.log2(1.0 + self.rank)

    def metrics(self) -> dict[str, Float64Array]:
        """Return every metric by name, one value per question.

        ``answered@k`` says whether somebody among the first k answered at all.
        """
        answered = {}
        if self.answered is not None:
            answered = {
                f"answered@{k}": (self.answered <= k).astype(np.float64) for k in (1, 3, 5, 10)
            }
        return answered | {
            "mrr": self.reciprocal,
            "p@1": self.hits(1),
            "p@3": self.hits(3),
            "accuracy": self.accuracy,
            "ndcg": self.ndcg,
            "hits@5": self.hits(5),
            "hits@10": self.hits(10),
        }
