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
from atpgraph.linkpred.evidence import Collection, Recency, VectorEvidence
from atpgraph.linkpred.evidence.kernels import Room, best_near, best_of
from atpgraph.linkpred.evidence.times import POPULARITY, Clock
from atpgraph.linkpred.protocols.negatives import one_way_pairs
from atpgraph.linkpred.protocols.splits import removable_edges
from atpgraph.linkpred.ranking import (
    Curve,
    Head,
    HitRates,
    Popularity,
    Ranker,
    Suggested,
    fit_hit_rates,
    fit_log_ratio,
    largest,
    source_features,
    targets_of,
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
    """How much is hidden and learned from."""

    fraction: float = 0.1  # of the edges, hidden in each round
    max_pairs: int = 4000  # sources to learn from
    n_candidates: int = 500  # of a list of suggestions


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned."""

    heads: dict[str, Head]  # by question
    ratio: Curve  # from the score for `link` to the log of how much likelier links have it
    hits: HitRates
    horizon: float  # of the popularity that ranks for sources without edges
    validation: dict[str, Any]


class Examples(NamedTuple):
    """Terms of pairs, and how many pairs each stands for."""

    terms: Float64Array
    weight: Float64Array

    def half(self, at: int) -> Examples:
        """Return every second pair, from the first or from the second."""
        return Examples(self.terms[at::2], self.weight[at::2])


@dataclass(frozen=True, eq=False)
class Sample:
    """Pairs to learn from."""

    choices: Choices  # hidden edges (chosen), and other targets that their sources could have had
    source_weight: Float64Array  # how many nodes the source of each group stands for
    forward: Examples  # hidden edges whose reverse is no edge
    backward: Examples  # reverses of such edges
    against: Examples  # pairs that paths join the other way round only

    @property
    def links(self) -> Examples:
        """The hidden edges."""
        taken = self.choices.taken
        return Examples(self.choices.x[self.choices.chosen], taken[self.choices.chosen])

    @property
    def others(self) -> Examples:
        """Pairs that are no links, near misses too."""
        other = np.flatnonzero(self.choices.taken == 0)
        if len(other) > 10 * _AGAINST:
            other = other[np.random.default_rng(0).permutation(len(other))[: 10 * _AGAINST]]
        stands = np.exp(self.choices.offset) * self.source_weight[self.choices.group]
        return Examples(self.choices.x[other], stands[other])


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
        learned.validation["direction"] = _judged(sample.forward, sample.backward, doubtful)
        learned.validation["order"] = _judged(sample.links, sample.against, doubtful)
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

    def visit(at: int, room: Room) -> _OfSource:
        u, own = int(sources[at]), streams[at]
        true, into = own.permutation(targets_of(left, u)), own.permutation(targets_of(back, u))
        targets, offset = _candidates(graph, u, room, vectors, own)
        if not len(true):
            keep, by = _thinned(offset, own)
            targets, offset = targets[keep], offset[keep] + by
        parts = (true[:_FEW], targets, into[:_FEW], targets_of(by_source, u))
        return _OfSource(parts, offset, room.table[np.concatenate(parts)], len(true), len(into))

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
        Examples(terms[forward], stands[node[forward], 0]),
        Examples(terms[backward], stands[node[backward], 1]),
        Examples(terms[kind == 3], np.ones(np.count_nonzero(kind == 3))),
    )


class _OfSource(NamedTuple):
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
    free[u], free[targets_of(graph, u)] = False, False
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
    sides = [
        Examples(*(np.concatenate(part) for part in zip(*same, strict=True)))
        for same in zip(*((x.forward, x.backward, x.against) for x in samples), strict=True)
    ]
    return Sample(choices, np.concatenate([x.source_weight for x in samples]), *sides)


def combine(sample: Sample, doubtful: BoolArray) -> dict[str, Head]:
    """Fit one model for each question; doubtful terms are used only where they help."""
    return {
        "link": _pair_head(sample.links, sample.others, doubtful),
        "direction": _pair_head(sample.forward, sample.backward, doubtful),
        "order": _pair_head(sample.links, sample.against, doubtful),
        "target": _choice_head(sample.choices, doubtful),
    }


def fit_pairs(good: Examples, bad: Examples, use: BoolArray | None = None) -> Head:
    """Fit a logistic regression of the terms of links against those of pairs that are none.

    Both sides count alike, so a score of 0 means even odds where half of the pairs are links.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingDependencyError("scikit-learn", "links", "Learning to predict links") from None
    terms = np.concatenate([good.terms, bad.terms])
    weight = [side.weight * (len(terms) / (2 * side.weight.sum())) for side in (good, bad)]
    mean, spread = terms.mean(axis=0), terms.std(axis=0)
    varies = spread > 1e-9  # a term that never varies gets no weight
    varies = varies if use is None else varies & use
    model: Any = LogisticRegression(C=1.0 / RIDGE, max_iter=200, solver="newton-cholesky")
    truth = np.repeat([1, 0], [len(good.terms), len(bad.terms)])
    scaled = (terms[:, varies] - mean[varies]) / spread[varies]
    model.fit(scaled, truth, sample_weight=np.concatenate(weight))
    found = np.zeros(len(mean))
    found[varies] = model.coef_[0] / spread[varies]
    usual = np.average(bad.terms, axis=0, weights=bad.weight)
    return Head(found, float(model.intercept_[0] - mean @ found), usual)


def _pair_head(good: Examples, bad: Examples, doubtful: BoolArray) -> Head:
    """Fit a model of pairs; doubtful terms are used only where they help on other pairs."""
    if not len(good.terms) or not len(bad.terms):  # every edge has its reverse, or all are reached
        return Head(np.zeros(len(doubtful)), 0.0, np.zeros(len(doubtful)))
    use = ~doubtful if doubtful.any() and _gain(good, bad, ~doubtful) <= 0 else None
    return fit_pairs(good, bad, use)


def _gain(good: Examples, bad: Examples, fewer: BoolArray) -> float:
    """Return how much all terms lower the loss of the other half, above one standard error."""
    gains, counts = [], []
    for half in (0, 1):
        here = (good.half(half), bad.half(half))
        full, less = fit_pairs(*here), fit_pairs(*here, fewer)
        for side, sign in ((good.half(1 - half), -1.0), (bad.half(1 - half), 1.0)):
            losses = [np.logaddexp(0.0, sign * head.score(side.terms)) for head in (full, less)]
            gains.append(losses[1] - losses[0])
            counts.append(side.weight / side.weight.sum())
    gain, count = np.concatenate(gains), np.concatenate(counts) / 4
    mean = float(count @ gain)
    return mean - float(np.sqrt(count**2 @ (gain - mean) ** 2))


def _choice_head(choices: Choices, doubtful: BoolArray) -> Head:
    keep = np.ones(len(doubtful), dtype=bool)
    if doubtful.any():
        gains = []
        odd = np.arange(choices.n_groups) % 2 == 1
        for mine, theirs in ((odd, ~odd), (~odd, odd)):
            learned, judged = choices.part(mine), choices.part(theirs)
            if len(learned.chosen) and len(judged.chosen):
                full, less = (fit_logit(learned, CHOICE_RIDGE, use) for use in (keep, ~doubtful))
                gains.append(less.losses(judged) - full.losses(judged))
        gain = np.concatenate(gains) if gains else np.zeros(1)
        if gain.mean() <= gain.std() / np.sqrt(len(gain)):
            keep = ~doubtful
    fitted = fit_logit(choices, CHOICE_RIDGE, keep)
    other = choices.taken == 0
    usual = choices.x[other].mean(axis=0) if other.any() else fitted.mean
    return Head(fitted.raw_weight, float(-fitted.mean @ fitted.raw_weight), usual)


def _judged(good: Examples, bad: Examples, doubtful: BoolArray) -> dict[str, Any]:
    """Return AUC and calibration on the halves that were not learned from."""
    if min(len(good.terms), len(bad.terms)) < 4:
        return {"auc": None, "error": None, "bins": []}
    scores = np.empty(len(good.terms)), np.empty(len(bad.terms))
    for half in (0, 1):
        head = _pair_head(good.half(half), bad.half(half), doubtful)
        for part, side in zip(scores, (good, bad), strict=True):
            part[1 - half :: 2] = head.score(side.half(1 - half).terms)
    score = np.concatenate(scores)
    link = np.arange(len(score)) < len(good.terms)
    weight = np.concatenate([side.weight / (2 * side.weight.sum()) for side in (good, bad)])
    return {"auc": _auc(score, link, weight)} | calibration(expit(score), link, weight)


def calibration(
    stated: Float64Array, truth: BoolArray, weight: Float64Array, groups: int = 10
) -> dict[str, Any]:
    """Return the mean distance of stated from observed shares, and both in bins of equal weight."""
    order = np.argsort(stated, kind="stable")
    upto = np.cumsum(weight[order]) / weight.sum()
    place = np.minimum((upto * groups - 1e-9).astype(np.int64), groups - 1)
    total, said, right = (
        np.bincount(place, (weight * x)[order], minlength=groups) for x in (1.0, stated, truth)
    )
    counts = np.bincount(place, minlength=groups)
    bins = [
        {"pairs": int(counts[b]), "stated": said[b] / total[b], "right": right[b] / total[b]}
        for b in np.flatnonzero(total > 0).tolist()
    ]
    return {"error": float(np.abs(said - right).sum() / total.sum()), "bins": bins}


class _Judged(NamedTuple):
    """Pairs of one source with their scores for ``link``, and its list."""

    score: Float64Array
    link: BoolArray
    joined: BoolArray  # False for hidden edges whose ends are not connected any more
    weight: Float64Array
    suggested: Suggested


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
    sources, own = _draw([(k, left.out_degree), (k, allowed)], allowed, rng)
    streams = rng.spawn(len(sources))

    def visit(at: int, room: Room) -> _Judged:
        u = int(sources[at])
        true = targets_of(left, u)
        nodes = ranker.candidates(u, room, _LISTED)
        free = np.ones(graph.n_nodes, dtype=bool)
        free[u], free[targets_of(graph, u)], free[nodes] = False, False, False
        chance, rest = _by_chance(free, streams[at])
        missed = np.setdiff1d(true, nodes)  # hidden edges that no list would have
        every = np.concatenate([nodes, missed, chance]).astype(np.int64)
        terms = ranker.terms(u, every, room)
        stands = np.full(len(every), own[at])
        stands[len(nodes) + len(missed) :] *= max(rest / max(len(chance), 1), 1.0)
        ranked = ranker.top(nodes, heads["target"].score(terms[: len(nodes)]), _LISTED)
        link = np.isin(every, true)
        joined = ~link | np.isin(every, targets_of(near, u))
        features = source_features(hidden.rest, u)
        listed = Suggested(ranked, features, np.isin(ranked.nodes, true), own[at])
        return _Judged(heads["link"].score(terms), link, joined, stands, listed)

    found = ranker.evidence.local.scan(sources, visit)
    score, link, joined, weight = (
        np.concatenate([getattr(each, name) for each in found])
        for name in ("score", "link", "joined", "weight")
    )
    source = np.repeat(np.arange(len(found)), [len(each.score) for each in found])
    warm = np.array([not ranker.is_cold(int(u)) for u in sources], dtype=bool)
    n = graph.n_nodes
    density = len(hidden.edges) / max(n * (n - 1.0) - hidden.rest.n_edges, 1.0)
    density = float(np.clip(density, 1e-12, 0.5))

    def learned_from(which: BoolArray) -> tuple[Curve, HitRates]:
        """Return what sources teach: the ratio for pairs, and hit rates of lists."""
        lists = [found[at].suggested for at in np.flatnonzero(which & warm)]
        rates = fit_hit_rates(lists or [each.suggested for each in found])
        ratio = Curve(np.array([-20.0, 20.0]), np.array([-20.0, 20.0]))
        good, bad = which[source] & link, which[source] & ~link
        if np.count_nonzero(good) > 1 and bad.any():
            ratio = fit_log_ratio(score[good], weight[good], score[bad], weight[bad])
        return ratio, HitRates(*rates, cold, density)

    # Each half of the sources is judged by what the other teaches.
    half = np.arange(len(sources)) % 2 == 0
    stated, shown = np.empty(len(score)), []
    for which in (half, ~half):
        ratio, hits = learned_from(~which)
        stated[which[source]] = ratio(score[which[source]])
        for each in (found[at].suggested for at in np.flatnonzero(which & warm)):
            rates = hits.rates(each.ranked, each.features)[:10]
            counts = np.full(len(rates), min(each.weight, 20 * own.mean()))
            shown.append(np.stack([np.arange(len(rates)), rates, each.hit[:10], counts]))
    everyone = np.ones(len(sources), dtype=bool)
    report = {
        "link": _at_base_rates(score, stated, link, weight),
        "connected": _at_base_rates(score[joined], stated[joined], link[joined], weight[joined]),
        "hits": _by_rank(np.concatenate([*shown, np.empty((4, 0))], axis=1)),
    }
    return Learned(heads, *learned_from(everyone), ranker.popularity.horizon, report)


def _by_rank(shown: Float64Array) -> dict[str, Any]:
    """Return stated and observed hit rates: rank, rate, hit and weight in, a row each, out."""
    place = shown[0].astype(np.int64)
    lists = np.bincount(place, minlength=10)
    total, said, right = (
        np.bincount(place, shown[3] * x, minlength=10) for x in (1.0, shown[1], shown[2])
    )
    ranks = [
        {
            "rank": at + 1,
            "lists": int(lists[at]),
            "stated": said[at] / total[at],
            "right": right[at] / total[at],
        }
        for at in np.flatnonzero(total > 0).tolist()
    ]
    away = [abs(row["stated"] - row["right"]) for row in ranks]
    return {"error": max(away, default=None), "ranks": ranks}


def _at_base_rates(
    score: Float64Array, ratio: Float64Array, link: BoolArray, weight: Float64Array
) -> dict[str, Any]:
    if min(link.sum(), (~link).sum()) < 4:
        return {"auc": None, "error": None, "bins": [], "errors": {}}
    share = np.where(link, weight / weight[link].sum(), weight / weight[~link].sum())
    found = {
        rate: calibration(expit(ratio + logit(rate)), link, share * np.where(link, rate, 1 - rate))
        for rate in BASE_RATES
    }
    errors = {str(rate): told["error"] for rate, told in found.items()}
    return {"auc": _auc(score, link, share)} | found[BASE_RATES[0]] | {"errors": errors}


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
        true = targets_of(graph, u)
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


__all__ = ["QUESTIONS", "Head", "Learned", "Plan", "Sample", "combine", "learn"]
