"""Learn what evidence is worth, from links taken out of the graph itself.

Some edges are hidden, evidence is computed from the rest, and four linear models learn to find the
hidden ones: among all pairs (``link``), against their reverses (``direction``), among pairs that
paths join the other way round only (``order``), and among the targets that their source could have
(``target``). Evidence is computed for a sample of sources, all pairs of a source together; what a
sampled source stands for is its weight. Sources that no model has seen then tell how often
suggestions are right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.clock import POPULARITY, Clock
from atpgraph.linkpred.evidence import Collection, Recency, VectorEvidence
from atpgraph.linkpred.evidence.kernels import Room, best_near, best_of
from atpgraph.linkpred.protocols.negatives import one_way_pairs
from atpgraph.linkpred.protocols.splits import removable_edges
from atpgraph.linkpred.ranking import (
    Curve,
    Head,
    HitRates,
    Popularity,
    Ranked,
    Ranker,
    fit_hit_rates,
    fit_log_ratio,
    largest,
    source_features,
)
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.conditional_logit import Choices, fit_logit
from atpgraph.util.progress import stage

QUESTIONS = ("link", "direction", "order", "target")
BASE_RATES = (0.5, 0.01, 0.001)
RIDGE, CHOICE_RIDGE = 1.0, 10.0
_ENOUGH = 2000  # hidden edges; a small graph is hidden from several times
_ROUNDS = 4
_WORK = 4e8  # sources to learn from, times edges
_AGAINST = 2000  # pairs of each kind to set against hidden edges
_BEST, _CHANCE = 8, 30  # candidates: the best by each evidence, and some of the others
_FEW = 10  # candidates of a source that nothing was hidden from, and links of one source
_LONGEST = 4096  # vectors that can be the best of a source
_JUDGED = 700  # sources of hidden edges to judge by, and as many others
_LISTED = 20  # suggestions of a list that hit rates are learned from


@dataclass(frozen=True)
class Plan:
    """How much is hidden and learned from.

    Attributes
    ----------
    fraction : float
        Share of the edges hidden in each round.
    max_pairs : int
        Limit on the hidden edges that are learned from.
    n_candidates : int
        Of a list of suggestions.
    """

    fraction: float = 0.1
    max_pairs: int = 4000
    n_candidates: int = 500


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned.

    Attributes
    ----------
    heads : dict from question to Head
    ratio : Curve
        From the score for ``link`` to the logarithm of how much likelier links have it.
    hits : HitRates
    horizon : float
        Of the popularity that ranks for sources without edges.
    validation : dict
    """

    heads: dict[str, Head]
    ratio: Curve
    hits: HitRates
    horizon: float
    validation: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Sample:
    """Terms of pairs.

    Attributes
    ----------
    choices : Choices
        Hidden edges (chosen), and other targets that their sources could have had.
    source_weight : array
        How many nodes each group's source stands for.
    forward, backward : array
        Hidden edges whose reverse is no edge, and reverses of such edges.
    forward_weight, backward_weight : array
        How many each of them stands for.
    against : array
        Pairs that paths join the other way round only.
    """

    choices: Choices
    source_weight: Float64Array
    forward: Float64Array
    forward_weight: Float64Array
    backward: Float64Array
    backward_weight: Float64Array
    against: Float64Array


class Hidden(NamedTuple):
    """Edges that were hidden, and what is left."""

    graph: DiGraph
    edges: Int64Array
    rest: DiGraph

    def left(self, which: BoolArray | None = None) -> DiGraph:
        """Return the hidden edges, or some of them, as a graph of their own."""
        edges = self.edges if which is None else self.edges[which]
        u, v = self.graph.sources[edges], self.graph.targets[edges]
        return DiGraph.from_codes(u, v, self.graph.n_nodes)

    def connected(self) -> BoolArray:
        """Return which hidden edges have ends that are still connected, by any path."""
        _, component = connected_components(self.rest.to_scipy(), directed=False)
        u, v = self.graph.sources[self.edges], self.graph.targets[self.edges]
        return np.asarray(component[u] == component[v])


def learn(
    graph: DiGraph,
    collect: Callable[[], Collection],
    plan: Plan,
    rng: np.random.Generator,
    clock: Clock | None = None,
) -> tuple[Learned, Collection]:
    """Return what was learned, and the evidence of the last round."""
    hidden = hide(graph, plan.fraction, rng, clock)
    rounds = min(_ROUNDS, -(-min(_ENOUGH, plan.max_pairs) // len(hidden.edges)))
    samples: list[Sample] = []
    if rounds > 1:  # a small graph is hidden from several times to learn, and once more to judge
        for _ in range(rounds):
            some = hide(graph, plan.fraction, rng, clock, keep_connected=True)
            evidence = collect().fit(some.rest)
            with stage("pairs to learn from"):
                samples.append(_sample(some, evidence, plan, np.ones(graph.n_nodes, bool), rng))
        evidence, judged = collect().fit(hidden.rest), np.ones(graph.n_nodes, dtype=bool)
    else:
        evidence, judged = collect().fit(hidden.rest), rng.random(graph.n_nodes) < 1 / 3
        with stage("pairs to learn from"):
            samples.append(_sample(hidden, evidence, plan, ~judged, rng))
    sample = _joined(samples)
    doubtful = evidence.columns_of("attributes")
    with stage("combination"):
        heads = combine(sample, doubtful)
    with stage("hit rates"):
        horizon, cold = _popularity(graph, clock, rng)
        ranker = Ranker(hidden.rest, evidence, heads["target"], plan.n_candidates, horizon)
        learned = _judge(hidden, ranker, heads, judged, cold, rng)
        ways = (sample.forward_weight, sample.backward_weight)
        learned.validation["direction"] = _judged(sample.forward, sample.backward, doubtful, ways)
        links, counted = sample.choices.x[sample.choices.chosen], (sample.choices.weight, None)
        learned.validation["order"] = _judged(links, sample.against, doubtful, counted)
    return learned, evidence


def hide(
    graph: DiGraph,
    fraction: float,
    rng: np.random.Generator,
    clock: Clock | None = None,
    keep_connected: bool = False,
) -> Hidden:
    """Hide a share of the edges, drawn uniformly; with a clock, of the newest half of them at most.

    To keep the graph connected is not tried where it would leave less than half of them.
    """
    real = np.flatnonzero(graph.sources != graph.targets)
    wanted = max(1, round(fraction * len(real)))
    if clock is not None:
        new = real[clock.is_new[graph.sources[real]]]
        if len(new) >= 4:
            real, wanted, keep_connected = new, min(wanted, len(new) // 2), False
    taken = removable_edges(graph, wanted, rng) if keep_connected else real[:0]
    if len(taken) < wanted / 2:
        taken = rng.permutation(real)[:wanted]
    taken = np.sort(taken)
    if len(taken) < 2 or graph.n_edges - len(taken) < 1:
        raise InputError(
            f"A graph of {graph.n_edges:,} edges is too small to learn from: some edges have to be "
            "hidden, and the rest has to say where they were."
        )
    return Hidden(graph, taken, graph.without_edges(taken))


def n_sources(graph: DiGraph, plan: Plan) -> int:
    """Return how many sources to learn from: fewer in large graphs, where each takes longer."""
    return int(np.clip(_WORK / max(graph.n_edges, 1), 400, plan.max_pairs))


def _draw(
    shares: list[tuple[int, Any]], allowed: BoolArray, rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Draw allowed sources: about so many in proportion to some values, so many to others.

    The second array says how many nodes each source stands for.
    """
    rate = np.zeros(len(allowed))
    for count, values in shares:
        own = np.where(allowed, values, 0).astype(np.float64)
        rate += count * own / max(own.sum(), 1.0)
    chance = -np.expm1(-rate)
    sources = np.flatnonzero(rng.random(len(rate)) < chance)
    return sources.astype(np.int64), 1.0 / chance[sources]


def _sample(
    hidden: Hidden, evidence: Collection, plan: Plan, allowed: BoolArray, rng: np.random.Generator
) -> Sample:
    """Compute the terms of the pairs to learn from, all pairs of a source together."""
    graph, near = hidden.graph, hidden.connected()
    # Edges without which their ends fall apart teach little, unless most are of that kind.
    left = hidden.left(near if near.mean() >= 0.5 else None)
    back = left.reverse()
    k = n_sources(graph, plan)
    anyone = min(k // 4, 500)
    shares = [(k, left.out_degree), (anyone, allowed), (anyone, left.in_degree)]
    sources, weight = _draw(shares, allowed, rng)
    against = one_way_pairs(graph, min(_AGAINST, 4 * k), rng, among=sources)
    by_source = DiGraph.from_codes(against.sources, against.targets, graph.n_nodes)
    vectors = [_longest(part) for part in evidence.others if isinstance(part, VectorEvidence)]
    streams = rng.spawn(len(sources))

    def visit(at: int, room: Room) -> _Examples:
        u, own = int(sources[at]), streams[at]
        true, into = own.permutation(_out(left, u)), own.permutation(_out(back, u))
        targets, offset = _candidates(graph, u, room, vectors, own)
        if not len(true):
            keep, by = _thinned(offset, own)
            targets, offset = targets[keep], offset[keep] + by
        parts = (true[:_FEW], targets, into[:_FEW], _out(by_source, u))
        return _Examples(parts, offset, room.table[np.concatenate(parts)], len(true), len(into))

    found = evidence.local.scan(sources, visit)
    table = np.concatenate([each.table for each in found]).astype(np.float64)
    v = np.concatenate([part for each in found for part in each.parts])
    sizes = np.array([[len(part) for part in each.parts] for each in found])
    u = np.repeat(sources, sizes.sum(axis=1))
    kind = np.repeat(np.tile(np.arange(4), len(found)), sizes.ravel())
    terms = evidence.as_terms(evidence.numbers(table, u, v))
    one_way = graph.find_edges(v, u) < 0
    # A link stands for those of its source that were left out, and its source for others.
    stands = np.array([[e.links, e.into] for e in found]) / np.maximum(sizes[:, [0, 2]], 1)
    stands *= weight[:, None]
    node = np.repeat(np.arange(len(found)), sizes.sum(axis=1))
    own = kind <= 1
    chosen = np.flatnonzero(kind[own] == 0)
    offset = np.zeros(len(own))
    offset[kind == 1] = np.concatenate([each.offset for each in found])
    counted = stands[node[own][chosen], 0]
    choices = Choices(
        terms[own], node[own], chosen, offset[own], counted * len(chosen) / max(counted.sum(), 1e-9)
    )
    # Reverses of hidden edges come from their targets, which are sources of the sample as well.
    forward, backward = ((kind == 0) & one_way), ((kind == 2) & (graph.find_edges(u, v) < 0))
    return Sample(
        choices,
        weight,
        terms[forward],
        stands[node[forward], 0],
        terms[backward],
        stands[node[backward], 1],
        terms[kind == 3],
    )


class _Examples(NamedTuple):
    """Of one source: links, candidates, sources of hidden links, and nodes that reach it only."""

    parts: tuple[Int64Array, Int64Array, Int64Array, Int64Array]
    offset: Float64Array  # of the candidates
    table: Any
    links: int
    into: int


def _candidates(
    graph: DiGraph, u: int, room: Room, vectors: list[Any], rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Return targets that u could have: the best by each evidence, and some by chance.

    The second array is the logarithm of how many nodes each stands for.
    """
    free = np.ones(graph.n_nodes, dtype=bool)
    free[u], free[_out(graph, u)] = False, False
    columns = room.table.shape[1]
    best = np.empty((columns + len(vectors), _BEST), dtype=np.int64)
    counts = np.empty(len(best), dtype=np.int64)
    best_near(room, free, best[:columns], counts[:columns])
    for at, (nodes, source, target) in enumerate(vectors, columns):
        counts[at] = best_of(target @ source[u], nodes, free, best[at])
    top = np.unique(best[np.arange(_BEST) < counts[:, None]])
    free[top] = False
    chance, rest = _by_chance(free, rng)
    stands = np.log(max(rest / max(len(chance), 1), 1.0))
    return np.concatenate([top, chance]), np.repeat([0.0, stands], [len(top), len(chance)])


def _thinned(offset: Float64Array, rng: np.random.Generator) -> tuple[Int64Array, Float64Array]:
    """Keep a few candidates of either kind; return them and what is added to their offsets."""
    kept, by = [], []
    for side in (np.flatnonzero(offset == 0), np.flatnonzero(offset > 0)):
        few = side[rng.permutation(len(side))[:_FEW]]
        kept.append(few)
        by.append(np.full(len(few), np.log(max(len(side), 1) / max(len(few), 1))))
    order = np.argsort(np.concatenate(kept))
    return np.concatenate(kept)[order], np.concatenate(by)[order]


def _longest(part: VectorEvidence) -> tuple[Any, Any, Any]:
    """Return nodes whose target vectors are the longest, all source vectors, these vectors."""
    length = np.einsum("ij,ij->i", part.target_, part.target_)
    nodes = np.sort(largest(length, _LONGEST)).astype(np.int32)
    return nodes, part.source_, part.target_[nodes]


def _by_chance(free: BoolArray, rng: np.random.Generator) -> tuple[Int64Array, int]:
    """Draw a few of the free nodes; return them, and how many there are."""
    rest = int(np.count_nonzero(free))
    if rest < len(free) / 2:
        some = np.flatnonzero(free)
        return rng.choice(some, min(_CHANCE, rest), replace=False), rest
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < min(_CHANCE, rest):
        fresh = rng.integers(len(free), size=3 * _CHANCE)
        both = np.concatenate([drawn, fresh[free[fresh]]])
        _, first = np.unique(both, return_index=True)
        drawn = both[np.sort(first)][:_CHANCE]
    return drawn, rest


def _joined(samples: list[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    parts = [sample.choices for sample in samples]
    rows = np.cumsum([0] + [len(part.x) for part in parts[:-1]])
    groups = np.cumsum([0] + [part.n_groups for part in parts[:-1]])
    choices = Choices(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.group + by for part, by in zip(parts, groups, strict=True)]),
        np.concatenate([part.chosen + by for part, by in zip(parts, rows, strict=True)]),
        np.concatenate([part.offset for part in parts]),
        np.concatenate([part.weight for part in parts if part.weight is not None]),
    )
    names = ("source_weight", "forward", "forward_weight", "backward", "backward_weight", "against")
    rest = [np.concatenate([getattr(sample, name) for sample in samples]) for name in names]
    return Sample(choices, *rest)


def combine(sample: Sample, doubtful: BoolArray) -> dict[str, Head]:
    """Fit one model for each question.

    Parameters
    ----------
    sample : Sample
    doubtful : bool array
        Terms that are used only where they help on pairs not learned from.
    """
    keep = np.ones(len(doubtful), dtype=bool)
    choices = sample.choices
    links = choices.x[choices.chosen]
    others, weight = other_pairs(sample)
    return {
        "link": _pair_head(links, others, doubtful, keep, (choices.weight, weight)),
        "direction": _pair_head(
            sample.forward,
            sample.backward,
            doubtful,
            keep,
            (sample.forward_weight, sample.backward_weight),
        ),
        "order": _pair_head(links, sample.against, doubtful, keep, (choices.weight, None)),
        "target": _choice_head(choices, doubtful, keep),
    }


def other_pairs(sample: Sample) -> tuple[Float64Array, Float64Array]:
    """Return terms of pairs that are no links, near misses too, and how many pairs each is."""
    choices = sample.choices
    other = np.ones(len(choices.x), dtype=bool)
    other[choices.chosen] = False
    weight = (np.exp(choices.offset) * sample.source_weight[choices.group])[other]
    few = np.arange(len(weight))
    if len(few) > 10 * _AGAINST:
        few = np.random.default_rng(0).permutation(len(few))[: 10 * _AGAINST]
    return choices.x[np.flatnonzero(other)[few]], weight[few]


Weights = tuple[Float64Array | None, Float64Array | None]


def fit_pairs(
    good: Float64Array, bad: Float64Array, weights: Weights = (None, None), ridge: float = RIDGE
) -> Head:
    """Fit a logistic regression of the terms of links against those of pairs that are none.

    Both sides count alike, so a score of 0 means even odds where half of the pairs are links.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingDependencyError("scikit-learn", "links", "Learning to predict links") from None
    terms = np.concatenate([good, bad])
    own = [
        np.ones(len(side)) if w is None else w * (len(side) / w.sum())
        for side, w in zip((good, bad), weights, strict=True)
    ]
    own = [w * (len(terms) / (2 * len(w))) for w in own]
    mean, spread = terms.mean(axis=0), terms.std(axis=0)
    varies = spread > 1e-9  # a term that never varies gets no weight
    model: Any = LogisticRegression(C=1.0 / ridge, max_iter=200, solver="newton-cholesky")
    truth = np.repeat([1, 0], [len(good), len(bad)])
    scaled = (terms[:, varies] - mean[varies]) / spread[varies]
    model.fit(scaled, truth, sample_weight=np.concatenate(own))
    found = np.zeros(len(mean))
    found[varies] = model.coef_[0] / spread[varies]
    usual = np.average(bad, axis=0, weights=own[1])
    return Head(found, float(model.intercept_[0] - mean @ found), usual)


def _pair_head(
    good: Float64Array,
    bad: Float64Array,
    doubtful: BoolArray,
    keep: BoolArray,
    weights: Weights = (None, None),
) -> Head:
    """Fit a model of pairs; doubtful terms are used only where they help on other pairs."""
    if not len(good) or not len(bad):  # every edge has its reverse, or every node reaches all
        return Head(np.zeros(good.shape[1]), 0.0, np.zeros(good.shape[1]))
    if (doubtful & keep).any() and _gain((good, bad), keep & ~doubtful, keep, weights) <= 0:
        keep = keep & ~doubtful
    return _spread_out(fit_pairs(good[:, keep], bad[:, keep], weights), keep)


def _gain(
    sides: tuple[Float64Array, Float64Array], fewer: BoolArray, more: BoolArray, weights: Weights
) -> float:
    """Return how much more terms lower the loss of the other half, above one standard error."""
    gains, counts = [], []
    own = [np.ones(len(x)) if w is None else w for x, w in zip(sides, weights, strict=True)]
    for half in (0, 1):
        here, there = slice(half, None, 2), slice(1 - half, None, 2)
        some = (own[0][here], own[1][here])
        good, bad = (side[here] for side in sides)
        heads = [(fit_pairs(good[:, k], bad[:, k], some), k) for k in (more, fewer)]
        for terms, w, sign in zip(sides, own, (-1.0, 1.0), strict=True):
            full, less = (np.logaddexp(0.0, sign * h.score(terms[there][:, k])) for h, k in heads)
            gains.append(less - full)
            counts.append(w[there] / w[there].sum())
    gain, count = np.concatenate(gains), np.concatenate(counts) / 4
    mean = float(count @ gain)
    return mean - float(np.sqrt(count**2 @ (gain - mean) ** 2))


def _choice_head(choices: Choices, doubtful: BoolArray, keep: BoolArray) -> Head:
    if (doubtful & keep).any():
        fewer, gains = keep & ~doubtful, []
        odd = np.arange(choices.n_groups) % 2 == 1
        for mine, theirs in ((odd, ~odd), (~odd, odd)):
            learned, judged = choices.part(mine), choices.part(theirs)
            if len(learned.chosen) and len(judged.chosen):
                full, less = (fit_logit(learned, CHOICE_RIDGE, use) for use in (keep, fewer))
                gains.append(less.losses(judged) - full.losses(judged))
        gain = np.concatenate(gains) if gains else np.zeros(1)
        if gain.mean() <= gain.std() / np.sqrt(len(gain)):
            keep = fewer
    fitted = fit_logit(choices, CHOICE_RIDGE, keep)
    other = choices.taken == 0
    usual = choices.x[other].mean(axis=0) if other.any() else fitted.mean
    return Head(fitted.raw_weight, float(-fitted.mean @ fitted.raw_weight), usual)


def _spread_out(head: Head, keep: BoolArray) -> Head:
    """Return a head of fewer terms as one of all, with weight 0 for the rest."""
    weights, usual = np.zeros(len(keep)), np.zeros(len(keep))
    weights[keep], usual[keep] = head.weights, head.usual
    return Head(weights, head.intercept, usual)


def _judged(
    good: Float64Array, bad: Float64Array, doubtful: BoolArray, weights: Weights
) -> dict[str, Any]:
    """Return AUC and calibration on the halves that were not learned from."""
    if min(len(good), len(bad)) < 4:
        return {"auc": None, "error": None, "bins": []}
    scores = np.empty(len(good)), np.empty(len(bad))
    own = [np.ones(len(x)) if w is None else w for x, w in zip((good, bad), weights, strict=True)]
    everything = np.ones(len(doubtful), dtype=bool)
    for half in (0, 1):
        here, there = slice(half, None, 2), slice(1 - half, None, 2)
        some = (own[0][here], own[1][here])
        head = _pair_head(good[here], bad[here], doubtful, everything, some)
        for side, terms in zip(scores, (good, bad), strict=True):
            side[there] = head.score(terms[there])
    both, links = np.concatenate(scores), np.arange(len(good) + len(bad)) < len(good)
    even = np.concatenate([w / (2 * w.sum()) for w in own])
    return {"auc": _auc(both, links, even)} | calibration(expit(both), links.astype(float), even)


def calibration(
    stated: Float64Array, truth: Float64Array, weight: Float64Array, groups: int = 10
) -> dict[str, Any]:
    """Return the mean distance of stated from observed shares, and both in bins of equal weight."""
    order = np.argsort(stated, kind="stable")
    upto = np.cumsum(weight[order]) / weight.sum()
    place = np.minimum((upto * groups - 1e-9).astype(np.int64), groups - 1)
    total = np.bincount(place, weight[order], minlength=groups)
    sums = [np.bincount(place, (weight * x)[order], minlength=groups) for x in (stated, truth)]
    counts = np.bincount(place, minlength=groups)
    used = np.flatnonzero(total > 0)
    bins = [
        {
            "pairs": int(counts[b]),
            "stated": float(sums[0][b] / total[b]),
            "right": float(sums[1][b] / total[b]),
        }
        for b in used
    ]
    away = sum(t * abs(b["stated"] - b["right"]) for t, b in zip(total[used], bins, strict=True))
    return {"error": float(away / total.sum()), "bins": bins}


class _Judged(NamedTuple):
    """Scores for ``link`` of one source's pairs, and its list."""

    good: Float64Array
    joined: BoolArray  # whether the ends of the hidden edges are still connected
    bad: Float64Array
    bad_weight: Float64Array
    ranked: Ranked
    features: Float64Array
    hit: BoolArray


def _judge(
    hidden: Hidden,
    ranker: Ranker,
    heads: dict[str, Head],
    allowed: BoolArray,
    cold: Float64Array,
    rng: np.random.Generator,
) -> Learned:
    """Learn hit rates and probabilities from sources that the models have not seen."""
    graph, left, near = hidden.graph, hidden.left(), hidden.left(hidden.connected())
    k = min(n_sources(graph, Plan()) // 2, _JUDGED)
    sources, weight = _draw([(k, left.out_degree), (k, allowed)], allowed, rng)
    streams = rng.spawn(len(sources))

    def visit(at: int, room: Room) -> _Judged:
        u = int(sources[at])
        true = _out(left, u)
        nodes = ranker.candidates(u, room, _LISTED)
        free = np.ones(graph.n_nodes, dtype=bool)
        free[u], free[_out(graph, u)], free[nodes] = False, False, False
        chance, rest = _by_chance(free, streams[at])
        missed = np.setdiff1d(true, nodes)  # hidden edges that no list would have
        every = np.concatenate([nodes, missed, chance]).astype(np.int64)
        terms = ranker.terms(u, every, room)
        score = heads["link"].score(terms)
        link = np.isin(every, true)
        stands = np.ones(len(every))
        stands[len(nodes) + len(missed) :] = max(rest / max(len(chance), 1), 1.0)
        ranked = ranker.top(nodes, heads["target"].score(terms[: len(nodes)]), _LISTED)
        return _Judged(
            score[link],
            np.isin(every[link], _out(near, u)),
            score[~link],
            stands[~link] * weight[at],
            ranked,
            source_features(hidden.rest, u),
            np.isin(ranked.nodes, true),
        )

    found = ranker.evidence.local.scan(sources, visit)
    warm = np.array([not ranker.is_cold(int(u)) for u in sources], dtype=bool)
    lists = [(j.ranked, j.features, j.hit) for j in found]
    n = graph.n_nodes
    density = len(hidden.edges) / max(n * (n - 1.0) - hidden.rest.n_edges, 1.0)
    density = float(np.clip(density, 1e-12, 0.5))

    def rates_of(which: BoolArray) -> HitRates:
        some = [lists[at] for at in np.flatnonzero(which & warm)] or lists
        own = weight[which & warm] if (which & warm).any() else weight
        own = np.minimum(own / own.mean(), 20.0)
        return HitRates(*fit_hit_rates(some, own), cold, density)

    def ratio_of(which: BoolArray) -> Curve:
        good, bad, bad_weight, own, _ = _pooled(found, weight, which)
        if len(good) < 2 or not len(bad):
            return Curve(np.array([-20.0, 20.0]), np.array([-20.0, 20.0]))
        return fit_log_ratio(good, own, bad, bad_weight)

    everyone = np.ones(len(sources), dtype=bool)
    half = np.arange(len(sources)) % 2 == 0
    report = _validation(found, lists, weight, half, warm, rates_of, ratio_of)
    return Learned(heads, ratio_of(everyone), rates_of(everyone), ranker.popularity.horizon, report)


def _pooled(found: list[_Judged], weight: Float64Array, which: BoolArray) -> tuple[Any, ...]:
    """Return scores of links, of other pairs and their weights, and weights of the links."""
    some = [(found[at], weight[at]) for at in np.flatnonzero(which)]
    empty = [np.empty(0)]
    return (
        np.concatenate([j.good for j, _ in some] or empty),
        np.concatenate([j.bad for j, _ in some] or empty),
        np.concatenate([j.bad_weight for j, _ in some] or empty),
        np.concatenate([np.full(len(j.good), w) for j, w in some] or empty),
        np.concatenate([j.joined for j, _ in some] or empty).astype(bool),
    )


def _validation(
    found: list[_Judged],
    lists: list[tuple[Ranked, Float64Array, BoolArray]],
    weight: Float64Array,
    half: BoolArray,
    warm: BoolArray,
    rates_of: Callable[[BoolArray], HitRates],
    ratio_of: Callable[[BoolArray], Curve],
) -> dict[str, Any]:
    """Return how good probabilities and hit rates are; each half is judged by the other."""
    stated, truth, own, joined, scores = [], [], [], [], []
    ranks: list[list[tuple[float, float, float]]] = [[] for _ in range(10)]
    for which in (half, ~half):
        good, bad, bad_weight, good_weight, near = _pooled(found, weight, which)
        curve, hits = ratio_of(~which), rates_of(~which)
        both = np.concatenate([good, bad])
        scores.append(both)
        stated.append(curve(both))
        truth.append(np.repeat([1.0, 0.0], [len(good), len(bad)]))
        own.append(np.concatenate([good_weight, bad_weight]))
        joined.append(np.concatenate([near, np.ones(len(bad), dtype=bool)]))
        for at in np.flatnonzero(which & warm):
            ranked, features, hit = lists[at]
            for rank, (rate, right) in enumerate(
                zip(hits.rates(ranked, features)[:10], hit, strict=False)
            ):
                ranks[rank].append((rate, float(right), min(weight[at], 20 * weight.mean())))
    columns = [np.concatenate(each) for each in (scores, stated, truth, own, joined)]
    result: dict[str, Any] = {}
    for name, mask in (("link", np.ones(len(columns[0]), bool)), ("connected", columns[4])):
        score, ratio, right, w = (column[mask] for column in columns[:4])
        result[name] = _at_base_rates(score, ratio, right, w)
    shown = []
    for rank, entries in enumerate(ranks, 1):
        if entries:
            rate, right, w = np.array(entries).T
            shown.append(
                {
                    "rank": rank,
                    "lists": len(entries),
                    "stated": float(np.average(rate, weights=w)),
                    "right": float(np.average(right, weights=w)),
                }
            )
    away = [abs(row["stated"] - row["right"]) for row in shown]
    result["hits"] = {"error": max(away, default=None), "ranks": shown}
    return result


def _at_base_rates(
    score: Float64Array, ratio: Float64Array, truth: Float64Array, weight: Float64Array
) -> dict[str, Any]:
    links = truth > 0
    if min(links.sum(), (~links).sum()) < 4:
        return {"auc": None, "error": None, "bins": [], "errors": {}}
    errors = {}
    share = np.where(links, weight / weight[links].sum(), weight / weight[~links].sum())
    for rate in BASE_RATES:
        own = share * np.where(links, rate, 1 - rate)
        told = calibration(expit(ratio + logit(rate)), truth, own)
        errors[str(rate)] = told["error"]
        if rate == BASE_RATES[0]:
            even = told
    return {"auc": _auc(score, links, share)} | even | {"errors": errors}


def _auc(score: Float64Array, links: BoolArray, weight: Float64Array) -> float:
    """Return the weighted share of pairs of a link and another pair in the right order."""
    values, place = np.unique(score, return_inverse=True)
    good, bad = (
        np.bincount(place, weight * side, minlength=len(values)) for side in (links, ~links)
    )
    below = np.cumsum(bad) - bad
    return float((good * (below + bad / 2)).sum() / (good.sum() * bad.sum()))


def _popularity(
    graph: DiGraph, clock: Clock | None, rng: np.random.Generator
) -> tuple[float, Float64Array]:
    """Return the horizon that ranks the targets of new sources best, and its hit rate by rank.

    Sources are treated as if nothing were known of them but when they choose.
    """
    asked = graph.out_degree > 0
    if clock is not None and (asked & clock.is_new).any():
        asked = asked & clock.is_new
    sources = rng.permutation(np.flatnonzero(asked))[:300]
    recency = None if clock is None else Recency(clock, graph).fit(graph)
    popularity = Popularity(graph, recency)
    horizons = (1.0,) if clock is None else POPULARITY
    gains, hits = np.zeros(len(horizons)), np.zeros((len(horizons), _LISTED))
    ever = popularity.counts(0, 1.0)
    by_count = np.lexsort((np.arange(len(ever)), -ever))
    for u in sources.tolist():
        true = _out(graph, u)
        for at, horizon in enumerate(horizons):
            if clock is None:  # its own edges would not be known
                nodes = by_count[: _LISTED + len(true)]
                counts = ever[nodes] - np.isin(nodes, true)
            else:
                every = popularity.counts(u, horizon)
                nodes = largest(every, _LISTED)
                counts = every[nodes]
                for score in every[true[:_FEW]]:
                    above, equal = (every > score).sum(), (every == score).sum()
                    gains[at] += 1.0 / (above + (equal + 1) / 2) / min(len(true), _FEW)
            top = nodes[np.lexsort((nodes, -counts))][:_LISTED]
            hits[at, : len(top)] += np.isin(top, true)
    best = int(np.argmax(gains))
    rates = hits[best] / max(len(sources), 1)
    return horizons[best], isotonic_regression(rates, increasing=False).x


def _out(graph: DiGraph, u: int) -> Int64Array:
    return graph.targets[graph.indptr[u] : graph.indptr[u + 1]].astype(np.int64)


__all__ = ["QUESTIONS", "Head", "Learned", "Plan", "Sample", "combine", "learn"]
