"""What is measured of the scores of a test: metrics, and curves to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph.evaluation.metrics import (
    auc,
    average_precision,
    hits_at,
    mean_reciprocal_rank,
    ranks_among,
    roc_curve,
)
from atpgraph.util.arrays import Float64Array, FloatArray, Int64Array

HITS = (20, 50, 100)
HITS_OF_A_QUERY = (1, 3, 10, *HITS)


@dataclass(frozen=True, eq=False)
class Curves:
    """What the report draws of one method under one protocol, for one split.

    Attributes
    ----------
    roc : pair of arrays
        False and true positive rates.
    edges : array
        Bounds of the histogram bins, over the ranks of all scores mapped to 0 … 1.
    positives, negatives : arrays
        Share of the positives and of the negatives in each bin.
    """

    roc: tuple[Float64Array, Float64Array]
    edges: Float64Array
    positives: Float64Array
    negatives: Float64Array


@dataclass(frozen=True, eq=False)
class Measures:
    """Metrics by name, the one to read first, and curves where there are any."""

    metrics: dict[str, float]
    headline: str
    curves: Curves | None = None


def pair_measures(good: FloatArray, bad: FloatArray, headline: str = "auc") -> Measures:
    """AUC, average precision, MRR and Hits@K: positives ranked among all negatives, pooled."""
    ranks = ranks_among(good, bad)
    values = {"auc": auc(good, bad), "ap": average_precision(good, bad)}
    values |= {f"hits@{k}": hits_at(ranks, k) for k in HITS}
    values["mrr"] = mean_reciprocal_rank(ranks)
    return Measures(values, headline, _curves(good, bad))


def ranking_measures(ranks: Float64Array, candidates: Int64Array) -> Measures:
    """Hits@K, MRR (the average precision of one relevant target) and the AUC of each query, mean.

    Parameters
    ----------
    ranks : array
        Rank of the true target, from 1.
    candidates : array
        How many nodes it was ranked against.
    """
    share = np.where(candidates > 0, (ranks - 1) / np.maximum(candidates, 1), 0.0)
    mrr = mean_reciprocal_rank(ranks)
    values = {"auc": float(1.0 - share.mean()), "ap": mrr, "mrr": mrr}
    return Measures(values | {f"hits@{k}": hits_at(ranks, k) for k in HITS_OF_A_QUERY}, "mrr")


def _curves(good: FloatArray, bad: FloatArray, bins: int = 20) -> Curves:
    # Raw scores span many orders of magnitude between methods; their ranks do not.
    ordered = np.sort(np.concatenate([good, bad]))
    edges = np.linspace(0.0, 1.0, bins + 1)

    def share(scores: FloatArray) -> Float64Array:
        low = np.searchsorted(ordered, scores, side="left")
        high = np.searchsorted(ordered, scores, side="right")
        counts, _ = np.histogram((low + high) / (2 * len(ordered)), edges)
        return counts / len(scores)

    return Curves(roc_curve(good, bad, points=101), edges, share(good), share(bad))
