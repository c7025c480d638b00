"""Compiled kernels of the closure: bitsets over a block of target columns.

Nodes are numbered by *position*: sinks first, so that the descendants of a node have lower
positions. A block is a set of columns (positions, ascending); ``bits[u]`` is the set of block
columns that u reaches. Only nodes that reach the block are ever visited, so the cost of a block is
that of its ancestors, not of the graph.
"""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import Float32Array, Int32Array, Int64Array, UInt64Array
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel


@kernel
def spread(
    indptr: Int64Array,
    predecessors: Int32Array,
    columns: Int32Array,
    slot: Int32Array,
    bits: UInt64Array,
    touched: UInt64Array,
    visited: Int32Array,
) -> int:
    """Fill `bits` for the block; the nodes that matter go to `visited`, ascending.

    `bits` and `touched` must be zero and `slot` −1 on entry; :func:`clear` restores that.
    """
    one = np.uint64(1)
    words = bits.shape[1]
    for c in range(len(columns)):
        v = columns[c]
        slot[v] = c
        touched[v >> 6] |= one << np.uint64(v & 63)
    count = 0
    for word in range(columns[0] >> 6, len(touched)):
        # Bits found while a word is worked off are higher than the current one: a predecessor
        # has a higher position. So the lowest bit left is always the next node.
        left = touched[word]
        while left != 0:
            low = left & (~left + one)
            v = (word << 6) + np.int64(popcount(low - one))
            visited[count] = v
            count += 1
            own = slot[v]
            for e in range(indptr[v], indptr[v + 1]):
                u = predecessors[e]
                for w in range(words):
                    bits[u, w] |= bits[v, w]
                if own >= 0:
                    bits[u, own >> 6] |= one << np.uint64(own & 63)
                touched[u >> 6] |= one << np.uint64(u & 63)
            left = touched[word] & ~(low | (low - one))
    return count


@kernel
def clear(
    columns: Int32Array,
    slot: Int32Array,
    bits: UInt64Array,
    touched: UInt64Array,
    visited: Int32Array,
    count: int,
) -> None:
    """Undo :func:`spread`."""
    for c in range(len(columns)):
        slot[columns[c]] = -1
    for i in range(count):
        v = visited[i]
        touched[v >> 6] = 0
        for w in range(bits.shape[1]):
            bits[v, w] = 0


@kernel
def add_sizes(bits: UInt64Array, visited: Int32Array, count: int, sizes: Int64Array) -> None:
    """Add the number of block columns each node reaches to `sizes`."""
    for i in range(count):
        v = visited[i]
        total = np.uint64(0)
        for w in range(bits.shape[1]):
            total += popcount(bits[v, w])
        sizes[v] += np.int64(total)


@kernel
def list_extras(
    bits: UInt64Array,
    visited: Int32Array,
    count: int,
    parent: Int32Array,
    slot: Int32Array,
    columns: Int32Array,
    counts: Int32Array,
    values: Int32Array,
) -> np.int64:
    """Block columns that a node reaches and its parent neither reaches nor is.

    The number of extras of ``visited[i]`` goes to ``counts[i]``, the extras themselves go one after
    the other to `values`, except where `values` is empty: then they are only counted.
    """
    one = np.uint64(1)
    total = np.int64(0)
    write = len(values) > 0
    for i in range(count):
        v = visited[i]
        p = parent[v]
        before = total
        own = slot[p] if p >= 0 else -1
        for w in range(bits.shape[1]):
            fresh = bits[v, w]
            if fresh == 0 or p < 0:
                continue
            fresh &= ~bits[p, w]
            if own >= 0 and own >> 6 == w:
                fresh &= ~(one << np.uint64(own & 63))
            if not write:
                total += np.int64(popcount(fresh))
                continue
            while fresh != 0:
                low = fresh & (~fresh + one)
                values[total] = columns[(w << 6) + np.int64(popcount(low - one))]
                total += 1
                fresh ^= low
        counts[i] = total - before
    return total


@kernel
def place(
    visited: Int32Array,
    counts: Int32Array,
    values: Int32Array,
    cursor: Int64Array,
    extras: Int32Array,
) -> None:
    """Move the extras of one block to their places in the CSR array."""
    start = 0
    for i in range(len(visited)):
        v = visited[i]
        for k in range(counts[i]):
            extras[cursor[v] + k] = values[start + k]
        cursor[v] += counts[i]
        start += counts[i]


@kernel
def choose_parents(
    indptr: Int64Array, predecessors: Int32Array, sizes: Int64Array, parent: Int32Array
) -> None:
    """The parent of a node is its successor with the largest closure.

    Of equals the last, the one farthest from the sinks: with estimated sizes it is the safer one.
    """
    for v in range(len(parent)):
        for e in range(indptr[v], indptr[v + 1]):
            u = predecessors[e]
            if parent[u] < 0 or sizes[v] >= sizes[parent[u]]:
                parent[u] = v


@kernel
def sketch(
    indptr: Int64Array, predecessors: Int32Array, draws: Float32Array, smallest: Float32Array
) -> None:
    """Smallest of each of the independent draws over the descendants of every node.

    With exponential draws the minimum over a set of s nodes is exponential with rate s, so a few
    of them tell the size of a closure, large or small, in one sweep over the edges.
    """
    for v in range(draws.shape[0]):
        for e in range(indptr[v], indptr[v + 1]):
            u = predecessors[e]
            for k in range(draws.shape[1]):
                smallest[u, k] = min(smallest[u, k], min(smallest[v, k], draws[v, k]))


@kernel
def gather_rows(
    position: Int32Array,
    indptr: Int64Array,
    extras: Int32Array,
    nodes: Int32Array,
    node_indptr: Int64Array,
    by_node: Int32Array,
) -> None:
    """Reorder CSR rows from positions to node indices, translating the entries too."""
    for u in range(len(position)):
        at = node_indptr[u]
        for e in range(indptr[position[u]], indptr[position[u] + 1]):
            by_node[at] = nodes[extras[e]]
            at += 1
