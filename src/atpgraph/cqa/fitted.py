"""A small model of difficulty: a weighted sum of a few signals, weights fitted to bounties.

What makes a question hard differs between sites: on one, unanswered questions carry the large
bounties, on another the much-answered ones do. So the weights come from the site's own bounties:
those of one half of the questions, and the other half is judged with them. Every signal enters as
its percentile among all questions of the site; the weights maximise the likelihood of the order
of all pairs with different bounties (logistic), with a penalty. Where fewer than fifty questions
could be learnt from, position and number of answers count alike instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph._random import generator
from atpgraph.cqa import baselines
from atpgraph.cqa.difficulty import BountyTruth, Scores
from atpgraph.cqa.expertise import Expertise, at
from atpgraph.cqa.site import NOBODY, Site
from atpgraph.errors import InputError

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PENALTY = 0.1
LEAST_QUESTIONS = 50  # chosen with benchmarks/search_fitted.py
_UNFITTED = ("position", "answers")
_MOST_PAIRS = 200_000


def simple_signals(site: Site) -> dict[str, Floats]:
    """What is known of every question without a graph."""
    everything = BountyTruth(
        np.arange(len(site.questions)), np.zeros(len(site.questions), np.int64)
    )
    return {
        "answers": baselines.number_of_answers(site, everything).values,
        "wait": baselines.time_to_first_answer(site, everything).values,
        "asked-before": asked_before(site),
    }


def atp_signals(site: Site, expertise: Expertise) -> dict[str, Floats]:
    """What ATP says of every question and of the person who asked it."""
    graph = expertise.competition
    question = graph.question_nodes(site.questions.id)
    asker = graph.user_nodes(site.questions.asker)
    return {
        "pointed-at": at(expertise.pointed_at, question),
        "position": at(expertise.position, question),
        "asker-pointed-at": at(expertise.pointed_at, asker),
        "asker-position": at(expertise.position, asker),
    }


def asked_before(site: Site) -> Floats:
    """Number of earlier questions of the asker, NaN where the asker is unknown."""
    asker = site.questions.asker
    order = np.argsort(asker, kind="stable")
    ordered = asker[order]
    count = np.empty(len(asker))
    count[order] = np.arange(len(asker)) - np.searchsorted(ordered, ordered)
    count[asker == NOBODY] = np.nan
    return count


def percentiles(values: Floats) -> Floats:
    """Mid-rank percentile less a half, 0 where unknown.

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


def fit_weights(signals: Floats, amount: npt.NDArray[np.int64], random_state: int = 0) -> Floats:
    """Weights under which the weighted sums order pairs as the amounts do."""
    from scipy.optimize import minimize

    larger, smaller = np.nonzero(amount[:, None] > amount)
    if len(larger) > _MOST_PAIRS:
        drawn = generator(random_state).choice(len(larger), _MOST_PAIRS, replace=False)
        larger, smaller = larger[drawn], smaller[drawn]
    if not len(larger):
        return np.zeros(signals.shape[1])
    gap = signals[larger] - signals[smaller]

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = gap @ weights
        value = np.logaddexp(0.0, -margin).mean() + PENALTY * weights @ weights / 2
        slope = -gap.T @ np.exp(-np.logaddexp(0.0, margin)) / len(gap) + PENALTY * weights
        return float(value), slope

    found: Any = minimize(loss, np.zeros(signals.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(found.x, dtype=np.float64)


def unfitted(signals: dict[str, Floats], matrix: Floats) -> Floats:
    """Position and number of answers with equal weights, for where there is too little to fit to.

    Parameters
    ----------
    signals : dict
        Names of the columns; without a position the number of answers stands alone.
    matrix : float64 array
        Percentiles of the signals, one column each.
    """
    names = list(signals)
    chosen = [names.index(name) for name in _UNFITTED if name in signals]
    result: Floats = matrix[:, chosen].sum(axis=1)
    return result


def cross_fitted(
    signals: dict[str, Floats], truth: BountyTruth, first: Bools, random_state: int = 0
) -> Scores:
    """Each half of the questions judged with the weights of the other half.

    Parameters
    ----------
    signals : dict
        For every question of the site.
    truth : BountyTruth
        The questions compared.
    first : boolean array
        Which of them are in the first half. Scores of the two halves are percentiles of their own
        half, so that they can be compared.
    """
    matrix = np.stack([percentiles(column) for column in signals.values()], axis=1)
    matrix = matrix[truth.question]
    values = np.zeros(len(truth))
    for mine in (first, ~first):
        if np.count_nonzero(~mine) < LEAST_QUESTIONS:
            values[mine] = percentiles(unfitted(signals, matrix[mine]))
            continue
        weights = fit_weights(matrix[~mine], truth.amount[~mine], random_state)
        values[mine] = percentiles(matrix[mine] @ weights)
    return Scores(values)


def fitted_everywhere(
    signals: dict[str, Floats], truth: BountyTruth, random_state: int = 0
) -> Floats:
    """Scores of all questions of a site, with weights fitted to all its bounties."""
    if truth.n_pairs() == 0:
        raise InputError(
            f"Weights are fitted to bounties, and {len(truth)} questions have one; use "
            "--methods atp-position, which needs none."
        )
    matrix = np.stack([percentiles(column) for column in signals.values()], axis=1)
    if len(truth) < LEAST_QUESTIONS:
        return unfitted(signals, matrix)
    weights = fit_weights(matrix[truth.question], truth.amount, random_state)
    result: Floats = matrix @ weights
    return result
