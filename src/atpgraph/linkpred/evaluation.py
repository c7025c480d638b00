"""Score the tests of a split with a fitted method."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from atpgraph.errors import AtpError
from atpgraph.linkpred.method import Method, Scorer, Scores, under
from atpgraph.linkpred.metrics import (
    auc,
    average_precision,
    hits_at,
    mean_reciprocal_rank,
    ranks_among,
    roc_curve,
)
from atpgraph.linkpred.splits import PairTest, RankingTest, Split

HITS = (20, 50, 100)
_BLOCK_SCORES = 2**24


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

    roc: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
    edges: npt.NDArray[np.float64]
    positives: npt.NDArray[np.float64]
    negatives: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics by protocol (``ranking`` against all nodes, ``ranking-100`` against a sample)."""

    metrics: dict[str, dict[str, float]]
    curves: dict[str, Curves] = field(default_factory=dict)


def evaluate(method: Method, split: Split) -> Evaluation:
    """Evaluate a method, fitted on ``split.train``, under all protocols of the split."""
    metrics: dict[str, dict[str, float]] = {}
    curves: dict[str, Curves] = {}
    for name, test in split.tests.items():
        scorer = under(method, name)
        if isinstance(test, PairTest):
            good, bad = pair_scores(scorer, test)
            metrics[name] = pair_metrics(good, bad)
            curves[name] = _curves(good, bad)
        else:
            sample = test.sampled.shape[1]
            metrics[name] = ranking_metrics(*ranks_against_all(scorer, test))
            metrics[f"{name}-{sample}"] = ranking_metrics(*ranks_against_sample(scorer, test))
    return Evaluation(metrics, curves)


def pair_scores(method: Scorer, test: PairTest) -> tuple[Scores, Scores]:
    """Scores of the positives and of the negatives."""
    good = method.score(test.positives.sources, test.positives.targets)
    bad = method.score(test.negatives.sources, test.negatives.targets)
    return _finite(method, good), _finite(method, bad)


def pair_metrics(good: Scores, bad: Scores) -> dict[str, float]:
    """AUC, average precision, and Hits@K: positives ranked among all negatives."""
    ranks = ranks_among(good, bad)
    values = {"auc": auc(good, bad), "ap": average_precision(good, bad)}
    return values | {f"hits@{k}": hits_at(ranks, k) for k in HITS}


def ranking_metrics(
    ranks: npt.NDArray[np.float64], candidates: npt.NDArray[np.int64]
) -> dict[str, float]:
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
    return values | {f"hits@{k}": hits_at(ranks, k) for k in HITS}


def ranks_against_all(
    method: Scorer, test: RankingTest
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Filtered rank of each true target among all nodes its source has no edge to."""
    u, v, known = test.queries.sources, test.queries.targets, test.known
    order = np.argsort(u, kind="stable")
    ranks = np.empty(len(u), dtype=np.float64)
    candidates = np.empty(len(u), dtype=np.int64)
    step = max(1, _BLOCK_SCORES // max(known.n_nodes, 1))
    for low in range(0, len(u), step):
        part = order[low : low + step]
        sources, row = np.unique(u[part], return_inverse=True)
        scores = _finite(method, np.asarray(method.score_from(sources)))
        truth = scores[row, v[part]]
        # The source itself and its true targets are no candidates, the true one included.
        hidden = scores.copy() if scores.base is not None else scores
        for i, source in enumerate(sources):
            hidden[i, known.targets[known.indptr[source] : known.indptr[source + 1]]] = np.nan
            hidden[i, source] = np.nan
        for i, position in enumerate(part):
            line = hidden[row[i]]
            above = np.count_nonzero(line > truth[i])
            level = np.count_nonzero(line == truth[i])
            ranks[position] = 1 + above + level / 2
        candidates[part] = (~np.isnan(hidden)).sum(axis=1)[row]
    return ranks, candidates


def ranks_against_sample(
    method: Scorer, test: RankingTest
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Rank of each true target among the sampled nodes."""
    u, v = test.queries.sources, test.queries.targets
    real = test.sampled >= 0
    truth = _finite(method, method.score(u, v))
    sources = np.broadcast_to(u[:, None], real.shape)
    others = np.full(real.shape, np.nan)
    others[real] = _finite(method, method.score(sources[real], test.sampled[real]))
    above = (others > truth[:, None]).sum(axis=1)
    level = (others == truth[:, None]).sum(axis=1)
    return 1 + above + level / 2, real.sum(axis=1)


def _finite(method: Scorer, scores: Scores) -> Scores:
    if np.isnan(scores).any():
        raise AtpError(f"{method.name} gave a score that is not a number.")
    return scores


def _curves(good: Scores, bad: Scores, bins: int = 20) -> Curves:
    # Raw scores span many orders of magnitude between methods; their ranks do not.
    ordered = np.sort(np.concatenate([good, bad]))
    edges = np.linspace(0.0, 1.0, bins + 1)

    def share(scores: Scores) -> npt.NDArray[np.float64]:
        low = np.searchsorted(ordered, scores, side="left")
        high = np.searchsorted(ordered, scores, side="right")
        counts, _ = np.histogram((low + high) / (2 * len(ordered)), edges)
        return counts / len(scores)

    return Curves(roc_curve(good, bad, points=101), edges, share(good), share(bad))
