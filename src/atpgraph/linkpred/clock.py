"""When nodes act and edges arrive."""

from __future__ import annotations

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Float64Array

NEWEST = 0.2  # of the edges: the sources that choose after the rest teach what is next
HORIZONS = (0.02, 0.1)  # shares of all edges
POPULARITY = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)


class Clock:
    """When nodes act and edges arrive, as shares of the edges that are older.

    Parameters
    ----------
    times : array with a number for each node or for each edge of the graph; NaN if unknown
        The time of an edge is that of its source if nodes have times. If edges have, a node begins
        with its first edge, and its latest out-edge is the time at which it chooses targets.
    graph : DiGraph
        The whole graph: what is hidden later keeps its times.

    Attributes
    ----------
    edge : float64 array
    start : float64 array
        When each node first appears.
    now : float64 array
        When each node chooses targets.
    """

    def __init__(self, times: Float64Array, graph: DiGraph) -> None:
        given = np.asarray(times, dtype=np.float64).reshape(-1)
        if len(given) not in (graph.n_nodes, graph.n_edges):
            raise InputError(
                f"{len(given):,} times for {graph.n_nodes:,} nodes and {graph.n_edges:,} edges; "
                "give one for each node, or one for each edge."
            )
        if not np.isfinite(given).any():
            raise InputError("No time is a finite number.")
        known = np.where(np.isfinite(given), given, np.nan)
        u, v = graph.sources, graph.targets
        if len(given) == graph.n_nodes:
            edge, start, now = known[u], known, known
        else:
            edge = known
            start, now = np.full(graph.n_nodes, np.inf), np.full(graph.n_nodes, -np.inf)
            for side in (u, v):
                np.fmin.at(start, side, edge)
            np.fmax.at(now, u, edge)
        seen = np.sort(edge[np.isfinite(edge)])
        if not len(seen):
            seen = np.sort(known[np.isfinite(known)])

        def share(x: Float64Array, unknown: float) -> Float64Array:
            place = np.searchsorted(seen, x) / len(seen)
            return np.where(np.isfinite(x), place, unknown)

        # Unknown edges are old, unknown nodes as old as any, and they choose at the end.
        self.edge, self.start, self.now = share(edge, 0.0), share(start, 0.0), share(now, 1.0)

    @classmethod
    def of(cls, edge: Float64Array, start: Float64Array, now: Float64Array) -> Clock:
        """Return a clock with these shares."""
        clock = cls.__new__(cls)
        clock.edge, clock.start, clock.now = edge, start, now
        return clock

    @property
    def is_new(self) -> BoolArray:
        """Which nodes choose after most edges were made."""
        return self.now > 1.0 - NEWEST
