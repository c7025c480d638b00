"""From scores to how often each candidate is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from atpgraph.util.arrays import Float64Array
from atpgraph_qa.ranking.conditional_logit import Choices, ConditionalLogit, logit_loss

_CALM = 5.0


@dataclass(frozen=True)
class Calibration:
    """Turns the scores of a conditional logit into probabilities.

    Attributes
    ----------
    sharpness : float
        What scores are multiplied by before they become probabilities.
    reach : float
        How often the right person is among the candidates at all.
    """

    sharpness: float = 1.0
    reach: float = 1.0

    def __call__(self, scores: Float64Array) -> Float64Array:
        """A probability for every candidate."""
        if not len(scores):
            return scores
        lift = np.exp(self.sharpness * (scores - scores.max()))
        return np.asarray(self.reach * lift / lift.sum())


def calibrate(model: ConditionalLogit, choices: Choices, reach: float) -> Calibration:
    """The sharpness under which held-out questions are likeliest, drawn to 1 where they are few."""
    if not choices.n_questions:
        return Calibration(1.0, reach)
    scores = model.score(choices.x)

    def cost(log_sharpness: float) -> float:
        sharp = float(np.exp(log_sharpness))
        return logit_loss(sharp * scores, choices)[0] + _CALM * log_sharpness**2

    best = minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded")
    return Calibration(float(np.exp(best.x)), reach)
