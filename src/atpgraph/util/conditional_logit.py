"""The conditional logit, which predicts which of several candidates is chosen.

With features x the probability of a candidate is softmax(w·x) over its group: McFadden's model of
choice, and the listwise loss of learning to rank. The loss is convex, so the result does not depend
on a starting point, and a ranking is one product of a matrix and a vector.
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
    """Training examples: candidates in groups, and those that were chosen.

    Attributes
    ----------
    x : float64 array of shape (rows, features)
    group : int64 array
        Group of every row, ascending from 0.
    chosen : int64 array
        Rows that were chosen; a group can have several, or none, which teaches nothing.
    offset : float64 array
        Logarithm of how many candidates a row stands for (0 for itself alone).
    weight : float64 array, optional
        How much each choice counts; 1 by default.
    """

    x: Float64Array
    group: Int64Array
    chosen: Int64Array
    offset: Float64Array
    weight: Float64Array | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group[-1]) + 1 if len(self.group) else 0

    @cached_property
    def taken(self) -> Float64Array:
        """The weight of the choices of every row."""
        return np.bincount(self.chosen, self.weight, minlength=len(self.x)).astype(np.float64)

    @cached_property
    def start(self) -> Int64Array:
        """The first row of each group, and the end of the last group."""
        return np.searchsorted(self.group, np.arange(self.n_groups + 1)).astype(np.int64)

    def part(self, groups: BoolArray) -> Choices:
        """Return the examples of the groups where the mask is true."""
        rows = groups[self.group]
        place, number = np.cumsum(rows) - 1, np.cumsum(groups) - 1
        kept = rows[self.chosen]
        return Choices(
            self.x[rows],
            number[self.group[rows]],
            place[self.chosen[kept]],
            self.offset[rows],
            None if self.weight is None else self.weight[kept],
        )


@dataclass(frozen=True, eq=False)
class ConditionalLogit:
    """Weights of standardized features.

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
        """Weights of the features before standardization."""
        return self.weight / self.scale

    def score(self, x: Float64Array) -> Float64Array:
        """Return one number per row; differences are log-odds."""
        scores: Float64Array = (x - self.mean) @ self.raw_weight
        return scores

    def to_json(self) -> dict[str, Any]:
        """Return plain lists."""
        return {name: getattr(self, name).tolist() for name in ("mean", "scale", "weight")}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ConditionalLogit:
        """Restore from plain lists."""
        return cls(
            *(np.asarray(data[name], dtype=np.float64) for name in ("mean", "scale", "weight"))
        )


class LogitProblem:
    """Standardized examples, to be fitted under several penalties and priors.

    Parameters
    ----------
    choices : Choices
        May be empty if there is a prior.
    use : boolean array, optional
        Features not in it get weight 0.
    stiff : float64 array, optional
        Factor on the penalty of each feature; 1 by default.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [0.0], [1.0], [1.0], [0.0]])
    >>> picked = Choices(x, np.array([0, 0, 1, 1, 2, 2]), np.array([1, 3, 5]), np.zeros(6))
    >>> bool(LogitProblem(picked).fit(0.1).raw_weight[0] > 0)
    True
    """

    def __init__(
        self, choices: Choices, use: BoolArray | None = None, stiff: Float64Array | None = None
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
        self._curvatures: dict[bytes, Float64Array] = {}

    def fit(self, penalty: float = 1.0, prior: Float64Array | None = None) -> ConditionalLogit:
        """Fit by maximum likelihood with an L2 penalty.

        Parameters
        ----------
        penalty : float
            Factor on half the squared difference of the standardized weights from the prior.
        prior : float64 array, optional
            Weights to start from, of features before standardization; 0 by default.
        """
        choices = self._choices
        begin = np.zeros(len(self.mean)) if prior is None else prior * self.scale
        weight = np.where(self.use, begin, 0.0)
        if len(choices.chosen) and self.use.any():
            center = begin[self.use]
            room = np.empty(len(choices.x))
            # Seen through the curvature at the start, all directions are about equally steep: a
            # tenth of the steps that the weights themselves would take.
            ridge = np.diag(penalty * self._stiff + 1e-9)
            root = cholesky(self._curvature(center) + ridge, lower=True)

            def objective(u: Float64Array) -> tuple[float, Float64Array]:
                w = center + solve_triangular(root, u, lower=True, trans=1)
                slope = np.zeros(len(w))
                value = loss_and_slope(
                    self._z, w, choices.offset, choices.start, choices.taken, room, slope
                )
                moved = w - center
                pull = penalty * self._stiff * moved
                downhill = solve_triangular(root, slope + pull, lower=True)
                return value + 0.5 * float(pull @ moved), downhill

            best = minimize(
                objective,
                np.zeros(len(center)),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 200},
            )
            weight[self.use] = center + solve_triangular(root, best.x, lower=True, trans=1)
        return ConditionalLogit(self.mean, self.scale, weight)

    def _curvature(self, weight: Float64Array) -> Float64Array:
        """Return the second derivatives of the loss, cached for every penalty."""
        key = weight.tobytes()
        if key not in self._curvatures:
            choices = self._choices
            share, chosen = _shares(self._z @ weight, choices)
            total = np.zeros((len(weight), len(weight)))
            for low in range(0, choices.n_groups, 256):  # in parts, to hold few weighted rows
                bounds = choices.start[low : low + 257]
                part = slice(bounds[0], bounds[-1])
                pulled = (share[part] * chosen[choices.group[part]])[:, None] * self._z[part]
                sums = np.add.reduceat(pulled, bounds[:-1] - bounds[0], axis=0)
                count = np.maximum(chosen[low : low + len(bounds) - 1], 1e-300)
                total += self._z[part].T @ pulled - (sums / count[:, None]).T @ sums
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
    taken: Float64Array,
    scores: Float64Array,
    slope: Float64Array,
) -> float:
    """Return the negative log-likelihood; add its slope by every weight to `slope`.

    It works group by group, so that the rows are still in the cache when the slope needs them; a
    product of matrices would read all rows twice and start threads. `scores` is scratch space.
    """
    width = len(weight)
    even = width - width % 4
    value = 0.0
    for group in range(len(start) - 1):
        first, last = start[group], start[group + 1]
        chosen = 0.0
        for row in range(first, last):
            chosen += taken[row]
        if chosen == 0.0:
            continue
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
            value -= taken[row] * score
            top = max(top, score)
        total = 0.0
        for row in range(first, last):
            scores[row] = np.exp(scores[row] - top)
            total += scores[row]
        value += chosen * (np.log(total) + top)
        for row in range(first, last):
            pull = chosen * scores[row] / total - taken[row]
            for k in range(width):
                slope[k] += pull * z[row, k]
    return value


def choice_losses(scores: Float64Array, choices: Choices) -> Float64Array:
    """Return the negative log-likelihood of every choice, given a score for every row."""
    share, _ = _shares(scores, choices)
    return np.asarray(-np.log(np.maximum(share[choices.chosen], 1e-300)))


def _shares(scores: Float64Array, choices: Choices) -> tuple[Float64Array, Float64Array]:
    """Return the probability of every row, its offset included, and the choices of every group."""
    shifted = scores + choices.offset
    first = choices.start[:-1]
    top = np.maximum.reduceat(shifted, first)
    lift = np.exp(shifted - top[choices.group])
    total = np.add.reduceat(lift, first)
    return lift / total[choices.group], np.add.reduceat(choices.taken, first)
