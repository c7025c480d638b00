"""Compiled kernels that read a finished closure forest."""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.jit import kernel


@kernel
def preorder(
    parents_first: Int32Array,
    parent: Int32Array,
    start: Int32Array,
    size: Int32Array,
    slot: Int32Array,
) -> None:
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


def depth_first(
    parents_first: Int32Array, parent: Int32Array
) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array]:
    """The nodes in preorder, and `start`, `size` and `slot` of :func:`preorder`."""
    n = len(parent)
    start, size, slot = (np.empty(n, dtype=np.int32) for _ in range(3))
    preorder(parents_first, parent, start, size, slot)
    order = np.empty(n, dtype=np.int32)
    order[start] = np.arange(n, dtype=np.int32)
    return order, start, size, slot


@kernel
def path_from_root(node: int, parent: Int32Array) -> Int32Array:
    """The nodes from the root of the forest down to `node`; empty for −1."""
    depth = 0
    u = node
    while u >= 0:
        depth += 1
        u = parent[u]
    path = np.empty(depth, dtype=np.int32)
    u = node
    while u >= 0:
        depth -= 1
        path[depth] = u
        u = parent[u]
    return path


@kernel
def mark_descendants(
    node: int, parent: Int32Array, indptr: Int64Array, extras: Int32Array, reached: BoolArray
) -> None:
    """Mark what a node reaches: the way up the forest, and the extras on it."""
    u = node
    while u >= 0:
        for e in range(indptr[u], indptr[u + 1]):
            reached[extras[e]] = True
        u = parent[u]
        if u >= 0:
            reached[u] = True


@kernel
def transpose(
    order: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    holders_indptr: Int64Array,
    holders: Int32Array,
) -> None:
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
    sources: Int64Array,
    targets: Int64Array,
    order: Int32Array,
    start: Int32Array,
    size: Int32Array,
    holders_indptr: Int64Array,
    holders: Int32Array,
    answer: BoolArray,
) -> None:
    """Whether each source reaches its target, by one binary search."""
    for q in range(len(sources)):
        v = targets[q]
        place = start[sources[q]]
        if start[v] < place < start[v] + size[v]:
            answer[q] = True
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
            answer[q] = place < top + size[order[top]]


@kernel
def fill_rows(
    order: Int32Array,
    start: Int32Array,
    size: Int32Array,
    holders_indptr: Int64Array,
    holders: Int32Array,
    levels: Int32Array,
    table: Float64Array,
    cursor: Int64Array,
    columns: Int32Array,
    values: Float64Array,
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
