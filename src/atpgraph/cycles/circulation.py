"""The largest circulation with unit capacities: the flow problem behind social agony.

Put every edge on the circulation; the nodes are then out of balance, and the cheapest set of edges
to leave out repairs that: a minimum-cost flow with unit capacities and unit costs from the nodes
with more out-edges to those with more in-edges. A primal-dual method solves it exactly: raise the
path cost to the next one that occurs and send as much as possible along the paths of that cost, by
blocking flows on the few edges that are tight. Short paths carry nearly all of the flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph.util.threads import checkpoint

RISE = 4  # levels that a node may rise in a round of blocking flows; see _saturate


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
    cost −1 for one left out) have price[head] ≤ price[tail] + cost. The next path cost mostly is
    the next number, so prices rise by one where no excess reaches; if that opened no path, a search
    finds the cost.
    """
    n, m = graph.n_nodes, graph.n_edges
    left_out = np.zeros(m, dtype=np.bool_)
    excess = (graph.out_degree - graph.in_degree).astype(np.int32)
    price = (excess <= 0).astype(np.int32)
    # 32 bits if they suffice: large graphs are bound by memory bandwidth.
    wide = np.int32 if 2 * m < 2**31 else np.int64
    level, start = np.empty(n, dtype=np.int32), np.empty((n + 1, 2), dtype=wide)
    back: tuple[Int64Array, Int32Array, AnyArray] | None = None
    left = int(np.abs(excess).sum())
    far = False  # whether the last step was a long one
    while left:
        checkpoint()
        # Each tight edge has an entry at either end.
        entries = 2 * _count_tight(graph.indptr, graph.targets, price, start)
        heads, mate = np.empty(entries, dtype=np.int32), np.empty(entries, dtype=wide)
        _tight_graph(graph.indptr, graph.targets, left_out, price, start, heads, mate)
        _saturate(start, heads, mate, excess, level)
        _take_over(graph.indptr, graph.targets, price, start, heads, left_out)
        before, left = left, int(np.abs(excess).sum())
        if not far and left < before:
            _rise(start, heads, excess, price, level)
            continue
        del heads, mate
        if back is None:
            back = graph.incoming(np.arange(m, dtype=wide))
        step = _cheapest_path(graph.indptr, graph.targets, *back, left_out, excess, price, level)
        price += np.minimum(level, np.int32(max(step, 0)))  # −1 at the end
        far = step > 1
    return np.logical_not(left_out, out=left_out), price


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
    rev_indptr: Any,
    rev_source: Any,
    rev_edge: Any,
    left_out: Any,
    excess: Any,
    price: Any,
    distance: Any,
) -> int:
    """Dial's algorithm on reduced costs from all nodes with excess to the nearest with a deficit.

    Returns that distance (−1: there is no excess); `distance` is exact below it. The nodes at each
    distance form a doubly linked list.
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
    for v in range(n):
        distance[v] = far
        if excess[v] > 0:
            move(v, 0, far, distance, first, after, before)
    for d in range(far):
        while first[d] >= 0:
            v = first[d]
            unlink(v, distance, first, after, before)
            if excess[v] < 0:
                return d
            for e in range(indptr[v], indptr[v + 1]):
                if not left_out[e]:
                    w = targets[e]
                    move(w, d + 1 + price[v] - price[w], far, distance, first, after, before)
            for k in range(rev_indptr[v], rev_indptr[v + 1]):
                if left_out[rev_edge[k]]:
                    w = rev_source[k]
                    move(w, d - 1 + price[v] - price[w], far, distance, first, after, before)
    return -1


@kernel
def move(v: int, d: int, far: int, distance: Any, first: Any, after: Any, before: Any) -> None:
    """Put v into the list of distance d, if that is less than its own."""
    if d < distance[v]:
        if distance[v] < far:
            unlink(v, distance, first, after, before)
        link(v, d, distance, first, after, before)


@kernel
def unlink(v: int, place: Any, first: Any, after: Any, before: Any) -> None:
    """Take v out of its doubly linked list, the one with the number place[v]."""
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
def _saturate(start: Any, heads: Any, mate: Any, excess: Any, level: Any) -> None:
    """Blocking flows from excess to deficit until no path is left.

    Dinic's method, but for a node with excess at any level, not only at the least: levels are
    distances to the nearest deficit, a node sends along shortest paths of its own, and its distance
    grows with each round. With the least level only, dozens of rounds would send a few units each.
    A node from which no shortest path is left rises to the level next to that of its neighbors, a
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
    while True:
        size = 0
        n_roots = 0
        again = 0  # edges scanned by the search for levels: as many may be scanned for rises
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
