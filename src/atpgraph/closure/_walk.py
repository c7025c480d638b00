"""Compiled kernels that read a finished closure forest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atpgraph._jit import kernel

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@kernel
def preorder(parents_first: I32, parent: I32, start: I32, size: I32, slot: I32) -> None:
    """Depth-first numbering of the forest in which the heaviest child comes last.

    ``start[u]`` is the place of u, its subtree takes ``size[u]`` places from there. ``slot[u]`` is
    the number of edges on the way from the root that do not lead to the last child. Each such
    edge at least halves the subtree, so slots stay below log2(n) + 1 however deep the forest is.
    """
    n = len(parent)
    heavy = np.full(n, -1, dtype=np.int32)
    for i in range(n):
        size[i] = 1
    for i in range(n - 1, -1, -1):
        u = parents_first[i]
        p = parent[u]
        if p >= 0:
            size[p] += size[u]
            if heavy[p] < 0 or size[u] > size[heavy[p]]:
                heavy[p] = u
    cursor = np.empty(n, dtype=np.int32)
    free = 0
    for i in range(n):
        u = parents_first[i]
        p = parent[u]
        if p < 0:
            start[u] = free
            free += size[u]
            slot[u] = 0
        elif heavy[p] == u:
            start[u] = start[p] + size[p] - size[u]
            slot[u] = slot[p]
        else:
            start[u] = cursor[p]
            cursor[p] += size[u]
            slot[u] = slot[p] + 1
        cursor[u] = start[u] + 1


@kernel
def transpose(order: I32, indptr: I64, extras: I32, holders_indptr: I64, holders: I32) -> None:
    """For every node the nodes that list it as an extra, by place in the preorder."""
    n = len(order)
    for e in range(len(extras)):
        holders_indptr[extras[e] + 1] += 1
    for v in range(n):
        holders_indptr[v + 1] += holders_indptr[v]
    cursor = holders_indptr[:-1].copy()
    for i in range(n):
        u = order[i]
        for e in range(indptr[u], indptr[u + 1]):
            v = extras[e]
            holders[cursor[v]] = i
            cursor[v] += 1


@kernel
def reaches(
    sources: I64,
    targets: I64,
    order: I32,
    start: I32,
    size: I32,
    holders_indptr: I64,
    holders: I32,
    found: npt.NDArray[np.bool_],
) -> None:
    """Whether each source reaches its target, by one binary search."""
    for q in range(len(sources)):
        v = targets[q]
        place = start[sources[q]]
        if start[v] < place < start[v] + size[v]:
            found[q] = True
            continue
        low = holders_indptr[v]
        high = holders_indptr[v + 1]
        while low < high:
            middle = (low + high) >> 1
            if holders[middle] <= place:
                low = middle + 1
            else:
                high = middle
        if low > holders_indptr[v]:
            top = holders[low - 1]
            found[q] = place < top + size[order[top]]


@kernel
def fill_rows(
    order: I32,
    start: I32,
    size: I32,
    holders_indptr: I64,
    holders: I32,
    levels: I32,
    table: F64,
    cursor: I64,
    columns: I32,
    values: F64,
) -> None:
    """Write the matrix out row by row; columns come out ascending in every row."""
    n = len(order)
    for v in range(n):
        for h in range(holders_indptr[v], holders_indptr[v + 1] + 1):
            if h < holders_indptr[v + 1]:
                first = holders[h]
                end = first + size[order[first]]
            else:
                first = start[v] + 1
                end = start[v] + size[v]
            for place in range(first, end):
                u = order[place]
                at = cursor[u]
                columns[at] = v
                values[at] = table[levels[v] - levels[u]]
                cursor[u] = at + 1
