"""Rank the targets of a source, and estimate how often a suggestion at each rank is right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit, logsumexp

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence import Collection
from atpgraph.linkpred.evidence.attributes import link_counts
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import targets_of
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array, Int64Array

_POPULAR = 100  # nodes that are candidates for every source
_LEAST = 25  # examples of a step of a curve
# What hit rates depend on; the first ones fall along a list.
FEATURES = ("share", "rank", "out-degree", "in-degree", "no out-edge", "constant")
_FALLING = 2


@dataclass(frozen=True, eq=False)
class Head:
    """The weights of terms in the model for one question."""

    weights: Float64Array  # one for each term, as the term is (not standardized)
    intercept: float
    usual: Float64Array  # mean of each term over the pairs without a link that it was fitted on

    def score(self, terms: Float64Array) -> Float64Array:
        """Return log-odds; for a choice among candidates, up to a constant common to all."""
        return np.asarray(terms @ self.weights + self.intercept)


@dataclass(frozen=True, eq=False)
class Curve:
    """A non-decreasing function, linear between knots and constant beyond them."""

    x: Float64Array
    y: Float64Array

    def __call__(self, x: Float64Array) -> Float64Array:
        return np.asarray(np.interp(x, self.x, self.y))


class Ranked(NamedTuple):
    """Targets of one source, best first."""

    nodes: Int64Array
    scores: Float64Array  # decide the order
    features: Float64Array  # what the hit rate of each depends on, see FEATURES
    cold: bool  # popularity decided, since nothing is known of the source


class Ranker:
    """Find the best targets of sources in a graph with a head for its evidence.

    `n_candidates` nodes near a source are scored in full. `horizon` is the share of the edges that
    are recent: the most recent links rank the targets of sources without edges.
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
        self.n_candidates, self.horizon = n_candidates, horizon
        self._popular = largest(graph.in_degree, _POPULAR)
        self.link_counts = link_counts(graph, evidence.settings.clock)

    def is_cold(self, source: int) -> bool:
        """Return whether a source has no edges, which leaves its targets without evidence."""
        return not (self.graph.out_degree[source] or self.graph.in_degree[source])

    def popularity(self, source: int) -> Float64Array:
        """Return log(1 + recent links) for every node, ties broken by all links so far."""
        recent, ever = (self.link_counts(source, h) for h in (self.horizon, 1.0))
        return np.log1p(recent) + 1e-6 * np.log1p(ever)

    def candidates(self, source: int, room: Room, k: int, known: bool = False) -> Int64Array:
        """Return nodes near the source and popular nodes, in the order of their indices.

        Targets that it has already are left out unless `known` is true.
        """
        near, limit = room.near, max(self.n_candidates, k)
        if len(near) > limit:
            weights = self.evidence.local_weights(self.head.weights)
            near = near[largest(self.evidence.local.scores(room, weights), limit)]
        popular = self._popular if k <= _POPULAR else largest(self.graph.in_degree, k)
        taken = np.empty(0, np.int64) if known else targets_of(self.graph, source)
        nodes = np.setdiff1d(np.union1d(near, popular), np.append(taken, source))
        return nodes.astype(np.int64)

    def rank(self, source: int, room: Room, k: int, known: bool = False) -> Ranked:
        """Return the best k targets of a source whose local evidence is in the room."""
        if self.is_cold(source):
            scores = self.popularity(source)
            nodes = largest(scores, k + 1)
            nodes = nodes[nodes != source]
            return self.top(source, nodes, scores[nodes], k)
        nodes = self.candidates(source, room, k, known)
        terms = self.evidence.terms_of(source, nodes, room)
        return self.top(source, nodes, self.head.score(terms), k)

    def top(self, source: int, nodes: Int64Array, scores: Float64Array, k: int) -> Ranked:
        """Return the k largest scores; ties go to the smaller number."""
        order = np.lexsort([nodes, -scores])[:k]
        share = scores[order] - (logsumexp(scores) if len(scores) else 0.0)
        own = np.broadcast_to(source_features(self.graph, source), (len(order), 4))
        rank = np.arange(1, len(order) + 1)
        features = np.column_stack([share, -np.log(rank), own])
        return Ranked(nodes[order], scores[order], features, self.is_cold(source))


def source_features(graph: DiGraph, source: int | Int64Array) -> Float64Array:
    """Return the features that determine hit rates, for one source or a row for each source."""
    out, into = graph.out_degree[source], graph.in_degree[source]
    return np.stack([np.log1p(out), np.log1p(into), out == 0, np.ones_like(out)], axis=-1)


@dataclass(frozen=True, eq=False)
class HitRates:
    """Estimates how often a suggestion is right, by rank, share of the scores, and source."""

    weights: Float64Array  # of FEATURES; those of share and rank are such that no list rises
    curve: Curve  # from the weighted sum to the rate
    cold: Float64Array  # the rate at each rank for sources without edges
    density: float  # share of links among the pairs without an edge, which the rates hold for

    def order(self, ranked: Ranked) -> Float64Array:
        """Return a score that orders suggestions of sources with edges; it falls along a list."""
        return np.asarray(ranked.features @ self.weights)

    def rates(self, ranked: Ranked, base_rate: float | None = None) -> Float64Array:
        """Return the expected hit rate of every suggestion, at the density or a base rate."""
        rates = self.curve(self.order(ranked))
        if ranked.cold:
            rates = self.cold[np.minimum(np.arange(len(rates)), len(self.cold) - 1)]
        if base_rate is None:
            return rates
        by = log_odds(base_rate) - log_odds(self.density)
        return np.asarray(expit(logit(np.clip(rates, 1e-12, 1 - 1e-12)) + by))

    def of_whole(self, missing: float, density: float) -> HitRates:
        """Return the rates for the whole graph, which lacks `missing` times as many edges as were
        hidden.

        While edges are hidden, a suggestion is one of them with probability y, a link that the
        graph lacks with probability `missing` · y, which counts as a miss, or no link. Once they
        are known, they are no longer suggested, and the second case has probability `missing` · y /
        (1 − y).
        """
        y = self.curve.y
        most = 1.0 - 0.5 / _LEAST  # a step of so few examples cannot make anything certain
        rates = np.minimum(missing * y / np.maximum(1.0 - y, 1e-12), most)
        return replace(self, curve=Curve(self.curve.x, rates), density=density)


def fit_hit_rates(x: Float64Array, hit: BoolArray, own: Float64Array) -> tuple[Float64Array, Curve]:
    """Learn weights and a curve from the features, the hits and the weights of suggestions.

    A logistic regression whose weights of share and rank cannot have the wrong sign, then an
    isotonic regression of the hits over its score.
    """
    falling = np.arange(len(FEATURES)) < _FALLING
    if not hit.any():
        return falling.astype(np.float64), Curve(np.zeros(1), np.zeros(1))
    scale = np.maximum(x.std(axis=0), 1e-9)
    scale[-1] = 1.0

    def loss(w: Float64Array) -> tuple[float, Float64Array]:
        z = x @ (w / scale)
        value = own @ (np.logaddexp(0.0, z) - hit * z) + 0.5 * w[:-1] @ w[:-1]
        slope = ((own * (expit(z) - hit)) @ x) / scale
        slope[:-1] += w[:-1]
        return float(value), slope

    bounds = [(1e-3, None) if falls else (None, None) for falls in falling]
    start = np.append(falling[:-1].astype(np.float64), -2.0)
    weights = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x / scale
    return weights, fit_curve(x @ weights, hit.astype(np.float64), own)


def fit_curve(x: Float64Array, y: Float64Array, weight: Float64Array) -> Curve:
    """Fit a non-decreasing curve to means over groups of neighbors."""
    order = np.argsort(x, kind="stable")
    cuts = np.arange(0, len(order), max(_LEAST, len(order) // 200))
    total, center, mean = (
        np.add.reduceat(side[order], cuts) for side in (weight, weight * x, weight * y)
    )
    return Curve(center / total, isotonic_regression(mean / total, weights=total).x)


def fit_log_ratio(score: Float64Array, link: BoolArray, weight: Float64Array) -> Curve:
    """Learn the log ratio of the frequencies of a score among links and among other pairs.

    Scores are put into bins with a minimum number of links or share of the other pairs, the shares
    of links are made monotone, and half an example is added to each side.
    """
    good, bad = score[link], score[~link]
    good_weight, bad_weight = (weight[side] / weight[side].sum() for side in (link, ~link))
    steps = np.linspace(0, 1, max(2, min(40, len(good) // _LEAST)) + 1)[1:-1]
    order = np.argsort(bad, kind="stable")
    upto = np.cumsum(bad_weight[order])
    at = np.minimum(np.searchsorted(upto, [0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99]), len(bad) - 1)
    edges = np.unique(np.concatenate([np.quantile(good, steps), bad[order][at]]))

    def in_bins(x: Float64Array, weight: Float64Array) -> Float64Array:
        place = np.searchsorted(edges, x)
        return np.asarray(np.bincount(place, weight, minlength=len(edges) + 1), dtype=np.float64)

    links, others = in_bins(good, good_weight), in_bins(bad, bad_weight)
    center = in_bins(good, good_weight * good) + in_bins(bad, bad_weight * bad)
    used = links + others > 0
    links, others, center = links[used], others[used], center[used]
    total = links + others
    blocks = isotonic_regression(links / total, weights=total).blocks
    above, below = (np.add.reduceat(side, blocks[:-1]) for side in (links, others))
    ratio = np.log((above + 0.5 / len(good)) / (below + 0.5 * np.median(bad_weight)))
    return Curve(center / total, np.repeat(np.maximum.accumulate(ratio), np.diff(blocks)))


def largest(values: AnyArray, k: int) -> Int64Array:
    """Return the indices of the k largest values."""
    k = min(k, len(values))
    return np.argpartition(-values, k - 1)[:k].astype(np.int64) if k else np.empty(0, np.int64)


def log_odds(base_rate: float) -> float:
    """Return the offset that a share of links among the pairs adds to every score.

    Examples
    --------
    >>> log_odds(0.5)
    0.0
    """
    if not 0 < base_rate < 1:
        raise InputError(f"base_rate is {base_rate}; it must be between 0 and 1.")
    return float(np.log(base_rate / (1.0 - base_rate)))
