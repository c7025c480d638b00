"""The closure forest by bitsets over blocks of target columns.

One pass over the blocks counts closures, from which the parents follow; a second lists extras.

Kernels number the nodes by position (:class:`~atpgraph.closure.panel.Positions`). A block is a set
of columns (positions, ascending); ``bits[u]`` is the set of block columns that u reaches. Only
nodes that reach the block are visited, so a block costs what its ancestors cost, not the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from atpgraph.closure.panel import Positions
from atpgraph.util.arrays import Float32Array, Int32Array, Int64Array, UInt64Array
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel
from atpgraph.util.progress import stage
from atpgraph.util.threads import Workers

T = TypeVar("T")

MAX_WORDS = 16


@dataclass(frozen=True, eq=False)
class Extras:
    """A closure forest in positions: parents, what is new at every position, and sizes."""

    parent: Int32Array
    indptr: Int64Array
    extras: Int32Array
    sizes: Int64Array


def block_forest(view: Positions, words: int, threads: int) -> Extras:
    """Parents, extras and sizes with blocks of `words` times 64 columns."""
    n = view.n
    spaces: SimpleQueue[Workspace] = SimpleQueue()
    for _ in range(threads):
        spaces.put(Workspace(n, words))
    positions = np.arange(n, dtype=np.int32)
    blocks = [positions[i : i + 64 * words] for i in range(0, n, 64 * words)]

    def with_space(work: Callable[[Workspace, Int32Array], T]) -> Iterable[T]:
        def task(columns: Int32Array) -> T:
            space = spaces.get()
            try:
                return work(space, columns)
            finally:
                spaces.put(space)

        with Workers(threads) as workers:
            yield from workers.map(task, blocks)

    sizes = np.zeros(n, dtype=np.int64)
    with stage("closure: sizes", len(blocks)) as progress:
        for _ in with_space(lambda space, columns: space.count(view, columns)):
            progress.advance()
    for _ in range(threads):
        space = spaces.get()
        sizes += space.sizes
        spaces.put(space)
    parent = choose_parents(view, sizes)

    listed: list[tuple[Int32Array, Int32Array, Int32Array]] = []
    indptr = np.zeros(n + 1, dtype=np.int64)
    with stage("closure: extras", len(blocks)) as progress:
        for block in with_space(lambda space, columns: space.extras(view, columns, parent)):
            indptr[block[0] + 1] += block[1]
            listed.append(block)
            progress.advance()
    for _ in range(threads):
        spaces.get()  # give the bitsets back before the extras are put together
    np.cumsum(indptr, out=indptr)
    return Extras(parent, indptr, put_together(listed, indptr), sizes)


def choose_parents(view: Positions, sizes: Int64Array) -> Int32Array:
    """The successor of every node that has the largest closure, by the sizes given."""
    parent = np.full(view.n, -1, dtype=np.int32)
    _largest_successors(*view.predecessors, sizes, parent)
    return parent


def put_together(
    listed: list[tuple[Int32Array, Int32Array, Int32Array]], indptr: Int64Array
) -> Int32Array:
    """The extras of all nodes, from (nodes, their numbers of extras, the extras); `listed` ends up
    empty. Parts of the same node keep their order.
    """
    extras = np.empty(indptr[-1], dtype=np.int32)
    cursor = indptr[:-1].copy()
    listed.reverse()
    while listed:
        _place(*listed.pop(), cursor, extras)
    return extras


class Workspace:
    """Arrays of one thread; between blocks `bits` and `touched` are zero and `slot` is −1."""

    def __init__(self, n: int, words: int) -> None:
        self.bits = np.zeros((n, words), dtype=np.uint64)
        self.touched = np.zeros(n // 64 + 1, dtype=np.uint64)
        self.slot = np.full(n, -1, dtype=np.int32)
        self.visited = np.empty(n, dtype=np.int32)
        self.sizes = np.zeros(n, dtype=np.int64)

    @staticmethod
    def bytes_for(n: int, words: int) -> int:
        return n * (8 * words + 17)

    def count(self, view: Positions, columns: Int32Array) -> None:
        """Add the closure sizes within the block to `sizes`."""
        count = self._spread(view, columns)
        _add_sizes(self.bits, self.visited, count, self.sizes)
        self._clear(columns, count)

    def extras(
        self, view: Positions, columns: Int32Array, parent: Int32Array
    ) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Nodes with extras in the block, how many, and the extras one after the other."""
        count = self._spread(view, columns)
        counts = np.empty(count, dtype=np.int32)
        arguments = (self.bits, self.visited, count, parent, self.slot, columns, counts)
        total = _list_extras(*arguments, np.empty(0, dtype=np.int32))
        values = np.empty(total, dtype=np.int32)
        if total:
            _list_extras(*arguments, values)
        some = counts > 0
        holders = self.visited[:count][some]
        self._clear(columns, count)
        return holders, counts[some], values

    def _spread(self, view: Positions, columns: Int32Array) -> int:
        return _spread(
            *view.predecessors,
            columns,
            self.slot,
            self.bits,
            self.touched,
            self.visited,
        )

    def _clear(self, columns: Int32Array, count: int) -> None:
        _clear(columns, self.slot, self.bits, self.touched, self.visited, count)


def block_width(n: int, budget: int, threads: int) -> tuple[int, int]:
    """Words per block row and threads such that the bitsets take at most half the budget."""
    needed = max(-(-n // 64), 1)
    while threads > 1 and threads * Workspace.bytes_for(n, 1) > budget // 2:
        threads -= 1
    words = MAX_WORDS
    while words > 1 and (
        words >= 2 * needed or threads * Workspace.bytes_for(n, words) > budget // 2
    ):
        words //= 2
    return words, threads


@kernel
def _spread(
    indptr: Int64Array,
    predecessors: Int32Array,
    columns: Int32Array,
    slot: Int32Array,
    bits: UInt64Array,
    touched: UInt64Array,
    visited: Int32Array,
) -> int:
    """Fill `bits` for the block; the nodes that matter go to `visited`, ascending.

    `bits` and `touched` must be zero and `slot` −1 on entry; :func:`_clear` restores that.
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
def _clear(
    columns: Int32Array,
    slot: Int32Array,
    bits: UInt64Array,
    touched: UInt64Array,
    visited: Int32Array,
    count: int,
) -> None:
    """Undo :func:`_spread`."""
    for c in range(len(columns)):
        slot[columns[c]] = -1
    for i in range(count):
        v = visited[i]
        touched[v >> 6] = 0
        for w in range(bits.shape[1]):
            bits[v, w] = 0


@kernel
def _add_sizes(bits: UInt64Array, visited: Int32Array, count: int, sizes: Int64Array) -> None:
    """Add the number of block columns each node reaches to `sizes`."""
    for i in range(count):
        v = visited[i]
        total = np.uint64(0)
        for w in range(bits.shape[1]):
            total += popcount(bits[v, w])
        sizes[v] += np.int64(total)


@kernel
def _list_extras(
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
def _place(
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
def _largest_successors(
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
def smallest_draws(
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
