"""AUC and yes-rates on hard pairs, as 0.2.0 measured them: for tables that compare with 0.2.0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from atpgraph.closure import closure_forest
from atpgraph.embedding.ranking import pair_scores, top_by_product
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph
from atpgraph.util.arrays import AnyArray, Float64Array, FloatArray, Int32Array, Int64Array

NODES = 1500  # asked about after a fit
_DRAWS = 4
_FEW = 5  # descendants that a node needs to be asked about
_TOP = 5
_ASKED = 100, 5  # nodes whose best targets are found, so many or one in so many,
_SCORES = 20_000_000  # within so many scores
_TRIES, _AT_ONCE = 10, 5
_ROWS = 2**13  # of vectors, few enough for a cache
_IN_VAIN = 30_000  # pairs, not one of them without a path: a graph where none is, such as a path


class ExactPaths:
    """Exact answers about the paths of an acyclic graph, from its closure forest."""

    def __init__(self, dag: DiGraph) -> None:
        self.dag, self.forest = dag, closure_forest(dag)
        self.sizes = self.forest.sizes

    def joined(self, u: AnyArray, v: AnyArray) -> AnyArray:
        """Whether a path leads from each `u` to its `v`."""
        return self.forest.reaches(u, v)

    def draw(self, nodes: AnyArray, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` descendants of each node, each as likely, as pairs in their order."""
        rng = np.random.default_rng(int(seed))
        found = [rng.permutation(self.forest.descendants(node))[:count] for node in nodes.tolist()]
        sources = np.repeat(nodes, [len(some) for some in found]).astype(np.int32)
        return sources, np.concatenate([np.empty(0, dtype=np.int32), *found])


@dataclass(frozen=True, eq=False)
class HardPairs:
    """Pairs joined by a path, and pairs that look like them and are not.

    Attributes
    ----------
    nodes : int64 array
        The nodes asked about: with five descendants or more, where there are such nodes.
    paths : int64 array of shape (2, pairs)
        Each node with four of its descendants.
    others : int64 array of shape (2, pairs)
        The same nodes with targets of those paths that they do not reach, though of a higher level.
    """

    nodes: Int64Array
    paths: Int64Array
    others: Int64Array

    @classmethod
    def of(
        cls,
        paths: Any,
        levels: Int32Array,
        rng: np.random.Generator,
        nodes: int = NODES,
    ) -> HardPairs:
        """Draw pairs of up to `nodes` nodes."""
        able = np.flatnonzero(paths.sides[0].sizes >= _FEW)
        if not len(able):
            able = np.flatnonzero(paths.sides[0].sizes > 0)
        chosen = np.sort(rng.permutation(able)[:nodes])
        u = np.repeat(chosen, np.minimum(paths.sides[0].sizes[chosen], _DRAWS))
        _, v = paths.draw(chosen.astype(np.int32), _DRAWS, np.uint64(rng.integers(1, 2**63)))
        others = [np.empty((2, 0), dtype=np.int64)]
        missing, tried = len(u), 0
        for _ in range(_TRIES):
            if missing <= 0 or (missing == len(u) and tried > _IN_VAIN):
                break
            # Several draws of all at once, as every question is a sweep where there is no forest.
            tried += _AT_ONCE * len(u)
            pairs = np.stack([np.tile(u, _AT_ONCE), rng.choice(v, _AT_ONCE * len(u))])
            pairs = pairs.astype(np.int64)
            higher = pairs[:, levels[pairs[1]] > levels[pairs[0]]]
            apart = higher[:, ~paths.joined(higher[0], higher[1])][:, :missing]
            others.append(apart)
            missing -= apart.shape[1]
        return cls(chosen, np.stack([u, v]).astype(np.int64), np.concatenate(others, axis=1))


@dataclass(frozen=True)
class Fidelity:
    """How well vectors keep the paths of their graph; NaN where there is nothing to ask.

    Attributes
    ----------
    auc : float
        Probability that a path scores higher than a hard pair without one: the same source, a
        target of other paths, of a higher level.
    level_auc : float
        The same for the difference of levels in place of the score.
    true_yes, false_yes : float
        Share of paths, and of hard pairs without one, that score above the threshold.
    precision : float
        Share of the five best targets of a node that it reaches; of as many as it has descendants
        where no node has five.
    correlation : float
        Rank correlation of score and difference of levels over the paths.
    effective_rank : float
        Exponential of the entropy of the squared singular values of the score matrix, the means of
        rows and columns taken off; 1 if one axis holds everything, 0 if nothing is left.
    pairs : int
        Number of paths asked about; there are up to as many pairs without.
    """

    auc: float
    level_auc: float
    true_yes: float
    false_yes: float
    precision: float
    correlation: float
    effective_rank: float
    pairs: int


def measure(
    pairs: HardPairs,
    paths: Any,
    levels: Int32Array,
    source: FloatArray,
    target: FloatArray,
    threshold: float,
) -> Fidelity:
    """Judge vectors by hard pairs.

    Examples
    --------
    >>> paths = ExactPaths(DiGraph.from_codes([0, 1, 3], [1, 2, 4], 5))
    >>> levels = np.array([1, 2, 3, 1, 2], dtype=np.int32)
    >>> pairs = HardPairs.of(paths, levels, np.random.default_rng(0))
    >>> level_only = np.stack([-levels, np.ones(5)], axis=1), np.stack([np.ones(5), levels], axis=1)
    >>> found = measure(pairs, paths, levels, *level_only, 0.0)
    >>> found.auc == found.level_auc, found.false_yes, found.effective_rank
    (True, 1.0, 0.0)
    """
    least, part = _ASKED
    asked = max(min(max(least, len(pairs.nodes) // part), _SCORES // max(len(target), 1)), 1)
    some = pairs.nodes[:: max(len(pairs.nodes) // asked, 1)]
    best, _ = top_by_product(source[some], target, _TOP, skip=some)
    return judge(
        pairs,
        paths,
        levels,
        pair_scores(source, target, *pairs.paths),
        pair_scores(source, target, *pairs.others),
        (some, best),
        threshold,
        effective_rank(source, target),
    )


def judge(
    pairs: HardPairs,
    paths: Any,
    levels: Int32Array,
    good: Float64Array,
    bad: Float64Array,
    best: tuple[Int64Array, Int64Array],
    threshold: float,
    rank: float = np.nan,
) -> Fidelity:
    """The same from the scores of the pairs and the best targets of some nodes, a row for each."""
    climbs, climbs_too = (levels[side[1]] - levels[side[0]] for side in (pairs.paths, pairs.others))
    nodes, targets = best
    asked = np.arange(targets.shape[1]) < paths.sides[0].sizes[nodes][:, None]
    right = paths.joined(np.repeat(nodes, asked.sum(axis=1)), targets[asked])
    return Fidelity(
        auc=round(_auc(good, bad), 6),
        level_auc=round(_auc(climbs, climbs_too), 6),
        true_yes=round(_mean(good > threshold), 6),
        false_yes=round(_mean(bad > threshold), 6),
        precision=round(_mean(right), 6),
        correlation=round(_correlation(good, climbs), 6),
        effective_rank=round(rank, 4),
        pairs=pairs.paths.shape[1],
    )


def effective_rank(source: FloatArray, target: FloatArray) -> float:
    """Exponential of the entropy of the squared singular values of S·Tᵀ, its means taken off.

    Examples
    --------
    >>> three_axes = np.concatenate([np.eye(3), -np.eye(3)])
    >>> effective_rank(three_axes, three_axes)
    3.0
    """
    if not len(source):
        return 0.0
    grams = [_centred_gram(vectors) for vectors in (source, target)]
    scale = float(np.trace(grams[0])) * float(np.trace(grams[1]))
    # The squared singular values of A·Bᵀ are the eigenvalues of AᵀA·BᵀB.
    values = np.maximum(np.linalg.eigvals(grams[0] @ grams[1]).real, 0.0)
    total = values.sum()
    if total <= 1e-12 * scale:
        return 0.0
    share = values[values > 1e-12 * total] / total
    return round(float(np.exp(-(share * np.log(share)).sum())), 6)


def _centred_gram(vectors: FloatArray) -> Float64Array:
    """Products of the columns, their means taken off."""
    parts = range(0, len(vectors), _ROWS)
    gram = np.zeros((vectors.shape[1], vectors.shape[1]))
    mean = vectors.mean(axis=0, dtype=np.float64)
    for at in parts:
        centred = vectors[at : at + _ROWS] - mean
        gram += centred.T @ centred
    return gram


def _auc(good: AnyArray, bad: AnyArray) -> float:
    return auc(good, bad) if len(good) and len(bad) else np.nan


def _correlation(x: AnyArray, y: AnyArray) -> float:
    """Spearman's; NaN if either is constant."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    return float(spearmanr(x, y).statistic)


def _mean(values: AnyArray) -> float:
    return float(np.mean(values)) if len(values) else np.nan
