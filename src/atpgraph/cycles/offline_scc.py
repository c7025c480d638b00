"""When does an edge close a cycle, as edges arrive in order? Offline, in O(m log m).

Every removal strategy of the package asks one question of each edge: once all edges that arrive
no later than it are there, do its ends lie in one strongly connected component? Asking edge by
edge costs one SCC pass each. Here all edges are answered together by divide and conquer over
time: take the SCCs of the edges that arrived by the middle; edges inside one of them were answered
in the first half, and only those need be looked at there; for the second half the SCCs are
contracted to single nodes. So each edge is in one subproblem per level of the recursion.

In the second half, an edge of the first that is the only way into its head, or out of its tail, is
contracted as well: whoever reaches one end later reaches the other, and the answers are the same.
So a long cycle, which closes with its last edge only, shrinks by half at each level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph._jit import kernel
from atpgraph._typing import BoolArray, Int32Array, IntArray
from atpgraph.graph.scc import tarjan


@kernel
def _closes_cycle(n: int, u: Any, v: Any, time: Any, first_time: int, closes: Any) -> None:
    """Set closes[i] where the ends of edge i are in one SCC of the edges up to time[i].

    The edges come sorted by time; all of them lie inside SCCs of the whole graph. Those before
    `first_time` are not asked about. `u` and `v` are scratch afterwards.

    A subproblem is a slice of the edges, sorted by time, whose ends all are in one SCC once the
    whole slice is there. Edges with time < `low_time` are older than the subproblem: they carry
    connectivity and have been answered. `at` has the place that each edge came in.
    """
    m = len(u)
    at = np.empty(m, dtype=np.int32)
    for i in range(m):
        at[i] = i
    number = np.empty(n, dtype=np.int32)
    for x in range(n):
        number[x] = -1
    seen = np.empty(n, dtype=np.int32)
    # All of 32 bits: a large graph waits for memory, not for arithmetic.
    indptr = np.empty(n + 1, dtype=np.int32)
    component = np.empty(n, dtype=np.int32)
    low = np.empty(n, dtype=np.int32)
    stack = np.empty(n, dtype=np.int32)
    path = np.empty(n, dtype=np.int32)
    cursor = np.empty(n, dtype=np.int32)
    later_u, later_v = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
    later_at = np.empty(m, dtype=np.int32)
    targets, fill = later_u, cursor  # not needed at the same time
    # Halving the new edges at each level bounds the depth, and with it the pending slices.
    tasks = np.empty((256, 3), dtype=np.int64)
    tasks[0, 0], tasks[0, 1], tasks[0, 2] = 0, m, first_time
    pending = 1
    while pending > 0:
        pending -= 1
        begin, end, low_time = tasks[pending, 0], tasks[pending, 1], tasks[pending, 2]
        # First edge of the slice that is not older than the subproblem.
        a, b = begin, end
        while a < b:
            half = (a + b) // 2
            if time[at[half]] < low_time:
                a = half + 1
            else:
                b = half
        new = a
        if new == end:
            continue
        last = time[at[end - 1]]
        if time[at[new]] == last:
            for i in range(new, end):  # one arrival joins everything: each new edge closes a cycle
                closes[at[i]] = True
            continue
        middle = time[at[(new + end - 1) // 2]]
        if middle == last:
            # Step back to the last earlier time, so that both halves have new edges.
            i = (new + end - 1) // 2
            while time[at[i]] == middle:
                i -= 1
            middle = time[at[i]]
        # Number the nodes of the slice compactly and build the graph of the first half.
        count: Any = np.int64(0)  # a literal 0 would have tarjan compiled for literals as well
        for i in range(begin, end):
            for side in range(2):
                x = u[i] if side == 0 else v[i]
                if number[x] < 0:
                    number[x] = count
                    seen[count] = x
                    indptr[count] = 0
                    count += 1
            u[i], v[i] = number[u[i]], number[v[i]]
        indptr[count] = 0
        for i in range(count):
            number[seen[i]] = -1
        split = begin
        while split < end and time[at[split]] <= middle:
            indptr[u[split] + 1] += 1
            split += 1
        for i in range(count):
            indptr[i + 1] += indptr[i]
            fill[i] = indptr[i]
        for i in range(begin, split):
            targets[fill[u[i]]] = v[i]
            fill[u[i]] += 1
        n_components = tarjan(count, indptr, targets, component, low, stack, path, cursor)
        # Edges inside a component of the first half stay; the rest go on, contracted, those of the
        # first half before the others.
        keep = begin
        later = 0
        for i in range(begin, split):
            cu, cv = component[u[i]], component[v[i]]
            if cu == cv:
                u[keep], v[keep], at[keep] = u[i], v[i], at[i]
                keep += 1
            else:
                later_u[later], later_v[later], later_at[later] = cu, cv, at[i]
                later += 1
        older = later
        for i in range(split, end):
            cu, cv = component[u[i]], component[v[i]]
            if cu == cv:
                closes[at[i]] = True
            else:
                later_u[later], later_v[later], later_at[later] = cu, cv, at[i]
                later += 1
        # Of the components, edges of the first half lead from higher numbers to lower ones.
        for forward in (True, False):
            degree, link, into = low, stack, path
            for c in range(n_components):
                degree[c] = 0
                link[c] = -1
            for i in range(later):
                tail, head = (later_u[i], later_v[i]) if forward else (later_v[i], later_u[i])
                degree[head] += 1
                if i < older:
                    link[head] = tail
            for k in range(n_components):
                c = n_components - 1 - k if forward else k
                into[c] = into[link[c]] if degree[c] == 1 and link[c] >= 0 else c
            left, left_older = 0, 0
            for i in range(later):
                cu, cv = into[later_u[i]], into[later_v[i]]
                if cu != cv:
                    later_u[left], later_v[left], later_at[left] = cu, cv, later_at[i]
                    left += 1
                    if i < older:
                        left_older += 1
                elif i >= older:
                    closes[later_at[i]] = True
            later, older = left, left_older
        for i in range(later):
            u[keep + i], v[keep + i], at[keep + i] = later_u[i], later_v[i], later_at[i]
        tasks[pending, 0], tasks[pending, 1], tasks[pending, 2] = keep, keep + later, middle + 1
        tasks[pending + 1, 0], tasks[pending + 1, 1], tasks[pending + 1, 2] = begin, keep, low_time
        pending += 2


def closes_cycle(
    n: int,
    sources: IntArray,
    targets: IntArray,
    time: IntArray,
    acyclic: BoolArray | None = None,
) -> BoolArray:
    """For each edge: are its ends in one SCC of the edges that arrive no later than it?

    Parameters
    ----------
    n : int
        Number of nodes.
    sources, targets : integer arrays
        The edges. All must lie on cycles of the whole graph.
    time : integer array
        When each edge arrives; equal times arrive together.
    acyclic : bool array, optional
        Edges that are there from the beginning, whatever their time, and whose answer is not asked
        for: False. They close no cycle among themselves. The more there are, the less is to do.

    Examples
    --------
    The third edge closes the triangle, the first two do not:

    >>> closes_cycle(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([0, 1, 2])).tolist()
    [False, False, True]
    """
    order, arrival = _arrivals(len(sources), time, acyclic)
    by_time = np.zeros(len(order), dtype=np.bool_)
    u, v = (np.asarray(ends, dtype=np.int32)[order] for ends in (sources, targets))
    _closes_cycle(n, u, v, arrival, 1, by_time)
    del u, v, arrival
    closes = np.empty(len(order), dtype=np.bool_)
    closes[order] = by_time
    return closes


def _arrivals(m: int, time: IntArray, acyclic: BoolArray | None) -> tuple[Int32Array, Int32Array]:
    """The edges by time, and the rank of the time of each: 0 for what is there from the start."""
    if acyclic is None:
        asked = np.arange(m, dtype=np.int32)
        first = asked[:0]
    else:
        asked, first = (np.flatnonzero(part).astype(np.int32) for part in (~acyclic, acyclic))
    asked = asked[np.argsort(time[asked], kind="stable")]
    arrival = np.zeros(m, dtype=np.int32)
    later = arrival[len(first) :]
    if len(later):
        later[0] = 1
        later[1:] = np.diff(time[asked]) != 0
        np.cumsum(later, out=later)
    return np.concatenate([first, asked]), arrival
