"""Splits a method cannot cheat on: it is handed the training graph, the tests stay apart.

One draw of test edges serves all protocols, so a method is fitted once per split:

``paper``
    Negatives are pairs (u, v) where v reaches u and u does not reach v in the whole network;
    uniform over all such pairs (:mod:`atpgraph.linkpred.reachability`).
``random``
    Negatives are uniform over the ordered pairs u ≠ v without an edge.
``reversed``
    Positives are the test edges (u, v) whose reverse is no edge; their reverses are the negatives.
``ranking``
    The target of each test edge (u, v) is ranked among the nodes that u has no edge to, all of
    them and a uniform sample of 100. Other true edges of u, training and test, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from atpgraph._random import RandomState, generator
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.reachability import one_way_pairs

Codes = npt.NDArray[np.int64]

PROTOCOLS = ("paper", "random", "reversed", "ranking")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Ordered pairs of node numbers."""

    sources: Codes
    targets: Codes

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, which: npt.NDArray[np.generic]) -> Pairs:
        """The pairs at these positions, or where this mask is true."""
        return Pairs(self.sources[which], self.targets[which])


@dataclass(frozen=True, eq=False)
class PairTest:
    """Positives that should score above negatives."""

    positives: Pairs
    negatives: Pairs


@dataclass(frozen=True, eq=False)
class RankingTest:
    """Targets to be ranked among nodes their source has no edge to.

    Attributes
    ----------
    queries : Pairs
        The true edges (u, v).
    sampled : int64 array of shape (queries, sample size)
        Sampled non-neighbours of u; −1 fills up rows of sources that have fewer.
    known : DiGraph
        All true edges, training and test: what the ranking against all nodes leaves out.
    """

    queries: Pairs
    sampled: Codes
    known: DiGraph


@dataclass(frozen=True, eq=False)
class Split:
    """A training graph, and tests on the edges taken out of it.

    Attributes
    ----------
    train : DiGraph
        All nodes; the edges without the test edges. The only thing a method gets.
    positives : Pairs
        The test edges.
    tests : mapping from protocol to PairTest or RankingTest
    unavailable : mapping from protocol to the reason why the graph has no such test
    requested : int
        How many test edges were asked for; fewer are taken where the graph has fewer edges
        outside a spanning forest.
    """

    train: DiGraph
    positives: Pairs
    tests: Mapping[str, PairTest | RankingTest]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    requested: int = 0

    def validation(
        self, protocols: Iterable[str] = PROTOCOLS, random_state: RandomState = 0
    ) -> Split:
        """A split of the training graph alone, to choose parameters on.

        Edges, reachability and non-edges are judged by the training graph, so nothing of the
        test is seen.
        """
        fraction = len(self.positives) / max(self.train.n_edges + len(self.positives), 1)
        return make_split(
            self.train, fraction=fraction, protocols=protocols, random_state=random_state
        )


def make_split(
    graph: DiGraph,
    *,
    fraction: float = 0.1,
    protocols: Iterable[str] = PROTOCOLS,
    random_state: RandomState = 0,
    sample_size: int = 100,
    max_queries: int | None = None,
) -> Split:
    """Take test edges out of a graph and prepare the tests.

    Edges are tried in random order and taken if the rest stays as connected as it was, the
    direction of edges disregarded: the number of weakly connected components does not grow.
    Self-loops are never taken.

    Parameters
    ----------
    graph : DiGraph
    fraction : float
        Share of the edges (self-loops not counted) to take.
    protocols : names out of :data:`PROTOCOLS`
        The draws of one protocol do not depend on which others are asked for.
    random_state : int, Generator or None
    sample_size : int
        Nodes each target is ranked against in the sampled ranking.
    max_queries : int, optional
        Rank only a random sample of this many test edges.

    Returns
    -------
    Split

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> graph = DiGraph.from_codes(rng.integers(50, size=300), rng.integers(50, size=300), 50)
    >>> split = make_split(graph)
    >>> len(split.positives) == round(0.1 * (graph.n_edges - graph.n_self_loops))
    True
    >>> bool((split.train.find_edges(split.positives.sources, split.positives.targets) < 0).all())
    True
    """
    wanted = list(dict.fromkeys(protocols))
    for name in wanted:
        if name not in PROTOCOLS:
            raise InputError(f"No protocol is called {name!r}; there are {', '.join(PROTOCOLS)}.")
    if not 0 < fraction < 1:
        raise InputError(f"The test fraction is {fraction}; it must be between 0 and 1.")
    rng_edges, rng_paper, rng_random, rng_ranking = generator(random_state).spawn(4)
    requested = round(fraction * (graph.n_edges - graph.n_self_loops))
    taken = removable_edges(graph, requested, rng_edges)
    if not len(taken):
        raise InputError(
            "No edge can be taken out for testing: the graph is a forest or too small, "
            "so every removal would disconnect it."
        )
    keep = np.ones(graph.n_edges, dtype=bool)
    keep[taken] = False
    positives = Pairs(graph.sources[taken].astype(np.int64), graph.targets[taken].astype(np.int64))
    tests: dict[str, PairTest | RankingTest] = {}
    unavailable: dict[str, str] = {}
    for name in wanted:
        if name == "ranking":
            tests[name] = _ranking(graph, positives, sample_size, max_queries, rng_ranking)
            continue
        good = positives
        if name == "paper":
            bad = Pairs(*one_way_pairs(graph, len(positives), rng_paper))
            reason = "no pair of nodes is reachable in one direction only"
        elif name == "random":
            bad = non_edges(graph, len(positives), rng_random)
            reason = "every pair of nodes has an edge"
        else:
            good = positives.take(graph.find_edges(positives.targets, positives.sources) < 0)
            bad = Pairs(good.targets, good.sources)
            reason = "the reverse of every test edge is an edge too"
        if len(bad):
            tests[name] = PairTest(good, bad)
        else:
            unavailable[name] = reason
    return Split(graph.keep_edges(keep), positives, tests, unavailable, requested)


def removable_edges(graph: DiGraph, count: int, rng: np.random.Generator) -> Codes:
    """The first `count` edges, in random order, that can go one after another.

    Trying the edges one by one and removing each that is not a bridge of what is left is the
    reverse-delete algorithm: the edges that stay in the end are the spanning forest Kruskal's
    algorithm builds when it is given the edges in the opposite order. So one minimum spanning
    forest, with the edges tried last the cheapest, tells which edges would have been removed, and
    the first `count` of those in the order of trying are exactly what the sequential procedure
    takes. (A forest drawn independently of the order would give another distribution.)
    """
    m = graph.n_edges
    place = rng.permutation(m)  # edge e is tried as number place[e]
    u, v = graph.sources.astype(np.int64), graph.targets.astype(np.int64)
    cost = (m - place).astype(np.float64)
    loop = u == v
    # Of two antiparallel edges only the cheaper can be in the forest; keep that one alone.
    pair = np.minimum(u, v) * graph.n_nodes + np.maximum(u, v)
    by_cost = np.argsort(cost, kind="stable")
    by_cost = by_cost[~loop[by_cost]]
    _, first = np.unique(pair[by_cost], return_index=True)
    cheapest = by_cost[first]
    shape = (graph.n_nodes, graph.n_nodes)
    ends = (u[cheapest].astype(np.int32), v[cheapest].astype(np.int32))  # SciPy expects int32
    links = sp.coo_array((cost[cheapest], ends), shape=shape).tocsr()
    forest = minimum_spanning_tree(links).data.astype(np.int64)
    tried = np.argsort(place)  # tried[i]: the edge tried as number i
    removable = ~loop
    removable[tried[m - forest]] = False
    taken: Codes = tried[removable[tried]][:count].astype(np.int64)
    return taken


def non_edges(graph: DiGraph, count: int, rng: np.random.Generator) -> Pairs:
    """Up to `count` distinct ordered pairs u ≠ v without an edge, uniformly."""
    n = graph.n_nodes
    available = n * (n - 1) - (graph.n_edges - graph.n_self_loops)
    if available <= 4 * count:
        taken = np.zeros((n, n), dtype=bool)  # small: n² is at most m + n + 4 count
        taken[graph.sources, graph.targets] = True
        np.fill_diagonal(taken, True)
        u, v = np.nonzero(~taken)
        some = rng.permutation(len(u))[:count]
        return Pairs(u[some].astype(np.int64), v[some].astype(np.int64))
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        u = rng.integers(n, size=2 * count)
        v = rng.integers(n - 1, size=2 * count)
        v += v >= u
        fresh = (u * n + v)[graph.find_edges(u, v) < 0]
        both = np.concatenate([found, fresh])
        _, first = np.unique(both, return_index=True)
        found = both[np.sort(first)][:count]
    u, v = np.divmod(found, n)
    return Pairs(u, v)


def _ranking(
    graph: DiGraph,
    positives: Pairs,
    sample_size: int,
    max_queries: int | None,
    rng: np.random.Generator,
) -> RankingTest:
    queries = positives
    if max_queries is not None and len(queries) > max_queries:
        queries = queries.take(np.sort(rng.choice(len(queries), max_queries, replace=False)))
    n = graph.n_nodes
    u = queries.sources
    own_loop = graph.find_edges(np.arange(n), np.arange(n)) >= 0
    others = n - graph.out_degree - ~own_loop  # nodes that u has no edge to, u itself left out
    few = others[u] <= 2 * sample_size
    sampled = np.full((len(queries), sample_size), -1, dtype=np.int64)
    for i in np.flatnonzero(few):
        free = np.ones(n, dtype=bool)
        free[graph.targets[graph.indptr[u[i]] : graph.indptr[u[i] + 1]]] = False
        free[u[i]] = False
        chosen = rng.permutation(np.flatnonzero(free))[:sample_size]
        sampled[i, : len(chosen)] = chosen
    open_rows = np.flatnonzero(~few)
    if len(open_rows) and sample_size:
        sampled[open_rows] = _distinct_non_neighbours(graph, u[open_rows], sample_size, rng)
    return RankingTest(queries, sampled, graph)


def _distinct_non_neighbours(
    graph: DiGraph, sources: Codes, size: int, rng: np.random.Generator
) -> Codes:
    """Rows of distinct nodes that the source has no edge to: bad draws are drawn again."""
    drawn = rng.integers(graph.n_nodes, size=(len(sources), size))
    while True:
        order = np.argsort(drawn, axis=1, kind="stable")
        ordered = np.take_along_axis(drawn, order, axis=1)
        again = np.zeros_like(drawn, dtype=bool)
        np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        again |= drawn == sources[:, None]
        flat = np.repeat(sources, size)
        again |= (graph.find_edges(flat, drawn.reshape(-1)) >= 0).reshape(drawn.shape)
        if not again.any():
            return drawn
        drawn[again] = rng.integers(graph.n_nodes, size=int(again.sum()))
