"""Measure how well vectors keep the paths of their graph."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import mannwhitneyu, spearmanr

from atpgraph.embedding.calibration import Calibration, ScoreCounts
from atpgraph.embedding.path_sample import PathSample, Side
from atpgraph.embedding.ranking import pair_scores, top_by_product
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from atpgraph.util.jit import kernel

_TOP = 5
_SCORES = (
    4_000_000  # computed for each of the two sides and each of the two measures that need many
)
_COLUMNS = 8192  # scored at a time
_RANGES = 1000
_ENOUGH = 300  # paths, for a warning
_POOR = 5.0  # times the error that the goal allows


class Line(NamedTuple):
    """One line of the report.

    Attributes
    ----------
    name, label : str
        The attribute of :class:`Fidelity`, and what it is in words.
    value, goal : float
    error : float
        Distance from the perfect value, in units of the distance that the goal allows: above 1 the
        goal is missed.
    """

    name: str
    label: str
    value: float
    goal: float
    error: float


# Label, goal, and the perfect value, of what is to be close to it.
_LINES: dict[str, tuple[str, float, float]] = {
    "edges": ("edges predicted (distance 1)", 0.97, 1.0),
    "closure": ("paths predicted, uniform over the closure", 0.985, 1.0),
    "distance_2": ("paths predicted, distance 2", 0.97, 1.0),
    "distance_3_to_5": ("paths predicted, distance 3 to 5", 0.97, 1.0),
    "distance_6_to_10": ("paths predicted, distance 6 to 10", 0.97, 1.0),
    "distance_above_10": ("paths predicted, distance above 10", 0.97, 1.0),
    "look_alike_targets": ("false positives, look-alike targets", 0.05, 0.0),
    "look_alike_sources": ("false positives, look-alike sources", 0.05, 0.0),
    "random_pairs": ("false positives, random pairs", 0.05, 0.0),
    "auc": ("AUC, paths against look-alike targets", 0.995, 1.0),
    "auc_sources": ("AUC, paths against look-alike sources", 0.995, 1.0),
    "precision_targets": ("precision@5 of the targets, by score", 0.98, 1.0),
    "precision_sources": ("precision@5 of the sources, by score", 0.98, 1.0),
    "f1": ("F1 over all pairs", 0.96, 1.0),
    "threshold_f1": ("F1 over all pairs, at the threshold", 0.96, 1.0),
    "threshold_edges": ("edges predicted, at the threshold", 0.9, 1.0),
}
_NEAR = "near pairs get lost among many far ones: use more components or a larger max_iter, and ask"
_ADVICE = {
    "edges": f"{_NEAR} the graph itself for successors",
    "distance_2": f"{_NEAR} reaches() where it matters",
    "threshold_edges": "for edges, compare score_pairs() with 0 instead of using predict()",
    "random_pairs": "use predict(), whose threshold is fitted to all pairs",
    "f1": "use predict(), whose threshold is fitted to all pairs, or more components",
}
_MORE = "use more components or a larger max_iter; reaches() is exact"
_OTHER_PURPOSE = "use purpose='reachability' to keep paths"


@dataclass(frozen=True)
class Fidelity:
    """How well vectors keep the paths of their graph; NaN where there is nothing to measure.

    Pairs count as predicted if their score is above 0, or above the threshold for vectors without
    a natural zero (least squares). "Sources" are measured as "targets" are, on the reversed graph.

    Attributes
    ----------
    edges : float
        Share of edges predicted.
    closure : float
        Share of paths predicted, every pair of the closure equally likely.
    distance_2, distance_3_to_5, distance_6_to_10, distance_above_10 : float
        The same for pairs at these distances.
    look_alike_targets, look_alike_sources : float
        Share of pairs predicted though there is no path: a node with the target of another node's
        path, on a higher level; a node with the source of a path to another, on a lower level.
    random_pairs : float
        Share predicted among random pairs without a path.
    auc, auc_sources : float
        Probability that a path scores higher than a look-alike.
    level_auc : float
        `auc` of the difference of levels in place of the score.
    precision_targets, precision_sources : float
        Share of right ones among the five targets (sources) with the largest scores, or as many as
        the node has.
    f1 : float
        F1 over all pairs of nodes.
    threshold_f1, threshold_edges : float
        F1 over all pairs, and share of edges predicted, as ``predict`` decides: score above the
        threshold, and a higher level.
    level_correlation : float
        Rank correlation of score and difference of levels over paths.
    pairs : int
        Number of sampled paths.
    """

    edges: float
    closure: float
    distance_2: float
    distance_3_to_5: float
    distance_6_to_10: float
    distance_above_10: float
    look_alike_targets: float
    look_alike_sources: float
    random_pairs: float
    auc: float
    auc_sources: float
    level_auc: float
    precision_targets: float
    precision_sources: float
    f1: float
    threshold_f1: float
    threshold_edges: float
    level_correlation: float
    pairs: int

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Fidelity:
        """Read what :meth:`to_dict` returned."""
        names = {field.name for field in fields(cls)}
        if set(values) != names:
            raise ValueError("its fidelity has other entries")
        numbers = {name: np.nan if x is None else float(x) for name, x in values.items()}
        return cls(**numbers | {"pairs": int(values["pairs"])})  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, float | int | None]:
        """Return plain values, None for NaN."""
        return {name: None if x != x else x for name, x in asdict(self).items()}

    def lines(self) -> list[Line]:
        """Return the lines of the report that could be measured, weakest first."""
        lines = [
            Line(name, label, value, goal, abs(value - best) / abs(goal - best))
            for name, (label, goal, best) in _LINES.items()
            if (value := float(getattr(self, name))) == value
        ]
        return sorted(lines, key=lambda line: -line.error)

    @property
    def is_poor(self) -> bool:
        """Whether a line is far from its goal, or levels alone would do about as well.

        Never for graphs with too few paths to tell.
        """
        little = self.auc - self.level_auc < (1.0 - self.level_auc) / 3
        lines = self.lines()
        return self.pairs >= _ENOUGH and (little or lines[0].error > _POOR)

    def advice(self, purpose: str = "reachability") -> str:
        """Return a sentence about the weakest line and what to do; "" if all goals are met."""
        lines = self.lines()
        if not lines or lines[0].error <= 1.0:
            return ""
        worst = lines[0]
        change = _ADVICE.get(worst.name, _MORE) if purpose == "reachability" else _OTHER_PURPOSE
        return f"Weakest: {worst.label} {worst.value:.1%} (goal {worst.goal:.1%}); {change}."

    def __str__(self) -> str:
        lines = self.lines()
        if not lines:
            return "no paths to measure by"
        shown = {"edges", "closure", "look_alike_targets", "precision_targets", "f1", lines[0].name}
        first = [line for line in lines if line.name in shown]
        told = "; ".join(f"{line.label} {line.value:.1%}" for line in first)
        return f"weakest first: {told} ({self.pairs:,} sampled paths)"


class Evaluation(NamedTuple):
    """What is known about vectors after a fit."""

    fidelity: Fidelity
    threshold: float
    calibration: Calibration


def evaluate(
    sample: PathSample, source: FloatArray, target: FloatArray, cut: float | None = 0.0
) -> Evaluation:
    """Judge vectors by sampled pairs; find the threshold and the probabilities.

    Parameters
    ----------
    sample : PathSample
    source, target : float arrays of shape (nodes, components)
    cut : float, optional
        The score above which a path is predicted in the report; None if only the threshold, which
        maximizes F1 over all pairs, means anything.

    Examples
    --------
    >>> from atpgraph.graph import DiGraph
    >>> dag = DiGraph.from_codes([0, 1, 3], [1, 2, 4], 5)
    >>> levels = np.array([1, 2, 3, 1, 2], dtype=np.int32)
    >>> by_level = np.stack([-levels, np.ones(5)], axis=1), np.stack([np.ones(5), levels], axis=1)
    >>> report = evaluate(PathSample.of(dag, levels), *by_level).fidelity
    >>> report.auc == report.level_auc, report.closure, report.look_alike_targets
    (True, 1.0, 1.0)
    """
    n, levels = sample.n_nodes, sample.levels
    vectors = (source, target), (target, source)
    scores = [pair_scores(*vectors[at], *side.paths[:2]) for at, side in enumerate(sample.sides)]
    weights = [side.paths.weight for side in sample.sides]
    of_paths, weight = np.concatenate(scores), np.concatenate(weights) / 2
    edge_scores = pair_scores(source, target, *sample.edges)
    bounds = _bounds(of_paths)
    tallies = [
        _tally_side(side, vectors[at], levels if at == 0 else -levels, bounds, cut)
        for at, side in enumerate(sample.sides)
    ]
    counts = _counts(bounds, of_paths, weight, tallies, n)
    threshold, threshold_f1 = counts.best_threshold()
    level = threshold if cut is None else cut
    recall = _mean(of_paths > level, weight)
    if cut is None:
        tallies = [
            _tally_side(side, vectors[at], levels if at == 0 else -levels, bounds, level)
            for at, side in enumerate(sample.sides)
        ]
    above, others, looked_at = np.sum([tally.totals for tally in tallies], axis=0)
    false = above / max(looked_at, 1) * n * (n - 1)
    paths = weight.sum()
    by_distance = {}
    for name, attribute in _DISTANCES.items():
        pairs = [side.by_distance[name] for side in sample.sides]
        said = [pair_scores(*vectors[at], *each[:2]) > level for at, each in enumerate(pairs)]
        by_distance[attribute] = _mean(
            np.concatenate(said), np.concatenate([each.weight for each in pairs])
        )
    hard = [_hard(side, vectors[at], level) for at, side in enumerate(sample.sides)]
    climbs = [levels[pairs[1]] - levels[pairs[0]] for pairs in _target_pairs(sample.sides[0])]
    precision = [_precision(side, vectors[at]) for at, side in enumerate(sample.sides)]
    values = {
        "edges": _mean(edge_scores > level),
        "closure": recall,
        **by_distance,
        "look_alike_targets": hard[0].false,
        "look_alike_sources": hard[1].false,
        "random_pairs": above / others if others else np.nan,
        "auc": hard[0].auc,
        "auc_sources": hard[1].auc,
        "level_auc": _auc(*climbs),
        "precision_targets": precision[0],
        "precision_sources": precision[1],
        "f1": 2 * recall * paths / (recall * paths + false + paths) if paths else np.nan,
        "threshold_f1": threshold_f1,
        "threshold_edges": _mean(edge_scores > threshold),
        "level_correlation": _correlation(hard[0].scores, climbs[0]),
    }
    # The one NaN of NumPy equals itself in a comparison of reports.
    rounded = {name: round(float(x), 6) if x == x else np.nan for name, x in values.items()}
    fidelity = Fidelity(**rounded, pairs=len(of_paths))
    return Evaluation(fidelity, threshold, Calibration.of(counts, n * (n - 1.0)))


_DISTANCES = {
    "2": "distance_2",
    "3-5": "distance_3_to_5",
    "6-10": "distance_6_to_10",
    "more": "distance_above_10",
}


class _Hard(NamedTuple):
    scores: Float64Array
    false: float
    auc: float


def _target_pairs(side: Side) -> tuple[Int64Array, Int64Array]:
    return side.hard_paths, side.look_alikes


def _hard(side: Side, vectors: tuple[FloatArray, FloatArray], cut: float) -> _Hard:
    good, bad = (pair_scores(*vectors, *pairs) for pairs in _target_pairs(side))
    return _Hard(good, _mean(bad > cut), _auc(good, bad))


def _precision(side: Side, vectors: tuple[FloatArray, FloatArray]) -> float:
    """Share of right ones among the five best of the hard rows, or as many as a row has."""
    near, far = vectors
    most = max(_SCORES // max(len(far), 1), 16)
    rows = side.hard_rows
    nodes, sizes, bits = (x[:most] for x in (rows.nodes, rows.sizes, rows.bits))
    best, _ = top_by_product(near[nodes], far, _TOP, skip=nodes)
    right = side.joined(np.repeat(bits, best.shape[1]), best.ravel()).reshape(best.shape)
    return _mean(right[np.arange(best.shape[1]) < sizes[:, None]])


class _Tally(NamedTuple):
    """Scores of random pairs without a path: how many in each range among those that climb, and
    totals: above the cut, without a path, looked at.
    """

    climbing: Int64Array
    totals: Int64Array


def _tally_side(
    side: Side,
    vectors: tuple[FloatArray, FloatArray],
    levels: Int32Array,
    bounds: Float64Array,
    cut: float | None,
) -> _Tally:
    near, far = vectors
    rows, n = side.rows, len(far)
    count = max(_SCORES // max(len(rows.nodes), 1), 1)
    columns = np.arange(n)
    if count < n:
        columns = np.sort(np.random.default_rng(0).choice(n, count, replace=False))
    queries = near[rows.nodes].astype(np.float32)
    tally = _Tally(np.zeros(len(bounds) + 1, dtype=np.int64), np.zeros(3, dtype=np.int64))
    low = float(bounds[0])
    scale = (len(bounds) - 1) / (float(bounds[-1]) - low) if len(bounds) > 1 else 0.0
    for first in range(0, len(columns), _COLUMNS):
        some = columns[first : first + _COLUMNS]
        scores = queries @ far[some].astype(np.float32).T
        _tally(
            scores, rows.nodes, rows.bits, some, levels, side.reached,
            np.array([low, scale, np.inf if cut is None else cut]), *tally,
        )  # fmt: skip
    return tally


def _bounds(scores: Float64Array) -> Float64Array:
    """Return bounds of score ranges, from somewhat below the lowest score of a path on."""
    if not len(scores):
        return np.zeros(1)
    low, high = float(scores.min()), float(scores.max())
    return np.linspace(low - (high - low or 1.0) / 4, high, _RANGES)


def _counts(
    bounds: Float64Array,
    scores: Float64Array,
    weight: Float64Array,
    tallies: list[_Tally],
    n: int,
) -> ScoreCounts:
    """Paths by their sample, other pairs by the tallies, scaled to all pairs of the graph."""
    # A score at a bound is not above it.
    place = np.searchsorted(bounds, scores, side="left")
    others = np.sum([tally.climbing for tally in tallies], axis=0, dtype=np.float64)
    looked_at = sum(int(tally.totals[2]) for tally in tallies)
    return ScoreCounts(
        bounds,
        np.bincount(place, weight, minlength=len(bounds) + 1).astype(np.float64),
        np.asarray(others * (n * (n - 1.0) / max(looked_at, 1))),
        np.bincount(place, minlength=len(bounds) + 1).astype(np.float64),
    )


@kernel
def _tally(
    scores: Float32Array,
    rows: Int64Array,
    bits: Int64Array,
    columns: Int64Array,
    levels: Int32Array,
    reached: UInt64Array,
    how: Float64Array,
    climbing: Int64Array,
    totals: Int64Array,
) -> None:
    """Count the scores of pairs without a path; `how` is the lowest bound, ranges for a unit of
    score, and the cut.
    """
    low, scale, cut = how[0], how[1], how[2]
    last = len(climbing) - 1
    for r in range(len(rows)):
        word, bit = bits[r] >> 6, np.uint64(bits[r] & 63)
        for c in range(len(columns)):
            v = columns[c]
            if v == rows[r]:
                continue
            totals[2] += 1
            if (reached[v, word] >> bit) & np.uint64(1) != 0:
                continue
            totals[1] += 1
            score = np.float64(scores[r, c])
            if score > cut:
                totals[0] += 1
            if levels[v] > levels[rows[r]]:
                at: Any = 0
                if score > low:
                    at = min(max(np.int64(np.ceil((score - low) * scale)), 1), last)
                climbing[at] += 1


def _auc(good: AnyArray, bad: AnyArray) -> float:
    if not len(good) or not len(bad):
        return np.nan
    return float(mannwhitneyu(good, bad, method="asymptotic").statistic) / (len(good) * len(bad))


def _correlation(x: AnyArray, y: AnyArray) -> float:
    """Spearman's; NaN if either is constant."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    return float(spearmanr(x, y).statistic)


def _mean(values: BoolArray, weight: Float64Array | None = None) -> float:
    if not len(values):
        return np.nan
    return float(np.average(values, weights=weight))
