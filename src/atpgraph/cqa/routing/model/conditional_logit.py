"""The conditional logit: who, of these people, gives the accepted answer?

With features x the probability of a person is softmax(w·x) over the candidates: McFadden's model
of choice, and the listwise loss of learning to rank. It is convex, so the result does not depend
on luck; a few hundred questions are enough; and a ranking of a hundred thousand people is one
product of a matrix and a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from atpgraph._typing import BoolArray, Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Choices:
    """Training examples, one group of rows per question.

    Attributes
    ----------
    x : float64 array of shape (rows, features)
    group : int64 array
        Question of every row, ascending from 0.
    chosen : int64 array
        Row of the right person of every question.
    offset : float64 array
        Logarithm of how many people a row stands for (0 for one that is surely in the sample).
    """

    x: Float64Array
    group: Int64Array
    chosen: Int64Array
    offset: Float64Array

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return len(self.chosen)

    def part(self, questions: BoolArray) -> Choices:
        """Some of the questions."""
        rows = questions[self.group]
        place = np.cumsum(rows) - 1
        number = np.cumsum(questions) - 1
        return Choices(
            self.x[rows],
            number[self.group[rows]],
            place[self.chosen[questions]],
            self.offset[rows],
        )


@dataclass(frozen=True, eq=False)
class ConditionalLogit:
    """Weights of standardised features.

    Attributes
    ----------
    mean, scale, weight : float64 arrays
        One entry per feature.
    """

    mean: Float64Array
    scale: Float64Array
    weight: Float64Array

    @cached_property
    def raw_weight(self) -> Float64Array:
        """Weights of the features before standardisation."""
        return self.weight / self.scale

    def score(self, x: Float64Array) -> Float64Array:
        """One number per row; differences are log-odds."""
        scores: Float64Array = (x - self.mean) @ self.raw_weight
        return scores

    def probabilities(self, choices: Choices) -> Float64Array:
        """Probability, for every row, that it is the right one of its question."""
        _, slope = logit_loss(self.score(choices.x), choices)
        slope[choices.chosen] += 1.0
        return np.asarray(slope / np.exp(choices.offset))

    def loss(self, choices: Choices) -> float:
        """Mean negative log-likelihood of the right people."""
        return logit_loss(self.score(choices.x), choices)[0] / max(choices.n_questions, 1)

    def to_json(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "weight": self.weight.tolist(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ConditionalLogit:
        """Back from plain lists."""
        return cls(
            *(np.asarray(data[name], dtype=np.float64) for name in ("mean", "scale", "weight"))
        )


def fit_logit(
    choices: Choices,
    penalty: float = 1.0,
    use: BoolArray | None = None,
    prior: Float64Array | None = None,
) -> ConditionalLogit:
    """Fit by maximum likelihood with an L2 penalty.

    Parameters
    ----------
    choices : Choices
        None at all will do if there is a prior.
    penalty : float
        What it costs to differ from the prior by one unit of a standardised weight, squared and
        halved.
    use : boolean array, optional
        Features not in it get weight 0.
    prior : float64 array, optional
        Weights to start from, of features before standardisation; 0 by default.
    """
    n_features = choices.x.shape[1]
    use = np.ones(n_features, dtype=np.bool_) if use is None else use
    mean = choices.x.mean(axis=0) if len(choices.x) else np.zeros(n_features)
    scale = choices.x.std(axis=0) if len(choices.x) else np.ones(n_features)
    use = use & (scale > 1e-9)
    scale = np.where(scale > 1e-9, scale, 1.0)
    start = np.zeros(n_features) if prior is None else prior * scale
    weight = np.where(use, start, 0.0)
    if choices.n_questions and use.any():
        z = ((choices.x - mean) / scale)[:, use]
        centre = start[use]

        def objective(w: Float64Array) -> tuple[float, Float64Array]:
            value, slope = logit_loss(z @ w, choices)
            moved = w - centre
            return value + 0.5 * penalty * float(moved @ moved), z.T @ slope + penalty * moved

        best = minimize(objective, centre, jac=True, method="L-BFGS-B", options={"maxiter": 200})
        weight[use] = best.x
    return ConditionalLogit(mean, scale, weight)


def logit_loss(scores: Float64Array, choices: Choices) -> tuple[float, Float64Array]:
    """Negative log-likelihood, and its slope by the score of every row."""
    n = choices.n_questions
    shifted = scores + choices.offset
    top = np.full(n, -np.inf)
    np.maximum.at(top, choices.group, shifted)
    lift = np.exp(shifted - top[choices.group])
    total = np.bincount(choices.group, lift, minlength=n)
    slope = lift / total[choices.group]
    value = float(np.sum(np.log(total) + top - shifted[choices.chosen]))
    slope[choices.chosen] -= 1.0
    return value, slope
