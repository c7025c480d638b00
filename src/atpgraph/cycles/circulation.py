"""The largest circulation with unit capacities: the flow problem behind social agony.

Put every edge on the circulation; the nodes are then out of balance, and the cheapest set of edges
to leave out repairs that: a minimum-cost flow with unit capacities and unit costs from the nodes
with more out-edges to those with more in-edges. Cheap paths dominate, so a primal-dual method does
nearly all of it: raise the path cost to the next that there is and send as much as possible along
the paths of that cost, by blocking flows on the few edges that are tight. What is left when its
budget of work is used up (deep graphs with paths of very many costs) goes to OR-Tools' cost scaling
on the residual network with reduced costs. Both are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph._jit import kernel
from atpgraph._threads import checkpoint
from atpgraph._typing import BoolArray, Int32Array
from atpgraph.graph.digraph import DiGraph

RISE = 4  # levels that a node may rise in a round of blocking flows; see _saturate
WORK_PER_EDGE = 1000  # edge scans per edge before OR-Tools takes over


def largest_circulation(graph: DiGraph) -> BoolArray:
    """Edges of a largest subgraph in which every node has as many in- as out-edges.

    Examples
    --------
    Of two triangles that share an edge, only one can be a circulation:

    >>> largest_circulation(DiGraph.from_codes([0, 1, 1, 2, 3], [1, 2, 3, 0, 0], 4)).sum()
    np.int64(3)
    """
    return priced_circulation(graph)[0]


def priced_circulation(graph: DiGraph) -> tuple[BoolArray, Int32Array, bool]:
    """A largest circulation, a price for every node, and whether they fit it.

    Prices that fit are a proof: price[v] ≤ price[u] + 1 along every edge of the circulation, and
    price[v] ≥ price[u] + 1 along every other. Where OR-Tools finished the work, they nearly do.
    """
    left_out = np.zeros(graph.n_edges, dtype=np.bool_)
    excess = graph.out_degree.astype(np.int32)
    excess -= graph.in_degree.astype(np.int32)
    price = np.zeros(graph.n_nodes, dtype=np.int32)
    _route(graph, left_out, excess, price)
    routed = not np.any(excess)
    if not routed:
        left_out ^= _finish(graph, left_out, excess, price)
    np.logical_not(left_out, out=left_out)
    return left_out, price, routed


def _finish(
    graph: DiGraph,
    left_out: BoolArray,
    excess: Int32Array,
    price: Int32Array,
) -> BoolArray:
    """Edges whose state must change so that the excess flows off at least cost, by OR-Tools."""
    from ortools.graph.python import min_cost_flow

    tail = np.where(left_out, graph.targets, graph.sources)
    head = np.where(left_out, graph.sources, graph.targets)
    # Reduced costs are not negative, whatever was routed before.
    cost = np.where(left_out, -1, 1).astype(np.int64) + price[tail] - price[head]
    solver = min_cost_flow.SimpleMinCostFlow()
    capacity = np.ones(graph.n_edges, dtype=np.int64)
    arcs = solver.add_arcs_with_capacity_and_unit_cost(tail, head, capacity, cost)
    solver.set_nodes_supplies(np.arange(graph.n_nodes), excess.astype(np.int64))
    status = solver.solve()
    if status != solver.OPTIMAL:  # leaving out every edge is feasible, so an optimum exists
        raise RuntimeError(f"the minimum-cost flow ended with status {status}")
    return np.asarray(solver.flows(arcs) > 0)


def _route(
    graph: DiGraph,
    left_out: BoolArray,
    excess: Int32Array,
    price: Int32Array,
) -> None:
    """Primal-dual minimum-cost flow: raise the prices to the next path cost, saturate, repeat.

    Changes `left_out`, `excess` and `price` in place and stops when the budget is used up.
    Invariant: residual arcs (u → v at cost 1 for an edge that is in, v → u at cost −1 for one left
    out) have price[head] ≤ price[tail] + cost.
    """
    n, m = graph.n_nodes, graph.n_edges
    # 32 bits where they are enough, because a large graph waits for memory.
    wide = np.int32 if 2 * m < 2**31 else np.int64
    rev_indptr, rev_edge = np.zeros(n + 1, dtype=wide), np.empty(m, dtype=wide)
    _turn_round(graph.targets, rev_indptr, rev_edge)
    distance = np.empty(n, dtype=np.int32)
    start = np.empty(n + 1, dtype=wide)
    budget = WORK_PER_EDGE * m
    while budget > 0:
        checkpoint()
        step, scanned = _cheapest_path(
            graph.indptr,
            graph.targets,
            graph.sources,
            rev_indptr,
            rev_edge,
            left_out,
            excess,
            price,
            distance,
        )
        if step < 0:
            return
        price += np.minimum(distance, np.int32(step))
        # Each tight edge has an entry at either end.
        entries = 2 * _count_tight(graph.indptr, graph.targets, price)
        heads, usable = np.empty(entries, dtype=np.int32), np.empty(entries, dtype=np.bool_)
        mate = np.empty(entries, dtype=wide)
        _tight_graph(graph.sources, graph.targets, left_out, price, start, heads, mate, usable)
        budget -= scanned
        budget -= _saturate(start, heads, mate, usable, excess, distance, budget)
        _take_over(graph.sources, graph.targets, price, start, usable, left_out)


@kernel
def _cheapest_path(
    indptr: Any,
    targets: Any,
    sources: Any,
    rev_indptr: Any,
    rev_edge: Any,
    left_out: Any,
    excess: Any,
    price: Any,
    distance: Any,
) -> tuple[int, int]:
    """Dial's algorithm on reduced costs from all nodes with excess to the nearest with a deficit.

    Returns that distance (−1: there is no excess) and the edges scanned; `distance` is exact below
    it. The nodes at each distance form a doubly linked list.
    """
    n = len(excess)
    far: Any = np.int64(n)  # no path has more edges; the prices add their differences
    for v in range(n):
        far = max(far, np.int64(n) + price[v])
    first = np.empty(far + 1, dtype=np.int32)
    for d in range(far + 1):
        first[d] = -1
    after = np.empty(n, dtype=np.int32)
    before = np.empty(n, dtype=np.int32)
    scanned = 0
    for v in range(n):
        distance[v] = far
        if excess[v] > 0:
            move(v, 0, far, distance, first, after, before)
    for d in range(far):
        while first[d] >= 0:
            v = first[d]
            first[d] = after[v]
            if after[v] >= 0:
                before[after[v]] = -1
            if excess[v] < 0:
                return d, scanned
            scanned += indptr[v + 1] - indptr[v] + rev_indptr[v + 1] - rev_indptr[v]
            for e in range(indptr[v], indptr[v + 1]):
                if not left_out[e]:
                    w = targets[e]
                    move(w, d + 1 + price[v] - price[w], far, distance, first, after, before)
            for k in range(rev_indptr[v], rev_indptr[v + 1]):
                if left_out[rev_edge[k]]:
                    w = sources[rev_edge[k]]
                    move(w, d - 1 + price[v] - price[w], far, distance, first, after, before)
    return -1, scanned


@kernel
def move(v: int, d: int, far: int, distance: Any, first: Any, after: Any, before: Any) -> None:
    """Put v into the list of distance d, if that is less than its own."""
    if d >= distance[v]:
        return
    if distance[v] < far:
        if before[v] >= 0:
            after[before[v]] = after[v]
        else:
            first[distance[v]] = after[v]
        if after[v] >= 0:
            before[after[v]] = before[v]
    distance[v] = d
    before[v] = -1
    after[v] = first[d]
    if first[d] >= 0:
        before[first[d]] = v
    first[d] = v


@kernel
def _turn_round(targets: Any, rev_indptr: Any, rev_edge: Any) -> None:
    """The edges into each node, ascending; `rev_indptr` comes as zeros."""
    n = len(rev_indptr) - 1
    for target in targets:
        rev_indptr[target + 1] += 1
    for v in range(n):
        rev_indptr[v + 1] += rev_indptr[v]
    for e in range(len(targets)):
        rev_edge[rev_indptr[targets[e]]] = e
        rev_indptr[targets[e]] += 1
    for v in range(n, 0, -1):
        rev_indptr[v] = rev_indptr[v - 1]
    rev_indptr[0] = 0


@kernel
def _count_tight(indptr: Any, targets: Any, price: Any) -> int:
    """Edges with price[target] = price[source] + 1."""
    count = 0
    for u in range(len(price)):
        for e in range(indptr[u], indptr[u + 1]):
            if price[targets[e]] == price[u] + 1:
                count += 1
    return count


@kernel
def _tight_graph(
    sources: Any,
    targets: Any,
    left_out: Any,
    price: Any,
    start: Any,
    heads: Any,
    mate: Any,
    usable: Any,
) -> None:
    """Adjacency of the edges with price[target] = price[source] + 1, an entry at either end.

    The entry at the source is usable while the edge is in, the one at the target while it is out;
    so a scan reads usable[] in sequence and touches a far node only where it can go there.
    """
    n, m = len(price), len(targets)
    for v in range(n + 1):
        start[v] = 0
    for e in range(m):
        if price[targets[e]] == price[sources[e]] + 1:
            start[sources[e]] += 1
            start[targets[e]] += 1
    total = 0
    for v in range(n + 1):
        total += start[v]
        start[v] = total
    for e in range(m - 1, -1, -1):
        u, v = sources[e], targets[e]
        if price[v] == price[u] + 1:
            start[u] -= 1
            start[v] -= 1
            i, j = start[u], start[v]
            heads[i], heads[j] = v, u
            mate[i], mate[j] = j, i
            usable[i], usable[j] = not left_out[e], left_out[e]


@kernel
def _take_over(
    sources: Any, targets: Any, price: Any, start: Any, usable: Any, left_out: Any
) -> None:
    """Write back which tight edges are left out: those whose entry at the source is not usable.

    Entries are met in the order of :func:`_tight_graph`; `start` is scratch afterwards.
    """
    for e in range(len(targets)):
        u, v = sources[e], targets[e]
        if price[v] == price[u] + 1:
            left_out[e] = not usable[start[u]]
            start[u] += 1
            start[v] += 1


@kernel
def _saturate(
    start: Any, heads: Any, mate: Any, usable: Any, excess: Any, level: Any, budget: int
) -> int:
    """Blocking flows from excess to deficit until no path is left or the budget is used.

    Dinic's method, but for a node with excess at any level, not only at the least: levels are
    distances to the nearest deficit, a node sends along shortest paths of its own, and its distance
    grows with each round. With the least level only, dozens of rounds would send a few units each.
    A node from which no shortest path is left rises to the level next to that of its neighbours, a
    few levels at most, as in methods that push: but only until that has cost as much as the search
    for the levels: where few deficits are left, none of them near, that search is the better one.
    On random graphs this leaves less than half of the work. Of the two entries of a tight edge
    exactly one is usable, so the search backwards over the arcs into v goes over the entries at v
    that are not.
    """
    n = len(excess)
    queue = np.empty(n, dtype=np.int32)
    cursor = np.empty(n, dtype=start.dtype)
    path = np.empty(n + 1, dtype=np.int32)
    roots = np.empty(n, dtype=np.int32)
    work = 0
    while work < budget:
        size = 0
        n_roots = 0
        before = work
        for v in range(n):
            level[v] = -2  # not reached; −1 would be next below a satisfied deficit
            if excess[v] < 0:
                level[v] = 0
                queue[size] = v
                size += 1
        first = 0
        while first < size:
            v = queue[first]
            first += 1
            work += start[v + 1] - start[v]
            for i in range(start[v], start[v + 1]):
                if not usable[i]:
                    w = heads[i]
                    if level[w] < 0:
                        level[w] = level[v] + 1
                        queue[size] = w
                        size += 1
                        if excess[w] > 0:
                            roots[n_roots] = w
                            n_roots += 1
        if n_roots == 0:
            return work
        limit = level[roots[n_roots - 1]] + RISE
        again = work - before
        for i in range(size):
            cursor[queue[i]] = start[queue[i]]
        for r in range(n_roots):
            root = roots[r]
            while excess[root] > 0:
                path[0] = root
                depth = 0
                while depth >= 0:
                    v = path[depth]
                    if excess[v] < 0:
                        break
                    advanced = False
                    while cursor[v] < start[v + 1]:
                        i = cursor[v]
                        if usable[i] and level[heads[i]] == level[v] - 1:
                            depth += 1
                            path[depth] = heads[i]
                            advanced = True
                            break
                        cursor[v] += 1
                    if not advanced:
                        # A dead end, but there may be longer paths.
                        nearest = limit
                        if again > 0:
                            again -= start[v + 1] - start[v]
                            work += start[v + 1] - start[v]
                            for i in range(start[v], start[v + 1]):
                                if usable[i] and 0 <= level[heads[i]] < nearest:
                                    nearest = level[heads[i]]
                        level[v] = nearest + 1 if nearest < limit else -2
                        cursor[v] = start[v]
                        if depth > 0 or level[v] < 0:
                            depth -= 1
                if depth < 0:
                    break
                excess[root] -= 1
                excess[path[depth]] += 1
                for k in range(depth):
                    i = cursor[path[k]]
                    usable[i] = False
                    usable[mate[i]] = True
                    cursor[path[k]] += 1
    return work
