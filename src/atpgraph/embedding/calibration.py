"""Turn scores into probabilities of a path, and find the score that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit

from atpgraph.errors import InputError
from atpgraph.util.arrays import Float64Array

# Bins of the probability in which two parameters have to be right, and by how much.
_BINS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_GAP = 0.03
_ENOUGH = 30  # sampled pairs, of a bin that counts


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """How many pairs with and without a path have scores in each of some ranges.

    Attributes
    ----------
    edges : float64 array
        Bounds of the ranges, ascending; the first range has no lower bound, the last no upper one.
    paths, others : float64 arrays
        Number of pairs in each range, estimated, one more than there are bounds.
    sampled : float64 array
        Number of sampled paths in each range.
    """

    edges: Float64Array
    paths: Float64Array
    others: Float64Array
    sampled: Float64Array

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
    """Probability that a path joins a pair with a given score.

    Attributes
    ----------
    prior : float
        Share of pairs joined by a path among all pairs of different nodes.
    kind : {"platt", "isotonic"}
        Logistic in the score, or isotonic regression where that is not right.
    scores, probabilities : float64 arrays
        Points of the curve, which is linear in between. Platt scaling needs two.
    """

    prior: float
    kind: str
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
            return cls(prior, "isotonic", np.array([0.0, 1.0]), constant)
        gap = counts.edges[-1] - counts.edges[-2]
        ends = [counts.edges[0] - gap, *counts.edges, counts.edges[-1] + gap]
        middle = np.convolve(ends, [0.5, 0.5], "valid")
        used = paths + others > 0
        x, w = middle[used], (paths + others)[used]
        y = paths[used] / w
        # Platt's targets: what is right in all n sampled pairs is not certain.
        n_paths = counts.sampled.sum()
        n_others = n_paths * others.sum() / paths.sum()
        smooth = y * (n_paths + 1) / (n_paths + 2) + (1 - y) / (n_others + 2)
        a, b = _logistic(x, smooth, w)
        if _is_right(expit(a * x + b), paths[used], w, counts.sampled[used]):
            points = np.array([-b / a - 10 / a, -b / a + 10 / a])
            return cls(prior, "platt", points, expit(a * points + b))
        fit = isotonic_regression(y, weights=w)
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
        return cls(prior, "isotonic", x[corners], flat[corners])

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
        given = np.asarray(scores, dtype=np.float64)
        if self.kind == "platt":
            (x, z), (p, q) = self.scores, logit(self.probabilities)
            odds = p + (given - x) * ((q - p) / (z - x))
        else:
            with np.errstate(divide="ignore"):
                odds = logit(np.interp(given, self.scores, self.probabilities))
        if base_rate is not None and 0.0 < self.prior < 1.0:
            odds = odds + logit(base_rate) - logit(self.prior)
        return np.asarray(expit(odds))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which :meth:`from_dict` reads."""
        return {
            "prior": self.prior,
            "kind": self.kind,
            "scores": self.scores.tolist(),
            "probabilities": self.probabilities.tolist(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Calibration:
        """Read what :meth:`to_dict` returned; raise ValueError for anything else."""
        x, p = (np.array(values[name], dtype=np.float64) for name in ("scores", "probabilities"))
        prior, kind = float(values["prior"]), str(values["kind"])
        known = kind == "isotonic" or (kind == "platt" and len(x) == 2)
        shaped = x.ndim == 1 and x.shape == p.shape and len(x) > 0
        inside = 0.0 <= prior <= 1.0 and bool(((p >= 0) & (p <= 1)).all())
        if not known or not shaped or not inside or not (np.diff(x) > 0).all():
            raise ValueError("its calibration is not a curve of probabilities")
        return cls(prior, kind, x, p)


def _logistic(x: Float64Array, y: Float64Array, w: Float64Array) -> tuple[float, float]:
    """Slope and intercept of the weighted logistic regression of y on x."""
    center, scale = np.average(x, weights=w), np.ptp(x) or 1.0
    z, share = (x - center) / scale, w / w.sum()

    def loss(ab: Float64Array) -> tuple[float, Float64Array]:
        odds = ab[0] * z + ab[1]
        slope = (expit(odds) - y) * share
        return float((share * (np.logaddexp(0.0, odds) - y * odds)).sum()), np.array(
            [(slope * z).sum(), slope.sum()]
        )

    start = np.array([1.0, logit(np.clip(y @ share, 1e-12, 1 - 1e-12))])
    a, b = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return float(a / scale), float(b - a * center / scale)


def _is_right(
    told: Float64Array, paths: Float64Array, w: Float64Array, sampled: Float64Array
) -> bool:
    """Whether stated and observed probabilities agree in every bin with enough sampled pairs."""
    bins = np.searchsorted(_BINS[1:-1], told)
    for at in range(len(_BINS) - 1):
        inside = bins == at
        total = w[inside].sum()
        if total and sampled[inside].sum() >= _ENOUGH:
            gap = abs((told[inside] * w[inside]).sum() - paths[inside].sum()) / total
            if gap > _GAP:
                return False
    return True
