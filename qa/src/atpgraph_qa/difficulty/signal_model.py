"""A small model of difficulty: a weighted sum of a few signals, with weights fitted to bounties.

What makes a question hard differs between sites: on one, unanswered questions carry the large
bounties, on another the much-answered ones do. So the weights come from the site's own bounties:
from one half of the questions, for the other half. Every signal enters as its percentile among all
questions of the site; the weights maximize the likelihood of the order of all pairs with different
bounties (logistic), with a penalty. With fewer than fifty questions to learn from, position and
number of answers get equal weights instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.random import generator
from atpgraph_qa.competition import at_nodes
from atpgraph_qa.data.site import NOBODY, Site
from atpgraph_qa.difficulty.accuracy import BountyTruth, Scores
from atpgraph_qa.expertise import Expertise

PENALTY = 0.1
LEAST_QUESTIONS = 50  # chosen with benchmarks/search_fitted.py
_EQUAL = ("position", "answers")
_MOST_PAIRS = 200_000

Signals = Mapping[str, Float64Array]  # one number for every question of the site, by name


def number_of_answers(site: Site) -> Float64Array:
    """Return the number of answers: questions with more of them are taken to be harder."""
    counts = np.bincount(site.answers.question, minlength=len(site.questions))
    return counts.astype(np.float64)


def time_to_first_answer(site: Site) -> Float64Array:
    """Return milliseconds to the first answer, infinite for a question nobody answered.

    A merged or migrated post may be older than its question; that counts as no waiting.
    """
    first = np.full(len(site.questions), np.inf)
    np.minimum.at(first, site.answers.question, site.answers.created_ms.astype(np.float64))
    return np.maximum(first - site.questions.created_ms, 0)


def time_to_best_answer(site: Site) -> Float64Array:
    """Return milliseconds to the accepted answer, infinite for a question without one."""
    accepted = site.questions.accepted
    best = np.full(len(site.questions), np.inf)
    best[accepted >= 0] = site.answers.created_ms[accepted[accepted >= 0]]
    return np.maximum(best - site.questions.created_ms, 0)


def asked_before(site: Site) -> Float64Array:
    """Count the earlier questions of each asker; NaN where the asker is unknown."""
    asker = site.questions.asker
    order = np.argsort(asker, kind="stable")
    ordered = asker[order]
    count = np.empty(len(asker))
    count[order] = np.arange(len(asker)) - np.searchsorted(ordered, ordered)
    count[asker == NOBODY] = np.nan
    return count


def simple_signals(site: Site) -> dict[str, Float64Array]:
    """Return the signals of every question that need no graph."""
    answers, wait = number_of_answers(site), time_to_first_answer(site)
    return {"answers": answers, "wait": wait, "asked-before": asked_before(site)}


def atp_signals(site: Site, expertise: Expertise) -> dict[str, Float64Array]:
    """Return ATP's estimates for every question and for its asker."""
    graph = expertise.competition
    question = graph.question_nodes(site.questions.id)
    asker = graph.user_nodes(site.questions.asker)
    return {
        "pointed-at": at_nodes(expertise.pointed_at, question),
        "position": at_nodes(expertise.position, question),
        "asker-pointed-at": at_nodes(expertise.pointed_at, asker),
        "asker-position": at_nodes(expertise.position, asker),
    }


def percentiles(values: Float64Array) -> Float64Array:
    """Return mid-rank percentiles minus ½, 0 where a value is unknown.

    Examples
    --------
    >>> percentiles(np.array([3.0, np.nan, 5.0, np.inf]))
    array([-0.33333333,  0.        ,  0.        ,  0.33333333])
    """
    from scipy.stats import rankdata

    known = ~np.isnan(values)
    result = np.zeros(len(values))
    if known.any():
        result[known] = (rankdata(values[known]) - 0.5) / np.count_nonzero(known) - 0.5
    return result


def signal_matrix(signals: Signals) -> Float64Array:
    """Return the percentiles of the signals, one column each."""
    return np.stack([percentiles(column) for column in signals.values()], axis=1)


def fit_weights(matrix: Float64Array, amount: Int64Array, random_state: int = 0) -> Float64Array:
    """Find weights under which the weighted sums order pairs as the amounts do."""
    from scipy.optimize import minimize

    larger, smaller = np.nonzero(amount[:, None] > amount)
    if len(larger) > _MOST_PAIRS:
        drawn = generator(random_state).choice(len(larger), _MOST_PAIRS, replace=False)
        larger, smaller = larger[drawn], smaller[drawn]
    if not len(larger):
        return np.zeros(matrix.shape[1])
    gap = matrix[larger] - matrix[smaller]

    def loss(weights: Float64Array) -> tuple[float, Float64Array]:
        margin = gap @ weights
        value = np.logaddexp(0.0, -margin).mean() + PENALTY * weights @ weights / 2
        slope = -gap.T @ np.exp(-np.logaddexp(0.0, margin)) / len(gap) + PENALTY * weights
        return float(value), slope

    optimum: Any = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(optimum.x, dtype=np.float64)


def _weights(
    signals: Signals, matrix: Float64Array, truth: BountyTruth, random_state: int
) -> Float64Array:
    if len(truth) < LEAST_QUESTIONS:
        return np.array([float(name in _EQUAL) for name in signals])
    return fit_weights(matrix[truth.question], truth.amount, random_state)


def cross_fitted(
    signals: Signals, truth: BountyTruth, first: BoolArray, random_state: int = 0
) -> Scores:
    """Score each half of the compared questions with the weights of the other half.

    `first` is true for the questions of the first half. Scores are percentiles within their half,
    which makes the two halves comparable.
    """
    matrix = signal_matrix(signals)
    values = np.zeros(len(truth))
    for mine in (first, ~first):
        weights = _weights(signals, matrix, truth.take(~mine), random_state)
        values[mine] = percentiles(matrix[truth.question[mine]] @ weights)
    return Scores(values)


def fitted_to_all(signals: Signals, truth: BountyTruth, random_state: int = 0) -> Float64Array:
    """Score all questions of a site with weights fitted to all its bounties."""
    if truth.n_pairs() == 0:
        raise InputError(
            f"Weights are fitted to bounties, and {len(truth)} questions have one; use "
            "--methods atp-position, which needs none."
        )
    matrix = signal_matrix(signals)
    return np.asarray(matrix @ _weights(signals, matrix, truth, random_state))
