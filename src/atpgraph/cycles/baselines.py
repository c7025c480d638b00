"""Baselines that lay the nodes out in a line or a tree: DFS back edges and Eades' heuristic."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.cycles.agony import link, unlink
from atpgraph.util.jit import kernel


@kernel
def dfs_climb(indptr: Any, targets: Any, climb: Any) -> None:
    """Search depth first from the nodes in order; store how many levels each back edge climbs.

    `climb` has one entry per edge and stays 0 for all edges that are not back edges.
    """
    n = len(indptr) - 1
    depth = np.full(n, -1, dtype=np.int32)
    open_ = np.zeros(n, dtype=np.bool_)
    cursor = indptr[:-1].copy()
    path = np.empty(n, dtype=np.int32)
    for root in range(n):
        if depth[root] >= 0:
            continue
        length = 1
        path[0] = root
        depth[root] = 0
        open_[root] = True
        while length > 0:
            v = path[length - 1]
            e = cursor[v]
            if e == indptr[v + 1]:
                open_[v] = False
                length -= 1
                continue
            cursor[v] = e + 1
            w = targets[e]
            if depth[w] < 0:
                depth[w] = length
                open_[w] = True
                path[length] = w
                length += 1
            elif open_[w]:
                climb[e] = depth[v] - depth[w] + 1


@kernel
def eades_position(indptr: Any, targets: Any, rev_indptr: Any, rev_targets: Any) -> Any:
    """Return the position of each node in the order of Eades, Lin and Smyth's greedy heuristic.

    Sinks go to the end, sources to the front; if there are none, the node with the largest
    out-degree minus in-degree goes to the front. Nodes are kept in buckets by that difference
    (doubly linked lists), so the time is O(n + m). The graph must have no self-loops.
    """
    n = len(indptr) - 1
    position = np.full(n, -1, dtype=np.int64)
    out, into = indptr[1:] - indptr[:-1], rev_indptr[1:] - rev_indptr[:-1]
    widest = 0
    for v in range(n):
        widest = max(widest, out[v], into[v])  # degrees only shrink, their difference may grow
    # Bucket 0: sinks; bucket 1: sources; bucket widest + 2 + d: out-degree − in-degree = d.
    first = np.full(2 * widest + 3, -1, dtype=np.int64)
    follow = np.empty(n, dtype=np.int64)
    before = np.empty(n, dtype=np.int64)
    bucket = np.empty(n, dtype=np.int64)
    for v in range(n):
        b = 0 if out[v] == 0 else (1 if into[v] == 0 else widest + 2 + out[v] - into[v])
        link(v, b, bucket, first, follow, before)
    front, back = 0, n - 1
    best = 2 * widest + 2
    for _ in range(n):
        if first[0] >= 0:
            v = first[0]
            position[v] = back
            back -= 1
        else:
            v = first[1]
            if v < 0:
                while first[best] < 0:
                    best -= 1
                v = first[best]
            position[v] = front
            front += 1
        unlink(v, bucket, first, follow, before)
        for side in range(2):
            begin = indptr[v] if side == 0 else rev_indptr[v]
            end = indptr[v + 1] if side == 0 else rev_indptr[v + 1]
            for e in range(begin, end):
                w = targets[e] if side == 0 else rev_targets[e]
                if position[w] >= 0:
                    continue
                if side == 0:
                    into[w] -= 1
                else:
                    out[w] -= 1
                b = 0 if out[w] == 0 else (1 if into[w] == 0 else widest + 2 + out[w] - into[w])
                unlink(w, bucket, first, follow, before)
                link(w, b, bucket, first, follow, before)
                best = max(best, b)
    return position
