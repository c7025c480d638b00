"""Measure how well vectors keep the paths of their graph; turn scores into probabilities."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from atpgraph.embedding.path_sample import DISTANCES, PathSample, Side
from atpgraph.embedding.ranking import pair_scores, top_by_product
from atpgraph.errors import InputError
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    FloatArray,
    Int32Array,
    average_ranks,
)
from atpgraph.util.frames import html_table


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Numbers of pairs with and without a path, by range of scores."""

    edges: Float64Array  # bounds of the ranges, ascending; the first and last range are open
    paths: Float64Array  # number of pairs in each range, estimated, one more than there are bounds
    others: Float64Array
    sampled: Float64Array  # number of sampled paths in each range

    def best_threshold(self) -> tuple[float, float]:
        """Return the bound with the largest F1 of the pairs above it, and that F1; 0 and NaN
        without paths.

        Examples
        --------
        >>> paths, others = np.array([[1.0, 1.0, 8.0], [90.0, 9.0, 1.0]])
        >>> ScoreCounts(np.array([0.0, 1.0]), paths, others, paths).best_threshold()[0]
        1.0
        """
        total = self.paths.sum()
        if not total or not len(self.edges):
            return 0.0, np.nan
        right, wrong = (np.cumsum(x[:0:-1])[::-1] for x in (self.paths, self.others))
        f1 = 2 * right / (right + wrong + total)
        # In the middle of equally good ones: there is nothing between a clear path and others.
        best = np.flatnonzero(f1 >= f1.max() - 1e-12)
        run = best[: 1 + np.argmax(np.diff(best, append=best[-1] + 2) > 1)]
        at = run[len(run) // 2]
        return float(self.edges[at]), float(f1[at])


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probability that a path joins a pair with a given score, by isotonic regression.

    Attributes
    ----------
    prior : float
        Share of pairs joined by a path among all pairs of different nodes.
    scores, probabilities : float64 arrays
        Points of the curve, which is linear in between and constant beyond.
    """

    prior: float
    scores: Float64Array
    probabilities: Float64Array

    @classmethod
    def of(cls, counts: ScoreCounts, n_pairs: float) -> Calibration:
        """Calibrate for all `n_pairs` pairs of different nodes.

        Pairs that are not among the counts, such as those that do not climb, have no path.
        """
        paths, others = counts.paths, counts.others
        prior = float(min(paths.sum() / max(n_pairs, 1.0), 1.0))
        if not paths.sum() or not others.sum() or len(counts.edges) < 2:
            constant = np.full(2, paths.sum() / max(paths.sum() + others.sum(), 1.0))
            return cls(prior, np.array([0.0, 1.0]), constant)
        gap = counts.edges[-1] - counts.edges[-2]
        ends = [counts.edges[0] - gap, *counts.edges, counts.edges[-1] + gap]
        used = paths + others > 0
        x, w = np.convolve(ends, [0.5, 0.5], "valid")[used], (paths + others)[used]
        fit = isotonic_regression(paths[used] / w, weights=w)
        first = fit.blocks[:-1]
        # Nothing is certain from a sample.
        weight = np.add.reduceat(w, first)
        seen = np.add.reduceat(counts.sampled[used], first)
        least = 0.5 * paths.sum() / counts.sampled.sum() / weight
        most = 1.0 - 0.5 / (seen + 1.0)
        curve = np.maximum.accumulate(np.clip(fit.x[first], np.minimum(least, most), most))
        # Flat from the first to the last score of a block.
        corners = np.unique(np.concatenate([first, fit.blocks[1:] - 1]))
        flat = np.repeat(curve, np.diff(fit.blocks))
        return cls(prior, x[corners], flat[corners])

    def __call__(self, scores: npt.ArrayLike, base_rate: float | None = None) -> Float64Array:
        """Return the probability of a path for each score.

        Parameters
        ----------
        scores : array
        base_rate : float in (0, 1), optional
            Share of paths among the pairs that are asked about; by default their share among all
            pairs of the graph.
        """
        if base_rate is not None and not 0.0 < base_rate < 1.0:
            raise InputError(f"base_rate is {base_rate}; it must be between 0 and 1.")
        probability = np.interp(
            np.asarray(scores, dtype=np.float64), self.scores, self.probabilities
        )
        if base_rate is None or not 0.0 < self.prior < 1.0:
            return probability
        with np.errstate(divide="ignore"):
            return np.asarray(expit(logit(probability) + logit(base_rate) - logit(self.prior)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which :meth:`from_dict` reads."""
        return {
            "prior": self.prior,
            "scores": self.scores.tolist(),
            "probabilities": self.probabilities.tolist(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Calibration:
        """Restore the object from plain values; raise ValueError if they are not from
        :meth:`to_dict`.
        """
        x, p = (np.array(values[name], dtype=np.float64) for name in ("scores", "probabilities"))
        prior = float(values["prior"])
        shaped = x.ndim == 1 and x.shape == p.shape and len(x) > 0
        inside = 0.0 <= prior <= 1.0 and bool(((p >= 0) & (p <= 1)).all())
        if not shaped or not inside or not (np.diff(x) > 0).all():
            raise ValueError("its calibration is not a curve of probabilities")
        return cls(prior, x, p)


_TOP = 5
_SCORES = 4_000_000  # computed on either side, for each of the two measures that need many
_COLUMNS = 8192  # scored at a time
_RANGES = 1000
# Shares of the edges and paths found that `best_zero` may lose for F1, and to get below a share of
# false positives among look-alikes; a gain of F1 that is not worth it.
_LOST = (0.002, 0.001), (0.02, 0.02)
_FALSE, _GAIN, _CUTS = 0.033, 0.002, 64  # 0.05 less three standard errors of 1,536 look-alikes
_ENOUGH = 300  # paths, for a warning
_POOR = 5.0  # times the error that the goal allows


class Line(NamedTuple):
    """One line of the report."""

    name: str  # the attribute of :class:`Fidelity`
    label: str  # what it is in words
    value: float
    goal: float
    error: float  # distance from the perfect value, in units of what the goal allows


def _line(label: str, goal: float, best: float = 1.0) -> Any:
    """Declare a line of the report, with a goal and the perfect value."""
    return field(metadata={"label": label, "goal": goal, "best": best})


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


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """How well vectors preserve the paths of their graph; NaN if there is nothing to measure.

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
        Share of pairs predicted although there is no path: a node with the target of another node's
        path, on a higher level; a node with the source of a path to another, on a lower level.
    random_pairs : float
        Share predicted among random pairs without a path.
    auc, auc_sources : float
        Probability that a path scores higher than a look-alike.
    level_auc : float
        `auc` with the difference of levels as the score.
    precision_targets, precision_sources : float
        Share of correct nodes among the five targets (sources) with the largest scores, or fewer if
        the node has fewer.
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

    edges: float = _line("edges predicted (distance 1)", 0.97)
    closure: float = _line("paths predicted, uniform over the closure", 0.985)
    distance_2: float = _line("paths predicted, distance 2", 0.97)
    distance_3_to_5: float = _line("paths predicted, distance 3 to 5", 0.97)
    distance_6_to_10: float = _line("paths predicted, distance 6 to 10", 0.97)
    distance_above_10: float = _line("paths predicted, distance above 10", 0.97)
    look_alike_targets: float = _line("false positives, look-alike targets", 0.05, 0.0)
    look_alike_sources: float = _line("false positives, look-alike sources", 0.05, 0.0)
    random_pairs: float = _line("false positives, random pairs", 0.05, 0.0)
    auc: float = _line("AUC, paths against look-alike targets", 0.995)
    auc_sources: float = _line("AUC, paths against look-alike sources", 0.995)
    level_auc: float
    precision_targets: float = _line("precision@5 of the targets, by score", 0.98)
    precision_sources: float = _line("precision@5 of the sources, by score", 0.98)
    f1: float = _line("F1 over all pairs", 0.96)
    threshold_f1: float = _line("F1 over all pairs, at the threshold", 0.96)
    threshold_edges: float = _line("edges predicted, at the threshold", 0.9)
    level_correlation: float
    pairs: int

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Fidelity:
        """Restore the report from the plain values of :meth:`to_dict`."""
        if set(values) != {each.name for each in fields(cls)}:
            raise ValueError("its fidelity has other entries")
        numbers = {name: np.nan if x is None else float(x) for name, x in values.items()}
        return cls(**numbers | {"pairs": int(values["pairs"])})  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, float | int | None]:
        """Return plain values, None for NaN."""
        return {name: None if x != x else x for name, x in asdict(self).items()}

    def lines(self) -> list[Line]:
        """Return the lines of the report that could be measured, weakest first."""
        lines = []
        for each in fields(self):
            value, about = float(getattr(self, each.name)), each.metadata
            if about and value == value:
                goal, best = about["goal"], about["best"]
                error = abs(value - best) / abs(goal - best)
                lines.append(Line(each.name, about["label"], value, goal, error))
        return sorted(lines, key=lambda line: -line.error)

    @property
    def is_poor(self) -> bool:
        """Whether a line is far from its goal, or levels alone are about as good.

        False for graphs with too few paths to tell.
        """
        little = self.auc - self.level_auc < (1.0 - self.level_auc) / 3
        lines = self.lines()
        return self.pairs >= _ENOUGH and (little or lines[0].error > _POOR)

    def advice(self, purpose: str = "reachability") -> str:
        """Return advice on the weakest line, in a sentence; "" if all goals are met."""
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
        listed = "; ".join(f"{line.label} {line.value:.1%}" for line in first)
        return f"weakest first: {listed} ({self.pairs:,} sampled paths)"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        rows = {each.label: f"{each.value:.1%}, goal {each.goal:.1%}" for each in self.lines()}
        return html_table(f"Fidelity, {self.pairs:,} sampled paths, weakest first", rows)


class Evaluation(NamedTuple):
    """Results of evaluating vectors; models of earlier versions have a threshold only."""

    fidelity: Fidelity | None
    threshold: float
    calibration: Calibration | None


def evaluate(
    sample: PathSample, source: FloatArray, target: FloatArray, cut: float | None = 0.0
) -> Evaluation:
    """Evaluate vectors on sampled pairs; find the threshold and the probabilities.

    Parameters
    ----------
    sample : PathSample
    source, target : float arrays of shape (nodes, components)
    cut : float, optional
        The score above which a path is predicted in the report; None if 0 has no meaning, so that
        the threshold with the best F1 over all pairs is used.

    Examples
    --------
    >>> from atpgraph.closure import collect_paths
    >>> from atpgraph.graph import DiGraph
    >>> dag = DiGraph.from_codes([0, 1, 3], [1, 2, 4], 5)
    >>> levels = np.array([1, 2, 3, 1, 2], dtype=np.int32)
    >>> by_level = np.stack([-levels, np.ones(5)], axis=1), np.stack([np.ones(5), levels], axis=1)
    >>> report = evaluate(PathSample.of(collect_paths(dag, levels)), *by_level).fidelity
    >>> report.auc == report.level_auc, report.closure, report.look_alike_targets
    (True, 1.0, 1.0)
    """
    n, levels = sample.n_nodes, sample.levels
    ends = _ends(sample, source, target)
    of_paths = np.concatenate([end.scores(end.side.paths) for end in ends])
    weight = np.concatenate([end.side.paths.weight for end in ends]) / 2
    edge_scores = pair_scores(source, target, *sample.edges)
    others, climbing, looked_at = zip(*(end.others() for end in ends), strict=True)
    of_others, scale = np.concatenate(others), n * (n - 1.0) / max(sum(looked_at), 1)
    counts = _counts(of_paths, weight, of_others[np.concatenate(climbing)], scale)
    threshold, threshold_f1 = counts.best_threshold()
    level = threshold if cut is None else cut
    recall, paths = _mean(of_paths > level, weight), weight.sum()
    false = np.count_nonzero(of_others > level) * scale
    by_distance = {}
    for name in DISTANCES:
        pairs = [end.side.by_distance[name] for end in ends]
        predicted = [end.scores(each) > level for end, each in zip(ends, pairs, strict=True)]
        weights = np.concatenate([each.weight for each in pairs])
        by_distance[name] = _mean(np.concatenate(predicted), weights)
    good = [end.scores(end.side.hard_paths) for end in ends]
    bad = [end.scores(end.side.look_alikes) for end in ends]
    first = sample.sides[0]
    climbs = [levels[v] - levels[u] for u, v in (first.hard_paths, first.look_alikes)]
    values = {
        "edges": _mean(edge_scores > level),
        "closure": recall,
        **by_distance,
        "look_alike_targets": _mean(bad[0] > level),
        "look_alike_sources": _mean(bad[1] > level),
        "random_pairs": _mean(of_others > level),
        "auc": _auc(good[0], bad[0]),
        "auc_sources": _auc(good[1], bad[1]),
        "level_auc": _auc(*climbs),
        "precision_targets": ends[0].precision(),
        "precision_sources": ends[1].precision(),
        "f1": 2 * recall * paths / (recall * paths + false + paths) if paths else np.nan,
        "threshold_f1": threshold_f1,
        "threshold_edges": _mean(edge_scores > threshold),
        "level_correlation": _correlation(good[0], climbs[0]),
    }
    # The one NaN of NumPy equals itself in a comparison of reports.
    rounded = {name: round(float(x), 6) if x == x else np.nan for name, x in values.items()}
    fidelity = Fidelity(**rounded, pairs=len(of_paths))
    return Evaluation(fidelity, threshold, Calibration.of(counts, n * (n - 1.0)))


def best_zero(sample: PathSample, source: FloatArray, target: FloatArray) -> float:
    """Return the score that should become 0: higher ones lose paths, lower ones find false paths.

    It is the lowest score from 0 up with nearly the best F1 over all pairs and few look-alikes
    above it, provided that the shares of edges and paths that it loses stay within their limits.
    """
    n, ends = sample.n_nodes, _ends(sample, source, target)
    edges = pair_scores(source, target, *sample.edges)
    paths = np.concatenate([end.scores(end.side.paths) for end in ends])
    weight = np.concatenate([end.side.paths.weight for end in ends]) / 2
    right = paths > 0
    if not right.any() or not (edges > 0).any():
        return 0.0
    lost = np.array(_LOST).T
    of_edges = np.quantile(edges[edges > 0], lost[0], method="inverted_cdf")
    shares = np.cumsum(weight[right][order := np.argsort(paths[right])])
    lost_paths = np.searchsorted(shares, lost[1] * shares[-1])
    least, most = np.minimum(of_edges, paths[right][order[lost_paths]])
    others, _, looked_at = zip(*(end.others(_SCORES // 16) for end in ends), strict=True)
    scale = n * (n - 1.0) / max(sum(looked_at), 1)
    cuts = np.linspace(0.0, least, _CUTS)
    above = [_above(paths, weight, cuts), _above(np.concatenate(others), None, cuts) * scale]
    f1 = 2 * above[0] / (above[0] + above[1] + weight.sum())
    by_f1 = float(cuts[np.argmax(f1 >= f1.max() - _GAIN)])
    alike = [end.scores(end.side.look_alikes) for end in ends]
    by_false = max((float(np.quantile(x, 1 - _FALSE)) for x in alike if len(x)), default=0.0)
    return float(max(by_f1, min(by_false, most)))


def _above(scores: AnyArray, weight: Float64Array | None, cuts: Float64Array) -> Float64Array:
    """Return the weight of the scores above each of the cuts, which ascend."""
    place = np.searchsorted(cuts, scores, side="left")
    total = np.bincount(place, weight, minlength=len(cuts) + 1)
    return np.asarray(total[::-1].cumsum()[::-1][1:], dtype=np.float64)


def _ends(sample: PathSample, source: FloatArray, target: FloatArray) -> list[_End]:
    first, second = sample.sides
    return [
        _End(first, source, target, sample.levels),
        _End(second, target, source, -sample.levels),
    ]


class _End(NamedTuple):
    """One end of the paths, and the vectors as seen from there."""

    side: Side
    near: FloatArray
    far: FloatArray
    levels: Int32Array

    def scores(self, pairs: Any) -> Float64Array:
        """Return the scores of pairs."""
        return pair_scores(self.near, self.far, pairs[0], pairs[1])

    def precision(self) -> float:
        """Return the share of right nodes among the five best of the hard rows."""
        most = max(_SCORES // max(len(self.far), 1), 16)
        nodes, sizes, bits = (x[:most] for x in self.side.hard_rows)
        best, _ = top_by_product(self.near[nodes], self.far, _TOP, skip=nodes)
        right = self.side.joined(np.repeat(bits, best.shape[1]), best.ravel()).reshape(best.shape)
        return _mean(right[np.arange(best.shape[1]) < sizes[:, None]])

    def others(self, most: int = _SCORES) -> tuple[Float32Array, BoolArray, int]:
        """Return scores of random pairs without a path, which of them climb, and the number of
        pairs checked. The pairs join the rows with all other nodes, or with a bounded number of
        them.
        """
        rows, n = self.side.rows, len(self.far)
        count = max(most // max(len(rows.nodes), 1), 1)
        columns = np.arange(n)
        if count < n:
            columns = np.sort(np.random.default_rng(0).choice(n, count, replace=False))
        queries = self.near[rows.nodes].astype(np.float32)
        scores = [np.zeros(0, dtype=np.float32)]
        climbing, looked_at = [np.zeros(0, dtype=np.bool_)], 0
        for first in range(0, len(columns), _COLUMNS):
            some = columns[first : first + _COLUMNS]
            different = rows.nodes[:, None] != some
            free = ~self.side.joined(rows.bits[:, None], some) & different
            scores.append((queries @ self.far[some].astype(np.float32).T)[free])
            climbing.append((self.levels[some] > self.levels[rows.nodes, None])[free])
            looked_at += int(np.count_nonzero(different))
        return np.concatenate(scores), np.concatenate(climbing), looked_at


def _counts(
    paths: Float64Array, weight: Float64Array, others: AnyArray, scale: float
) -> ScoreCounts:
    """Count scores by range: paths by their weights, each of the others for `scale` pairs."""
    if not len(paths):
        return ScoreCounts(np.zeros(1), *np.zeros((3, 2)))
    low, high = float(paths.min()), float(paths.max())
    # From somewhat below the lowest score of a path on; a score at a bound is not above it.
    bounds = np.linspace(low - (high - low or 1.0) / 4, high, _RANGES)
    step = (_RANGES - 1) / (bounds[-1] - bounds[0])
    place = np.searchsorted(bounds, paths, side="left")
    ranges = np.ceil((others - bounds[0]) * step)
    below = np.bincount(np.clip(ranges, 0, _RANGES).astype(np.int64), minlength=_RANGES + 1)
    every, sampled = (
        np.bincount(place, each, minlength=_RANGES + 1).astype(np.float64)
        for each in (weight, None)
    )
    return ScoreCounts(bounds, every, np.asarray(below * scale), sampled)


def _auc(good: AnyArray, bad: AnyArray) -> float:
    if not len(good) or not len(bad):
        return np.nan
    above = average_ranks(np.concatenate([good, bad]))[: len(good)].sum()
    return float(above - len(good) * (len(good) + 1) / 2) / (len(good) * len(bad))


def _correlation(x: AnyArray, y: AnyArray) -> float:
    """Return Spearman's correlation; NaN if either side is constant."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    return float(np.corrcoef(average_ranks(x), average_ranks(y))[0, 1])


def _mean(values: BoolArray, weight: Float64Array | None = None) -> float:
    if not len(values):
        return np.nan
    return float(np.average(values, weights=weight))
