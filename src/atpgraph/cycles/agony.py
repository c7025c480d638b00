"""Social agony, exactly: the ranks that make the edges of a graph point up as far as possible.

The agony of ranks r is Σ max(r(u) − r(v) + 1, 0) over the edges u → v. Its minimum equals the
largest number of edges of a circulation with unit capacities (linear-programming duality); the
ranks follow from complementary slackness.

To find the circulation, put every edge on it; the nodes are then out of balance, and leaving out
the cheapest set of edges repairs that: a minimum-cost flow with unit capacities and unit costs from
the nodes with more out-edges to those with more in-edges. A primal-dual method solves it exactly:
raise the path cost to the next value that occurs and send as much as possible along paths of that
cost, by blocking flows on the few tight edges. Short paths carry nearly all of the flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph, row_bounds
from atpgraph.graph.scc import CyclicCore, cyclic_core, strongly_connected_components
from atpgraph.graph.traversal import TwoWayRows
from atpgraph.util.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph.util.threads import checkpoint

RISE = 4  # levels that a node may rise in a round of blocking flows; see _saturate


@dataclass(frozen=True, eq=False)
class Agony:
    """Minimum agony of a graph and ranks that attain it.

    Optimal ranks are rarely unique: over all optimal rankings that start at 0 and need no more
    ranks than the shortest one, each node has a lowest and a highest rank. Both are optimal
    rankings themselves, and so is their mean, which avoids the arbitrary extremes.

    Attributes
    ----------
    value : int
        The minimum of Σ max(r(u) − r(v) + 1, 0) over the edges that are not self-loops.
    lowest, highest : int64 arrays
        The lowest and the highest optimal rank of every node, from 0.
    """

    value: int
    lowest: Int64Array
    highest: Int64Array

    @property
    def centred(self) -> Float64Array:
        """Mean of the lowest and the highest optimal rank of every node."""
        return (self.lowest + self.highest) / 2.0


def agony(graph: Any, core: CyclicCore | None = None) -> Agony:
    """Minimum agony of a graph, with the lowest and the highest optimal ranks.

    Parameters
    ----------
    graph : anything :func:`atpgraph.as_graph` takes
        Any directed graph; self-loops and edge weights do not influence the ranks.
    core : CyclicCore, optional
        The part of the graph that lies on cycles, if it is already known.

    Examples
    --------
    A triangle costs 3 whatever the ranks are; the fourth edge points up and costs nothing.

    >>> result = agony([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> result.value, result.lowest.tolist()
    (3, [0, 0, 0, 1])

    References
    ----------
    Gupte et al., "Finding hierarchy in directed online social networks", WWW 2011; Tatti, "Faster
    way to agony: discovering hierarchies in directed graphs", ECML PKDD 2014.
    """
    graph = as_graph(graph)
    core = cyclic_core(graph) if core is None else core
    circulating, prices = largest_circulation(core.graph)
    value = int(np.count_nonzero(circulating))
    some = np.zeros(graph.n_nodes, dtype=np.int32)  # half the memory to read
    some[core.nodes] = prices
    del prices
    component = strongly_connected_components(graph)
    _lift(graph.indptr, graph.targets, component, np.argsort(-component, kind="stable"), some)
    del component
    # Self-loops count as on the circulation, where they constrain nothing.
    on = graph.sources == graph.targets
    on[core.edges] = circulating
    # r(v) ≥ r(u) + 1 along an edge u → v off the circulation, r(u) ≥ r(v) − 1 along one on it. How
    # far a node can sink is a shortest path from all nodes at once, each allowed to sink to 0.
    top, none = int(some.max(initial=0)), np.zeros(graph.n_nodes, dtype=np.bool_)
    back = graph.reverse()
    sinks, rises = some.copy(), top - some
    spread(TwoWayRows.of(back), graph.incoming(on)[2], -some, sinks, none, top + 1)
    spread(TwoWayRows.of(graph), on, some, rises, none, top + 1)
    lowest = (some - sinks).astype(np.int64)
    highest = some + rises.astype(np.int64)
    return Agony(value, lowest, highest - top + int(lowest.max(initial=0)))


@kernel
def _lift(indptr: Any, targets: Any, component: Any, order: Any, rank: Any) -> None:
    """Raise whole components, in topological order, until the edges between them point up."""
    lift = np.zeros(len(order), dtype=np.int32)
    for i in range(len(order)):
        u = order[i]
        rank[u] += lift[component[u]]
        for e in range(indptr[u], indptr[u + 1]):
            v = targets[e]
            if component[v] != component[u]:
                lift[component[v]] = max(lift[component[v]], rank[u] + 1 - rank[v])


def largest_circulation(graph: DiGraph) -> tuple[BoolArray, Int32Array]:
    """Return the edges of a largest circulation, and a price for every node that proves it.

    In a circulation every node has as many in- as out-edges. It is a largest one because
    price[v] ≤ price[u] + 1 along each of its edges u → v, and price[v] ≥ price[u] + 1 along every
    other edge.

    Examples
    --------
    Of two triangles that share an edge, only one can be a circulation:

    >>> on, _ = largest_circulation(DiGraph.from_codes([0, 1, 1, 2, 3], [1, 2, 3, 0, 0], 4))
    >>> int(on.sum())
    3

    Notes
    -----
    The invariant of the method: residual arcs (u → v at cost 1 for an edge that is in, v → u at
    cost −1 for one left out) have price[head] ≤ price[tail] + cost.
    """
    rows, n = TwoWayRows.of(graph), graph.n_nodes
    on = np.ones(graph.n_edges, dtype=np.bool_)
    excess = (graph.out_degree - graph.in_degree).astype(np.int32)
    price = (excess <= 0).astype(np.int32)
    while excess.any():
        checkpoint()
        _send(graph, on, price, excess)
        far = n + int(price.max())  # no path has more edges; the prices add their differences
        distance = np.where(excess > 0, 0, far).astype(np.int32)
        step = spread(rows, on, price, distance, excess < 0, far)
        price += np.minimum(distance, np.int32(step))
    return on, price


def _send(graph: DiGraph, on: BoolArray, price: Int32Array, excess: Int32Array) -> None:
    """Send as much as possible from excess to deficit along edges whose price rises by one.

    Each such edge has an entry at either end: `heads` is the node at the other end, as −1 − node
    while the entry is not usable, `mate` the entry there. The entry at the source is usable while
    the edge is on, the entry at the target while it is not. So a scan touches only far nodes that
    it can move to.
    """
    tight = np.flatnonzero(price[graph.targets] == price[graph.sources] + 1)
    ends = np.stack([graph.sources[tight], graph.targets[tight]])
    start = row_bounds(ends.reshape(-1), graph.n_nodes)
    heads, mate = np.empty((2, ends.size), dtype=np.int32)
    place = _enter(ends, on[tight], start[:-1].copy(), heads, mate)
    _saturate(start, heads, mate, excess)
    on[tight] = heads[place] >= 0


@kernel
def _enter(ends: Any, on: Any, following: Any, heads: Any, mate: Any) -> Any:
    """Write the entries of edges at both ends; return the places of those at the sources."""
    place = np.empty(len(on), dtype=np.int32)
    for k in range(len(on)):
        u, v = ends[0, k], ends[1, k]
        place[k] = i = following[u]
        j = following[v]
        following[u], following[v] = i + 1, j + 1
        heads[i], heads[j] = (v, -1 - u) if on[k] else (-1 - v, u)
        mate[i], mate[j] = j, i
    return place


@kernel
def spread(rows: Any, on: Any, price: Any, distance: Any, goal: Any, far: int) -> int:
    """Lower `distance`, given at the start nodes, along arcs: Dial's algorithm on reduced costs.

    The residual arcs are u → v at cost 1 + price[u] − price[v] for an edge that is on, and v → u at
    cost −1 + price[v] − price[u] for any other edge. Stops at the nearest node of the goal and
    returns its distance, `far` if there is none; up to there distances are exact. The nodes at each
    distance form a doubly linked list.
    """
    n = len(price)
    first = np.full(far + 1, -1, dtype=np.int32)
    after, before = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    for v in range(n):
        if distance[v] < far:
            link(v, distance[v], distance, first, after, before)
    for d in range(far):
        while first[d] >= 0:
            v = first[d]
            unlink(v, distance, first, after, before)
            if goal[v]:
                return d
            for e in range(rows.indptr[v], rows.indptr[v + 1]):
                if on[e]:
                    w = rows.targets[e]
                    _move(w, d + 1 + price[v] - price[w], far, distance, first, after, before)
            for i in range(rows.rev_indptr[v], rows.rev_indptr[v + 1]):
                if not on[rows.rev_edges[i]]:
                    w = rows.rev_targets[i]
                    _move(w, d - 1 + price[v] - price[w], far, distance, first, after, before)
    return far


@kernel
def _move(v: int, d: int, far: int, distance: Any, first: Any, after: Any, before: Any) -> None:
    """Move v to the list of distance d, if that is less than its current distance."""
    if d < distance[v]:
        if distance[v] < far:
            unlink(v, distance, first, after, before)
        link(v, d, distance, first, after, before)


@kernel
def unlink(v: int, place: Any, first: Any, after: Any, before: Any) -> None:
    """Take v out of its doubly linked list, which has the number place[v]."""
    if before[v] >= 0:
        after[before[v]] = after[v]
    else:
        first[place[v]] = after[v]
    if after[v] >= 0:
        before[after[v]] = before[v]


@kernel
def link(v: int, d: int, place: Any, first: Any, after: Any, before: Any) -> None:
    """Put v at the head of list d."""
    place[v] = d
    before[v] = -1
    after[v] = first[d]
    if first[d] >= 0:
        before[first[d]] = v
    first[d] = v


@kernel
def _saturate(start: Any, heads: Any, mate: Any, excess: Any) -> None:
    """Send blocking flows from excess to deficit until no path is left.

    Dinic's method, except that nodes at every level send, not only those at the lowest: the level
    of a node is its distance to the nearest deficit, it sends along its own shortest paths, and its
    level grows with each round. With the lowest level only, dozens of rounds would send a few units
    each. A node without a shortest path left rises to just above its lowest neighbor, by a few
    levels at most, as in push-relabel methods. Rises stop once they have cost as much as the search
    for levels, which is cheaper when few deficits are left and none of them is near. On random
    graphs this more than halves the work. Exactly one of the two entries of a tight edge is usable,
    so the search backwards over the arcs into v visits the entries at v that are not.
    """
    n = len(excess)
    level, current = np.empty(n, dtype=np.int32), np.empty(n, dtype=start.dtype)
    queue = np.empty(n + 1, dtype=np.int32)
    path = np.empty(n + 1, dtype=np.int32)
    roots = np.empty(n + 1, dtype=np.int32)
    while True:
        size = 0
        n_roots = 0
        again = 0  # edges scanned by the search for levels; rises may scan as many
        for v in range(n):
            # Not reached: −2, or −3 with an excess; −1 would be next below a satisfied deficit.
            level[v] = 0 if excess[v] < 0 else -2 - (excess[v] > 0)
            queue[size] = v
            size += excess[v] < 0
        first = 0
        while first < size:
            v = queue[first]
            first += 1
            begin, end = start[v], start[v + 1]
            current[v] = begin
            again += end - begin
            above = level[v] + 1
            for i in range(begin, end):
                if heads[i] < 0:
                    w = -1 - heads[i]
                    if level[w] < 0:
                        if level[w] == -3:
                            roots[n_roots] = w
                            n_roots += 1
                        level[w] = above
                        queue[size] = w
                        size += 1
        if n_roots == 0:
            return
        limit = level[roots[n_roots - 1]] + RISE
        for r in range(n_roots):
            root = roots[r]
            while excess[root] > 0:
                path[0] = root
                depth = 0
                while depth >= 0:
                    v = path[depth]
                    below = level[v] - 1
                    if below < 0 and excess[v] < 0:
                        break
                    advanced = False
                    i, end = current[v], start[v + 1]
                    while i < end:
                        if heads[i] >= 0 and level[heads[i]] == below:
                            depth += 1
                            path[depth] = heads[i]
                            advanced = True
                            break
                        i += 1
                    current[v] = i
                    if not advanced:
                        # A dead end, but there may be longer paths.
                        begin, nearest = start[v], limit
                        if again > 0:
                            again -= end - begin
                            for i in range(begin, end):
                                if heads[i] >= 0 and 0 <= level[heads[i]] < nearest:
                                    nearest = level[heads[i]]
                        level[v] = nearest + 1 if nearest < limit else -2
                        current[v] = begin
                        if depth > 0 or level[v] < 0:
                            depth -= 1
                if depth < 0:
                    break
                excess[root] -= 1
                excess[path[depth]] += 1
                for k in range(depth):
                    i = current[path[k]]
                    heads[i] = -1 - heads[i]
                    heads[mate[i]] = -1 - heads[mate[i]]
                    current[path[k]] += 1
