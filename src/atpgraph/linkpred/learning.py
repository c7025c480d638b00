"""Learn what evidence is worth, from links taken out of the graph itself.

Some edges are hidden, evidence is computed from the rest, and four linear models learn to find the
hidden ones: among random pairs (``link``), against their reverses (``direction``), among pairs that
paths join the other way round only (``order``), and among the targets that their source could have
(``target``). Nothing but the graph that ``fit`` gets is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.metrics import auc
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Collection
from atpgraph.linkpred.examples import Plan, Sample, examples
from atpgraph.linkpred.logit import Head, fit_choice, fit_pairs
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.progress import stage

QUESTIONS = ("link", "direction", "order", "target")
_TERMS = ("links", "others", "forward", "backward", "against", "choices")


def learn(
    graph: DiGraph,
    collect: Callable[[], Collection],
    plan: Plan,
    rng: np.random.Generator,
) -> tuple[dict[str, Head], Collection, dict[str, dict[str, Any]]]:
    """The models, the collection of the last round, and how good the models for pairs are.

    The last is measured on one half of the pairs with weights learned on the other.
    """
    sample, evidence = examples(graph, collect, plan, rng)
    doubtful = evidence.columns_of("attributes")
    with stage("combination"):
        heads = combine(sample, doubtful)
        judged = {
            "link": _judged(sample.links, sample.others, doubtful),
            "direction": _judged(sample.forward, sample.backward, doubtful),
            "order": _judged(sample.links, sample.against, doubtful),
        }
    return heads, evidence, judged


def combine(
    sample: Sample, doubtful: BoolArray, left_out: BoolArray | None = None
) -> dict[str, Head]:
    """One model for each question.

    Parameters
    ----------
    sample : Sample
    doubtful : bool array
        Terms that are used only where they help on pairs not learned from.
    left_out : bool array, optional
        Terms that get no weight, as if their evidence were not there.
    """
    if left_out is not None and left_out.any():
        keep = ~left_out
        less = replace(
            sample,
            **{name: getattr(sample, name)[:, keep] for name in _TERMS},
        )
        found = combine(less, doubtful[keep])
        return {name: _without(head, keep) for name, head in found.items()}
    return {
        "link": _pair_head(sample.links, sample.others, doubtful),
        "direction": _pair_head(sample.forward, sample.backward, doubtful),
        "order": _pair_head(sample.links, sample.against, doubtful),
        "target": _choice_head(sample, doubtful),
    }


def _pair_head(good: Float64Array, bad: Float64Array, doubtful: BoolArray) -> Head:
    """A model of pairs; doubtful terms are used only where they help on pairs not learned from."""
    if not len(good) or not len(bad):  # every edge has its reverse, or every node reaches all
        return Head(np.zeros(good.shape[1]), 0.0, np.zeros(good.shape[1]))
    keep = ~doubtful
    if doubtful.any() and _gain(good, bad, keep) <= 0:
        return _without(fit_pairs(good[:, keep], bad[:, keep]), keep)
    return fit_pairs(good, bad)


def _judged(good: Float64Array, bad: Float64Array, doubtful: BoolArray) -> dict[str, Any]:
    """AUC and calibration on the halves that were not learned from."""
    if min(len(good), len(bad)) < 4:
        return {"auc": None, "error": None, "bins": []}
    scores = np.empty(len(good)), np.empty(len(bad))
    for half in (0, 1):
        here, there = slice(half, None, 2), slice(1 - half, None, 2)
        head = _pair_head(good[here], bad[here], doubtful)
        for side, terms in zip(scores, (good, bad), strict=True):
            side[there] = head.score(terms[there])
    both = np.concatenate(scores)
    truth = np.repeat([1.0, 0.0], [len(good), len(bad)])
    found = reliability(expit(both), truth, groups=10)
    return {"auc": auc(*scores), "error": found["error"], "bins": found["bins"]}


def _gain(good: Float64Array, bad: Float64Array, keep: BoolArray) -> float:
    """How much all terms lower the loss of the other half, above one standard error."""
    better = []
    for half in (0, 1):
        here, there = slice(half, None, 2), slice(1 - half, None, 2)
        full = fit_pairs(good[here], bad[here])
        less = fit_pairs(good[here][:, keep], bad[here][:, keep])
        for side, sign in ((good[there], -1.0), (bad[there], 1.0)):
            losses = np.logaddexp(0.0, sign * full.score(side))
            better.append(np.logaddexp(0.0, sign * less.score(side[:, keep])) - losses)
    gains = np.concatenate(better)
    return float(gains.mean() - gains.std() / np.sqrt(max(len(gains), 1)))


def _choice_head(sample: Sample, doubtful: BoolArray) -> Head:
    keep = ~doubtful
    if doubtful.any() and _choice_gain(sample, keep) <= 0:
        head = fit_choice(sample.choices[:, keep], sample.starts, sample.log_weight)
        return _without(head, keep)
    return fit_choice(sample.choices, sample.starts, sample.log_weight)


def _choice_gain(sample: Sample, keep: BoolArray) -> float:
    bounds = np.append(sample.starts, len(sample.choices))
    gains: list[float] = []
    for half in (0, 1):
        terms, starts, weight = _queries(sample, bounds, half)
        full = fit_choice(terms, starts, weight)
        less = fit_choice(terms[:, keep], starts, weight)
        terms, starts, weight = _queries(sample, bounds, 1 - half)
        both = (full.score(terms) + weight, less.score(terms[:, keep]) + weight)
        chances = [score[starts] - np.logaddexp.reduceat(score, starts) for score in both]
        gains += (chances[0] - chances[1]).tolist()
    return float(np.mean(gains) - np.std(gains) / np.sqrt(max(len(gains), 1)))


def _queries(
    sample: Sample, bounds: Int64Array, half: int
) -> tuple[Float64Array, Int64Array, Float64Array]:
    sizes = np.diff(bounds)
    chosen = np.arange(len(sizes)) % 2 == half
    rows = np.repeat(chosen, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes[chosen])[:-1]]).astype(np.int64)
    return sample.choices[rows], starts, sample.log_weight[rows]


def _without(head: Head, keep: BoolArray) -> Head:
    """A head of fewer terms as one of all, with weight 0 for the rest."""
    weights, usual = np.zeros(len(keep)), np.zeros(len(keep))
    weights[keep], usual[keep] = head.weights, head.usual
    return Head(weights, head.intercept, usual)
