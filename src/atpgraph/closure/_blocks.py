"""The closure forest by bitsets over blocks of target columns.

One pass over the blocks counts closures, from which the parents follow; a second lists extras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from atpgraph.closure import _bitset
from atpgraph.closure._positions import Extras, Positions
from atpgraph.util.arrays import Int32Array, Int64Array
from atpgraph.util.progress import stage
from atpgraph.util.threads import Workers

T = TypeVar("T")

MAX_WORDS = 16


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
    _bitset.choose_parents(*view.predecessors, sizes, parent)
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
        _bitset.place(*listed.pop(), cursor, extras)
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
        _bitset.add_sizes(self.bits, self.visited, count, self.sizes)
        self._clear(columns, count)

    def extras(
        self, view: Positions, columns: Int32Array, parent: Int32Array
    ) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Nodes with extras in the block, how many, and the extras one after the other."""
        count = self._spread(view, columns)
        counts = np.empty(count, dtype=np.int32)
        arguments = (self.bits, self.visited, count, parent, self.slot, columns, counts)
        total = _bitset.list_extras(*arguments, np.empty(0, dtype=np.int32))
        values = np.empty(total, dtype=np.int32)
        if total:
            _bitset.list_extras(*arguments, values)
        some = counts > 0
        holders = self.visited[:count][some]
        self._clear(columns, count)
        return holders, counts[some], values

    def _spread(self, view: Positions, columns: Int32Array) -> int:
        return _bitset.spread(
            *view.predecessors,
            columns,
            self.slot,
            self.bits,
            self.touched,
            self.visited,
        )

    def _clear(self, columns: Int32Array, count: int) -> None:
        _bitset.clear(columns, self.slot, self.bits, self.touched, self.visited, count)


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
