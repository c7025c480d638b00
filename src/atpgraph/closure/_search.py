"""The closure forest by searching, in time that follows what is stored.

Walk the forest depth first with a mark on everything that the current parent reaches, the parent
included: what a search from the other successors finds before it runs into marks is new, and is
marked in turn for the nodes below. So the cost is that of the edges and of the extras, however deep
the graph is; where extras are many, the bitsets of :mod:`~atpgraph.closure._blocks` are faster.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from atpgraph.closure._blocks import Extras, choose_parents, put_together
from atpgraph.closure.forest import depth_first, path_from_root
from atpgraph.closure.panel import Positions
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph.util.progress import Stage, stage
from atpgraph.util.threads import Workers, checkpoint

_TASKS_PER_THREAD = 4
_LEAST_TASK = 10_000  # nodes
_SLICE = 20_000_000  # edges: some tenths of a second
_BUFFER = 1 << 20  # extras

Listed = tuple[Int32Array, Int32Array, Int32Array]


def search_forest(view: Positions, guessed: Int32Array, threads: int) -> Extras:
    """Search with guessed parents for the sizes, then with the parents that the sizes name."""
    n = view.n
    counts = np.zeros(n, dtype=np.int32)
    with stage("closure: sizes", n) as progress:
        for _ in _walk_and_list(view, guessed, threads, counts, progress, write=False):
            pass
    sizes = np.zeros(n, dtype=np.int64)
    add_up_sizes(guessed, counts, sizes)
    parent = choose_parents(view, sizes)
    listed: list[Listed] = []
    with stage("closure: extras", n) as progress:
        for part in _walk_and_list(view, parent, threads, counts, progress, write=True):
            listed += part
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    return Extras(parent, indptr, put_together(listed, indptr), sizes)


class _Marks(NamedTuple):
    """Arrays of one thread: the way from the root, what it reaches, and marks on that.

    `path` is the way from the root; `held` has what is new at each node of it, from its place in
    `begins`; `state` the lengths of both, and the room that was missing. What is on the path or
    held is marked, and nothing else.
    """

    mark: BoolArray
    held: Int32Array
    path: Int32Array
    begins: Int32Array
    state: Int64Array

    @classmethod
    def of(cls, n: int) -> _Marks:
        """Arrays for n nodes."""
        held, path, begins = np.empty((3, n), dtype=np.int32)
        return cls(np.zeros(n, dtype=np.bool_), held, path, begins, np.zeros(3, dtype=np.int64))

    def clear(self) -> None:
        """Remove all marks."""
        self.mark[:] = False
        self.state[:] = 0


def _walk_and_list(
    view: Positions,
    parent: Int32Array,
    threads: int,
    counts: Int32Array,
    progress: Stage,
    *,
    write: bool,
) -> Iterator[list[Listed]]:
    """Fill `counts`, the extras of every node; with `write` yield the extras too, task by task."""
    n = view.n
    order = depth_first(np.arange(n, dtype=np.int32), parent)[0]
    free: SimpleQueue[_Marks] = SimpleQueue()
    for _ in range(threads):
        free.put(_Marks.of(n))

    def search_all(marks: _Marks, nodes: Int32Array, values: Int32Array) -> Iterator[Listed]:
        done = 0
        while done < len(nodes):
            checkpoint()
            stop, written = search(
                nodes, done, parent, view.successors, marks, counts, values, _SLICE
            )
            if stop > done:
                part = nodes[done:stop]
                yield part, counts[part], values[:written].copy()
                done = stop
            elif marks.state[2] > len(values):
                values = np.empty(marks.state[2], dtype=np.int32)

    def task(bounds: tuple[int, int]) -> list[Listed]:
        nodes = order[bounds[0] : bounds[1]]
        marks = free.get()
        try:
            # The way down to the first node, so that its parent's descendants are marked.
            above = path_from_root(parent[nodes[0]], parent)
            for _ in search_all(marks, above, np.empty(0, dtype=np.int32)):
                pass
            values = np.empty(_BUFFER if write else 0, dtype=np.int32)
            return list(search_all(marks, nodes, values))
        finally:
            marks.clear()
            free.put(marks)

    pieces = max(min(_TASKS_PER_THREAD * threads, n // _LEAST_TASK), 1)
    cuts = np.linspace(0, n, pieces + 1).astype(np.int64).tolist()
    with Workers(threads) as workers:
        for bounds, part in zip(
            itertools.pairwise(cuts), workers.map(task, itertools.pairwise(cuts)), strict=True
        ):
            progress.advance(bounds[1] - bounds[0])
            yield part


@kernel
def search(
    nodes: Int32Array,
    first: int,
    parent: Int32Array,
    edges: tuple[Int64Array, Int32Array],
    marks: _Marks,
    counts: Int32Array,
    values: Int32Array,
    limit: int,
) -> tuple[int, int]:
    """Count the extras of ``nodes[first:]``, nodes in depth-first order; list them in `values`.

    Stops after about `limit` edges, or when `values` is full (an empty one: they are only counted).
    Returns where, and the number of values.
    """
    indptr, successors = edges
    mark, held, path, begins, state = marks
    depth, top = state[0], state[1]
    i, written, work = first, 0, 0
    while i < len(nodes) and work < limit:
        u = nodes[i]
        p = parent[u]
        while depth > 0 and path[depth - 1] != p:
            depth -= 1
            mark[path[depth]] = False
            for k in range(begins[depth], top):
                mark[held[k]] = False
            top = begins[depth]
        begin = top
        x = u
        k = begin
        while p >= 0:
            work += indptr[x + 1] - indptr[x] + 1
            for e in range(indptr[x], indptr[x + 1]):
                y = successors[e]
                if not mark[y]:
                    mark[y] = True
                    held[top] = y
                    top += 1
            if k == top:
                break
            x = held[k]
            k += 1
        count = top - begin
        if len(values) > 0:
            if written + count > len(values):
                for k in range(begin, top):
                    mark[held[k]] = False
                top = begin
                state[2] = count
                break
            sort_into(held, begin, top, values, written)
            written += count
        counts[u] = count
        path[depth] = u
        begins[depth] = begin
        mark[u] = True
        depth += 1
        i += 1
    state[0], state[1] = depth, top
    return i, written


@kernel
def sort_into(source: Int32Array, first: int, stop: int, into: Int32Array, at: int) -> None:
    """Copy a part of `source`, sorted: Shell's method, for short lists that are nearly in order."""
    n = stop - first
    for i in range(n):
        into[at + i] = source[first + i]
    gap = 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = into[at + i]
            j = i - gap
            while j >= 0 and into[at + j] > value:
                into[at + j + gap] = into[at + j]
                j -= gap
            into[at + j + gap] = value
        gap //= 3


@kernel
def add_up_sizes(parent: Int32Array, counts: Int32Array, sizes: Int64Array) -> None:
    """|R(u)| of every position, from the number of extras; parents have lower positions."""
    for u in range(len(parent)):
        p = parent[u]
        sizes[u] = sizes[p] + 1 + counts[u] if p >= 0 else 0
