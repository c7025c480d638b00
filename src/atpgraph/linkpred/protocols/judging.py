"""Evaluate a link predictor: each protocol supplies its own negatives.

``paper``
    Negatives are pairs (u, v) where v reaches u and u does not reach v in the whole network.
``random``
    Negatives are ordered pairs u ≠ v without an edge.
``reversed``
    Positives are the test edges (u, v) whose reverse is not an edge, negatives their reverses.
``dirlinkbench``
    Negatives as for ``random``; positives are ranked among all of them, and the share above the
    100th best negative counts (Hits@100). The published benchmark takes 15% of the edges.
``ranking``
    The target of each test edge (u, v) is ranked among the nodes that u has no edge to, all of
    them and a sample of 100. Other true edges of u, training and test, are left out.

All draws are uniform (:mod:`atpgraph.linkpred.protocols.negatives`).
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from atpgraph.errors import AtpError
from atpgraph.evaluation.metrics import (
    auc,
    average_precision,
    hits_at,
    mean_reciprocal_rank,
    ranks_among,
    roc_curve,
)
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.protocols.negatives import (
    Pairs,
    free_nodes,
    non_edges,
    non_neighbors,
    one_way_pairs,
)
from atpgraph.util.arrays import Float64Array, FloatArray, Int64Array, IntArray
from atpgraph.util.checks import Registry

_BLOCK_SCORES = 2**24
_CHUNK = 2**16
HITS = (20, 50, 100)
HITS_OF_A_QUERY = (1, 3, 10, *HITS)
_SAMPLED = 100  # candidates of a query, beside all nodes


@typing.runtime_checkable
class Method(typing.Protocol):
    """A link predictor: ``fit`` gets the training graph and nothing else.

    A method that learned different weights for each protocol has a function ``under(protocol)``,
    which returns the object to score with. A method with the attribute ``uses_times`` is also given
    times.
    """

    name: str

    def fit(self, graph: DiGraph) -> Self:
        """Learn from the graph."""

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return the scores of the pairs (u[i], v[i]); the likelier an edge, the larger."""

    def score_from(self, u: IntArray) -> FloatArray:
        """Return the scores of (u[i], v) for every node v: a matrix with a row for each source."""


class EmbeddingMethod:
    """Base of the methods that score by ⟨source vector of u, target vector of v⟩.

    A subclass sets ``source_`` and ``target_`` in ``fit``, arrays of shape (nodes, `n_components`).
    The dimension is per side, for every method.
    """

    name: str
    n_components: int
    source_: FloatArray
    target_: FloatArray

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Return inner products of source and target vectors."""
        scores = np.empty(len(u), dtype=np.float64)
        for low in range(0, len(u), _CHUNK):
            part = slice(low, low + _CHUNK)
            scores[part] = np.einsum("ik,ik->i", self.source_[u[part]], self.target_[v[part]])
        return scores

    def score_from(self, u: IntArray) -> FloatArray:
        """Return inner products with the target vectors of all nodes."""
        scores: FloatArray = self.source_[u] @ self.target_.T
        return scores


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics, the main metric, and ROC curves, by protocol.

    ``ranking`` is against all nodes, ``ranking-100`` against a sample.
    """

    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    headlines: dict[str, str] = field(default_factory=dict)
    curves: dict[str, tuple[Float64Array, Float64Array]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PairTest:
    """Positives that should score above negatives."""

    positives: Pairs
    negatives: Pairs
    headline: str = "auc"

    def judge(self, scorer: Any, name: str, found: Evaluation) -> None:
        """Write AUC, average precision, MRR and Hits@K: positives ranked among all negatives."""
        good, bad = (
            _numbers(scorer, scorer.score(side.sources, side.targets))
            for side in (self.positives, self.negatives)
        )
        ranks = ranks_among(good, bad)
        values = {"auc": auc(good, bad), "ap": average_precision(good, bad)}
        values |= {f"hits@{k}": hits_at(ranks, k) for k in HITS}
        found.metrics[name] = values | {"mrr": mean_reciprocal_rank(ranks)}
        found.headlines[name], found.curves[name] = self.headline, roc_curve(good, bad, points=101)


@dataclass(frozen=True, eq=False)
class RankingTest:
    """Targets to be ranked among nodes their source has no edge to."""

    queries: Pairs  # the true edges (u, v)
    sampled: Int64Array  # a row of non-neighbors of u for each; −1 where there are no more
    known: DiGraph  # all true edges, training and test, which rankings leave out

    def judge(self, scorer: Any, name: str, found: Evaluation) -> None:
        """Write Hits@K, MRR (which is the average precision) and the mean AUC of a query.

        Against all nodes, and against the sample with its size in the name.
        """
        both = {
            name: self.ranks_among_all(scorer),
            f"{name}-{self.sampled.shape[1]}": self.ranks_in_sample(scorer),
        }
        for key, (ranks, candidates) in both.items():
            share = np.where(candidates > 0, (ranks - 1) / np.maximum(candidates, 1), 0.0)
            mrr = mean_reciprocal_rank(ranks)
            values = {"auc": float(1.0 - share.mean()), "ap": mrr, "mrr": mrr}
            found.metrics[key] = values | {f"hits@{k}": hits_at(ranks, k) for k in HITS_OF_A_QUERY}
            found.headlines[key] = "mrr"

    def ranks_among_all(self, scorer: Any) -> tuple[Float64Array, Int64Array]:
        """Rank each true target among all nodes its source has no edge to; return their number."""
        u, v = self.queries.sources, self.queries.targets
        ranks, candidates = np.empty(len(u)), np.empty(len(u), dtype=np.int64)
        sources, row = np.unique(u, return_inverse=True)
        step = max(1, _BLOCK_SCORES // max(self.known.n_nodes, 1))
        for low in range(0, len(sources), step):
            some = sources[low : low + step]
            for at, scores in enumerate(_numbers(scorer, scorer.score_from(some)), low):
                asked = np.flatnonzero(row == at)
                others = scores[free_nodes(self.known, int(sources[at]))]
                ranks[asked] = _rank(others, scores[v[asked], None])
                candidates[asked] = len(others)
        return ranks, candidates

    def ranks_in_sample(self, scorer: Any) -> tuple[Float64Array, Int64Array]:
        """Rank each true target among the sampled nodes; return their number."""
        u, real = self.queries.sources, self.sampled >= 0
        truth = _numbers(scorer, scorer.score(u, self.queries.targets))
        sources = np.broadcast_to(u[:, None], real.shape)
        others = np.full(real.shape, np.nan)
        others[real] = _numbers(scorer, scorer.score(sources[real], self.sampled[real]))
        return _rank(others, truth[:, None]), real.sum(axis=1)


def _rank(others: FloatArray, truth: Any) -> Any:
    """Return the rank from 1 among other scores; NaN stands for a missing score."""
    return 1 + (others > truth).sum(axis=-1) + (others == truth).sum(axis=-1) / 2


def _numbers(scorer: Any, scores: FloatArray) -> FloatArray:
    if np.isnan(scores).any():
        raise AtpError(f"{scorer.name} gave a score that is not a number.")
    return scores


@dataclass(frozen=True)
class Protocol:
    """A way to evaluate scores of test edges.

    ``make`` gets the whole network, the edges taken out of it, a random generator and the largest
    number of queries to rank (None for all). It returns a test, or None; then ``missing`` says why.
    Each protocol has a ``stream`` of random numbers, so that its draws do not depend on the other
    protocols; 0 is the stream of the test edges.
    """

    name: str
    stream: int
    missing: str
    make: Callable[..., PairTest | RankingTest | None]


def pair_test(good: Pairs, bad: Pairs, headline: str = "auc") -> PairTest | None:
    """Return the test of positives against negatives, None where there are none."""
    return PairTest(good, bad, headline) if len(good) and len(bad) else None


def _against(draw: Callable[..., Pairs], headline: str = "auc") -> Callable[..., PairTest | None]:
    """Return a function that makes a test against as many pairs as there are edges."""
    return lambda graph, edges, rng, _: pair_test(edges, draw(graph, len(edges), rng), headline)


def _reversed(graph: DiGraph, edges: Pairs, *_: Any) -> PairTest | None:
    good = edges.take(graph.find_edges(edges.targets, edges.sources) < 0)
    return pair_test(good, Pairs(good.targets, good.sources))


def ranking_test(
    graph: DiGraph, edges: Pairs, rng: np.random.Generator, max_queries: int | None = None
) -> RankingTest | None:
    """Return edges as queries, or a random sample of them."""
    if max_queries is not None and len(edges) > max_queries:
        edges = edges.take(np.sort(rng.choice(len(edges), max_queries, replace=False)))
    sampled = non_neighbors(graph, edges.sources, _SAMPLED, rng)
    return RankingTest(edges, sampled, graph) if len(edges) else None


_NO_PAIR = "every pair of nodes has an edge"
_NO_PATH = "no pair of nodes is reachable in one direction only"
_MADE = (
    Protocol("paper", 1, _NO_PATH, _against(one_way_pairs)),
    Protocol("random", 2, _NO_PAIR, _against(non_edges)),
    Protocol("reversed", 4, "the reverse of every test edge is an edge too", _reversed),
    Protocol("ranking", 3, "there is no test edge", ranking_test),
    Protocol("dirlinkbench", 5, _NO_PAIR, _against(non_edges, "hits@100")),
)
PROTOCOLS: Registry[Protocol] = Registry("protocol", {each.name: each for each in _MADE})


def choose_protocols(wanted: Iterable[str | Protocol]) -> list[Protocol]:
    """Return protocols from names and objects, each name once."""
    made = [PROTOCOLS[entry] if isinstance(entry, str) else entry for entry in wanted]
    return list({protocol.name: protocol for protocol in made}.values())
