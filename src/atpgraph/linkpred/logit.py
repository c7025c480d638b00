"""The linear models that weigh evidence: a logistic regression, and a choice among candidates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.util.arrays import Float64Array, Int64Array

RIDGE = 1.0
CHOICE_RIDGE = 10.0
_AT_ONCE = 256  # queries whose weighted terms are held
_ROWS = 1 << 16


def log_odds(base_rate: float) -> float:
    """What a share of links among the pairs adds to the scores of all.

    Examples
    --------
    >>> log_odds(0.5)
    0.0
    """
    if not 0 < base_rate < 1:
        raise InputError(f"base_rate is {base_rate}; it must be between 0 and 1.")
    return float(np.log(base_rate / (1.0 - base_rate)))


@dataclass(frozen=True, eq=False)
class Head:
    """Weights of terms, one model's answer to one question.

    Attributes
    ----------
    weights : float64 array
        One for each term, as the term is (not standardised).
    intercept : float
    usual : float64 array
        Mean of each term over the pairs without a link it was fitted on: what a contribution is
        measured against.
    """

    weights: Float64Array
    intercept: float
    usual: Float64Array

    def score(self, terms: Float64Array) -> Float64Array:
        """Log-odds, up to a constant for a choice."""
        return np.asarray(terms @ self.weights + self.intercept)


def fit_pairs(good: Float64Array, bad: Float64Array, ridge: float = RIDGE) -> Head:
    """A logistic regression of the terms of links against those of pairs that are none.

    Both sides count alike, so a score of 0 means even odds where half of the pairs are links.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingDependencyError("scikit-learn", "links", "Learning to predict links") from None
    terms = np.concatenate([good, bad])
    mean, scale = _standard(terms)
    truth = np.repeat([1, 0], [len(good), len(bad)])
    model: Any = LogisticRegression(C=1.0 / ridge, max_iter=1000, class_weight="balanced")
    model.fit((terms - mean) / scale, truth)
    weights = model.coef_[0] / scale
    return Head(weights, float(model.intercept_[0] - mean @ weights), bad.mean(axis=0))


def fit_choice(
    terms: Float64Array, starts: Int64Array, log_weight: Float64Array, ridge: float = CHOICE_RIDGE
) -> Head:
    """A conditional logit: the first candidate of each query was chosen among them all.

    Parameters
    ----------
    terms : array of shape (candidates of all queries, terms)
    starts : int64 array
        Where each query begins; its first row is the one chosen.
    log_weight : array
        Logarithm of how many candidates each row stands for.
    ridge : float
        Penalty on standardised weights.
    """
    mean, scale = _standard(terms)
    x = np.empty_like(terms)
    for at in range(0, len(terms), _ROWS):  # in parts, so that Ctrl-C is heard in between
        x[at : at + _ROWS] = (terms[at : at + _ROWS] - mean) / scale
    few = len(starts) // 8
    start = np.zeros(x.shape[1])
    if few >= _AT_ONCE:  # the minimum of some of the queries is near that of all
        part = slice(0, starts[few])
        start = _minimum(x[part], starts[:few], log_weight[part], ridge, start)
    best = _minimum(x, starts, log_weight, ridge, start)
    others = np.ones(len(x), dtype=bool)
    others[starts] = False
    usual = mean.copy()
    if others.any():
        for some in _columns(terms):
            usual[some] = terms[others, some].mean(axis=0)
    return Head(best / scale, float(-mean @ (best / scale)), usual)


def _minimum(
    x: Float64Array,
    starts: Int64Array,
    log_weight: Float64Array,
    ridge: float,
    start: Float64Array,
) -> Float64Array:
    """Weights of the largest penalised likelihood, by Newton steps from `start`."""
    bounds = np.append(starts, len(x))
    query = np.repeat(np.arange(len(starts)), np.diff(bounds))
    last: tuple[bytes, float, Float64Array] | None = None

    def shares(w: Float64Array) -> tuple[float, Float64Array]:
        nonlocal last  # value, slope and curvature are asked for at one point after the other
        if last is None or last[0] != w.tobytes():
            score = x @ w + log_weight
            top = np.maximum.reduceat(score, starts)
            share = np.exp(score - top[query])
            total = np.add.reduceat(share, starts)
            value = float((top + np.log(total) - score[starts]).sum() + ridge * (w @ w) / 2)
            last = w.tobytes(), value, share / total[query]
        return last[1], last[2]

    def slope(w: Float64Array) -> Float64Array:
        return np.asarray(shares(w)[1] @ x - x[starts].sum(axis=0) + ridge * w)

    def curvature(w: Float64Array) -> Float64Array:
        share = shares(w)[1]
        total = ridge * np.eye(len(w))
        for first in range(0, len(starts), _AT_ONCE):
            part = slice(bounds[first], bounds[min(first + _AT_ONCE, len(starts))])
            weighted = share[part, None] * x[part]
            means = np.add.reduceat(weighted, starts[first : first + _AT_ONCE] - part.start, axis=0)
            total += x[part].T @ weighted - means.T @ means
        return total

    found = minimize(
        lambda w: shares(w)[0], start, jac=slope, hess=curvature, method="trust-exact",
        options={"maxiter": 50},
    )  # fmt: skip
    return np.asarray(found.x)


def _standard(terms: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Mean and spread of each term; a term that never varies gets an infinite one, so no weight."""
    spread = np.concatenate([terms[:, some].std(axis=0) for some in _columns(terms)])
    return terms.mean(axis=0), np.where(spread > 1e-9, spread, np.inf)


def _columns(terms: Float64Array) -> list[slice]:
    """About eight at a time; never one alone, whose sum NumPy would take in another order."""
    n = terms.shape[1]
    bounds = np.linspace(0, n, n // 8 + 2, dtype=np.int64).tolist()
    return [slice(*ends) for ends in pairwise(bounds) if ends[0] < ends[1]]
