"""Learn what evidence is worth, from links taken out of the graph itself.

Some edges are hidden, evidence is computed from the rest, and three linear models learn to find the
hidden ones: among random pairs (``link``), against their reverses (``direction``), and among the
targets that their source could have (``target``). Nothing but the graph that ``fit`` gets is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from atpgraph._progress import stage
from atpgraph._typing import BoolArray, Float64Array, FloatArray, Int64Array, IntArray
from atpgraph.errors import InputError
from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.metrics import auc
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Collection, LocalEvidence, VectorEvidence
from atpgraph.linkpred.logit import Head, fit_choice, fit_pairs
from atpgraph.linkpred.negatives import Pairs, non_edges
from atpgraph.linkpred.splits import removable_edges

QUESTIONS = ("link", "direction", "target")
_ENOUGH = 2000  # hidden edges; a small graph is hidden from several times
_ROUNDS = 4
_BEST, _CHANCE = 8, 30  # candidates of a query: the best by each evidence, and some of the others


@dataclass(frozen=True)
class Plan:
    """How much is hidden and learned from.

    Attributes
    ----------
    fraction : float
        Share of the edges hidden in each round.
    max_pairs : int
        Limit on the hidden edges that are learned from.
    max_queries : int
        Limit on those that the model for targets learns from.
    """

    fraction: float = 0.1
    max_pairs: int = 4000
    max_queries: int = 1000


@dataclass(frozen=True, eq=False)
class Sample:
    """Terms of the pairs that one round gives, by what they are for."""

    links: Float64Array
    others: Float64Array
    forward: Float64Array
    backward: Float64Array
    choices: Float64Array
    starts: Int64Array
    log_weight: Float64Array


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
        }
    return heads, evidence, judged


def examples(
    graph: DiGraph,
    collect: Callable[[], Collection],
    plan: Plan,
    rng: np.random.Generator,
) -> tuple[Sample, Collection]:
    """The pairs to learn from, of as many rounds as it takes, and the collection of the last."""
    samples: list[Sample] = []
    hidden = hidden_edges(graph, plan.fraction, rng)
    rounds = min(_ROUNDS, -(-min(_ENOUGH, plan.max_pairs) // len(hidden)))
    plan = replace(plan, max_queries=-(-plan.max_queries // rounds))
    for left in range(rounds, 0, -1):
        evidence = collect().fit(graph.without_edges(hidden))
        with stage("pairs to learn from"):
            samples.append(_sample(graph, evidence, hidden, plan, rng))
        if left > 1:
            hidden = hidden_edges(graph, plan.fraction, rng)
    return _joined(samples), evidence


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
            **{
                name: getattr(sample, name)[:, keep]
                for name in ("links", "others", "forward", "backward", "choices")
            },
        )
        found = combine(less, doubtful[keep])
        return {name: _without(head, keep) for name, head in found.items()}
    return {
        "link": _pair_head(sample.links, sample.others, doubtful),
        "direction": _pair_head(sample.forward, sample.backward, doubtful),
        "target": _choice_head(sample, doubtful),
    }


def hidden_edges(graph: DiGraph, fraction: float, rng: np.random.Generator) -> Int64Array:
    """Edges to hide: those that leave the rest as connected as it was, if there are enough.

    Of a forest, where every edge is a bridge, any edges.
    """
    wanted = max(1, round(fraction * (graph.n_edges - graph.n_self_loops)))
    taken = removable_edges(graph, wanted, rng)
    if len(taken) < wanted / 2:
        real = np.flatnonzero(graph.sources != graph.targets)
        taken = rng.permutation(real)[:wanted].astype(np.int64)
    if len(taken) < 2 or graph.n_edges - len(taken) < 1:
        raise InputError(
            f"A graph of {graph.n_edges:,} edges is too small to learn from: some edges have to be "
            "hidden, and the rest has to say where they were."
        )
    return taken


def _sample(
    graph: DiGraph, evidence: Collection, taken: Int64Array, plan: Plan, rng: np.random.Generator
) -> Sample:
    some = taken[: plan.max_pairs]
    edges = Pairs(graph.sources[some].astype(np.int64), graph.targets[some].astype(np.int64))
    none = non_edges(graph, len(edges), rng)
    one_way = graph.find_edges(edges.targets, edges.sources) < 0
    links = evidence.terms(edges.sources, edges.targets)
    back = edges.take(one_way)
    queries = edges.take(np.arange(min(len(edges), plan.max_queries)))
    u, v, starts, log_weight = candidate_pairs(graph, evidence, queries, rng)
    return Sample(
        links,
        evidence.terms(none.sources, none.targets),
        links[one_way],
        evidence.terms(back.targets, back.sources),
        evidence.terms(u, v),
        starts,
        log_weight,
    )


def candidate_pairs(
    graph: DiGraph, evidence: Collection, queries: Pairs, rng: np.random.Generator
) -> tuple[Int64Array, Int64Array, Int64Array, Float64Array]:
    """Each query (u, v) with other targets of u: the best by each evidence, and some by chance.

    Returns the pairs, where each query begins, and the logarithm of the number of nodes that each
    pair stands for: a candidate drawn by chance stands for many.
    """
    n = graph.n_nodes
    local = [part for part in evidence if isinstance(part, LocalEvidence)]
    rows = [part.rows(queries.sources, n_jobs=evidence.settings.n_jobs) for part in local]
    vectors = [part for part in evidence if isinstance(part, VectorEvidence)]
    parts: list[Int64Array] = []
    weights: list[Float64Array] = []
    for at, (u, v) in enumerate(zip(queries.sources, queries.targets, strict=True)):
        free = np.ones(n, dtype=bool)
        free[graph.targets[graph.indptr[u] : graph.indptr[u + 1]]] = False
        free[u] = False
        best = []
        for row in rows:
            part = slice(row.indptr[at], row.indptr[at + 1])
            best.append(_best(row.nodes[part], row.values[part], free))
        best += [_best(np.arange(n), each.target_ @ each.source_[u], free) for each in vectors]
        top = np.unique(np.concatenate(best)) if best else np.empty(0, dtype=np.int64)
        free[top] = False
        rest = np.flatnonzero(free)
        chance = rng.choice(rest, min(_CHANCE, len(rest)), replace=False)
        parts.append(np.concatenate([[v], top, chance]).astype(np.int64))
        share = len(rest) / max(len(chance), 1)
        weights.append(np.repeat([0.0, np.log(max(share, 1.0))], [1 + len(top), len(chance)]))
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return (
        np.repeat(queries.sources, sizes),
        np.concatenate(parts),
        starts,
        np.concatenate(weights),
    )


def _best(nodes: IntArray, values: FloatArray, free: BoolArray) -> Int64Array:
    open_to_all = free[nodes]
    nodes, values = nodes[open_to_all], values[open_to_all]
    if len(nodes) > _BEST:
        nodes = nodes[np.argpartition(-values, _BEST)[:_BEST]]
    return nodes.astype(np.int64)


def _joined(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    shifts = np.cumsum([0] + [len(sample.choices) for sample in samples[:-1]])
    starts = [sample.starts + shift for sample, shift in zip(samples, shifts, strict=True)]
    return Sample(
        np.concatenate([sample.links for sample in samples]),
        np.concatenate([sample.others for sample in samples]),
        np.concatenate([sample.forward for sample in samples]),
        np.concatenate([sample.backward for sample in samples]),
        np.concatenate([sample.choices for sample in samples]),
        np.concatenate(starts),
        np.concatenate([sample.log_weight for sample in samples]),
    )


def _pair_head(good: Float64Array, bad: Float64Array, doubtful: BoolArray) -> Head:
    """A model of pairs; doubtful terms are used only where they help on pairs not learned from."""
    if not len(good):  # every edge has its reverse: nothing tells the direction
        return Head(np.zeros(good.shape[1]), 0.0, np.zeros(good.shape[1]))
    keep = ~doubtful
    if doubtful.any() and _gain(good, bad, keep) <= 0:
        return _without(fit_pairs(good[:, keep], bad[:, keep]), keep)
    return fit_pairs(good, bad)


def _judged(good: Float64Array, bad: Float64Array, doubtful: BoolArray) -> dict[str, Any]:
    """AUC and calibration on the halves that were not learned from."""
    if len(good) < 4:
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
