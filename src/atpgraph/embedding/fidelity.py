"""How well vectors keep the paths of their graph, measured on pairs that are hard to tell apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from atpgraph.closure import Paths
from atpgraph.embedding.ranking import pair_scores, top_by_product
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
_ENOUGH = 300  # paths, for a warning: then an AUC is known to about .02
_GOOD = 0.9  # an AUC that vectors of rank one need not be ashamed of


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
        paths: Paths,
        levels: Int32Array,
        rng: np.random.Generator,
        nodes: int = NODES,
    ) -> HardPairs:
        """Draw pairs of up to `nodes` nodes."""
        able = np.flatnonzero(paths.sizes >= _FEW)
        if not len(able):
            able = np.flatnonzero(paths.sizes > 0)
        chosen = np.sort(rng.permutation(able)[:nodes])
        u = np.repeat(chosen, np.minimum(paths.sizes[chosen], _DRAWS))
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

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Fidelity:
        """From what :meth:`to_dict` gave."""
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            raise ValueError("its fidelity has other entries")
        numbers = {name: np.nan if x is None else float(x) for name, x in values.items()}
        return cls(**numbers | {"pairs": int(values["pairs"])})  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain values, None for NaN."""
        return {name: None if x != x else x for name, x in asdict(self).items()}

    @property
    def is_poor(self) -> bool:
        """Whether the vectors are worth little: near rank one, or little better than levels.

        Never for graphs with too few pairs to tell.
        """
        little = self.auc - self.level_auc < (1.0 - self.level_auc) / 3
        one_axis = self.effective_rank < 1.5 and self.auc < _GOOD
        return self.pairs >= _ENOUGH and (little or one_axis)

    def advice(self, solver: str) -> str:
        """What is wrong with poor vectors and what to change, in a sentence."""
        change = (
            "use more components or a larger max_iter"
            if solver == "pairs"
            else "use purpose='reachability' to keep paths"
        )
        return (
            f"The vectors tell paths little better than levels do (AUC {self.auc:.2f} on hard "
            f"pairs, levels {self.level_auc:.2f}; effective rank {self.effective_rank:.1f}): "
            f"{change}."
        )

    def __str__(self) -> str:
        if not self.pairs:
            return "no paths to measure by"
        told = (
            f"AUC {self.auc:.3f} on {self.pairs:,} hard pairs (levels alone {self.level_auc:.3f})"
        )
        yes = f"yes to {self.true_yes:.1%} of the paths"
        if self.auc != self.auc:
            told = f"{self.pairs:,} paths, and no pair without one that looks like them"
        else:
            yes += f" and to {self.false_yes:.1%} of the others"
        return (
            f"{told}; {yes}; {self.precision:.1%} of the five best targets are reached; "
            f"effective rank {self.effective_rank:.1f}"
        )


def measure(
    pairs: HardPairs,
    paths: Paths,
    levels: Int32Array,
    source: FloatArray,
    target: FloatArray,
    threshold: float,
) -> Fidelity:
    """Judge vectors by hard pairs.

    Examples
    --------
    >>> from atpgraph.closure import PathSampler, closure_forest
    >>> from atpgraph.graph import DiGraph
    >>> paths = PathSampler(closure_forest(DiGraph.from_codes([0, 1, 3], [1, 2, 4], 5)))
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
    paths: Paths,
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
    asked = np.arange(targets.shape[1]) < paths.sizes[nodes][:, None]
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
    if not len(good) or not len(bad):
        return np.nan
    above = _ranks(np.concatenate([good, bad]))[: len(good)].sum() - len(good) * (len(good) + 1) / 2
    return float(above / (len(good) * len(bad)))


def _correlation(x: AnyArray, y: AnyArray) -> float:
    """Spearman's; NaN if either is constant."""
    ranks = [_ranks(values) for values in (x, y)]
    ranks = [values - values.mean() for values in ranks if len(values)]
    norms = [np.sqrt((values**2).sum()) for values in ranks]
    if not ranks or min(norms) == 0:
        return np.nan
    return float((ranks[0] @ ranks[1]) / (norms[0] * norms[1]))


def _ranks(values: AnyArray) -> Float64Array:
    """Ranks from 1, the mean rank for equal values."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place])


def _mean(values: AnyArray) -> float:
    return float(np.mean(values)) if len(values) else np.nan
