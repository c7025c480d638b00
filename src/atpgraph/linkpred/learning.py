"""Learn how to weigh evidence from edges hidden from the graph itself.

Hide some edges, compute evidence from the rest, and fit four linear models that tell hidden edges
from other pairs: any pair without an edge (``link``), their own reverses (``direction``), pairs
connected by paths in the opposite direction only (``order``), and other targets that their source
could have (``target``). Only a sample of sources is used, since evidence is computed for all pairs
of a source at once; each row carries a weight, the number of pairs it represents. Sources that the
models have not seen show how often suggestions are right.
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
from atpgraph.linkpred import ranking
from atpgraph.linkpred.evidence import Collection
from atpgraph.linkpred.evidence.attributes import Clock, link_counts
from atpgraph.linkpred.evidence.kernels import Room, best_of
from atpgraph.linkpred.evidence.local import targets_of
from atpgraph.linkpred.evidence.parts import VectorEvidence
from atpgraph.linkpred.protocols.negatives import free_nodes, one_way_pairs
from atpgraph.linkpred.protocols.splits import removable_edges
from atpgraph.linkpred.ranking import Curve, Head, HitRates, Ranker, largest
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.conditional_logit import Choices, fit_logit
from atpgraph.util.progress import stage

QUESTIONS = ("link", "direction", "order", "target")
# Rows of a sample: hidden edges, other targets that the source could have, reverses of hidden
# edges, and pairs connected by paths in the opposite direction only.
LINK, CANDIDATE, BACK, APART = range(4)
BASE_RATES = (0.5, 0.01, 0.001)
HORIZONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)  # of popularity: shares of all edges
RIDGE, CHOICE_RIDGE = 1.0, 10.0
_ENOUGH = 10_000  # hidden edges; small graphs get several rounds of hiding
_ROUNDS = 4
_WORK = 3.5e11  # sources to learn from, times (edges of the graph) ** 1.5
_AGAINST = 2000  # pairs of each kind to compare hidden edges with
_BEST, _CHANCE = 8, 100  # candidates: the best by each evidence, and random others
_FEW = 10  # most candidates of each kind for a source without hidden edges; most links of a source
_LONGEST = 4096  # target vectors searched for the best candidates
_JUDGED = 700  # sources of hidden edges, and as many others, to validate on
_LISTED = 20  # suggestions per list that hit rates are learned from
_BARE = 100  # least nodes without edges that their hit rates can be learned from
_CAP = 20.0  # largest weight of a list, in multiples of the mean


@dataclass(frozen=True, eq=False)
class Learned:
    """The learned models and their validation."""

    heads: dict[str, Head]  # by question
    ratio: Curve  # from the score for `link` to the log of how much likelier links have it
    hits: HitRates
    horizon: float  # of the popularity that ranks targets of sources without edges
    validation: dict[str, Any]


class Hidden(NamedTuple):
    """The hidden edges, and the graph without them."""

    graph: DiGraph
    edges: Int64Array
    rest: DiGraph

    def left(self, which: BoolArray | None = None) -> DiGraph:
        """Return a graph of the hidden edges, or of some of them."""
        edges = self.edges if which is None else self.edges[which]
        return self.graph.keep_edges(np.bincount(edges, minlength=self.graph.n_edges))

    def connected(self) -> BoolArray:
        """Return which hidden edges join nodes that are still connected, ignoring directions."""
        _, component = connected_components(self.rest.to_scipy(), directed=False)
        u, v = self.graph.sources[self.edges], self.graph.targets[self.edges]
        return np.asarray(component[u] == component[v])


def learn(
    graph: DiGraph,
    collect: Callable[[], Collection],
    rng: np.random.Generator,
    *,
    fraction: float = 0.1,
    max_pairs: int = 4000,
    n_candidates: int = 500,
) -> tuple[Learned, Collection]:
    """Return the learned models, and the evidence fitted last.

    Each round hides `fraction` of the edges and learns from at most `max_pairs` sources.
    """
    evidence = collect()
    clock = evidence.settings.clock
    hidden = hide(graph, fraction, rng, clock)
    rounds = min(_ROUNDS, -(-_ENOUGH // len(hidden.edges)))
    judged = np.ones(graph.n_nodes, dtype=bool)
    samples: list[Sample] = []
    if rounds > 1:  # learn from other hidden edges than those that validate
        connected = hidden.connected().mean() >= 0.5  # not in a forest, where any edge is a bridge
        for _ in range(rounds):
            some = hide(graph, fraction, rng, clock, keep_connected=bool(connected))
            samples.append(draw_sample(some, collect().fit(some.rest), judged, rng, max_pairs))
        evidence.fit(hidden.rest)
    else:
        evidence.fit(hidden.rest)
        judged = rng.random(graph.n_nodes) < 1 / 3
        samples.append(draw_sample(hidden, evidence, ~judged, rng, max_pairs))
    sample = Sample.joined(samples)
    compared = sample.compared()
    with stage("combination"):
        doubtful = np.array([kind == "attributes" for kind in evidence.term_kinds])
        helpful = not doubtful.any() or _helps(compared["link"], doubtful)
        use = np.ones_like(doubtful) if helpful else ~doubtful
        heads = {name: fit_pairs(pairs, use) for name, pairs in compared.items()}
        choices = sample.choices
        chosen = fit_logit(choices, CHOICE_RIDGE, use)
        other = choices.taken == 0
        usual = choices.x[other].mean(axis=0) if other.any() else chosen.mean
        heads["target"] = Head(chosen.raw_weight, float(-chosen.mean @ chosen.raw_weight), usual)
    with stage("hit rates"):
        horizon, cold = _popularity(hidden, clock, rng)
        ranker = Ranker(hidden.rest, evidence, heads["target"], n_candidates, horizon)
        learned = _judge(hidden, ranker, heads, judged, cold, rng)
        for name in ("direction", "order"):
            score = _held_out(compared[name], use)
            learned.validation[name] = _report(compared[name], score, score)
    return learned, evidence


def n_sources(graph: DiGraph, most: int = 4000) -> int:
    """Return how many sources to learn from: fewer in large graphs, where each takes longer."""
    return int(np.clip(_WORK / max(graph.n_edges, 1) ** 1.5, 350, most))


def hide(
    graph: DiGraph,
    fraction: float,
    rng: np.random.Generator,
    clock: Clock | None = None,
    keep_connected: bool = False,
) -> Hidden:
    """Hide a random share of the edges; with a clock, at most half of them and only new ones.

    With `keep_connected`, no component is split, unless that would allow fewer than half as many
    edges.
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
            f"A graph of {graph.n_edges:,} edges ({graph.n_self_loops:,} self-loops) is too small "
            "to learn from: some edges are hidden, and the others must be enough to predict them."
        )
    return Hidden(graph, taken, graph.without_edges(taken))


class Sample(NamedTuple):
    """Pairs to learn from, one row each, grouped by source."""

    terms: Float64Array
    group: Int64Array  # number of the source, ascending from 0
    kind: Int64Array  # LINK, CANDIDATE, BACK or APART
    single: BoolArray  # whether the reverse is no edge
    offset: Float64Array  # log of the number of candidates of the source that the row represents
    weight: Float64Array  # number of pairs of the graph that the row represents

    @classmethod
    def joined(cls, samples: list[Sample]) -> Sample:
        """Return the rows of all samples."""
        firsts = np.cumsum([0] + [sample.group[-1] + 1 for sample in samples[:-1]])
        moved = [s._replace(group=s.group + by) for s, by in zip(samples, firsts, strict=True)]
        return cls(*(np.concatenate(column) for column in zip(*moved, strict=True)))

    def compared(self) -> dict[str, Compared]:
        """Return links and the pairs to compare them with, by question."""
        link, other, _, apart = (np.flatnonzero(self.kind == kind) for kind in range(4))
        if len(other) > 10 * _AGAINST:  # near misses too
            other = other[np.random.default_rng(0).permutation(len(other))[: 10 * _AGAINST]]
        way, back = (np.flatnonzero(self.single & (self.kind == kind)) for kind in (LINK, BACK))
        sides = {"link": (link, other), "direction": (way, back), "order": (link, apart)}
        made = {}
        for question, (good, bad) in sides.items():
            rows = np.concatenate([good, bad])
            truth = np.arange(len(rows)) < len(good)
            made[question] = Compared(self.terms[rows], truth, self.weight[rows])
        return made

    @property
    def choices(self) -> Choices:
        """The hidden edges as choices among the possible targets of their sources."""
        own = self.kind <= CANDIDATE
        chosen, weight = np.flatnonzero(self.kind[own] == LINK), self.weight[self.kind == LINK]
        weight = weight * len(chosen) / max(weight.sum(), 1e-9)
        # A source that is linked to all other nodes has no row here; groups may not be empty.
        _, group = np.unique(self.group[own], return_inverse=True)
        return Choices(self.terms[own], group, chosen, self.offset[own], weight)


def draw_sources(
    shares: list[tuple[int, Any]], allowed: BoolArray, rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Draw about `count` of the allowed sources in proportion to `values`, for each share.

    The second array is the number of nodes that each source represents.
    """
    rate = np.zeros(len(allowed))
    for count, values in shares:
        own = np.where(allowed, values, 0).astype(np.float64)
        rate += count * own / max(own.sum(), 1.0)
    chance = -np.expm1(-rate)
    drawn = rng.random(len(rate)) < chance
    if not drawn.any():
        drawn[rate.argmax()] = True
    sources = np.flatnonzero(drawn)
    return sources.astype(np.int64), 1.0 / chance[sources]


def draw_sample(
    hidden: Hidden,
    evidence: Collection,
    allowed: BoolArray,
    rng: np.random.Generator,
    most: int = 4000,
) -> Sample:
    """Draw sources and pairs to learn from, and compute their terms."""
    graph, near = hidden.graph, hidden.connected()
    # A hidden edge that was the only connection leaves no evidence, so it teaches little.
    left = hidden.left(near if near.mean() >= 0.5 else None)
    reverse = left.reverse()
    k = n_sources(graph, most)
    # Targets of hidden edges are sources too: of the reverses that `direction` learns from.
    shares = [(k, left.out_degree), (k // 4, left.in_degree), (min(k // 4, 500), allowed)]
    sources, stands = draw_sources(shares, allowed, rng)
    against = one_way_pairs(graph, min(_AGAINST, 4 * k), rng, among=sources)
    by_source = DiGraph.from_codes(against.sources, against.targets, graph.n_nodes)
    vectors = [_longest(part) for part in evidence.parts if isinstance(part, VectorEvidence)]
    streams = rng.spawn(len(sources))

    def visit(at: int, room: Room) -> tuple[Any, ...]:
        u, own = int(sources[at]), streams[at]
        true, into = own.permutation(targets_of(left, u)), own.permutation(targets_of(reverse, u))
        targets, offset = _candidates(graph, u, room, vectors, own)
        if not len(true):
            targets, offset = _thinned(targets, offset, own)
        # Links, candidates, sources of hidden links to u, and nodes that reach u one way.
        parts = (true[:_FEW], targets, into[:_FEW], targets_of(by_source, u))
        sizes = [len(part) for part in parts]
        # A link represents those of its source that were left out; a source, other sources.
        counts = [len(true) / max(sizes[0], 1), 1.0, len(into) / max(sizes[2], 1), 1.0 / stands[at]]
        every = np.zeros(sum(sizes))
        every[sizes[0] : sizes[0] + sizes[1]] = offset
        weight = stands[at] * np.repeat(counts, sizes) * np.exp(every)
        nodes = np.concatenate(parts)
        kinds = np.repeat([LINK, CANDIDATE, BACK, APART], sizes)
        return room.table[nodes], nodes, kinds, every, weight

    with stage("pairs to learn from"):
        found = evidence.local.scan(sources, visit)
    table, v, kind, offset, weight = (np.concatenate(side) for side in zip(*found, strict=True))
    group = np.repeat(np.arange(len(found)), [len(each[1]) for each in found])
    u = sources[group]
    terms = evidence.terms(u, v, table)
    # A row of kind BACK is the reverse (u, v) of a hidden edge v → u: here (u, v) must be no edge.
    ends = np.where(kind == BACK, (u, v), (v, u))
    return Sample(terms, group, kind, graph.find_edges(*ends) < 0, offset, weight)


def _candidates(
    graph: DiGraph, u: int, room: Room, vectors: list[Any], rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Return possible targets of u: the best by each evidence, and random others.

    The second array is the log of the number of nodes that each represents.
    """
    free = free_nodes(graph, u)
    found = [best_of(room, free, _BEST).ravel()]
    for nodes, source, target in vectors:
        values = np.where(free[nodes], target @ source[u], 0.0)
        some = largest(values, _BEST)
        found.append(nodes[some[values[some] > 0]])
    top = np.unique(np.concatenate(found)).astype(np.int64)
    top = top[top >= 0]
    free[top] = False
    chance, stands = _by_chance(free, rng)
    return np.concatenate([top, chance]), np.repeat([0.0, stands], [len(top), len(chance)])


def _thinned(
    targets: Int64Array, offset: Float64Array, rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Return a few candidates of each kind to represent all of them."""
    kept, offset = [], offset.copy()
    for side in (np.flatnonzero(offset == 0), np.flatnonzero(offset > 0)):
        few = side[rng.permutation(len(side))[:_FEW]]
        offset[few] += np.log(max(len(side), 1) / max(len(few), 1))
        kept.append(few)
    chosen = np.sort(np.concatenate(kept))
    return targets[chosen], offset[chosen]


def _longest(part: VectorEvidence) -> tuple[Any, Any, Any]:
    """Return the nodes with the longest target vectors, all source vectors, and those targets."""
    length = np.einsum("ij,ij->i", part.target_, part.target_)
    nodes = np.sort(largest(length, _LONGEST)).astype(np.int32)
    return nodes, part.source_, part.target_[nodes]


def _by_chance(free: BoolArray, rng: np.random.Generator) -> tuple[Int64Array, float]:
    """Draw a few free nodes; return them, and the log of how many nodes each represents."""
    nodes = np.flatnonzero(free)
    drawn = rng.choice(nodes, min(_CHANCE, len(nodes)), replace=False)
    return drawn, float(np.log(max(len(nodes) / max(len(drawn), 1), 1.0)))


class Compared(NamedTuple):
    """Pairs of which some are links, one row each."""

    terms: Float64Array  # or a score
    link: BoolArray
    weight: Float64Array

    def part(self, which: BoolArray) -> Compared:
        """Return some of the rows."""
        return Compared(self.terms[which], self.link[which], self.weight[which])

    def balanced(self, rate: float = 0.5, total: float = 1.0) -> Float64Array:
        """Scale weights to add up to a total, and the weights of links to a share of it."""
        good, bad = self.weight[self.link].sum(), self.weight[~self.link].sum()
        scale = np.where(self.link, total * rate / good, total * (1 - rate) / bad)
        return np.asarray(self.weight * scale)


def fit_pairs(pairs: Compared, use: BoolArray | bool = True) -> Head:
    """Fit a logistic regression that tells links from other pairs.

    Both sides have the same total weight, so a score of 0 means even odds at a base rate of ½.
    """
    x, link = pairs.terms, pairs.link
    nothing = np.zeros(x.shape[1])
    if link.all() or not link.any():  # every edge has its reverse, or all are reached
        return Head(nothing, 0.0, nothing)
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingDependencyError("scikit-learn", "links", "Learning to predict links") from None
    mean, spread = x.mean(axis=0), x.std(axis=0)
    varies = (spread > 1e-9) & use  # a term that never varies gets no weight
    usual = np.average(x[~link], axis=0, weights=pairs.weight[~link])
    if not varies.any():  # isolated edges, say: hiding them leaves no evidence
        return Head(nothing, 0.0, usual)
    model: Any = LogisticRegression(C=1.0 / RIDGE, max_iter=200, solver="newton-cholesky")
    scaled = (x[:, varies] - mean[varies]) / spread[varies]
    model.fit(scaled, link, sample_weight=pairs.balanced(total=len(x)))
    found = nothing
    found[varies] = model.coef_[0] / spread[varies]
    return Head(found, float(model.intercept_[0] - mean @ found), usual)


def _held_out(pairs: Compared, use: BoolArray | bool) -> Float64Array:
    """Return the score of every row from a model fitted to the other half of the pairs."""
    score, odd = np.empty(len(pairs.link)), np.empty(len(pairs.link), dtype=bool)
    for side in (pairs.link, ~pairs.link):
        odd[side] = np.arange(np.count_nonzero(side)) % 2 == 1
    for theirs in (odd, ~odd):
        score[theirs] = fit_pairs(pairs.part(~theirs), use).score(pairs.terms[theirs])
    return score


def _helps(pairs: Compared, doubtful: BoolArray) -> bool:
    """Return whether the terms lower the held-out loss by more than its standard error."""
    sign = np.where(pairs.link, -1.0, 1.0)
    less, full = (np.logaddexp(0.0, sign * _held_out(pairs, use)) for use in (~doubtful, True))
    gain, share = less - full, pairs.balanced()
    mean = share @ gain
    return bool(mean > np.sqrt(share**2 @ (gain - mean) ** 2))


def _report(pairs: Compared, score: Float64Array, ratio: Float64Array) -> dict[str, Any]:
    """Return the AUC of scores, and how far stated probabilities are from observed shares.

    The probabilities are those of `ratio`, log-odds at a base rate of ½.
    """
    if np.bincount(pairs.link, minlength=2).min() < 4:
        return {"auc": None, "error": None, "bins": [], "errors": {}}
    from sklearn.metrics import roc_auc_score

    found = {
        rate: calibration(expit(ratio + logit(rate)), pairs.link, pairs.balanced(rate))
        for rate in BASE_RATES
    }
    errors = {str(rate): told["error"] for rate, told in found.items()}
    auc = float(roc_auc_score(pairs.link, score, sample_weight=pairs.balanced()))
    return {"auc": auc} | found[BASE_RATES[0]] | {"errors": errors}


def calibration(
    stated: Float64Array, truth: BoolArray, weight: Float64Array, groups: int = 10
) -> dict[str, Any]:
    """Return the calibration error, and stated and observed shares in bins of equal weight."""
    order = np.argsort(stated, kind="stable")
    upto = np.cumsum(weight[order]) / weight.sum()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.minimum((upto * groups - 1e-9).astype(np.int64), groups - 1)
    bins, error = _in_bins(place, stated, truth, weight, "pairs")
    return {"error": error, "bins": bins}


def _in_bins(
    place: Int64Array, stated: Float64Array, truth: Any, weight: Float64Array, counted: str
) -> tuple[list[dict[str, Any]], float]:
    """Return stated and observed shares by bin, and their mean absolute difference."""
    total, said, right = (np.bincount(place, weight * x) for x in (1.0, stated, truth))
    counts = np.bincount(place)
    bins = [
        {counted: int(counts[b]), "stated": said[b] / total[b], "right": right[b] / total[b]}
        for b in np.flatnonzero(total > 0).tolist()
    ]
    return bins, float(np.abs(said - right).sum() / total.sum())


def _judge(
    hidden: Hidden,
    ranker: Ranker,
    heads: dict[str, Head],
    allowed: BoolArray,
    cold: Float64Array,
    rng: np.random.Generator,
) -> Learned:
    """Learn hit rates and probabilities from the allowed sources, and validate them."""
    graph, left, near = hidden.graph, hidden.left(), hidden.left(hidden.connected())
    k = min(n_sources(graph) // 2, _JUDGED)
    sources, own = draw_sources([(k, left.out_degree), (k, allowed)], allowed, rng)
    streams = rng.spawn(len(sources))

    def visit(at: int, room: Room) -> tuple[Any, ...]:
        u = int(sources[at])
        true = targets_of(left, u)
        nodes = ranker.candidates(u, room, _LISTED)
        free = free_nodes(graph, u)
        free[nodes] = False
        chance, stands = _by_chance(free, streams[at])
        missed = np.setdiff1d(true, nodes)  # hidden edges that no list would show
        every = np.concatenate([nodes, missed, chance])
        terms = ranker.evidence.terms_of(u, every, room)
        weight = np.full(len(every), own[at])
        weight[len(nodes) + len(missed) :] *= np.exp(stands)
        ranked = ranker.top(u, nodes, heads["target"].score(terms[: len(nodes)]), _LISTED)
        link = np.isin(every, true)
        joined = ~link | np.isin(every, targets_of(near, u))  # ends still connected without it
        hit, score = np.isin(ranked.nodes, true), heads["link"].score(terms)
        return ranked.features, hit, np.arange(len(hit)), score, link, joined, weight

    found = list(zip(*ranker.evidence.local.scan(sources, visit), strict=True))
    features, hit, rank, score, link, joined, weight = (np.concatenate(side) for side in found)
    pairs = Compared(score, link, weight)
    # The sources of suggestions and of pairs, by number.
    listed, source = (
        np.repeat(np.arange(len(sources)), [len(each) for each in found[at]]) for at in (1, 3)
    )
    warm = (hidden.rest.out_degree + hidden.rest.in_degree)[sources] > 0
    density = _density(len(hidden.edges), hidden.rest)

    def learned_from(which: BoolArray) -> tuple[Curve, HitRates]:
        """Return the ratio for pairs and the hit rates of lists, learned from some sources."""
        lists = which & warm if (which & warm).any() else np.ones_like(warm)
        counts, rows = np.minimum(own / own[lists].mean(), _CAP), lists[listed]
        rates = ranking.fit_hit_rates(features[rows], hit[rows], counts[listed[rows]])
        ratio = Curve(np.array([-20.0, 20.0]), np.array([-20.0, 20.0]))
        if np.count_nonzero(link[which[source]]) > 1 and not link[which[source]].all():
            ratio = ranking.fit_log_ratio(*pairs.part(which[source]))
        return ratio, HitRates(*rates, cold, density)

    # Validate each half of the sources by what the other half teaches.
    half = np.arange(len(sources)) % 2 == 0
    stated, shown = np.empty(len(score)), np.empty(len(hit))
    for which in (half, ~half):
        ratio, hits = learned_from(~which)
        stated[which[source]] = ratio(score[which[source]])
        shown[which[listed]] = hits.curve(features[which[listed]] @ hits.weights)
    top = warm[listed] & (rank < 10)
    counts = np.minimum(own, _CAP * own.mean())[listed[top]]
    ranks, _ = _in_bins(rank[top], shown[top], hit[top], counts, "lists")
    ranks = [{"rank": at, **row} for at, row in enumerate(ranks, 1)]
    away = max((abs(row["stated"] - row["right"]) for row in ranks), default=None)
    report = {
        "link": _report(pairs, score, stated),
        "connected": _report(pairs.part(joined), score[joined], stated[joined]),
        "hits": {"error": away, "ranks": ranks},
    }
    ratio, hits = learned_from(np.ones(len(sources), dtype=bool))
    if ranker.evidence.settings.clock is None:  # with times, only future links are missing
        # Suppose that the whole graph lacks the same share of its edges as the rest does.
        missing = graph.n_edges / hidden.rest.n_edges
        hits = hits.of_whole(missing, _density(missing * len(hidden.edges), graph))
    return Learned(heads, ratio, hits, ranker.horizon, report)


def _density(missing: float, graph: DiGraph) -> float:
    """Return the share of missing links among the pairs without an edge."""
    n = graph.n_nodes
    return float(np.clip(missing / max(n * (n - 1.0) - graph.n_edges, 1.0), 1e-12, 0.5))


def _popularity(
    hidden: Hidden, clock: Clock | None, rng: np.random.Generator
) -> tuple[float, Float64Array]:
    """Return the horizon of popularity that ranks the targets of cold sources best, and hit rates.

    Each source is treated as cold: only the time at which it chooses is known. Without times, the
    hit rate by rank is that of nodes without edges in the rest, if there are enough of them.
    """
    graph, rest = hidden.graph, hidden.rest
    bare = rest.out_degree + rest.in_degree == 0
    if clock is None and np.count_nonzero(bare) >= _BARE:
        popular = np.lexsort((np.arange(graph.n_nodes), -rest.in_degree))[:_LISTED]
        u, v = graph.sources[hidden.edges], graph.targets[hidden.edges]
        got = np.bincount(v[bare[u]], minlength=graph.n_nodes)
        rates = got[popular] / np.count_nonzero(bare)
        return 1.0, isotonic_regression(rates, increasing=False).x
    asked = graph.out_degree > 0
    if clock is not None and (asked & clock.is_new).any():
        asked = asked & clock.is_new
    sources = rng.permutation(np.flatnonzero(asked))[:300]
    counts_of = link_counts(graph, clock)
    horizons = (1.0,) if clock is None else HORIZONS
    gains, hits = np.zeros(len(horizons)), np.zeros((len(horizons), _LISTED))
    for u in sources.tolist():
        true = targets_of(graph, u)
        own = np.bincount(true, minlength=graph.n_nodes) if clock is None else 0
        for at, horizon in enumerate(horizons):
            counts = counts_of(u, horizon) - own  # without times its own edges would not be known
            nodes = largest(counts, _LISTED)
            hits[at, : len(nodes)] += np.isin(nodes[np.lexsort((nodes, -counts[nodes]))], true)
            for score in counts[true[: _FEW if len(horizons) > 1 else 0]]:
                above, equal = (counts > score).sum(), (counts == score).sum()
                gains[at] += 1.0 / (above + (equal + 1) / 2) / min(len(true), _FEW)
    best = int(np.argmax(gains))
    rates = hits[best] / max(len(sources), 1)
    return horizons[best], isotonic_regression(rates, increasing=False).x
