"""Evidence of the two nodes alone: degrees, times, and where they stand in the hierarchy."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from atpgraph.cycles import break_cycles
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.clock import HORIZONS, Clock
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.util.arrays import Float64Array, Int64Array, IntArray

_DEGREES = ("out-degree of u", "in-degree of u", "out-degree of v", "in-degree of v")


class Degrees(Evidence):
    """log(1 + degree), out and in, of both ends.

    Terms are these four, their squares, the products across the pair, and whether a degree is 0.

    Examples
    --------
    >>> star = DiGraph.from_codes([0, 0], [1, 2], 3)
    >>> np.expm1(Degrees().fit(star).pairs(np.array([0]), np.array([1]))).round().tolist()
    [[2.0, 0.0, 0.0, 1.0]]
    """

    names = _DEGREES
    kinds = ("degrees",) * 4
    term_names = (
        *(f"log {name}" for name in _DEGREES),
        *(f"log² {name}" for name in _DEGREES),
        *(f"no {name}" for name in _DEGREES),
        *(f"{a}·{b}" for a in _DEGREES[:2] for b in _DEGREES[2:]),
    )

    def fit(self, graph: DiGraph) -> Self:
        """Count degrees."""
        self._out, self._in = np.log1p(graph.out_degree), np.log1p(graph.in_degree)
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return the four logarithms."""
        return np.column_stack([self._out[u], self._in[u], self._out[v], self._in[v]])

    def terms(self, found: Float64Array) -> Float64Array:
        """Return the logarithms, their squares, zeros and products."""
        products = found[:, :2, None] * found[:, None, 2:]
        return np.concatenate(
            [found, found**2, found == 0, products.reshape(len(found), 4)], axis=1
        )


class Levels(Evidence):
    """Levels of u and v once cycles are broken: edges lead up.

    Terms are both levels, the difference, its sign and its signed logarithm.

    Parameters
    ----------
    method : str
        How cycles are broken, see :func:`atpgraph.break_cycles`.
    random_state : int

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> Levels().fit(chain).pairs(np.array([0]), np.array([2])).tolist()
    [[1.0, 3.0]]
    """

    names = ("level of u", "level of v")
    kinds = ("levels",) * 2
    term_names = (*names, "level difference", "sign of it", "signed log of it")

    def __init__(self, method: str = "h-voting", random_state: int = 0) -> None:
        self.method = method
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Break cycles and find the levels."""
        dag = break_cycles(graph, self.method, random_state=self.random_state).dag
        return self.use(levels(dag))

    def use(self, level: IntArray | Float64Array) -> Self:
        """Take levels that were computed before."""
        self.level_ = np.asarray(level, dtype=np.float64)
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return both levels."""
        return np.column_stack([self.level_[u], self.level_[v]])

    def terms(self, found: Float64Array) -> Float64Array:
        """Return the levels, and the difference in three forms."""
        apart = found[:, 1] - found[:, 0]
        sign = np.sign(apart)
        return np.column_stack([found, apart, sign, sign * np.log1p(np.abs(apart))])

    def grown(self, new: NewNode) -> Levels:
        """Put the node one above its highest source, as peeling would; others stay."""
        here = 1 + self.level_[new.into].max(initial=0)
        return copy.copy(self).use(np.append(self.level_, here))


class Recency(Evidence):
    """In-degree of v shortly before u chooses, at two horizons, and how much older v is than u.

    Horizons are shares of all edges, so that they do not depend on the unit of time.

    Parameters
    ----------
    clock : Clock
    whole : DiGraph
        The graph that the clock belongs to.
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
