"""Rank the targets of a source, and say how often a suggestion at a rank is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit, logsumexp

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Collection, Recency
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array, Int64Array

_POPULAR = 100  # nodes that are candidates for every source
_LEAST = 25  # examples of a step of a curve
FEATURES = ("share", "rank", "out-degree", "in-degree", "no out-edge", "constant")


@dataclass(frozen=True, eq=False)
class Head:
    """Weights of terms, one model's answer to one question."""

    weights: Float64Array  # one for each term, as the term is (not standardized)
    intercept: float
    usual: Float64Array  # mean of each term over the pairs without a link that it was fitted on

    def score(self, terms: Float64Array) -> Float64Array:
        """Return log-odds, up to a constant for a choice."""
        return np.asarray(terms @ self.weights + self.intercept)


@dataclass(frozen=True, eq=False)
class Curve:
    """A function that never falls, linear between knots and constant beyond them."""

    x: Float64Array
    y: Float64Array

    def __call__(self, x: Float64Array) -> Float64Array:
        return np.asarray(np.interp(x, self.x, self.y))


class Ranked(NamedTuple):
    """Targets of one source, best first.

    ``scores`` decide the order; ``share`` is the logarithm of each score's part of the sum over
    all candidates; ``cold`` says that popularity decided, since nothing is known of the source.
    """

    nodes: Int64Array
    scores: Float64Array
    share: Float64Array
    cold: bool


class Popularity:
    """Links that each node got lately: what to suggest to a source without edges.

    `recency` knows when edges arrived; without it all edges count. `horizon` is the share of the
    edges that are recent.
    """

    def __init__(self, graph: DiGraph, recency: Recency | None, horizon: float = 1.0) -> None:
        self.horizon, self._n = horizon, graph.n_nodes
        self._now = recency.clock.now if recency is not None else None
        plain = (graph.targets, np.zeros(graph.n_edges))
        targets, times = plain if recency is None else recency.events
        order = np.argsort(times, kind="stable")
        self._targets, self._times = targets[order], times[order]

    def counts(self, source: int, horizon: float | None = None) -> Int64Array:
        """Return how many recent links every node has, seen from when the source chooses."""
        horizon = self.horizon if horizon is None else horizon
        low, high = 0, len(self._times)
        if self._now is not None:
            until = self._now[source]
            high = int(np.searchsorted(self._times, until))
            low = int(np.searchsorted(self._times, until - horizon)) if horizon < 1 else 0
        return np.bincount(self._targets[low:high], minlength=self._n)

    def scores(self, source: int) -> Float64Array:
        """Return log(1 + count) for every node, ties broken by all links so far."""
        recent, ever = self.counts(source), self.counts(source, 1.0)
        return np.log1p(recent) + 1e-6 * np.log1p(ever)


class Ranker:
    """Find the best targets of sources in a graph by a head of its evidence.

    `n_candidates` nodes near a source are scored in full; `horizon` is that of
    :class:`Popularity`, for sources without edges.
    """

    def __init__(
        self,
        graph: DiGraph,
        evidence: Collection,
        head: Head,
        n_candidates: int = 500,
        horizon: float = 1.0,
    ) -> None:
        self.graph, self.evidence, self.head = graph, evidence, head
        self.n_candidates = n_candidates
        self._popular = largest(graph.in_degree, _POPULAR)
        self.popularity = Popularity(graph, evidence.part(Recency), horizon)

    def is_cold(self, source: int) -> bool:
        """Return whether a source has no edges, so that no evidence tells its targets apart."""
        return not (self.graph.out_degree[source] or self.graph.in_degree[source])

    def candidates(self, source: int, room: Room, k: int, known: bool = False) -> Int64Array:
        """Return nodes near the source and popular ones, in the order of their numbers.

        Targets that it has already are left out unless `known` is true.
        """
        near = room.near
        if len(near) > max(self.n_candidates, k):
            scores = self.evidence.near_scores(room, self.head.weights)
            near = near[np.argpartition(-scores, max(self.n_candidates, k) - 1)]
            near = near[: max(self.n_candidates, k)]
        popular = self._popular if k <= _POPULAR else largest(self.graph.in_degree, k)
        taken = [np.array([source])]
        if not known:
            taken.append(targets_of(self.graph, source))
        nodes = np.setdiff1d(np.union1d(near, popular), np.concatenate(taken))
        return nodes.astype(np.int64)

    def terms(self, source: int, nodes: Int64Array, room: Room) -> Float64Array:
        """Return the terms of the pairs of the source with nodes."""
        u = np.full(len(nodes), source)
        near = room.table[nodes].astype(np.float64)
        return self.evidence.as_terms(self.evidence.numbers(near, u, nodes))

    def rank(self, source: int, room: Room, k: int, known: bool = False) -> Ranked:
        """Return the best k targets of a source whose local evidence is in the room."""
        if self.is_cold(source):
            return self._rank_cold(source, k)
        nodes = self.candidates(source, room, k, known)
        return self.top(nodes, self.head.score(self.terms(source, nodes, room)), k)

    def top(self, nodes: Int64Array, scores: Float64Array, k: int, cold: bool = False) -> Ranked:
        """Return the k largest scores; of equal ones those of the smaller number."""
        order = np.lexsort([nodes, -scores])[:k]
        total = logsumexp(scores) if len(scores) else 0.0
        return Ranked(nodes[order], scores[order], scores[order] - total, cold)

    def _rank_cold(self, source: int, k: int) -> Ranked:
        scores = self.popularity.scores(source)
        nodes = largest(scores, k + 1).astype(np.int64)
        nodes = nodes[nodes != source]
        return self.top(nodes, scores[nodes], k, cold=True)


@dataclass(frozen=True, eq=False)
class HitRates:
    """How often a suggestion is right, by its rank, its share of the scores, and its source."""

    weights: Float64Array  # of FEATURES; those of share and rank are such that no list rises
    curve: Curve  # from the weighted sum to the rate
    cold: Float64Array  # the rate at each rank for sources without edges
    density: float  # share of links among the pairs without an edge, which the rates hold for

    def order(self, ranked: Ranked, features: Float64Array) -> Float64Array:
        """Return what orders the suggestions of all sources: it falls along each list."""
        rank = np.arange(1, len(ranked.nodes) + 1)
        if ranked.cold:
            at = np.minimum(rank, len(self.cold)) - 1
            return np.asarray(logit(np.clip(self.cold[at], 1e-9, 1 - 1e-9)) - 1e-6 * rank - 100.0)
        return np.asarray(_columns(ranked, features) @ self.weights)

    def rates(
        self, ranked: Ranked, features: Float64Array, base_rate: float | None = None
    ) -> Float64Array:
        """Return the expected hit rate of every suggestion, at the density or a base rate."""
        if ranked.cold:
            at = np.minimum(np.arange(len(ranked.nodes)), len(self.cold) - 1)
            rates = self.cold[at]
        else:
            rates = self.curve(self.order(ranked, features))
        return rates if base_rate is None else shifted(rates, self.density, base_rate)


def source_features(graph: DiGraph, source: int | Int64Array) -> Float64Array:
    """Return what the hit rate of suggestions depends on, for a source or a row for each."""
    out, into = graph.out_degree[source], graph.in_degree[source]
    return np.stack([np.log1p(out), np.log1p(into), out == 0, np.ones_like(out)], axis=-1)


def shifted(rates: Float64Array, density: float, base_rate: float) -> Float64Array:
    """Return rates that hold at one share of links as they are at another."""
    by = logit(base_rate) - logit(density)
    return np.asarray(expit(logit(np.clip(rates, 1e-12, 1 - 1e-12)) + by))


class Suggested(NamedTuple):
    """A list, features of its source, which of it were hits, and how many sources it stands for."""

    ranked: Ranked
    features: Float64Array
    hit: BoolArray
    weight: float


def fit_hit_rates(lists: list[Suggested]) -> tuple[Float64Array, Curve]:
    """Learn weights and a curve from lists.

    A logistic regression whose weights of share and rank cannot have the wrong sign, then an
    isotonic regression of the hits over its score.
    """
    x = np.concatenate([_columns(each.ranked, each.features) for each in lists])
    hit = np.concatenate([each.hit for each in lists]).astype(np.float64)
    weight = np.array([each.weight for each in lists])
    own = np.repeat(np.minimum(weight / weight.mean(), 20.0), [len(each.hit) for each in lists])
    if not hit.any():
        weights = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
        return weights, Curve(np.zeros(1), np.zeros(1))
    scale = np.maximum(x.std(axis=0), 1e-9)
    scale[-1] = 1.0

    def loss(w: Float64Array) -> tuple[float, Float64Array]:
        z = x @ (w / scale)
        value = own @ (np.logaddexp(0.0, z) - hit * z) + 0.5 * w[:-1] @ w[:-1]
        slope = ((own * (expit(z) - hit)) @ x) / scale
        slope[:-1] += w[:-1]
        return float(value), slope

    bounds = [(1e-3, None), (1e-3, None), *([(None, None)] * 4)]
    start = np.array([1.0, 1.0, 0.0, 0.0, 0.0, -2.0])
    weights = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x / scale
    return weights, fit_curve(x @ weights, hit, own)


def fit_curve(x: Float64Array, y: Float64Array, weight: Float64Array) -> Curve:
    """Fit a curve that never falls to means over groups of neighbors."""
    order = np.argsort(x, kind="stable")
    cuts = np.arange(0, len(order), max(_LEAST, len(order) // 200))
    total = np.add.reduceat(weight[order], cuts)
    center = np.add.reduceat((weight * x)[order], cuts) / total
    mean = np.add.reduceat((weight * y)[order], cuts) / total
    return Curve(center, isotonic_regression(mean, weights=total).x)


def fit_log_ratio(
    good: Float64Array, good_weight: Float64Array, bad: Float64Array, bad_weight: Float64Array
) -> Curve:
    """Learn the logarithm of how much more often links than other pairs have a score.

    Scores are put into bins of at least some links or of some share of the other pairs, the share
    of links in the bins is made monotone, and half an example is added to each side.
    """
    good_weight, bad_weight = good_weight / good_weight.sum(), bad_weight / bad_weight.sum()
    steps = np.linspace(0, 1, max(2, min(40, len(good) // _LEAST)) + 1)[1:-1]
    order = np.argsort(bad, kind="stable")
    upto = np.cumsum(bad_weight[order])
    at = np.minimum(np.searchsorted(upto, [0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99]), len(bad) - 1)
    edges = np.unique(np.concatenate([np.quantile(good, steps), bad[order][at]]))
    sides = [
        np.bincount(np.searchsorted(edges, x), w, minlength=len(edges) + 1)
        for x, w in ((good, good_weight), (bad, bad_weight))
    ]
    both = np.concatenate([good, bad])
    all_weight = np.concatenate([good_weight, bad_weight])
    place = np.searchsorted(edges, both)
    total = np.bincount(place, all_weight, minlength=len(edges) + 1)
    used = total > 0
    center = np.bincount(place, all_weight * both, minlength=len(edges) + 1)[used] / total[used]
    links, others = sides[0][used], sides[1][used]
    blocks = isotonic_regression(links / total[used], weights=total[used]).blocks
    links = np.add.reduceat(links, blocks[:-1])
    others = np.add.reduceat(others, blocks[:-1])
    ratio = np.log((links + 0.5 / len(good)) / (others + 0.5 * np.median(bad_weight)))
    ratio = np.repeat(np.maximum.accumulate(ratio), np.diff(blocks))
    return Curve(center, ratio)


def targets_of(graph: DiGraph, u: int) -> Int64Array:
    """Return the nodes that u has edges to."""
    return graph.targets[graph.indptr[u] : graph.indptr[u + 1]].astype(np.int64)


def largest(values: AnyArray, k: int) -> Int64Array:
    """Return the indices of the k largest values."""
    k = min(k, len(values))
    return np.argpartition(-values, k - 1)[:k].astype(np.int64) if k else np.empty(0, np.int64)


def _columns(ranked: Ranked, features: Float64Array) -> Float64Array:
    rank = np.arange(1, len(ranked.nodes) + 1)
    rest = np.broadcast_to(features, (len(rank), len(features)))
    return np.column_stack([ranked.share, -np.log(rank), rest])
