"""The cheapest set of edges that breaks all cycles, with a proof: set cover over generated cycles.

Minimize Σ w(e) x(e) subject to Σ x(e) ≥ 1 over the edges of every cycle found so far. First as a
linear program: cycles that its solution violates are added until there are none. This gives a lower
bound, and cutting the edges in the order of x gives a good set. If the two differ, dynamic
programming finds the best order of a few nodes, and for more nodes, integer programs (HiGHS)
decide: first over the edges in which x and the best set differ, which usually gives a cheapest set,
then over those that the reduced costs leave undecided, which proves it. Components are solved one
by one, small ones first.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from atpgraph.cycles.closing import restore
from atpgraph.cycles.offline_scc import closes_in_order
from atpgraph.cycles.ordering import anneal, sift, spread_out
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import strongly_connected_components
from atpgraph.graph.traversal import peel
from atpgraph.util.arrays import BoolArray, Float64Array, IntArray
from atpgraph.util.jit import Watch, kernel, on_compilation
from atpgraph.util.threads import checkpoint

_TOLERANCE = 1e-6
_ORDERS = 4  # of the nodes, in each of which each node may close one cycle
_STALLED = 0.02  # gain of a linear program, as a share of the gap, after which there is no other
_BELIEF = 0.6  # how much cheaper an edge with x = 1 is in the local search
_SWEEPS, _MOVES = 200, 50  # of the local search: warm sweeps, and moves for each edge
_FEW = 23  # nodes whose order is found exactly: 64 MB, and a second at most
_TRIES = 3  # near the best set without success
_TILT = 0.05  # how much weights may grow to get another solution
_SHARE = 0.2  # of the time left, for one of them
_STEP = 1e-4  # of a cycle's length for each edge, so that short cycles are found first


def cheapest_cut(
    core: DiGraph,
    weights: Float64Array,
    kept: BoolArray,
    removed: BoolArray,
    seconds: float,
    rng: np.random.Generator,
) -> tuple[BoolArray, float]:
    """Return the cheapest set of edges found, and a lower bound on the weight of any such set.

    All edges of `core` lie on cycles; those of `kept` must stay and are acyclic. `removed` is a set
    that breaks all cycles, to improve on. After `seconds`, no further component is solved; time
    spent compiling kernels, as in the first call on a machine, does not count.
    """
    with on_compilation() as compiling:
        until = _Deadline(time.perf_counter() + seconds, compiling)
        return _cheapest_cut(core, weights, kept, removed.copy(), until, rng)


@dataclass(frozen=True)
class _Deadline:
    """The time at which to stop, postponed by the time spent compiling."""

    at: float
    compiling: Watch

    def left(self) -> float:
        """Return the remaining seconds."""
        return self.at + self.compiling.seconds - time.perf_counter()

    def sooner(self, share: float) -> _Deadline:
        """Return the deadline after a share of the remaining time."""
        return replace(self, at=self.at - (1.0 - share) * self.left())


def _cheapest_cut(
    core: DiGraph,
    weights: Float64Array,
    kept: BoolArray,
    removed: BoolArray,
    until: _Deadline,
    rng: np.random.Generator,
) -> tuple[BoolArray, float]:
    """Improve `removed` component by component, smallest first."""
    component = strongly_connected_components(core)[core.sources]
    order = np.argsort(component, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(component[order])) + 1)
    bound = 0.0
    for edges in sorted(parts, key=len) if core.n_edges else ():
        checkpoint()
        nodes, ends = np.unique(core.sources[edges], return_inverse=True)
        part = DiGraph.from_codes(ends, np.searchsorted(nodes, core.targets[edges]), len(nodes))
        mine = weights[edges]
        # The solvers take differences below 1e-7 for none.
        unit = 1.0 if np.all(mine == np.round(mine)) else float(mine.mean())
        cut = _Cut(part, mine / unit, kept[edges], removed[edges], rng)
        cut.solve(until)
        removed[edges] = cut.removed
        bound += unit * (cut.best if cut.proved else cut.bound)
    return removed, bound


@dataclass(eq=False)
class _Cut:
    """The problem of one strongly connected component, its bounds and the cycles found so far."""

    graph: DiGraph
    weights: Float64Array
    kept: BoolArray
    removed: BoolArray
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.best = float(self.weights[self.removed].sum())
        self.whole = bool(np.all(self.weights == np.round(self.weights)))
        self.bound = float(self.weights[~self.kept].min())  # some edge has to go
        self.cycles: dict[bytes, IntArray] = {}

    @property
    def proved(self) -> bool:
        return self.bound >= self.best - _TOLERANCE * max(self.best, 1.0)

    def solve(self, until: _Deadline) -> None:
        """Improve both bounds until they meet or time runs out."""
        x = np.zeros(self.graph.n_edges)
        gain, linear = np.inf, None
        while self._add_cycles(x) and gain > _STALLED * (self.best - self.bound):
            before = linear.fun if linear else 0.0
            linear = self._linear(self.weights, until)
            if linear is None:
                return
            self.bound = max(self.bound, self._rounded(linear.fun))
            if self.proved:
                return
            x, gain = linear.x, linear.fun - before
            self._round(x)
        if linear is None or self.proved:
            return
        if self.graph.n_nodes <= _FEW:
            self._order_exactly()
            return
        self._search_near(x, until)
        while not self.proved:
            # What a cheaper set costs at most; an edge whose reduced cost exceeds what is left
            # between the linear program and that is not in any such set, or in all of them.
            best, slack = self.best, self.best - self.whole - linear.fun + _TOLERANCE
            into, out = linear.upper.marginals < -slack, linear.lower.marginals > slack
            bound = self._whole(into.astype(float), np.where(self.kept | out, 0.0, 1.0), until)
            self.bound = max(self.bound, min(bound, best))
            if self.best == best or until.left() < 0.0:
                return

    def _order_exactly(self) -> None:
        """Find the cheapest order of a few nodes: dynamic programming over their sets (Lawler)."""
        graph, n = self.graph, self.graph.n_nodes
        cost = np.zeros((n, n))
        cost[graph.sources, graph.targets] = np.where(self.kept, self.best + 1.0, self.weights)
        half = n // 2
        low, high = (
            part @ (np.arange(1 << part.shape[1]) >> np.arange(part.shape[1])[:, None] & 1)
            for part in (cost[:, :half], cost[:, half:])
        )
        place = _cheapest_order(low, high, half, np.zeros(1 << n))
        self._take(place[graph.sources] > place[graph.targets], self.weights)
        self.bound = self.best

    def _search_near(self, x: Float64Array, until: _Deadline) -> None:
        """Look for cheaper sets among the edges in which x and the best set differ.

        Few edges are left to decide, so a program takes tenths of a second at most. If none is
        cheaper, x is replaced by the solution for slightly different weights.
        """
        failed = 0
        while not self.proved:
            best = self.best
            into, out = x > 1.0 - _TOLERANCE, x < _TOLERANCE
            self._whole(
                (into & self.removed).astype(float),
                (~out | self.removed).astype(float),
                until.sooner(_SHARE),
            )
            failed = 0 if self.best < best else failed + 1
            tilted = self.weights * (1.0 + _TILT * self.rng.random(len(x)))
            linear = None if failed == _TRIES else self._linear(tilted, until)
            if linear is None:
                return
            x = linear.x
            self._add_cycles(x)
            self._round(x)

    def _linear(self, weights: Float64Array, until: _Deadline) -> Any:
        """Solve the linear program of the cycles found so far; None if time runs out."""
        left = until.left()
        if left <= 0.0:
            return None
        checkpoint()
        result = linprog(
            weights,
            A_ub=-self._matrix(),
            b_ub=-np.ones(len(self.cycles)),
            bounds=np.column_stack([np.zeros(len(self.kept)), 1.0 - self.kept]),
            options={"time_limit": left},
        )
        return result if result.status == 0 else None

    def _rounded(self, bound: float) -> float:
        return math.ceil(bound - _TOLERANCE) if self.whole else bound

    def _matrix(self) -> Any:
        """Return the cycles as rows of ones."""
        rows = list(self.cycles.values())
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int32)
        edges = np.concatenate(rows).astype(np.int32)  # the solver of SciPy 1.14 takes no other
        return sp.csr_array((np.ones(ends[-1]), edges, ends), shape=(len(rows), self.graph.n_edges))

    def _whole(self, lower: Float64Array, upper: Float64Array, until: _Deadline) -> float:
        """Solve the integer program within bounds on x; return a lower bound on its value."""
        bound = 0.0
        while (left := until.left()) > 0.0:
            checkpoint()
            result = milp(
                self.weights,
                integrality=np.ones(self.graph.n_edges),
                bounds=Bounds(lower, upper),
                constraints=LinearConstraint(self._matrix(), 1.0, np.inf),
                options={"time_limit": left},
            )
            if result.status == 2:  # infeasible
                return np.inf
            if result.mip_dual_bound is not None and math.isfinite(result.mip_dual_bound):
                bound = max(bound, self._rounded(result.mip_dual_bound))
            if result.x is None:
                break
            self._round(result.x)
            if bound >= self.best - _TOLERANCE or not self._add_cycles(result.x):
                break
        return bound

    def _add_cycles(self, x: Float64Array) -> int:
        """Add cycles that x covers by less than 1; return how many are new."""
        graph, before = self.graph, len(self.cycles)
        for _ in range(_ORDERS):
            rank = self.rng.permutation(graph.n_nodes)
            ends, edges = _short_cycles(graph.indptr, graph.targets, graph.sources, x, rank)
            for cycle in np.split(edges, ends[:-1]) if len(ends) else ():
                cycle.sort()
                self.cycles[cycle.tobytes()] = cycle
        return len(self.cycles) - before

    def _round(self, x: Float64Array) -> None:
        """Cut edges in the order of x; among equals, those already cut come first.

        Then search from there, with costs that are lower for the edges that x cuts.
        """
        graph = self.graph
        keys = [self.rng.random(graph.n_edges), self.removed, np.where(self.kept, -1.0, x)]
        order = np.lexsort(keys)[np.count_nonzero(self.kept) :]
        cut = closes_in_order(graph.n_nodes, graph.sources, graph.targets, order)
        self._take(cut, x)
        cost = self.weights / (self.weights.mean() or 1.0) * (1.0 - _BELIEF * x)
        cost[self.kept] = graph.n_edges + 40.0  # e⁻⁴⁰ even in the warmest sweep
        position = spread_out(peel(graph.keep_edges(~cut))[0])
        position = sift(graph, cost, position, self.rng, 8, _SWEEPS)
        self._take(position[graph.sources] >= position[graph.targets], x)
        self._take(anneal(graph, cost, position, self.rng, _MOVES * graph.n_edges), x)

    def _take(self, cut: BoolArray, x: Float64Array) -> None:
        """Restore edges of a cut that may stay; keep the cut if it is the best so far."""
        edges = np.flatnonzero(cut)
        if np.any(cut & self.kept):
            return
        restore(self.graph, cut, edges[np.lexsort([x[edges], -self.weights[edges]])])
        weight = float(self.weights[cut].sum())
        if weight < self.best:
            self.best, self.removed = weight, cut


@kernel
def _cheapest_order(low: Any, high: Any, half: int, least: Any) -> Any:
    """Return the position of each node; fill in the least cost of an order of each set of nodes.

    `low` and `high` have the cost of the edges from a node into the sets of the first `half` nodes,
    and into those of the others; a set is a number whose bits are its nodes.
    """
    n, mask = len(low), (1 << half) - 1
    place = np.empty(n, dtype=np.int64)
    for s in range(1, 1 << n):
        best = np.inf
        for v in range(n):  # the last node of the set
            if s >> v & 1:
                t = s ^ (1 << v)
                best = min(best, least[t] + low[v, t & mask] + high[v, t >> half])
        least[s] = best
    s = (1 << n) - 1
    for k in range(n - 1, -1, -1):
        best, last = np.inf, 0
        for v in range(n):
            t = s ^ (1 << v)
            if s >> v & 1 and least[t] + low[v, t & mask] + high[v, t >> half] < best:
                best, last = least[t] + low[v, t & mask] + high[v, t >> half], v
        place[last] = k
        s ^= 1 << last
    return place


@kernel
def _short_cycles(indptr: Any, targets: Any, sources: Any, x: Any, rank: Any) -> Any:
    """Find, for each node, a cycle of length below 1 under x, through nodes of higher rank only.

    Dijkstra's algorithm with a binary heap; returns the ends of the cycles, and their edges.
    """
    n = len(rank)
    distance, via = np.empty(n), np.empty(n, dtype=np.int64)
    key, node = np.empty(len(targets) + 1), np.empty(len(targets) + 1, dtype=np.int64)
    edges, ends = np.empty(8 * n, dtype=np.int64), np.empty(n, dtype=np.int64)
    total, count = 0, 0
    for root in range(n):
        distance[:] = 1.0
        best, last = 1.0 - 1e-2, -1
        key[0], node[0], size = 0.0, root, 1
        while size > 0:
            near, v = key[0], node[0]
            if near >= best:
                break
            # Take the first off the heap: the last one sinks from the top.
            size -= 1
            sinking, i, child = key[size], 0, 1
            while child < size:
                if child + 1 < size and key[child + 1] < key[child]:
                    child += 1
                if key[child] >= sinking:
                    break
                key[i], node[i] = key[child], node[child]
                i, child = child, 2 * child + 1
            key[i], node[i] = sinking, node[size]
            if near > distance[v]:
                continue
            for e in range(indptr[v], indptr[v + 1]):
                w, far = targets[e], near + x[e] + _STEP
                if w == root:
                    if far < best:
                        best, last = far, e
                elif rank[w] > rank[root] and far < min(distance[w], best):
                    distance[w], via[w] = far, e
                    i = size
                    size += 1
                    while i > 0 and key[(i - 1) // 2] > far:
                        key[i], node[i] = key[(i - 1) // 2], node[(i - 1) // 2]
                        i = (i - 1) // 2
                    key[i], node[i] = far, w
        if last < 0:
            continue
        if total + n > len(edges):
            longer = np.empty(2 * len(edges), dtype=np.int64)
            longer[:total] = edges[:total]
            edges = longer
        edges[total] = last
        total += 1
        v = sources[last]
        while v != root:
            edges[total] = via[v]
            total += 1
            v = sources[via[v]]
        ends[count] = total
        count += 1
    return ends[:count], edges[:total]
