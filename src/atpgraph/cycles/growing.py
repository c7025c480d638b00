"""Add edges to a graph whose cycles are broken, except new edges that close a cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from atpgraph.cycles.offline_scc import closes_in_order
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import cyclic_edges
from atpgraph.util.arrays import AnyArray, Float64Array, Int32Array, Int64Array, IntArray
from atpgraph.util.random import generator

_SWEEPS = 10  # of the guess at the levels of new nodes


@dataclass(frozen=True, eq=False)
class GrownGraph:
    """A graph with new nodes and edges, its cycles still broken.

    `removed` are the old and new edges left out to break cycles; `new_edges` are the edges that the
    old graph did not have. The nodes of the old graph come first.
    """

    graph: DiGraph
    removed: Int64Array
    new_edges: Int64Array

    @property
    def dag(self) -> DiGraph:
        """The graph without the removed edges."""
        return self.graph.without_edges(self.removed)


def grow(graph: DiGraph, removed: IntArray, levels: Int32Array, more: DiGraph) -> GrownGraph:
    """Add nodes and edges to a graph whose cycles are broken; edges that were kept stay.

    Only new edges are removed, and only those that close a cycle. They are tried in the order of
    how far they go down the levels, and removed if they close a cycle with the acyclic graph and
    the new edges tried before. The level of a new node is guessed from its neighbors.

    `removed` are the edges of `graph` that are left out to break its cycles, `levels` the levels of
    its nodes. Weights of edges that both graphs have are added up, if `graph` has weights.

    Examples
    --------
    >>> old = DiGraph.from_edges([("a", "b"), ("b", "c")])
    >>> more = DiGraph.from_edges([("c", "a"), ("c", "d"), ("b", "c")])
    >>> grown = grow(old, [], np.array([1, 2, 3], dtype=np.int32), more)
    >>> list(grown.graph.edges()), list(grown.dag.edges())
    ([('a', 'b'), ('b', 'c'), ('c', 'a'), ('c', 'd')], [('a', 'b'), ('b', 'c'), ('c', 'd')])
    """
    if graph.weights is None:
        more = replace(more, weights=None)
    whole = graph.merged(more)
    old = whole.find_edges(graph.sources, graph.targets)
    new = np.ones(whole.n_edges, dtype=np.bool_)
    new[old] = False
    gone = np.zeros(whole.n_edges, dtype=np.bool_)
    gone[old[np.asarray(removed, dtype=np.int64)]] = True
    gone |= new & (whole.sources == whole.targets)
    gone |= _closing(whole, new, gone, _guessed_levels(whole, levels))
    return GrownGraph(whole, np.flatnonzero(gone), np.flatnonzero(new))


def _closing(graph: DiGraph, new: AnyArray, gone: AnyArray, levels: Float64Array) -> AnyArray:
    """Return a mask of the new edges to remove, not counting self-loops."""
    here = np.flatnonzero(~gone)
    here = here[cyclic_edges(graph.keep_edges(~gone))]
    end = levels[graph.targets[here]]
    drop = levels[graph.sources[here]] - end
    # Old edges come first: they close no cycle among themselves. Of equal drops those that end
    # higher come first; what is equal in both is drawn.
    order = np.lexsort([generator(0).permutation(len(here)), -end, drop])
    order = order[new[here[order]]]
    closes = np.zeros(graph.n_edges, dtype=np.bool_)
    closes[here] = closes_in_order(graph.n_nodes, graph.sources[here], graph.targets[here], order)
    return closes


def _guessed_levels(graph: DiGraph, levels: Int32Array) -> Float64Array:
    """Return the levels; a new node gets the mean level of its neighbors."""
    n, known = graph.n_nodes, len(levels)
    level = np.full(n, float(np.median(levels)) if known else 1.0)
    level[:known] = levels
    fresh = (graph.sources >= known) | (graph.targets >= known)
    u, v = graph.sources[fresh], graph.targets[fresh]
    count = np.maximum(np.bincount(u, minlength=n) + np.bincount(v, minlength=n), 1)
    for _ in range(_SWEEPS if len(u) else 0):
        total = np.bincount(u, level[v] - 1, n) + np.bincount(v, level[u] + 1, n)
        level[known:] = (total / count)[known:]
    return level
