"""Turn scores into probabilities that candidates are right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

from atpgraph.util.arrays import BoolArray, Float64Array
from atpgraph.util.conditional_logit import Choices, choice_losses

_PULL = 5.0  # of log-sharpness toward 0, in squared units
_PULL_OUTCOMES = 4.0  # of shift and slope toward 0 and 1
_EDGE = 1e-6


@dataclass(frozen=True)
class Calibration:
    """Turns the scores of a conditional logit into probabilities."""

    sharpness: float = 1.0  # what scores are multiplied by
    reach: float = 1.0  # how often the right person is among the candidates at all
    shift: float = 0.0  # learned from outcomes: log-odds become shift + slope · log-odds
    slope: float = 1.0

    def __call__(self, scores: Float64Array) -> Float64Array:
        """Return a probability for every candidate."""
        if not len(scores):
            return scores
        lift = np.exp(self.sharpness * (scores - scores.max()))
        stated = self.reach * lift / lift.sum()
        if (self.shift, self.slope) != (0.0, 1.0):
            stated = expit(self.shift + self.slope * logit(np.clip(stated, _EDGE, 1 - _EDGE)))
        return np.asarray(stated)

    def corrected(self, stated: Float64Array, happened: BoolArray) -> Calibration:
        """Return the calibration with a correction for how often its statements came true.

        Platt scaling of the log-odds, shrunk toward no change when there are few outcomes. A
        correction of a correction is again one correction, so it can be called again with the
        outcomes that came since.

        Examples
        --------
        Statements of 46 % of which 16 % came true:

        >>> stated, happened = np.full(300, 0.46), np.arange(300) < 48
        >>> better = Calibration().corrected(stated, happened)
        >>> log_odds = better.shift + better.slope * logit(0.46)
        >>> bool(abs(expit(log_odds) - 0.16) < 0.02)
        True
        """
        if not len(stated):
            return self
        x = logit(np.clip(stated, _EDGE, 1 - _EDGE))
        sign = np.where(happened, -1.0, 1.0)

        def cost(at: Float64Array) -> tuple[float, Float64Array]:
            away = at - np.array([0.0, 1.0])
            z = sign * (at[0] + at[1] * x)
            push = sign * expit(z)
            slope = np.array([push.sum(), push @ x]) + _PULL_OUTCOMES * away
            return float(np.logaddexp(0.0, z).sum() + 0.5 * _PULL_OUTCOMES * away @ away), slope

        best = minimize(cost, np.array([0.0, 1.0]), jac=True, bounds=[(None, None), (0.0, None)])
        shift, slope = best.x.tolist()
        return replace(self, shift=shift + slope * self.shift, slope=slope * self.slope)


def calibrate(scores: Float64Array, choices: Choices, reach: float) -> Calibration:
    """Return the sharpness that makes the right people likeliest, near 1 where they are few.

    Scores, one per row of `choices`, come from a model that was not fitted to these questions.
    """
    if not choices.n_groups:
        return Calibration(1.0, reach)

    def cost(log_sharpness: float) -> float:
        sharp = float(np.exp(log_sharpness))
        return float(choice_losses(sharp * scores, choices).sum()) + _PULL * log_sharpness**2

    best = minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded")
    return Calibration(float(np.exp(best.x)), reach)
