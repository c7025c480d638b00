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
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.jit import kernel


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


class LogitProblem:
    """Standardised examples, to be fitted under several penalties and priors.

    Parameters
    ----------
    choices : Choices
        None at all will do if there is a prior.
    use : boolean array, optional
        Features not in it get weight 0.
    stiff : float64 array, optional
        What the penalty of each feature is multiplied by; 1 by default.
    """

    def __init__(
        self,
        choices: Choices,
        use: BoolArray | None = None,
        stiff: Float64Array | None = None,
    ) -> None:
        n_features = choices.x.shape[1]
        use = np.ones(n_features, dtype=np.bool_) if use is None else use
        self.mean = choices.x.mean(axis=0) if len(choices.x) else np.zeros(n_features)
        scale = choices.x.std(axis=0) if len(choices.x) else np.ones(n_features)
        self.use = use & (scale > 1e-9)
        self.scale = np.where(scale > 1e-9, scale, 1.0)
        self._stiff = (np.ones(n_features) if stiff is None else stiff)[self.use]
        z = choices.x[:, self.use]
        z -= self.mean[self.use]
        z /= self.scale[self.use]
        self._choices, self._z = choices, z
        self._start = np.searchsorted(choices.group, np.arange(choices.n_questions + 1))
        self._curvatures: dict[bytes, Float64Array] = {}

    def fit(self, penalty: float = 1.0, prior: Float64Array | None = None) -> ConditionalLogit:
        """Fit by maximum likelihood with an L2 penalty.

        Parameters
        ----------
        penalty : float
            What it costs to differ from the prior by one unit of a standardised weight, squared
            and halved.
        prior : float64 array, optional
            Weights to start from, of features before standardisation; 0 by default.
        """
        choices = self._choices
        start = np.zeros(len(self.mean)) if prior is None else prior * self.scale
        weight = np.where(self.use, start, 0.0)
        if choices.n_questions and self.use.any():
            centre = start[self.use]
            scores = np.empty(len(choices.x))
            # Seen through the curvature at the start, all directions are about equally steep: a
            # tenth of the steps that the weights themselves would take.
            pull_of_all = np.diag(penalty * self._stiff)
            root = cholesky(self._curvature(centre) + pull_of_all, lower=True)

            def objective(u: Float64Array) -> tuple[float, Float64Array]:
                w = centre + solve_triangular(root, u, lower=True, trans=1)
                slope = np.zeros(len(w))
                value = loss_and_slope(
                    self._z, w, choices.offset, self._start, choices.chosen, scores, slope
                )
                moved = w - centre
                pull = penalty * self._stiff * moved
                downhill = solve_triangular(root, slope + pull, lower=True)
                return value + 0.5 * float(pull @ moved), downhill

            best = minimize(
                objective,
                np.zeros(len(centre)),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 200},
            )
            weight[self.use] = centre + solve_triangular(root, best.x, lower=True, trans=1)
        return ConditionalLogit(self.mean, self.scale, weight)

    def _curvature(self, weight: Float64Array) -> Float64Array:
        """Second derivatives of the loss, kept for every penalty."""
        key = weight.tobytes()
        if key not in self._curvatures:
            total = np.zeros((len(weight), len(weight)))
            room = np.empty(len(self._z))
            add_curvature(self._z, weight, self._choices.offset, self._start, room, total)
            self._curvatures[key] = total
        return self._curvatures[key]


def fit_logit(
    choices: Choices,
    penalty: float = 1.0,
    use: BoolArray | None = None,
    prior: Float64Array | None = None,
    stiff: Float64Array | None = None,
) -> ConditionalLogit:
    """Fit once; see :class:`LogitProblem` for the parameters."""
    return LogitProblem(choices, use, stiff).fit(penalty, prior)


@kernel
def loss_and_slope(
    z: Float64Array,
    weight: Float64Array,
    offset: Float64Array,
    start: Int64Array,
    chosen: Int64Array,
    scores: Float64Array,
    slope: Float64Array,
) -> float:
    """Negative log-likelihood; its slope by every weight is added to `slope`.

    Question by question, so that its rows are still in the cache when the slope needs them: a
    product of matrices reads all rows twice, and starts threads for it. `scores` is room to work
    in.
    """
    width = len(weight)
    even = width - width % 4
    value = 0.0
    for question in range(len(chosen)):
        first, last = start[question], start[question + 1]
        top = -np.inf
        for row in range(first, last):
            # Four sums, since each addition waits for the one before.
            a = b = c = d = 0.0
            for k in range(0, even, 4):
                a += z[row, k] * weight[k]
                b += z[row, k + 1] * weight[k + 1]
                c += z[row, k + 2] * weight[k + 2]
                d += z[row, k + 3] * weight[k + 3]
            for k in range(even, width):
                a += z[row, k] * weight[k]
            score = (a + b) + (c + d) + offset[row]
            scores[row] = score
            top = max(top, score)
        total = 0.0
        right = scores[chosen[question]]
        for row in range(first, last):
            scores[row] = np.exp(scores[row] - top)
            total += scores[row]
        value += np.log(total) + top - right
        for row in range(first, last):
            share = scores[row] / total
            for k in range(width):
                slope[k] += share * z[row, k]
        for k in range(width):
            slope[k] -= z[chosen[question], k]
    return value


@kernel
def add_curvature(
    z: Float64Array,
    weight: Float64Array,
    offset: Float64Array,
    start: Int64Array,
    scores: Float64Array,
    total: Float64Array,
) -> None:
    """Add the second derivatives of the negative log-likelihood by the weights to `total`."""
    width = len(weight)
    mean = np.empty(width)
    for question in range(len(start) - 1):
        first, last = start[question], start[question + 1]
        top = -np.inf
        for row in range(first, last):
            scores[row] = offset[row]
            for k in range(width):
                scores[row] += z[row, k] * weight[k]
            top = max(top, scores[row])
        sum_of = 0.0
        for row in range(first, last):
            scores[row] = np.exp(scores[row] - top)
            sum_of += scores[row]
        mean[:] = 0.0
        for row in range(first, last):
            share = scores[row] / sum_of
            for j in range(width):
                part = share * z[row, j]
                mean[j] += part
                for k in range(j + 1):
                    total[j, k] += part * z[row, k]
        for j in range(width):
            for k in range(j + 1):
                total[j, k] -= mean[j] * mean[k]
    for j in range(width):
        for k in range(j):
            total[k, j] = total[j, k]


def question_losses(scores: Float64Array, choices: Choices) -> Float64Array:
    """Return the negative log-likelihood of the right person of every question."""
    shifted = scores + choices.offset
    starts = np.searchsorted(choices.group, np.arange(choices.n_questions))
    return np.asarray(np.logaddexp.reduceat(shifted, starts) - shifted[choices.chosen])


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
