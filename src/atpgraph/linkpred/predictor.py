"""LinkPredictor: likely links of a directed graph, with reasons and probabilities."""

from __future__ import annotations

import contextlib
import copy
import heapq
import os
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from atpgraph.embedding.base import Estimator
from atpgraph.errors import InputError, NotFittedError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred import predictor_file
from atpgraph.linkpred.evidence import KINDS, Attributes, Collection, Levels
from atpgraph.linkpred.evidence.attributes import attribute_vectors
from atpgraph.linkpred.evidence.collection import Settings
from atpgraph.linkpred.examples import Plan
from atpgraph.linkpred.explanation import Explanation, explain
from atpgraph.linkpred.fold import grown
from atpgraph.linkpred.learning import QUESTIONS, learn
from atpgraph.linkpred.logit import Head, log_odds
from atpgraph.util.arrays import AnyArray, Float64Array, Int64Array, IntArray
from atpgraph.util.checks import whole_number
from atpgraph.util.progress import stage
from atpgraph.util.progress_display import Shown
from atpgraph.util.random import RandomState, generator
from atpgraph.util.registry import Registry
from atpgraph.util.threads import thread_count

Labels = Hashable | Sequence[Hashable] | AnyArray
_POPULAR = 100  # nodes that are candidates for everybody
_PIECE = 2**15  # pairs whose terms are held at once
_SOURCES = 200  # candidates of recommend_sources


class LinkPredictor(Estimator):
    """Predict the links that a directed graph should have.

    Some edges are hidden from the graph, evidence for links is computed from the rest (personalised
    PageRank, short directed paths, co-citation, degrees, levels, ATP's vectors, singular vectors,
    attributes), and linear models learn from the hidden edges what the evidence is worth: is there
    a link at all, which way does it point, does it follow the order of the graph, and which target
    would this source choose. Then the evidence is computed again from the whole graph.

    Parameters
    ----------
    evidence : "all" or list of names
        Kinds of evidence, out of :data:`atpgraph.linkpred.evidence.KINDS`.
    n_components : int
        Length of ATP's vectors; the singular vectors have twice as many.
    n_candidates : int
        How many nodes near a source are scored in full when targets are recommended.
    fraction : float
        Share of the edges to hide while learning.
    max_pairs : int
        Limit on the hidden edges that are learned from.
    n_jobs : int, optional
        Threads, by default all cores. The result does not depend on it.
    random_state : int
    verbose : bool
        Show progress on standard error.

    Attributes
    ----------
    graph_ : DiGraph
    heads_ : dict from question to Head
        Weights of the terms for ``link``, ``direction``, ``order`` and ``target``.
    term_names_ : list of str
    validation_ : dict
        For all questions but ``target``: AUC, calibration error and its bins, on hidden edges with
        weights learned from others.

    Examples
    --------
    >>> from atpgraph import citation_dag
    >>> graph = citation_dag(300, 1500, random_state=0)
    >>> model = LinkPredictor(n_components=8).fit(graph)
    >>> labels, chances = model.recommend(graph.labels[-1], 3)
    >>> len(labels), bool((chances > 0).all())
    (3, True)
    """

    graph_: DiGraph
    heads_: dict[str, Head]
    evidence_: Collection
    validation_: dict[str, dict[str, Any]]

    def __init__(
        self,
        evidence: str | Sequence[str] = "all",
        *,
        n_components: int = 32,
        n_candidates: int = 500,
        fraction: float = 0.1,
        max_pairs: int = 4000,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        verbose: bool = False,
    ) -> None:
        self.evidence = evidence
        self.n_components = n_components
        self.n_candidates = n_candidates
        self.fraction = fraction
        self.max_pairs = max_pairs
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, graph: Any, attributes: Any = None) -> Self:
        """Learn from a graph: anything :func:`atpgraph.as_graph` takes.

        Parameters
        ----------
        graph : object
        attributes : optional
            What is known of the nodes: a matrix, a table, a mapping from labels, or texts, see
            :func:`atpgraph.linkpred.evidence.attributes.attribute_vectors`. They are used where
            they help to find hidden edges, and left out where they do not.
        """
        self._check()
        given = as_graph(graph)
        with Shown() if self.verbose else contextlib.nullcontext():
            self._fit(given, attributes)
        return self

    def _check(self) -> None:
        KINDS.select(self.evidence)
        thread_count(self.n_jobs)
        for name in ("n_components", "n_candidates", "max_pairs"):
            whole_number(name, getattr(self, name))
        if not 0 < self.fraction < 1:
            raise InputError(f"fraction is {self.fraction}; it must be between 0 and 1.")

    def _fit(self, graph: DiGraph, attributes: Any) -> None:
        plan_rng, seeds = generator(self.random_state).spawn(2)
        seed = int(seeds.integers(2**31))
        settings = Settings(self.n_components, self.n_jobs, seed)
        known = None
        if attributes is not None:
            known = Attributes(attribute_vectors(attributes, graph, random_state=seed))
        plan = Plan(self.fraction, self.max_pairs)
        heads, learned, judged = learn(
            graph, lambda: Collection(self.evidence, settings, known), plan, plan_rng
        )
        kinds = [kind for kind in learned.parts if kind != "attributes"]
        found = Collection(kinds, settings, known).fit(graph)
        if list(found.parts) != list(learned.parts):
            raise InputError("The whole graph has no room for ATP's evidence; leave it out.")
        self.graph_, self.heads_, self.evidence_ = graph, heads, found
        self.validation_ = judged

    @property
    def term_names_(self) -> list[str]:
        """What the weights belong to."""
        self._fitted()
        return self.evidence_.term_names

    @property
    def levels_(self) -> IntArray | None:
        """Level of every node, or None where levels are no evidence."""
        self._fitted()
        found = [part for part in self.evidence_ if isinstance(part, Levels)]
        return found[0].level_.astype(np.int64) if found else None

    def score_pairs(self, u: Labels, v: Labels, question: str = "link") -> Float64Array:
        """Log-odds of every pair.

        Parameters
        ----------
        u, v : labels
        question : {"link", "direction", "order", "target"}
            Is it a link rather than a random pair; does it point this way rather than the other;
            is it a link rather than a pair that paths join the other way round only; is v the
            target that u would choose (scores of one u can be compared).
        """
        return self.score_codes(*self._fitted().pair_codes(u, v), question)

    def score_codes(self, u: IntArray, v: IntArray, question: str = "link") -> Float64Array:
        """:meth:`score_pairs` of node indices, a bounded number at a time."""
        Registry("question", self.heads_)[question]  # an unknown name is refused
        return self.score_all(u, v)[:, list(self.heads_).index(question)]

    def score_all(self, u: IntArray, v: IntArray) -> Float64Array:
        """Log-odds of pairs of node indices for all questions, in the order of `heads_`."""
        # Sorted by source, so that pieces of bounded size share few rows of evidence.
        order = np.argsort(u, kind="stable")
        scores = np.empty((len(u), len(self.heads_)))
        for low in range(0, len(u), _PIECE):
            part = order[low : low + _PIECE]
            terms = self.evidence_.terms(u[part], v[part])
            for column, head in enumerate(self.heads_.values()):
                scores[part, column] = head.score(terms)
        return scores

    def predict_proba(self, u: Labels, v: Labels, base_rate: float = 0.5) -> Float64Array:
        """Probability of a link u → v, for every pair.

        Parameters
        ----------
        u, v : labels
        base_rate : float in (0, 1)
            Share of links among the pairs you ask about. A half suits pairs that somebody already
            thinks likely; among all pairs of nodes it is nearer to ``edges / nodes²``.

        Notes
        -----
        An edge that the graph has speaks for itself: ask about pairs that are not edges.
        """
        prior = log_odds(base_rate)
        return _probability(self.score_pairs(u, v) + prior)

    def recommend(
        self, u: Hashable, k: int = 10, *, exclude_known: bool = True, base_rate: float = 0.5
    ) -> tuple[AnyArray, Float64Array]:
        """The k targets that u would most likely choose, best first, and how likely each link is.

        Candidates are the nodes near u (by PageRank and short paths) and the most popular ones.
        The order answers "which target", the probability "is it a link rather than a random
        pair", so probabilities need not fall strictly.
        """
        code, prior = self._fitted().code(u), log_odds(base_rate)
        nodes, terms = self._best_targets(code, whole_number("k", k), exclude_known)
        chance = _probability(self.heads_["link"].score(terms) + prior)
        return self.graph_.labels[nodes], chance

    def recommend_sources(
        self, v: Hashable, k: int = 10, *, exclude_known: bool = True, base_rate: float = 0.5
    ) -> tuple[AnyArray, Float64Array]:
        """The k nodes likeliest to link to v, best first, and the probability of each link."""
        graph = self._fitted()
        code, prior = graph.code(v), log_odds(base_rate)
        whole_number("k", k)
        room = np.zeros(graph.n_nodes)
        near = self.evidence_.near(code, self._symmetric_weights(), room)
        near = near[np.argsort(-room[near], kind="stable")[: max(_SOURCES, k)]]
        active = _largest(graph.out_degree, _POPULAR)
        nodes = self._free(np.union1d(near, active), code, graph.reverse(), exclude_known)
        scores = self.score_codes(nodes, np.full(len(nodes), code))
        order = np.argsort(-scores, kind="stable")[:k]
        return graph.labels[nodes[order]], _probability(scores[order] + prior)

    def top_links(
        self, k: int = 100, *, base_rate: float = 0.5
    ) -> tuple[AnyArray, AnyArray, Float64Array]:
        """The k likeliest links of the whole graph that are not there: sources, targets, chances.

        Every node's best candidates are looked at, so this takes n times as long as
        :meth:`recommend`. A pair that would rather be a link the other way round is left out.
        """
        graph, prior = self._fitted(), log_odds(base_rate)
        whole_number("k", k)
        best: list[tuple[float, int, int]] = []
        with stage("sources", graph.n_nodes) as progress:
            for code in range(graph.n_nodes):
                nodes, terms = self._best_targets(code, min(k, 20), True)
                right_way = self.heads_["direction"].score(terms) >= 0
                nodes, scores = nodes[right_way], self.heads_["link"].score(terms[right_way])
                for node, score in zip(nodes.tolist(), scores.tolist(), strict=True):
                    item = (score, -code, -node)
                    if len(best) < k:
                        heapq.heappush(best, item)
                    elif item > best[0]:
                        heapq.heapreplace(best, item)
                progress.advance()
        best.sort(reverse=True)
        found = np.array([(-u, -v) for _, u, v in best], dtype=np.int64).reshape(-1, 2)
        chance = _probability(np.array([score for score, _, _ in best]) + prior)
        return graph.labels[found[:, 0]], graph.labels[found[:, 1]], chance

    def explain(self, u: Hashable, v: Hashable, base_rate: float = 0.5) -> Explanation:
        """Which evidence speaks for or against a link u → v, in numbers and words."""
        graph = self._fitted()
        return explain(graph, self.evidence_, self.heads_, graph.code(u), graph.code(v), base_rate)

    def fold_in(
        self,
        node: Hashable,
        out_edges: Sequence[Hashable] = (),
        in_edges: Sequence[Hashable] = (),
        attributes: Any = None,
    ) -> LinkPredictor:
        """A predictor that knows one node more, by its edges; this one stays as it is.

        What was learned is kept. The new node gets vectors by one solve each, all others keep
        theirs.

        Parameters
        ----------
        node : label
            What to call the new node.
        out_edges, in_edges : labels
            Nodes of the graph that it has edges to, and from.
        attributes : array, optional
            Its row among the main components of the attributes, zero if not given.
        """
        graph = self._fitted()
        if graph.codes_or_minus_one([node])[0] >= 0:
            raise InputError(f"The graph has a node {node!r} already; fold in a new one.")
        out, into = (graph.codes(list(side)).astype(np.int64) for side in (out_edges, in_edges))
        other = copy.copy(self)
        other.graph_, other.evidence_ = grown(self.evidence_, node, out, into, attributes)
        return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the predictor to one ``.npz`` file: no pickle, safe to load from a stranger."""
        self._fitted()
        predictor_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a predictor that :meth:`save` wrote."""
        return predictor_file.load(cls, path)

    def _best_targets(
        self, code: int, k: int, exclude_known: bool
    ) -> tuple[Int64Array, Float64Array]:
        """The best k targets of a node and the terms of the pairs, by the model for targets."""
        graph, head = self.graph_, self.heads_["target"]
        room = np.zeros(graph.n_nodes)
        near = self.evidence_.near(code, head.weights, room)
        near = near[np.argsort(-room[near], kind="stable")[: max(self.n_candidates, k)]]
        nodes = np.union1d(near, _largest(graph.in_degree, max(_POPULAR, k)))
        nodes = self._free(nodes, code, graph, exclude_known)
        terms = self.evidence_.terms(np.full(len(nodes), code), nodes)
        order = np.argsort(-head.score(terms), kind="stable")[:k]
        return nodes[order], terms[order]

    def _free(self, nodes: IntArray, code: int, graph: DiGraph, exclude_known: bool) -> Int64Array:
        taken = [code]
        if exclude_known:
            taken += graph.targets[graph.indptr[code] : graph.indptr[code + 1]].tolist()
        return np.setdiff1d(nodes, taken).astype(np.int64)

    def _symmetric_weights(self) -> Float64Array:
        """Weights that find nodes near v whichever way links point: proximity and shared links."""
        weights = np.zeros(len(self.evidence_.term_names))
        for kind, _, _, terms in self.evidence_.spans():
            if kind in ("proximity", "citation"):
                weights[terms] = 1.0
        return weights

    def _fitted(self) -> DiGraph:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This LinkPredictor is not fitted yet; call fit(graph) first.")
        return self.graph_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "graph_")

    def __repr__(self) -> str:
        fitted = f".fit({self.graph_!r})" if self.__sklearn_is_fitted__() else ""
        return super().__repr__() + fitted


def _probability(score: Float64Array) -> Float64Array:
    """The probability of a link: a score is log odds, those of the base rate added."""
    return np.asarray(1.0 / (1.0 + np.exp(-score)))


def _largest(degree: Int64Array, k: int) -> Int64Array:
    """The nodes of the largest degrees."""
    k = min(k, len(degree))
    return np.argpartition(-degree, k - 1)[:k].astype(np.int64) if k else np.empty(0, np.int64)


__all__ = ["QUESTIONS", "LinkPredictor"]
