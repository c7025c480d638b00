"""LinkPredictor: likely links of a directed graph, with reasons and expected hit rates."""

from __future__ import annotations

import contextlib
import copy
import os
import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import expit

from atpgraph.embedding.settings import Estimator
from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred import predictor_file
from atpgraph.linkpred.evidence import Collection, select_kinds
from atpgraph.linkpred.evidence.attributes import Clock, attribute_vectors
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import targets_of
from atpgraph.linkpred.evidence.parts import Settings
from atpgraph.linkpred.explanation import Explanation, explain, explain_popularity
from atpgraph.linkpred.learning import Learned, learn
from atpgraph.linkpred.ranking import Ranker, largest, log_odds, source_features
from atpgraph.util.arrays import AnyArray, Float64Array, Int64Array, IntArray
from atpgraph.util.checks import Registry, whole_number
from atpgraph.util.frames import frame, html_table, ranking_frame
from atpgraph.util.progress import progress_display, stage
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import thread_count

Labels = Hashable | Sequence[Hashable] | AnyArray
_PIECE = 2**15  # pairs whose terms are held at once
_SOURCES = 100  # candidates of recommend_sources
# Sources that top_links searches, and ranks, before it looks whether that is enough.
_STEP, _BATCH = 2**10, 2**7
_MOST_SEEN = 2e7  # targets that the walks of top_links may find; large graphs have more
# The question whose score orders a list of targets, or of sources.
ORDERS: Registry[str] = Registry("order", {"targets": "target", "sources": "link"})
_SHORTLIST = 4  # sources that top_links ranks in full, for each link it is asked for


class LinkPredictor(Estimator):
    """Predict the links that a directed graph should have.

    ``fit`` hides some edges, computes evidence for links from the rest (personalized PageRank,
    short directed paths, co-citation, degrees, levels, singular vectors, times, attributes), and
    learns from the hidden edges how to weigh it, with one linear model for each question: is there
    a link at all, which way does it point, does it follow the order of the graph, and which target
    would this source choose. Then it computes the evidence again from the whole graph.

    Parameters
    ----------
    evidence : "default", "all" or list of names
        Kinds of evidence, out of :data:`atpgraph.linkpred.evidence.KINDS`. The default leaves out
        ``atp``, which takes long on large graphs and rarely adds anything.
    n_components : int
        Length of ATP's vectors; the singular vectors have twice as many.
    n_candidates : int
        How many nodes near a source are scored in full when targets are recommended.
    fraction : float
        Share of the edges to hide while learning. The hit rates of suggestions assume that the
        graph lacks this share of its edges.
    max_pairs : int
        Limit on the number of sources to learn from.
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
    density_ : float
        Share of missing links among all pairs without an edge, as assumed by hit rates.
    validation_ : dict
        Measured on hidden edges of sources that were not used for learning. ``link``: AUC,
        calibration error and its bins, at several base rates, with near misses among the other
        pairs; ``connected``: the same for hidden edges whose ends stay connected without them;
        ``direction`` and ``order``; ``hits``: stated and observed hit rates by rank.

    Examples
    --------
    >>> from atpgraph import citation_dag
    >>> graph = citation_dag(300, 1500, random_state=0)
    >>> model = LinkPredictor(n_components=8).fit(graph)
    >>> labels, rates = model.recommend(graph.labels[-1], 3)
    >>> len(labels), bool((np.diff(rates) <= 0).all())
    (3, True)
    """

    def __init__(
        self,
        evidence: str | Sequence[str] = "default",
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

    def fit(self, graph: Any, attributes: Any = None, *, times: Any = None) -> Self:
        """Learn from a graph: anything :func:`atpgraph.as_graph` takes.

        Parameters
        ----------
        attributes : optional
            Attributes of the nodes: a matrix, a table, a mapping from labels, or texts, see
            :func:`atpgraph.linkpred.evidence.attributes.attribute_vectors`. They are used where
            they help to find hidden edges, and left out where they do not.
        times : optional
            When nodes appeared or edges were made: a mapping from labels, or from pairs of labels,
            to numbers; a pandas series with such an index; or an array with a number for each node,
            in the order of ``graph_.labels``, or for each edge, in the order of ``graph_.edges()``
            (if there are as many edges as nodes, it is for the nodes). The predictor then learns
            from the newest sources to predict the next links.
        """
        select_kinds(self.evidence)
        thread_count(self.n_jobs)
        for name in ("n_components", "n_candidates", "max_pairs"):
            whole_number(name, getattr(self, name))
        if not 0 < self.fraction < 1:
            raise InputError(f"fraction is {self.fraction}; it must be between 0 and 1.")
        given = as_graph(graph)
        plan_rng, seeds = generator(self.random_state).spawn(2)
        seed = int(seeds.integers(2**31))
        known = clock = None
        with progress_display() if self.verbose else contextlib.nullcontext():
            if attributes is not None:
                known = attribute_vectors(attributes, given, random_state=seed)
            if times is not None:
                clock = Clock.of(times, given)
            settings = Settings(self.n_components, self.n_jobs, seed, known, clock)
            learned, evidence = learn(
                given, lambda: Collection(self.evidence, settings), plan_rng,
                fraction=self.fraction, max_pairs=self.max_pairs, n_candidates=self.n_candidates,
            )  # fmt: skip
            self._use(given, evidence.fit(given), learned)
        return self

    def _use(self, graph: DiGraph, evidence: Collection, learned: Learned) -> None:
        """Set the graph, its evidence, and what was learned."""
        self.graph_, self.evidence_, self.learned_ = graph, evidence, learned
        self.heads_, self.validation_ = learned.heads, learned.validation
        self.density_, self.term_names_ = learned.hits.density, evidence.term_names
        levels = evidence.part("levels")
        self.levels_ = None if levels is None else levels.level_.astype(np.int64)
        self._ranker = Ranker(
            graph, evidence, learned.heads["target"], self.n_candidates, learned.horizon
        )

    def score_pairs(self, u: Labels, v: Labels, question: str = "link") -> Float64Array:
        """Return the log-odds of every pair.

        Parameters
        ----------
        question : {"link", "direction", "order", "target"}
            Is it a link rather than a random pair; does it point this way rather than the other; is
            it a link rather than a pair joined only by paths in the other direction; is v the
            target that u would choose (scores of one u can be compared).
        """
        return self.score_codes(*self._fitted().pair_codes(u, v), question)

    def score_codes(self, u: IntArray, v: IntArray, question: str = "link") -> Float64Array:
        """Return the scores of :meth:`score_pairs` for node indices, in blocks of bounded size."""
        self._fitted()
        head, scores = Registry("question", self.heads_)[question], np.empty(len(u))
        # Sorted by source, so that pieces of bounded size share few rows of evidence.
        order = np.argsort(u, kind="stable")
        for low in range(0, len(u), _PIECE):
            part = order[low : low + _PIECE]
            scores[part] = head.score(self.evidence_.terms(u[part], v[part]))
        return scores

    def score_all(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return log-odds for all questions, a column each (deprecated)."""
        warnings.warn(
            "score_all(u, v) will be removed in 0.4; use score_codes(u, v, question).",
            DeprecationWarning,
            stacklevel=2,
        )
        return np.column_stack([self.score_codes(u, v, question) for question in self.heads_])

    def score_from(self, u: IntArray, question: str = "link") -> Float64Array:
        """Return log-odds of node indices against all nodes, a row for each.

        For the question ``target``, a source without edges gets the popularity of all nodes.
        """
        head = Registry("question", self.heads_)[question]
        scores = self.evidence_.score_from(u, head.weights) + head.intercept
        for row, source in enumerate(np.asarray(u).tolist()):
            if question == "target" and self._ranker.is_cold(source):
                scores[row] = self._ranker.popularity(source)
        return scores

    def predict_proba(self, u: Labels, v: Labels, base_rate: float = 0.5) -> Float64Array:
        """Return the probability of a link u → v, for every pair.

        Ask about pairs that are not edges yet; the edges of the graph are its training data.

        Parameters
        ----------
        base_rate : float in (0, 1)
            Share of links among the pairs you ask about, the others being drawn from all pairs
            without an edge. The default suits pairs that are already considered likely; the share
            among all pairs is ``density_``.
        """
        return self._probability(self.score_pairs(u, v), log_odds(base_rate))

    def _probability(self, scores: Float64Array, prior: float) -> Float64Array:
        return np.asarray(expit(self.learned_.ratio(scores) + prior))

    def recommend(
        self,
        u: Labels,
        k: int = 10,
        *,
        exclude_known: bool = True,
        base_rate: float | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Return the k targets that u would most likely choose, and the hit rate of each.

        Candidates are the nodes near u (by PageRank and short paths) and the most popular ones. A
        source without edges gets the most popular nodes (recently, if the model knows times); see
        :meth:`is_cold`.

        Parameters
        ----------
        u : label, or list or array of labels
            Several sources are ranked at once, on all threads.
        exclude_known : bool
            Leave out targets that u already links to.
        base_rate : float, optional
            Share of missing links among the pairs without an edge; ``density_`` by default.
        as_frame : bool
            Return a pandas data frame with the columns source, target and rate.

        Returns
        -------
        labels, rates : arrays
            Best first. A rate is how often a suggestion with such a score, at this rank, is right
            if the graph lacks the share `fraction` of its edges, as learned from hidden ones; it
            never rises along the list. For a list of sources, a list of pairs of such arrays.
        """
        graph = self._fitted()
        whole_number("k", k)
        codes = graph.codes(u).astype(np.int64)

        def visit(at: int, room: Room) -> tuple[AnyArray, Float64Array]:
            ranked = self._ranker.rank(int(codes[at]), room, k, not exclude_known)
            return graph.labels[ranked.nodes], self.learned_.hits.rates(ranked, base_rate)

        found = self.evidence_.local.scan(codes, visit)
        return self._lists(u, found, ("source", "target", "rate") if as_frame else None)

    def _lists(self, asked: Labels, found: list[Any], names: tuple[str, ...] | None) -> Any:
        """Return the lists of several nodes, the list of a single node, or a data frame."""
        if names:
            labels, numbers = ([each[side] for each in found] for side in (0, 1))
            nodes = self.graph_.labels[self.graph_.codes(asked)]
            return ranking_frame(nodes, labels, numbers, names)
        return found[0] if self.graph_.several(asked) is None else found

    def is_cold(self, u: Hashable) -> bool:
        """Return whether u has no edges, so that its suggestions are the most popular nodes."""
        code = self._fitted().code(u)
        return self._ranker.is_cold(code)

    def recommend_sources(
        self,
        v: Labels,
        k: int = 10,
        *,
        exclude_known: bool = True,
        base_rate: float | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Return the k nodes likeliest to link to v, best first, and the probability of each link.

        Scores for the question ``link`` decide the order. Candidates are nodes near v and those
        with the most targets. Probabilities assume that a share ``base_rate`` (by default
        ``density_``) of all pairs without an edge are missing links. For a list of targets, the
        result is a list of pairs of arrays; with `as_frame`, a data frame with target, source and
        probability.
        """
        graph = self._fitted()
        prior = log_odds(self.density_ if base_rate is None else base_rate)
        whole_number("k", k)
        codes = graph.codes(v).astype(np.int64)
        limit = max(_SOURCES, k)
        local, back = self.evidence_.local, graph.reverse()
        active = largest(graph.out_degree, limit)

        def visit(_: int, room: Room) -> Int64Array:
            scores = local.scores(room, np.ones(3 * len(local.columns)))
            return room.near[largest(scores, limit)].astype(np.int64)

        found = []
        for code, near in zip(codes.tolist(), local.scan(codes, visit), strict=True):
            known = targets_of(back, code)[: None if exclude_known else 0]
            nodes = np.setdiff1d(np.union1d(near, active), np.append(known, code))
            scores = self.score_codes(nodes, np.full(len(nodes), code))
            order = np.argsort(-scores, kind="stable")[:k]
            found.append((graph.labels[nodes[order]], self._probability(scores[order], prior)))
        return self._lists(v, found, ("target", "source", "probability") if as_frame else None)

    def top_links(
        self, k: int = 100, *, base_rate: float | None = None, as_frame: bool = False
    ) -> Any:
        """Return the k likeliest missing links of the whole graph.

        Returns sources, targets and hit rates, best first. Short walks find the sources that have
        likely links, and only those are ranked in full, with at most 20 targets each. Pairs that
        are likelier to be a link in the opposite direction are excluded. With `as_frame`, a pandas
        data frame with the columns source, target and rate.
        """
        graph = self._fitted()
        whole_number("k", k)
        sources, bound = self._promising(_SHORTLIST * k + 100)
        direction, hits = self.heads_["direction"], self.learned_.hits
        found: list[tuple[AnyArray, ...]] = []
        with stage("ranking sources", len(sources)) as progress:
            for low in range(0, len(sources), _BATCH):
                some = sources[low : low + _BATCH]

                def visit(at: int, room: Room, some: Int64Array = some) -> tuple[AnyArray, ...]:
                    u = int(some[at])
                    ranked = self._ranker.rank(u, room, min(k, 20))
                    way = direction.score(self.evidence_.terms_of(u, ranked.nodes, room))
                    rates = hits.rates(ranked, base_rate)
                    columns = hits.order(ranked), np.full(len(way), u), ranked.nodes, rates
                    return tuple(side[way >= 0] for side in columns)

                found += self.evidence_.local.scan(some, visit, progress)
                order, u, v, rates = (np.concatenate(column) for column in zip(*found, strict=True))
                best = np.lexsort([v, u, -order])[:k]
                # No link of the sources that are left can be above the last of the best.
                if len(best) == k and order[best[-1]] >= bound[low + _BATCH :].max(initial=-np.inf):
                    break
        columns = graph.labels[u[best]], graph.labels[v[best]], rates[best]
        if as_frame:
            return frame(dict(zip(("source", "target", "rate"), columns, strict=True)))
        return columns

    def _promising(self, count: int) -> tuple[Int64Array, Float64Array]:
        """Return sources that have the likeliest links by short walks alone, best first.

        The second array has, for each source, an upper bound on the scores of its links.
        """
        graph, weights = self.graph_, self.learned_.hits.weights
        active = np.flatnonzero(graph.out_degree + graph.in_degree > 0).astype(np.int64)
        own = source_features(graph, active)
        bound = own @ weights[-own.shape[1] :]  # share and rank can only lower it
        order = np.argsort(-bound, kind="stable")
        active, bound = active[order], bound[order]
        cheap = self.evidence_.local.cheaper()
        terms = self.evidence_.local_weights(self.heads_["target"].weights, cheap)

        found, seen = np.full(len(active), -np.inf), 0.0
        with stage("searching sources", len(active)) as progress:
            for low in range(0, len(active), _STEP):
                some, rest = active[low : low + _STEP], bound[low + _STEP :]

                def visit(at: int, room: Room, some: Int64Array = some) -> tuple[float, int]:
                    u = int(some[at])
                    new = ~np.isin(room.near, np.append(targets_of(graph, u), u))
                    scores = cheap.scores(room, terms)[new]
                    if not len(scores):
                        return -np.inf, len(room.near)
                    # The share of the best, which counts twice: walks do not find all targets.
                    share = -np.log1p(np.exp(scores - scores.max()).sum())
                    return float(share), len(room.near)

                shares, sizes = np.array(cheap.scan(some, visit, progress)).T
                found[low : low + _STEP] = bound[low : low + _STEP] + weights[0] * shares
                seen += float(sizes.sum())
                enough = len(rest) and np.sum(found >= rest[0]) >= count
                if enough or seen > _MOST_SEEN:
                    break
        best = np.argsort(-found, kind="stable")[:count]
        return active[best], bound[best]

    def explain(
        self, u: Hashable, v: Hashable, base_rate: float = 0.5, *, order: str = "targets"
    ) -> Explanation:
        """Return which evidence decides the rank of a link in a list of suggestions.

        The base and the weights of the reasons add up to the score that orders the list.

        Parameters
        ----------
        base_rate : float in (0, 1)
            Base rate of the probability that is returned with the score.
        order : {"targets", "sources"}
            The list: targets for u, see :meth:`recommend`, or sources for v, see
            :meth:`recommend_sources`.
        """
        graph = self._fitted()
        question = ORDERS[order]
        codes = graph.code(u), graph.code(v)
        known = bool(graph.find_edges([codes[0]], [codes[1]])[0] >= 0)
        probability = float(self.predict_proba(u, v, base_rate)[0])
        if order == "targets" and self._ranker.is_cold(codes[0]):
            score, base, reasons = explain_popularity(self._ranker, *codes)
        else:
            score, base, reasons = explain(self.evidence_, self.heads_[question], *codes)
        u, v = graph.labels[list(codes)].tolist()  # plain values, whatever was given
        return Explanation(u, v, score, base, probability, known, reasons)

    def add_edges(
        self,
        edges: Iterable[tuple[Hashable, Hashable]],
        nodes: Iterable[Hashable] = (),
        *,
        attributes: Any = None,
        inplace: bool = False,
    ) -> Self:
        """Return a predictor with more edges, given as pairs of labels; nodes may be new.

        With `inplace`, this object is changed and returned; otherwise it stays as it is. The
        learned weights and the singular vectors are kept; each vector of a new node is one
        projection. If the model uses times, the new nodes and edges count as the newest.

        Parameters
        ----------
        nodes : labels
            Nodes to add even if they have no edges.
        attributes : array, optional
            Rows of principal components of the attributes, one for each new node; by default,
            zeros.
        """
        graph = self._fitted()
        bare = list(nodes)
        bare = [x for x, at in zip(bare, graph.codes_or_minus_one(bare), strict=True) if at < 0]
        larger = graph.with_edges([*edges, *zip(bare, bare, strict=True)])
        loops = larger.codes(bare) if bare else np.empty(0, np.int64)
        larger = larger.without_edges(larger.find_edges(loops, loops))
        evidence = self.evidence_.grown(larger, attributes)
        model = self if inplace else copy.copy(self)
        model._use(larger, evidence, self.learned_)
        return model

    def fold_in(
        self,
        node: Hashable,
        out_edges: Sequence[Hashable] = (),
        in_edges: Sequence[Hashable] = (),
        attributes: Any = None,
    ) -> Self:
        """Call :meth:`add_edges` for one node; this old name will be removed in 0.4."""
        warnings.warn(
            "LinkPredictor.fold_in will be removed in 0.4; use LinkPredictor.add_edges.",
            DeprecationWarning,
            stacklevel=2,
        )
        edges = [(node, v) for v in out_edges] + [(u, node) for u in in_edges]
        return self.add_edges(edges, [node], attributes=attributes)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        if not self.__sklearn_is_fitted__():
            return html_table("LinkPredictor, not fitted", self.get_params())
        about: dict[str, object] = {"nodes": self.graph_.n_nodes, "edges": self.graph_.n_edges}
        kinds, auc = ", ".join(self.evidence_.kinds), self.validation_["link"]["auc"]
        about |= {
            "evidence": kinds,
            "AUC on hidden edges": "not measured" if auc is None else f"{auc:.3f}",
        }
        return html_table("LinkPredictor, fitted", about)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the predictor to one ``.npz`` file: no pickle, safe to load from an untrusted
        source.
        """
        self._fitted()
        predictor_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a predictor that :meth:`save` wrote."""
        return predictor_file.load(cls, path)
