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

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Int32Array, IntArray
from atpgraph.util.jit import kernel
from atpgraph.util.threads import checkpoint

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
    out) have price[head] ≤ price[tail] + cost. The next path cost mostly is the next number, so
    prices rise by one where no excess reaches; where that opened no path, a search finds the cost.
    """
    n, m = graph.n_nodes, graph.n_edges
    # 32 bits where they are enough, because a large graph waits for memory.
    wide = np.int32 if 2 * m < 2**31 else np.int64
    level, start = np.empty(n, dtype=np.int32), np.empty((n + 1, 2), dtype=wide)
    back: tuple[IntArray, IntArray] | None = None
    price += excess <= 0
    budget = WORK_PER_EDGE * m
    left = int(np.abs(excess).sum())
    far = False  # whether the last step was a long one
    while left and budget > 0:
        checkpoint()
        # Each tight edge has an entry at either end.
        entries = 2 * _count_tight(graph.indptr, graph.targets, price, start)
        heads, mate = np.empty(entries, dtype=np.int32), np.empty(entries, dtype=wide)
        _tight_graph(graph.indptr, graph.targets, left_out, price, start, heads, mate)
        budget -= _saturate(start, heads, mate, excess, level, budget)
        _take_over(graph.indptr, graph.targets, price, start, heads, left_out)
        before, left = left, int(np.abs(excess).sum())
        if not far and left < before:
            _rise(start, heads, excess, price, level)
            continue
        del heads, mate
        if back is None:
            back = np.zeros(n + 1, dtype=wide), np.empty(m, dtype=wide)
            _turn_round(graph.targets, *back)
        step, scanned = _cheapest_path(
            graph.indptr, graph.targets, graph.sources, *back, left_out, excess, price, level
        )
        budget -= scanned
        price += np.minimum(level, np.int32(max(step, 0)))  # −1 at the end
        far = step > 1


@kernel
def _rise(start: Any, heads: Any, excess: Any, price: Any, reached: Any) -> None:
    """Raise by one the price of every node that no excess reaches along tight edges."""
    n = len(price)
    queue = np.empty(n + 1, dtype=np.int32)
    size = 0
    for v in range(n):
        reached[v] = excess[v] > 0
        queue[size] = v
        size += reached[v]
    first = 0
    while first < size:
        v = queue[first]
        first += 1
        for i in range(start[v, 0], start[v + 1, 0]):
            w = heads[i]
            if w >= 0 and reached[w] == 0:
                reached[w] = 1
                queue[size] = w
                size += 1
    for v in range(n):
        price[v] += 1 - reached[v]


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
def _count_tight(indptr: Any, targets: Any, price: Any, start: Any) -> int:
    """Edges with price[target] = price[source] + 1; how many leave and enter each node."""
    n = len(price)
    for v in range(n + 1):
        start[v, 0] = start[v, 1] = 0
    count = 0
    for u in range(n):
        before = count
        for e in range(indptr[u], indptr[u + 1]):
            tight = price[targets[e]] == price[u] + 1
            start[targets[e], 1] += tight
            count += tight
        start[u, 0] = count - before
    return count


@kernel
def _tight_graph(
    indptr: Any, targets: Any, left_out: Any, price: Any, start: Any, heads: Any, mate: Any
) -> None:
    """Adjacency of the edges with price[target] = price[source] + 1, an entry at either end.

    The entries of v begin at start[v, 0], those of its out-edges first; start[v, 1] is scratch.
    `mate` is the entry at the other end, `heads` the node there, as −1 − node while the entry is
    not usable: the one at the source is usable while the edge is in, the one at the target while
    it is out. So a scan touches a far node only where it can go there.
    """
    n = len(price)
    total = 0
    for v in range(n + 1):
        out, into = start[v, 0], start[v, 1]
        start[v, 0], start[v, 1] = total, total + out
        total += out + into
    for u in range(n):
        i = start[u, 0]
        for e in range(indptr[u], indptr[u + 1]):
            v = targets[e]
            if price[v] == price[u] + 1:
                j = start[v, 1]
                start[v, 1] += 1
                heads[i], heads[j] = v, -1 - u
                if left_out[e]:
                    heads[i], heads[j] = -1 - v, u
                mate[i], mate[j] = j, i
                i += 1


@kernel
def _take_over(
    indptr: Any, targets: Any, price: Any, start: Any, heads: Any, left_out: Any
) -> None:
    """Write back which tight edges are left out: those whose entry at the source is not usable."""
    for u in range(len(price)):
        i = start[u, 0]
        for e in range(indptr[u], indptr[u + 1]):
            if price[targets[e]] == price[u] + 1:
                left_out[e] = heads[i] < 0
                i += 1


@kernel
def _saturate(start: Any, heads: Any, mate: Any, excess: Any, level: Any, budget: int) -> int:
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
    queue = np.empty(n + 1, dtype=np.int32)
    path = np.empty(n + 1, dtype=np.int32)
    roots = np.empty(n + 1, dtype=np.int32)
    work = 0
    while work < budget:
        size = 0
        n_roots = 0
        before = work
        for v in range(n):
            # Not reached: −2, or −3 with an excess; −1 would be next below a satisfied deficit.
            level[v] = 0 if excess[v] < 0 else -2 - (excess[v] > 0)
            queue[size] = v
            size += excess[v] < 0
        first = 0
        while first < size:
            v = queue[first]
            first += 1
            begin, end = start[v, 0], start[v + 1, 0]
            start[v, 1] = begin
            work += end - begin
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
            return work
        limit = level[roots[n_roots - 1]] + RISE
        again = work - before
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
                    i, end = start[v, 1], start[v + 1, 0]
                    while i < end:
                        if heads[i] >= 0 and level[heads[i]] == below:
                            depth += 1
                            path[depth] = heads[i]
                            advanced = True
                            break
                        i += 1
                    start[v, 1] = i
                    if not advanced:
                        # A dead end, but there may be longer paths.
                        begin, nearest = start[v, 0], limit
                        if again > 0:
                            again -= end - begin
                            work += end - begin
                            for i in range(begin, end):
                                if heads[i] >= 0 and 0 <= level[heads[i]] < nearest:
                                    nearest = level[heads[i]]
                        level[v] = nearest + 1 if nearest < limit else -2
                        start[v, 1] = begin
                        if depth > 0 or level[v] < 0:
                            depth -= 1
                if depth < 0:
                    break
                excess[root] -= 1
                excess[path[depth]] += 1
                for k in range(depth):
                    i = start[path[k], 1]
                    heads[i] = -1 - heads[i]
                    heads[mate[i]] = -1 - heads[mate[i]]
                    start[path[k], 1] += 1
    return work
