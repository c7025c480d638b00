"""When nodes act and edges arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array

NEWEST = 0.2  # of the edges: the sources that choose after the rest teach what is next


@dataclass(frozen=True, eq=False)
class Clock:
    """Times as shares of the edges that are older.

    ``edge`` says when the edges of ``graph`` arrive, ``start`` when nodes appear, ``now`` when they
    choose targets. The graph is the whole one: what is hidden later keeps its times.
    """

    graph: DiGraph
    edge: Float64Array
    start: Float64Array
    now: Float64Array

    @classmethod
    def of(cls, times: Any, graph: DiGraph) -> Clock:
        """Read a number for each node or for each edge of the graph, NaN if unknown.

        The time of an edge is that of its source if nodes have times. If edges have, a node begins
        with its first edge, and its latest out-edge is the time at which it chooses targets.
        """
        given = np.asarray(times, dtype=np.float64).reshape(-1)
        if len(given) not in (graph.n_nodes, graph.n_edges):
            raise InputError(
                f"{len(given):,} times for {graph.n_nodes:,} nodes and {graph.n_edges:,} edges; "
                "give one for each node, or one for each edge."
            )
        if not np.isfinite(given).any():
            raise InputError("No time is a finite number.")
        known = np.where(np.isfinite(given), given, np.nan)
        if len(given) == graph.n_nodes:
            edge, start, now = known[graph.sources], known, known
        else:
            edge = known
            start, now = np.full(graph.n_nodes, np.inf), np.full(graph.n_nodes, -np.inf)
            for side in (graph.sources, graph.targets):
                np.fmin.at(start, side, edge)
            np.fmax.at(now, graph.sources, edge)
        seen = np.sort(edge[np.isfinite(edge)])
        if not len(seen):
            seen = np.sort(known[np.isfinite(known)])

        def share(x: Float64Array, unknown: float) -> Float64Array:
            return np.where(np.isfinite(x), np.searchsorted(seen, x) / len(seen), unknown)

        # Unknown edges are old, unknown nodes as old as any, and they choose at the end.
        return cls(graph, share(edge, 0.0), share(start, 0.0), share(now, 1.0))

    @property
    def is_new(self) -> BoolArray:
        """Which nodes choose after most edges were made."""
        return self.now > 1.0 - NEWEST

    def arrivals(self, graph: DiGraph) -> Float64Array:
        """Return when the edges of a graph with some of the edges arrive."""
        return self.edge[self.graph.find_edges(graph.sources, graph.targets)]

    def grown(self, graph: DiGraph) -> Clock:
        """Return the times of a graph with one node more, which is the newest, as are its edges."""
        edge = np.ones(graph.n_edges)
        edge[graph.find_edges(self.graph.sources, self.graph.targets)] = self.edge
        return Clock(graph, edge, np.append(self.start, 1.0), np.append(self.now, 1.0))


def link_counts(graph: DiGraph, clock: Clock | None) -> Callable[[int, float], Int64Array]:
    """Return a function of a source and a horizon that counts the recent links of every node.

    The horizon is a share of all edges, and ends when the source chooses. Without times all links
    count.
    """
    if clock is None:
        return lambda source, horizon: graph.in_degree
    arrivals = clock.arrivals(graph)
    order = np.argsort(arrivals, kind="stable")
    targets, arrivals = graph.targets[order], arrivals[order]

    def counts(source: int, horizon: float) -> Int64Array:
        until = clock.now[source]
        low = np.searchsorted(arrivals, until - horizon) if horizon < 1 else 0
        return np.bincount(targets[low : np.searchsorted(arrivals, until)], minlength=graph.n_nodes)

    return counts
