"""Turn scores into probabilities of a path, and find the score that decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from atpgraph.errors import InputError
from atpgraph.util.arrays import Float64Array


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """How many pairs with and without a path have scores in each of some ranges."""

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
        told = np.interp(np.asarray(scores, dtype=np.float64), self.scores, self.probabilities)
        if base_rate is None or not 0.0 < self.prior < 1.0:
            return told
        with np.errstate(divide="ignore"):
            return np.asarray(expit(logit(told) + logit(base_rate) - logit(self.prior)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, which :meth:`from_dict` reads."""
        return {
            "prior": self.prior,
            "scores": self.scores.tolist(),
            "probabilities": self.probabilities.tolist(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Calibration:
        """Read what :meth:`to_dict` returned; raise ValueError for anything else."""
        x, p = (np.array(values[name], dtype=np.float64) for name in ("scores", "probabilities"))
        prior = float(values["prior"])
        shaped = x.ndim == 1 and x.shape == p.shape and len(x) > 0
        inside = 0.0 <= prior <= 1.0 and bool(((p >= 0) & (p <= 1)).all())
        if not shaped or not inside or not (np.diff(x) > 0).all():
            raise ValueError("its calibration is not a curve of probabilities")
        return cls(prior, x, p)
