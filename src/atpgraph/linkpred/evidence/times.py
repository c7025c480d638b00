"""When nodes act and edges arrive, and what recent links say for a target."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array, IntArray

NEWEST = 0.2  # of the edges: the sources that choose after the rest teach what is next
HORIZONS = (0.02, 0.1)  # shares of all edges
POPULARITY = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)


class Clock:
    """When nodes act and edges arrive, as shares of the edges that are older.

    `times` has a number for each node or for each edge of the graph, NaN if unknown. The time of
    an edge is that of its source if nodes have times. If edges have, a node begins with its first
    edge, and its latest out-edge is the time at which it chooses targets. The graph is the whole
    one: what is hidden later keeps its times.

    ``edge`` says when edges arrive, ``start`` when nodes appear, ``now`` when they choose targets.
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


class Recency(Evidence):
    """In-degree of v shortly before u chooses, at two horizons, and how much older v is than u.

    Horizons are shares of all edges, so that they do not depend on the unit of time. `whole` is
    the graph that the clock belongs to.
    """

    names = (*(f"recent in-degree, {100 * h:g} %" for h in HORIZONS), "age gap", "in-degree then")
    kinds = ("recency",) * 4
    term_names = (
        *(f"log {name}" for name in names[:2]),
        "log² recent in-degree",
        "recent share",
        "older",
        "root of age gap",
        "age gap",
        "log age gap",
        "log in-degree then",
        "young and cited",
    )

    def __init__(self, clock: Clock, whole: DiGraph) -> None:
        self.clock, self.whole = clock, whole

    def fit(self, graph: DiGraph) -> Self:
        """Sort the times at which each node was linked to."""
        at = self.whole.find_edges(graph.sources, graph.targets)
        return self.use(graph.targets, self.clock.edge[at], graph.n_nodes)

    def use(self, targets: IntArray, times: Float64Array, n: int) -> Self:
        """Take targets and times of edges."""
        self.events = (targets, times)
        order = np.lexsort([times, targets])
        # One sorted array answers for all nodes: node first, then the time, which is at most 1.
        self._keys = 2.0 * targets[order] + times[order]
        self._first = np.searchsorted(self._keys, 2.0 * np.arange(n))
        return self

    def counts(self, v: IntArray, until: Float64Array, horizon: float) -> Int64Array:
        """Return how many links v got before a time, within the horizon."""
        since = np.maximum(until - horizon, -1e-9) if horizon < 1 else np.full(len(until), -1e-9)
        last = np.searchsorted(self._keys, 2.0 * v + until)
        found = last - np.searchsorted(self._keys, 2.0 * v + since)
        return np.asarray(np.maximum(found, 0), dtype=np.int64)

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return both counts, the age gap, and the in-degree when u chooses."""
        u, v = np.asarray(u), np.asarray(v)
        until = self.clock.now[u]
        counts = [self.counts(v, until, horizon) for horizon in (*HORIZONS, 1.0)]
        gap = until - self.clock.start[v]
        return np.column_stack([*counts[:2], gap, counts[2]]).astype(np.float64)

    def terms(self, found: Float64Array) -> Float64Array:
        """Return logarithms of the counts, their ratio, and the age gap in several forms."""
        short, long, ever = (np.log1p(found[:, at]) for at in (0, 1, 3))
        gap = found[:, 2]
        old = np.maximum(gap, 0.0)
        share = found[:, 1] / (found[:, 3] + 1.0)
        return np.column_stack(
            [short, long, long**2, share, gap > 0, np.sqrt(old), gap, np.log(old + 0.01), ever,
             ever * np.log(old + 0.01)]
        )  # fmt: skip

    def grown(self, new: NewNode) -> Recency:
        """Return the evidence with a node that chooses at its time, or now."""
        other, n = copy.copy(self), new.graph.n_nodes
        start, now = (np.append(side, 1.0) for side in (self.clock.start, self.clock.now))
        clock = Clock.of(self.clock.edge, start, now)
        targets = np.concatenate([self.events[0], new.out, np.full(len(new.into), n - 1)])
        fresh = np.full(len(new.out) + len(new.into), clock.now[-1])
        times = np.concatenate([self.events[1], fresh])
        other.clock = clock
        return other.use(targets, times, n)

    def arrays(self, graph: DiGraph) -> dict[str, Float64Array]:
        """Return the times as arrays, those of edges in the order of the graph."""
        keys = np.argsort(graph.targets, kind="stable"), np.argsort(self.events[0], kind="stable")
        edge = np.empty(graph.n_edges)
        edge[keys[0]] = self.events[1][keys[1]]
        names = ("edge_times", "start_times", "source_times")
        return dict(zip(names, (edge, self.clock.start, self.clock.now), strict=True))
