"""Random paths: descendants drawn from a closure forest, O(log n) for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from atpgraph.closure.forest import ClosureForest
from atpgraph.util.arrays import BoolArray, Float64Array, Int32Array, Int64Array, IntArray
from atpgraph.util.jit import kernel


@dataclass(frozen=True, eq=False)
class PathSampler:
    """Draws pairs joined by a path, and tells them from others.

    Examples
    --------
    >>> from atpgraph.closure import closure_forest
    >>> from atpgraph.graph import DiGraph
    >>> sampler = PathSampler(closure_forest(DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)))
    >>> u, v = sampler.draw(np.array([0, 2], dtype=np.int32), 2, np.uint64(1))
    >>> u.tolist(), bool(sampler.joined(u, v).all())
    ([0, 0, 2], True)
    """

    forest: ClosureForest

    @property
    def sizes(self) -> Int64Array:
        """Number of descendants of every node."""
        return self.forest.sizes

    @cached_property
    def _jumps(self) -> Int32Array:
        jump = np.empty(self.forest.n_nodes, dtype=np.int32)
        _jumps(self.forest.order, self.forest.parent, jump)
        return jump

    def draw(self, nodes: Int32Array, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` descendants of each node, as pairs in the order of `nodes`.

        All of them where there are no more; else at even distances along the forest from a random
        place on, so that no one comes twice and each is as likely.
        """
        f = self.forest
        drawn = np.minimum(f.sizes[nodes], count)
        targets = np.empty(int(drawn.sum()), dtype=np.int32)
        _draw(
            nodes, drawn, seed, f.parent, self._jumps, f.sizes, f.extras_indptr, f.extras, targets
        )
        return np.repeat(nodes, drawn), targets

    def reached(self, nodes: IntArray) -> Iterator[Int32Array]:
        """The descendants of each node, ascending."""
        for node in nodes.tolist():
            yield self.forest.descendants(node)

    def popularity(self, count: int) -> Float64Array:
        """Share of the pairs of ``draw(all nodes, count)`` that end at each node, as expected."""
        f = self.forest
        drawn = np.minimum(f.sizes, count)
        weight = drawn / np.maximum(f.sizes, 1)
        # The nodes that reach v are below v in the forest, and below those that list v.
        before = np.concatenate([[0.0], np.cumsum(weight[f.order])])
        below = before[f.start + f.subtree] - before[f.start]
        share = np.bincount(f.extras, np.repeat(below, np.diff(f.extras_indptr)), f.n_nodes)
        reached = (f.subtree > 1) | (share > 0)
        return np.where(reached, share + below - weight, 0.0) / max(int(drawn.sum()), 1)

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path leads from each `u` to its `v`."""
        return self.forest.reaches(u, v)


@dataclass(frozen=True, eq=False)
class AncestorSampler:
    """The paths of the graph turned round, from the same forest: its ancestors are drawn.

    Examples
    --------
    >>> from atpgraph.closure import closure_forest
    >>> from atpgraph.graph import DiGraph
    >>> back = AncestorSampler(closure_forest(DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)))
    >>> back.sizes.tolist(), back.draw(np.array([2], dtype=np.int32), 9, np.uint64(1))[1].tolist()
    ([0, 1, 2, 3], [1, 0])
    """

    forest: ClosureForest

    @property
    def sizes(self) -> Int64Array:
        """Number of ancestors of every node."""
        return self._counted[0]

    @cached_property
    def _counted(self) -> tuple[Int64Array, Int32Array]:
        f = self.forest
        indptr, holders = f.holders
        sizes = np.empty(f.n_nodes, dtype=np.int64)
        before = np.empty(len(holders), dtype=np.int32)
        _count(indptr, holders, f.order, f.subtree, sizes, before)
        return sizes, before

    def draw(self, nodes: Int32Array, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` ancestors of each node, chosen as :meth:`PathSampler.draw` does."""
        f = self.forest
        sizes, before = self._counted
        drawn = np.minimum(sizes[nodes], count)
        ancestors = np.empty(int(drawn.sum()), dtype=np.int32)
        _draw_ancestors(
            nodes, drawn, seed, sizes, *f.holders, before, f.order, f.start, f.subtree, ancestors
        )
        return np.repeat(nodes, drawn), ancestors

    def reached(self, nodes: IntArray) -> Iterator[Int32Array]:
        """The ancestors of each node, ascending."""
        for node in nodes.tolist():
            yield self.forest.ancestors(node)

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path of the graph leads to each `u` from its `v`."""
        return self.forest.reaches(v, u)


@kernel
def _jumps(order: Int32Array, parent: Int32Array, jump: Int32Array) -> None:
    """A second way up the forest for every node: skew-binary jumps, by which any ancestor is
    O(log depth) steps away.

    A jump goes as far as the two jumps above it together if those have the same length, else to
    the parent; a root jumps to itself.
    """
    depth = np.zeros(len(parent), dtype=np.int32)
    for i in range(len(order)):
        u = order[i]
        p = parent[u]
        jump[u] = u
        if p >= 0:
            depth[u] = depth[p] + 1
            j = jump[p]
            same = depth[p] - depth[j] == depth[j] - depth[jump[j]]
            jump[u] = jump[j] if same else p


@kernel
def _draw(
    nodes: Int32Array,
    drawn: Int64Array,
    seed: np.uint64,
    parent: Int32Array,
    jump: Int32Array,
    sizes: Int64Array,
    indptr: Int64Array,
    extras: Int32Array,
    targets: Int32Array,
) -> None:
    """The descendants of u in the order extras(u), p, extras(p), …, at even distances."""
    state = seed
    at = 0
    for i in range(len(nodes)):
        u = nodes[i]
        size = sizes[u]
        state ^= state << np.uint64(13)  # xorshift
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        start = np.float64(state >> np.uint64(11)) / 2.0**53
        a = u
        for part in range(drawn[i]):
            # The descendant is new at the highest ancestor that still reaches `left` nodes. There
            # are fewer left each time: the way up goes on where the last one ended.
            left = size - np.int64((part + start) * size / drawn[i])
            while parent[a] >= 0 and sizes[parent[a]] >= left:
                a = jump[a] if sizes[jump[a]] >= left else parent[a]
            e = indptr[a] + sizes[a] - left
            targets[at] = extras[e] if e < indptr[a + 1] else parent[a]
            at += 1


@kernel
def _count(
    indptr: Int64Array,
    holders: Int32Array,
    order: Int32Array,
    subtree: Int32Array,
    sizes: Int64Array,
    before: Int32Array,
) -> None:
    """How many nodes reach v: those below v in the forest, and those from each holder down.

    `before` counts, for every holder, those before it.
    """
    for v in range(len(sizes)):
        total = np.int64(subtree[v] - 1)
        for e in range(indptr[v], indptr[v + 1]):
            before[e] = total
            total += subtree[order[holders[e]]]
        sizes[v] = total


@kernel
def _draw_ancestors(
    nodes: Int32Array,
    drawn: Int64Array,
    seed: np.uint64,
    sizes: Int64Array,
    indptr: Int64Array,
    holders: Int32Array,
    before: Int32Array,
    order: Int32Array,
    start: Int32Array,
    subtree: Int32Array,
    ancestors: Int32Array,
) -> None:
    """The ancestors of v, below v first and then from its holders down, at even distances."""
    state = seed
    at = 0
    for i in range(len(nodes)):
        v = nodes[i]
        state ^= state << np.uint64(13)  # xorshift
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        first = np.float64(state >> np.uint64(11)) / 2.0**53
        for part in range(drawn[i]):
            place = np.int64((part + first) * sizes[v] / drawn[i])
            if place < subtree[v] - 1:
                ancestors[at] = order[start[v] + 1 + place]
            else:
                low, high = indptr[v], indptr[v + 1]
                while high - low > 1:  # the last holder with no more than `place` before it
                    middle = (low + high) // 2
                    if before[middle] <= place:
                        low = middle
                    else:
                        high = middle
                ancestors[at] = order[holders[low] + place - before[low]]
            at += 1
