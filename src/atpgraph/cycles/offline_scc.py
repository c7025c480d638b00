"""Find which edges close a cycle as edges arrive in order: offline, in O(m log m).

Every removal strategy of the package asks one question about each edge: once all edges that arrive
no later are there, do its ends lie in one strongly connected component? Asking for one edge at a
time costs one SCC pass each. Here all edges are answered together by divide and conquer over time:
take the SCCs of the edges that arrived by the middle; edges inside one of them are answered in the
first half, and only they are considered there; for the second half, the SCCs are contracted to
single nodes. So each edge is in one subproblem per level of the recursion.

In the second half, an edge of the first that is the only way into its head, or out of its tail, is
contracted as well: any node that later reaches one end reaches the other, and the answers are the
same. So a long cycle, which closes with its last edge only, shrinks by half at each level. Of
parallel edges of the first half, one is kept: a large component soon has thousands of them to each
node that joins it later. On random graphs this leaves a quarter of the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.graph.scc import tarjan
from atpgraph.util.arrays import BoolArray, IntArray
from atpgraph.util.jit import kernel


@kernel
def _closes_cycle(n: int, u: Any, v: Any, when: Any, closes: Any) -> None:
    """Set closes[when[i]] where the ends of edge i are in one SCC of the edges up to that time.

    The edges come sorted by source, u → v, and all of them lie inside SCCs of the whole graph. The
    edges in question are numbered from 1 in `when`, in the order of their arrival; the others,
    which are there from the start, have 0. `u`, `v` and `when` are scratch afterwards.

    A subproblem is a slice of the edges, sorted by source, whose ends all are in one SCC once the
    whole slice is there; so each of its nodes is a source. It answers for the edges numbered from
    `low` to `high`; edges with smaller numbers already have an answer and only connect nodes.

    Unpredictable branches are avoided: an edge is always written to the next place, which moves on
    only if the edge belongs there, and entry 0 of `closes` takes the writes that do not count.
    """
    m = len(u)
    # All of 32 bits: on a large graph the time is memory access, not arithmetic.
    number = np.empty(n + 1, dtype=np.int32)
    indptr = np.empty(n + 1, dtype=np.int32)
    component = np.empty(n + 1, dtype=np.int32)
    low_link = np.empty(n + 1, dtype=np.int32)
    stack = np.empty(n + 1, dtype=np.int32)
    path = np.empty(n + 1, dtype=np.int32)
    cursor = np.empty(n + 1, dtype=np.int32)
    later_u, later_v = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
    later_when = np.empty(m, dtype=np.int32)
    targets = later_u  # not needed at the same time
    # Halving the numbers at each level bounds the depth, and with it the pending slices.
    tasks = np.empty((256, 4), dtype=np.int64)
    tasks[0, 0], tasks[0, 1], tasks[0, 2], tasks[0, 3] = 0, m, 1, len(closes) - 1
    pending = 1 if len(closes) > 1 else 0
    while pending > 0:
        pending -= 1
        begin, end = tasks[pending, 0], tasks[pending, 1]
        low, high = tasks[pending, 2], tasks[pending, 3]
        if low == high:
            closes[low] = True  # the slice is one SCC once this edge is there
            continue
        middle = (low + high) // 2  # the last number of the first half
        # Number the nodes of the slice compactly and build the graph of the first half.
        zero: Any = np.int64(0)  # a literal 0 would have tarjan compiled for literals as well
        count = zero
        last = -1
        for i in range(begin, end):
            count += u[i] != last
            last = u[i]
            number[last] = u[i] = count - 1
        filled = 0
        indptr[0] = 0
        for i in range(begin, end):
            v[i] = targets[filled] = number[v[i]]
            filled += when[i] <= middle
            indptr[u[i] + 1] = filled
        for c in range(count):
            low_link[c] = -1
        n_components = tarjan(
            zero, count, indptr, targets, component, low_link, stack, path, cursor
        )
        # Edges inside a component of the first half stay; the rest go on, contracted.
        keep = begin
        later = 0
        first_low, first_high = middle + 1, low - 1
        for i in range(begin, end):
            cu, cv, at = component[u[i]], component[v[i]], when[i]
            if cu != cv:
                later_u[later], later_v[later], later_when[later] = cu, cv, at
                later += 1
            elif at > middle:
                closes[at] = True
            else:
                u[keep], v[keep], when[keep] = u[i], v[i], at
                keep += 1
                if at >= low:
                    first_low, first_high = min(first_low, at), max(first_high, at)
        # Of the components, edges of the first half lead from higher numbers to lower ones.
        degree, link, into = low_link, stack, path
        for forward in (True, False):
            for c in range(n_components):
                degree[c] = 0
                link[c] = -1
            for i in range(later):
                tail, head = (later_u[i], later_v[i]) if forward else (later_v[i], later_u[i])
                degree[head] += 1
                link[head] = tail if later_when[i] <= middle else link[head]
            for k in range(n_components):
                c = n_components - 1 - k if forward else k
                into[c] = into[link[c]] if degree[c] == 1 and link[c] >= 0 else c
            left = 0
            for i in range(later):
                cu, cv, at = into[later_u[i]], into[later_v[i]], later_when[i]
                if cu != cv:
                    later_u[left], later_v[left], later_when[left] = cu, cv, at
                    left += 1
                elif at > middle:
                    closes[at] = True
            later = left
        # Sorted by source again, behind those that stay.
        next_low, next_high = high + 1, middle
        place = cursor
        for c in range(n_components):
            place[c] = 0
        for i in range(later):
            place[later_u[i]] += 1
            at = later_when[i]
            next_low = min(next_low, at if at > middle else next_low)
            next_high = max(next_high, at)
        if next_low <= next_high:
            total = keep
            for c in range(n_components):
                total += place[c]
                place[c] = total - place[c]
            for i in range(later):
                to = place[later_u[i]]
                place[later_u[i]] += 1
                u[to], v[to], when[to] = later_u[i], later_v[i], later_when[i]
            # Of edges side by side, one from the first half is enough.
            beside = low_link
            for c in range(n_components):
                beside[c] = -1
            left = keep
            for i in range(keep, keep + later):
                cu, cv, at = u[i], v[i], when[i]
                u[left], v[left], when[left] = cu, cv, at
                left += at > middle or beside[cv] != cu
                beside[cv] = cu if at <= middle else beside[cv]
            tasks[pending, 0], tasks[pending, 1] = keep, left
            tasks[pending, 2], tasks[pending, 3] = next_low, next_high
            pending += 1
        if first_low <= first_high:
            tasks[pending, 0], tasks[pending, 1] = begin, keep
            tasks[pending, 2], tasks[pending, 3] = first_low, first_high
            pending += 1


def closes_in_order(n: int, sources: IntArray, targets: IntArray, order: IntArray) -> BoolArray:
    """Return for each edge whether its ends are in one SCC of the edges that arrive no later.

    All edges must lie on cycles of the whole graph of `n` nodes. `order` lists the edges in
    question in the order of their arrival. All others arrive before them, must not close a cycle
    among themselves, and get False; the more of them there are, the less work remains.

    Examples
    --------
    The third edge closes the triangle, the first two do not:

    >>> closes_in_order(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.arange(3)).tolist()
    [False, False, True]
    """
    closes = np.zeros(len(sources), dtype=np.bool_)
    by_time = np.zeros(len(order) + 1, dtype=np.bool_)
    when = np.zeros(len(sources), dtype=np.int32)
    when[order] = np.arange(1, len(order) + 1, dtype=np.int32)
    u, v = (np.array(ends, dtype=np.int32) for ends in (sources, targets))
    if np.any(u[1:] < u[:-1]):
        by_source = np.argsort(u, kind="stable")
        u, v, when = u[by_source], v[by_source], when[by_source]
    _closes_cycle(n, u, v, when, by_time)
    del u, v, when
    closes[order] = by_time[1:]
    return closes
