"""Learn what evidence is worth, from links taken out of the graph itself.

Some edges are hidden, evidence is computed from the rest, and four linear models learn to find the
hidden ones: among all pairs (``link``), against their reverses (``direction``), among pairs that
paths join the other way round only (``order``), and among the targets that their source could have
(``target``). Evidence is computed for a sample of sources, all pairs of a source together; each
sampled source is weighted by the number of nodes it represents. Sources that no model has seen then
tell how often suggestions are right.
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
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import targets_of
from atpgraph.linkpred.evidence.parts import VectorEvidence
from atpgraph.linkpred.protocols.negatives import free_nodes, one_way_pairs
from atpgraph.linkpred.protocols.splits import removable_edges
from atpgraph.linkpred.ranking import Curve, Head, HitRates, Ranker, largest
from atpgraph.util.arrays import BoolArray, Float64Array, FloatArray, Int64Array, IntArray
from atpgraph.util.conditional_logit import Choices, fit_logit
from atpgraph.util.progress import stage

QUESTIONS = ("link", "direction", "order", "target")
# Rows of a sample: hidden edges, other targets that the source could have had, reverses of hidden
# edges, and pairs that paths join the other way round only.
LINK, CANDIDATE, BACK, APART = range(4)
BASE_RATES = (0.5, 0.01, 0.001)
HORIZONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)  # of popularity: shares of all edges
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
_BARE = 100  # nodes without edges that tell how often popular nodes are right for such
_CAP = 20.0  # most that a list counts, in means


@dataclass(frozen=True, eq=False)
class Learned:
    """The learned models and their validation."""

    heads: dict[str, Head]  # by question
    ratio: Curve  # from the score for `link` to the log of how much likelier links have it
    hits: HitRates
    horizon: float  # of the popularity that ranks for sources without edges
    validation: dict[str, Any]


class Hidden(NamedTuple):
    """The hidden edges, and the graph without them."""

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
    rng: np.random.Generator,
    *,
    fraction: float = 0.1,
    max_pairs: int = 4000,
    n_candidates: int = 500,
) -> tuple[Learned, Collection]:
    """Return what was learned, and the evidence of the last round.

    `fraction` of the edges are hidden in each round, and at most `max_pairs` sources learned from.
    """
    evidence = collect()
    clock = evidence.settings.clock
    hidden = hide(graph, fraction, rng, clock)
    rounds = min(_ROUNDS, -(-min(_ENOUGH, max_pairs) // len(hidden.edges)))
    judged = np.ones(graph.n_nodes, dtype=bool)
    samples: list[Sample] = []
    if rounds > 1:  # a small graph is hidden from several times to learn, and once more to judge
        for _ in range(rounds):
            some = hide(graph, fraction, rng, clock, keep_connected=True)
            samples.append(draw_sample(some, collect().fit(some.rest), judged, rng, max_pairs))
        evidence.fit(hidden.rest)
    else:
        evidence.fit(hidden.rest)
        judged = rng.random(graph.n_nodes) < 1 / 3
        samples.append(draw_sample(hidden, evidence, ~judged, rng, max_pairs))
    sample = Sample.joined(samples)
    rows, against = (sample.terms, sample.weight), sample.against()
    with stage("combination"):
        doubtful = np.array([kind == "attributes" for kind in evidence.term_kinds])
        helpful = not doubtful.any() or _helps(doubtful, *rows, *against["link"])
        use = np.ones_like(doubtful) if helpful else ~doubtful
        heads = {name: fit_pairs(*rows, *sides, use) for name, sides in against.items()}
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
            learned.validation[name] = _judged(*rows, *against[name], use)
    return learned, evidence


def n_sources(graph: DiGraph, most: int = 4000) -> int:
    """Return how many sources to learn from: fewer in large graphs, where each takes longer."""
    return int(np.clip(_WORK / max(graph.n_edges, 1), 400, most))


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
            f"A graph of {graph.n_edges:,} edges is too small to learn from: some edges "
            "are hidden, and the others must be enough to predict them."
        )
    return Hidden(graph, taken, graph.without_edges(taken))


class Sample(NamedTuple):
    """Pairs to learn from, all pairs of a source together: a row for each."""

    terms: Float64Array
    group: Int64Array  # number of the source, ascending from 0
    kind: Int64Array  # LINK, CANDIDATE, BACK or APART
    single: BoolArray  # whether the reverse is no edge
    offset: Float64Array  # logarithm of how many candidates of its source a row stands for
    weight: Float64Array  # how many pairs of the graph it stands for

    @classmethod
    def joined(cls, samples: list[Sample]) -> Sample:
        """Return the rows of all samples."""
        firsts = np.cumsum([0] + [sample.group[-1] + 1 for sample in samples[:-1]])
        moved = [s._replace(group=s.group + by) for s, by in zip(samples, firsts, strict=True)]
        return cls(*(np.concatenate(column) for column in zip(*moved, strict=True)))

    def against(self) -> dict[str, tuple[Int64Array, Int64Array]]:
        """Return the rows that are links, and those to set against them, by question."""
        link, other, _, apart = (np.flatnonzero(self.kind == kind) for kind in range(4))
        if len(other) > 10 * _AGAINST:  # near misses too
            other = other[np.random.default_rng(0).permutation(len(other))[: 10 * _AGAINST]]
        way, back = (np.flatnonzero(self.single & (self.kind == kind)) for kind in (LINK, BACK))
        return {"link": (link, other), "direction": (way, back), "order": (link, apart)}

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
    """Draw allowed sources: some in proportion to some values, others in proportion to others.

    The second array has the number of nodes that each source represents.
    """
    rate = np.zeros(len(allowed))
    for count, values in shares:
        own = np.where(allowed, values, 0).astype(np.float64)
        rate += count * own / max(own.sum(), 1.0)
    chance = -np.expm1(-rate)
    sources = np.flatnonzero(rng.random(len(rate)) < chance)
    return sources.astype(np.int64), 1.0 / chance[sources]


def draw_sample(
    hidden: Hidden,
    evidence: Collection,
    allowed: BoolArray,
    rng: np.random.Generator,
    most: int = 4000,
) -> Sample:
    """Compute the terms of the pairs to learn from."""
    graph, near = hidden.graph, hidden.connected()
    # Edges without which their ends fall apart teach little, unless most are of that kind.
    left = hidden.left(near if near.mean() >= 0.5 else None)
    reverse = left.reverse()
    k = n_sources(graph, most)
    anyone = min(k // 4, 500)
    shares = [(k, left.out_degree), (anyone, allowed), (anyone, left.in_degree)]
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
        # Links, candidates, sources of hidden links to u, and nodes that reach u only.
        parts = (true[:_FEW], targets, into[:_FEW], targets_of(by_source, u))
        sizes = [len(part) for part in parts]
        # A link stands for those of its source that were left out, and its source for others.
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
    terms = evidence.as_terms(evidence.numbers(table.astype(np.float64), u, v))
    # Reverses of hidden edges come from their targets, which are sources of the sample as well:
    # there the reverse is the hidden edge, and the pair itself must be none.
    ends = np.where(kind == BACK, (u, v), (v, u))
    return Sample(terms, group, kind, graph.find_edges(*ends) < 0, offset, weight)


def _candidates(
    graph: DiGraph, u: int, room: Room, vectors: list[Any], rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Return targets that u could have: the best by each evidence, and some by chance.

    The second array has the logarithm of the number of nodes that each represents.
    """
    free = free_nodes(graph, u)
    near = room.near[free[room.near]]
    found = [_best(near, values) for values in room.table[near].T]
    for nodes, source, target in vectors:
        values = np.where(free[nodes], target @ source[u], 0.0)
        some = largest(values, _BEST)
        found.append(nodes[some[values[some] > 0]])
    top = np.unique(np.concatenate(found)).astype(np.int64)
    free[top] = False
    chance, stands = _by_chance(free, rng)
    return np.concatenate([top, chance]), np.repeat([0.0, stands], [len(top), len(chance)])


def _best(nodes: IntArray, values: FloatArray) -> IntArray:
    """Return the nodes of a few of the largest values above 0, of equal ones the first."""
    if len(values) > _BEST:
        some = np.flatnonzero(values >= np.partition(values, -_BEST)[-_BEST])
        nodes, values = nodes[some], values[some]
    some = np.argsort(-values, kind="stable")[:_BEST]
    return nodes[some[values[some] > 0]]


def _thinned(
    targets: Int64Array, offset: Float64Array, rng: np.random.Generator
) -> tuple[Int64Array, Float64Array]:
    """Return a few candidates of either kind to represent the others."""
    kept, offset = [], offset.copy()
    for side in (np.flatnonzero(offset == 0), np.flatnonzero(offset > 0)):
        few = side[rng.permutation(len(side))[:_FEW]]
        offset[few] += np.log(max(len(side), 1) / max(len(few), 1))
        kept.append(few)
    chosen = np.sort(np.concatenate(kept))
    return targets[chosen], offset[chosen]


def _longest(part: VectorEvidence) -> tuple[Any, Any, Any]:
    """Return nodes whose target vectors are the longest, all source vectors, these vectors."""
    length = np.einsum("ij,ij->i", part.target_, part.target_)
    nodes = np.sort(largest(length, _LONGEST)).astype(np.int32)
    return nodes, part.source_, part.target_[nodes]


def _by_chance(free: BoolArray, rng: np.random.Generator) -> tuple[Int64Array, float]:
    """Draw a few of the free nodes; return them and the log of how many each represents."""
    nodes = np.flatnonzero(free)
    drawn = rng.choice(nodes, min(_CHANCE, len(nodes)), replace=False)
    return drawn, float(np.log(max(len(nodes) / max(len(drawn), 1), 1.0)))


def fit_pairs(
    terms: Float64Array,
    weight: Float64Array,
    good: Int64Array,
    bad: Int64Array,
    use: BoolArray | None = None,
) -> Head:
    """Fit a logistic regression of rows that are links against rows that are none.

    Both sides count alike, so a score of 0 means even odds where half of the pairs are links.
    """
    nothing = np.zeros(terms.shape[1])
    if not len(good) or not len(bad):  # every edge has its reverse, or all are reached
        return Head(nothing, 0.0, nothing)
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingDependencyError("scikit-learn", "links", "Learning to predict links") from None
    rows = terms[np.concatenate([good, bad])]
    counts = [weight[side] * (len(rows) / (2 * weight[side].sum())) for side in (good, bad)]
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    varies = spread > 1e-9  # a term that never varies gets no weight
    varies = varies if use is None else varies & use
    usual = np.average(terms[bad], axis=0, weights=weight[bad])
    if not varies.any():  # single edges, say, of which no trace is left when they are hidden
        return Head(nothing, 0.0, usual)
    model: Any = LogisticRegression(C=1.0 / RIDGE, max_iter=200, solver="newton-cholesky")
    scaled = (rows[:, varies] - mean[varies]) / spread[varies]
    truth = np.repeat([1, 0], [len(good), len(bad)])
    model.fit(scaled, truth, sample_weight=np.concatenate(counts))
    found = nothing
    found[varies] = model.coef_[0] / spread[varies]
    return Head(found, float(model.intercept_[0] - mean @ found), usual)


_HALVES = ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2)))


def _helps(
    doubtful: BoolArray,
    terms: Float64Array,
    weight: Float64Array,
    good: Int64Array,
    bad: Int64Array,
) -> bool:
    """Return whether terms lower the loss of the other half by more than a standard error."""
    gains, counts = [], []
    for mine, theirs in _HALVES:
        heads = [fit_pairs(terms, weight, good[mine], bad[mine], u) for u in (~doubtful, None)]
        for side, sign in ((good[theirs], -1.0), (bad[theirs], 1.0)):
            less, full = (np.logaddexp(0.0, sign * head.score(terms[side])) for head in heads)
            gains.append(less - full)
            counts.append(weight[side] / (4 * weight[side].sum()))
    gain, share = np.concatenate(gains), np.concatenate(counts)
    mean = share @ gain
    return bool(mean > np.sqrt(share**2 @ (gain - mean) ** 2))


def _judged(
    terms: Float64Array, weight: Float64Array, good: Int64Array, bad: Int64Array, use: BoolArray
) -> dict[str, Any]:
    """Return AUC and calibration on the halves that were not learned from."""
    if min(len(good), len(bad)) < 4:
        return {"auc": None, "error": None, "bins": []}
    score = np.empty(len(terms))
    for mine, theirs in _HALVES:
        head = fit_pairs(terms, weight, good[mine], bad[mine], use)
        for side in (good[theirs], bad[theirs]):
            score[side] = head.score(terms[side])
    rows, link = np.concatenate([good, bad]), np.repeat([True, False], [len(good), len(bad)])
    share = np.concatenate([weight[side] / (2 * weight[side].sum()) for side in (good, bad)])
    return {"auc": _auc(score[rows], link, share)} | calibration(expit(score[rows]), link, share)


def calibration(
    stated: Float64Array, truth: BoolArray, weight: Float64Array, groups: int = 10
) -> dict[str, Any]:
    """Return the mean distance of stated from observed shares, and both in bins of equal weight."""
    order = np.argsort(stated, kind="stable")
    upto = np.cumsum(weight[order]) / weight.sum()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.minimum((upto * groups - 1e-9).astype(np.int64), groups - 1)
    bins, error = _in_bins(place, stated, truth, weight, "pairs")
    return {"error": error, "bins": bins}


def _in_bins(
    place: Int64Array, stated: Float64Array, truth: Any, weight: Float64Array, counted: str
) -> tuple[list[dict[str, Any]], float]:
    """Return stated and observed shares in bins, and how far they are apart in the mean."""
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
    """Learn hit rates and probabilities from sources that the models have not seen."""
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
        missed = np.setdiff1d(true, nodes)  # hidden edges that no list would have
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
    # The sources of suggestions and of pairs, by number.
    listed, source = (
        np.repeat(np.arange(len(sources)), [len(each) for each in found[at]]) for at in (1, 3)
    )
    warm = (hidden.rest.out_degree + hidden.rest.in_degree)[sources] > 0
    density = _density(len(hidden.edges), hidden.rest)

    def learned_from(which: BoolArray) -> tuple[Curve, HitRates]:
        """Return what sources teach: the ratio for pairs, and hit rates of lists."""
        lists = which & warm if (which & warm).any() else np.ones_like(warm)
        counts, rows = np.minimum(own / own[lists].mean(), _CAP), lists[listed]
        rates = ranking.fit_hit_rates(features[rows], hit[rows], counts[listed[rows]])
        ratio = Curve(np.array([-20.0, 20.0]), np.array([-20.0, 20.0]))
        good, bad = which[source] & link, which[source] & ~link
        if np.count_nonzero(good) > 1 and bad.any():
            ratio = ranking.fit_log_ratio(score[good], weight[good], score[bad], weight[bad])
        return ratio, HitRates(*rates, cold, density)

    # Each half of the sources is judged by what the other teaches.
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
        "link": _at_base_rates(score, stated, link, weight),
        "connected": _at_base_rates(score[joined], stated[joined], link[joined], weight[joined]),
        "hits": {"error": away, "ranks": ranks},
    }
    ratio, hits = learned_from(np.ones(len(sources), dtype=bool))
    if ranker.evidence.settings.clock is None:  # with times, nothing lacks but what comes next
        # The whole graph is supposed to lack the same share of its edges as the rest: more of them.
        missing = graph.n_edges / hidden.rest.n_edges
        hits = hits.of_whole(missing, _density(missing * len(hidden.edges), graph))
    return Learned(heads, ratio, hits, ranker.horizon, report)


def _density(missing: float, graph: DiGraph) -> float:
    """Return the share of missing links among the pairs without an edge."""
    n = graph.n_nodes
    return float(np.clip(missing / max(n * (n - 1.0) - graph.n_edges, 1.0), 1e-12, 0.5))


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
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(links, score, sample_weight=weight))


def _popularity(
    hidden: Hidden, clock: Clock | None, rng: np.random.Generator
) -> tuple[float, Float64Array]:
    """Return the horizon that ranks the targets of new sources best, and its hit rate by rank.

    Sources are treated as if nothing were known of them but when they choose. Without times, it is
    the rate of nodes that lost all their edges or never had any, if there are enough.
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
