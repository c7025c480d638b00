"""Answer reachability from one cache line per node, for graphs whose closure forest is too large.

Each node gets 64 bytes: which of 64 hub nodes it reaches and is reached from (exact bits), two
Bloom filters of its descendants and ancestors, its interval in a spanning forest, and its levels.
Most pairs are decided by comparing two such lines; the rest by a search from both ends that the
same comparison prunes. After BFL (Su, Zhu, Wei and Yu, 2017) and O'Reach (Hanauer, Schulz and
Trummer, 2022).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atpgraph.closure.forest import depth_first
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import peel, sweep
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, UInt64Array
from atpgraph.util.jit import NEAR, kernel, popcount, prefetch
from atpgraph.util.random import generator

# The words of a line.
_WORDS = 8
_DOWN, _UP = 0, 3  # hubs and two Bloom words of what a node reaches, and of what reaches it
_INTERVAL = 6  # its place in the preorder of a spanning forest, and the end of its subtree
_LEVELS = 7  # 1 + the longest path into the node, and out of it
_GROUPS = 640  # for each Bloom word: neighbors in the preorder share a bit, so labels stay sparse
_HUBS = 64
_WORTHWHILE = 0.05  # share of random pairs below which hubs make room for a wider Bloom filter
_PAIRS = 4096  # random pairs that the choice should decide

_CHUNK = 50_000  # pairs between two checks for Ctrl-C


class LabelArrays(NamedTuple):
    """Input of the compiled search: an acyclic graph, its reverse, and a line for each node."""

    indptr: Int64Array
    targets: Int32Array
    back_indptr: Int64Array
    back_targets: Int32Array
    lines: UInt64Array
    hubs: bool  # whether the first word of each label holds hubs, else it is one more Bloom word


class ReachLabels:
    """Reachability of an acyclic graph from a fixed number of bytes per node.

    Parameters
    ----------
    dag : DiGraph
        A graph whose edges go from higher to lower node indices, such as a condensation.

    Examples
    --------
    >>> labels = ReachLabels(DiGraph.from_codes([2, 1], [1, 0], 4))
    >>> each = np.arange(4, dtype=np.int32)
    >>> labels.answer(each, np.array([2, 0, 3]), np.array([0, 2, 3])).tolist()
    [True, False, True]
    """

    def __init__(self, dag: DiGraph) -> None:
        n, back = dag.n_nodes, dag.reverse()
        self._spare: list[Int32Array] = []
        # Aligned to cache lines: a line that straddles two costs two misses.
        room = np.zeros(n * _WORDS + _WORDS, dtype=np.uint64)
        skip = (-room.ctypes.data // 8) % _WORDS
        self.lines = room[skip : skip + n * _WORDS].reshape(n, _WORDS)
        self.arrays = LabelArrays(
            dag.indptr, dag.targets, back.indptr, back.targets, self.lines, True
        )
        if n:
            start = self._place()
            depth, height = (peel(way)[1].astype(np.uint64) for way in (dag, back))
            self.lines[:, _LEVELS] = depth << np.uint64(32) | height
            hubs = self._add_hubs()
            self.arrays = self.arrays._replace(hubs=hubs)
            words = 2 if hubs else 3
            for side in (_DOWN, _UP):
                self._hash(start, side + 3 - words, words)
                self._sweep(side + 3 - words, side + 3)

    @property
    def nbytes(self) -> int:
        """Return the size of the index in bytes, without the graph."""
        return int(self.lines.nbytes)

    def answer(self, node: Int32Array, sources: Int64Array, targets: Int64Array) -> BoolArray:
        """Return whether ``node[source]`` reaches, or is, ``node[target]``, without any check."""
        answer = np.empty(len(sources), dtype=np.bool_)
        # Marks of earlier searches stay valid as long as stamps only rise; threads that ask at the
        # same time each take a scratch pad of their own.
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = np.zeros((2, len(self.lines) + 1), dtype=np.int32)
        if scratch[0, -1] > np.iinfo(np.int32).max - len(sources):
            scratch[:] = 0
        for first in range(0, len(sources), _CHUNK):
            part = slice(first, first + _CHUNK)
            _answer(self.arrays, node, sources[part], targets[part], scratch, answer[part])
        self._spare.append(scratch)
        return answer

    def _sweep(self, first: int, stop: int) -> None:
        """Set, in these words, the bits of the nodes that each node reaches, or that reach it."""
        order, (down, heads, back, tails) = np.arange(len(self.lines)), self.arrays[:4]
        if first >= _UP:
            order, down, heads = order[::-1].copy(), back, tails
        sweep(order, down, heads, self.lines, self.lines, first, stop)

    def _hash(self, start: Int32Array, first: int, words: int) -> None:
        """Set each node's own bit in a Bloom filter of `words` words."""
        n = len(start)
        groups = _GROUPS * words
        bit_of = generator(0).integers(0, 64 * words, groups)
        bit = bit_of[start.astype(np.int64) * groups // n]
        self.lines[np.arange(n), first + (bit >> 6)] = np.uint64(1) << (bit & 63).astype(np.uint64)

    def _place(self) -> Int32Array:
        """Fill in the intervals; return the position of each node in preorder."""
        arrays, n = self.arrays, len(self.lines)
        parent = np.full(n, -1, dtype=np.int32)
        has_parent = np.diff(arrays.back_indptr) > 0
        # The nearest predecessor in the order gives deep trees, whose intervals decide more.
        if has_parent.any():
            starts = arrays.back_indptr[:-1][has_parent]
            parent[has_parent] = np.minimum.reduceat(arrays.back_targets, starts)
        parents_first = np.arange(n - 1, -1, -1, dtype=np.int32)
        _, start, size, _ = depth_first(parents_first, parent)
        end = (start + size).astype(np.uint64)
        self.lines[:, _INTERVAL] = (start.astype(np.uint64) << np.uint64(32)) | end
        return start

    def _add_hubs(self) -> bool:
        """Choose the nodes on the most paths as hubs, unless few random pairs use them."""
        arrays, n = self.arrays, len(self.lines)
        degrees = (np.diff(arrays.indptr) + 1.0) * (np.diff(arrays.back_indptr) + 1.0)
        count = min(_HUBS, n)
        hubs = np.argpartition(-degrees, count - 1)[:count]
        for side in (_DOWN, _UP):
            self.lines[hubs, side] = np.uint64(1) << np.arange(count, dtype=np.uint64)
            self._sweep(side, side + 1)
        u, v = generator(0).integers(0, n, (2, _PAIRS))
        joined = self.lines[np.maximum(u, v), _DOWN] & self.lines[np.minimum(u, v), _UP] != 0
        if joined.mean() >= _WORTHWHILE:
            return True
        self.lines[:, [_DOWN, _UP]] = 0
        return False


@kernel
def decide(lines: UInt64Array, hubs: bool, u: int, v: int) -> int:
    """Return 0 if the lines exclude a path from u to v, 1 if they prove one, else 2."""
    half = np.uint64(32)
    low = np.uint64(0xFFFFFFFF)
    place = lines[v, 6] >> half
    if lines[u, 6] >> half < place and place < lines[u, 6] & low:
        return 1
    if hubs and lines[u, 0] & lines[v, 3] != 0:  # a hub that u reaches and that reaches v
        return 1
    # What v reaches, u would reach; what reaches u would reach v.
    missing = lines[v, 0] & ~lines[u, 0]
    missing |= lines[v, 1] & ~lines[u, 1]
    missing |= lines[v, 2] & ~lines[u, 2]
    missing |= lines[u, 3] & ~lines[v, 3]
    missing |= lines[u, 4] & ~lines[v, 4]
    missing |= lines[u, 5] & ~lines[v, 5]
    if missing != 0:
        return 0
    if lines[u, 7] >> half >= lines[v, 7] >> half:
        return 0
    if lines[u, 7] & low <= lines[v, 7] & low:
        return 0
    return 2


@kernel
def _search(
    arrays: LabelArrays, u: int, v: int, stamp: int, seen: Int32Array, stack: Int32Array
) -> bool:
    """Search depth first, among nodes that may lie on a path, from the end with the emptier label.

    A label with few bits belongs to a node with few descendants (or ancestors), where the search
    tree is small and the comparisons prune best.
    """
    down = popcount(arrays.lines[u, 1]) <= popcount(arrays.lines[v, 4])
    indptr = arrays.indptr if down else arrays.back_indptr
    heads = arrays.targets if down else arrays.back_targets
    words = arrays.lines.reshape(-1)
    goal = v if down else u
    stack[0] = u if down else v
    count = 1
    while count > 0:
        count -= 1
        first, stop = indptr[stack[count]], indptr[stack[count] + 1]
        # Rows ascend, and a node beyond the goal is on no path to it.
        while down and first < stop and heads[first] < goal:
            first += 1
        while not down and first < stop and heads[stop - 1] > goal:
            stop -= 1
        # The lines of all neighbors are fetched at the same time, else each is waited for.
        for e in range(first, stop):
            prefetch(words, 8 * np.int64(heads[e]))
        for e in range(first, stop):
            y = heads[e]
            if y == goal:
                return True
            verdict = decide(arrays.lines, arrays.hubs, y if down else u, v if down else y)
            if verdict == 1:
                return True
            if verdict == 2 and seen[y] != stamp:
                seen[y] = stamp
                stack[count] = y
                count += 1
                prefetch(indptr, np.int64(y))
    return False


@kernel
def _answer(arrays: Any, node: Any, sources: Any, targets: Any, scratch: Any, answer: Any) -> None:
    words = arrays.lines.reshape(-1)
    count = len(sources)
    seen, stack = scratch[0], scratch[1]
    stamp = seen[-1]
    for q in range(count):
        ahead = q + NEAR
        if ahead < count:
            prefetch(words, 8 * np.int64(node[sources[ahead]]))
            prefetch(words, 8 * np.int64(node[targets[ahead]]))
        u, v = node[sources[q]], node[targets[q]]
        if u <= v:  # edges go down
            answer[q] = u == v
            continue
        verdict = decide(arrays.lines, arrays.hubs, u, v)
        if verdict == 2:
            stamp += 1
            answer[q] = _search(arrays, u, v, stamp, seen, stack)
        else:
            answer[q] = verdict == 1
    seen[-1] = stamp
