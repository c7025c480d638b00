"""Splits a method cannot cheat on: it is handed the training graph, the tests stay apart.

One draw of test edges serves all protocols, so a method is fitted once per split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.negatives import Pairs
from atpgraph.linkpred.protocols import (
    PROTOCOLS,
    PairTest,
    Protocol,
    RankingTest,
    choose_protocols,
)
from atpgraph.util.arrays import Int64Array
from atpgraph.util.random import RandomState, generator


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
        self, protocols: Iterable[str | Protocol] = PROTOCOLS, random_state: RandomState = 0
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
    protocols: Iterable[str | Protocol] = PROTOCOLS,
    random_state: RandomState = 0,
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
    protocols : names out of :data:`~atpgraph.linkpred.protocols.PROTOCOLS`, or protocols
        The draws of one protocol do not depend on which others are asked for.
    random_state : int, Generator or None
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
    chosen = [protocol.limited(max_queries) for protocol in choose_protocols(protocols)]
    if not 0 < fraction < 1:
        raise InputError(f"The test fraction is {fraction}; it must be between 0 and 1.")
    streams = generator(random_state).spawn(1 + max((p.stream for p in chosen), default=0))
    requested = round(fraction * (graph.n_edges - graph.n_self_loops))
    taken = removable_edges(graph, requested, streams[0])
    if not len(taken):
        raise InputError(
            "No edge can be taken out for testing: the graph is a forest or too small, "
            "so every removal would disconnect it."
        )
    positives = Pairs(graph.sources[taken].astype(np.int64), graph.targets[taken].astype(np.int64))
    tests: dict[str, PairTest | RankingTest] = {}
    unavailable: dict[str, str] = {}
    for protocol in chosen:
        test = protocol.test(graph, positives, streams[protocol.stream])
        if test is None:
            unavailable[protocol.name] = protocol.missing
        else:
            tests[protocol.name] = test
    return Split(graph.without_edges(taken), positives, tests, unavailable, requested)


def removable_edges(graph: DiGraph, count: int, rng: np.random.Generator) -> Int64Array:
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
    taken: Int64Array = tried[removable[tried]][:count].astype(np.int64)
    return taken
