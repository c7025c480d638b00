"""The closure forest: all reachable pairs, stored as differences between neighboring nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from atpgraph.closure.paths import Kernel, kernel_table
from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.util.jit import kernel as compiled


@dataclass(frozen=True, eq=False)
class ClosureForest:
    """Descendants R(u) of every node u of an acyclic graph.

    The parent p of u is the successor of u with the largest closure, and
    R(u) = R(p) ∪ {p} ∪ extras(u), a disjoint union. Build one with
    :func:`~atpgraph.closure.closure_forest`; the forest of the reversed graph holds the ancestors.

    Attributes
    ----------
    parent : int32 array of n entries
        Parent of every node, −1 for nodes that reach nothing.
    extras_indptr : int64 array of n + 1 entries
        The extras of node u are ``extras[extras_indptr[u] : extras_indptr[u + 1]]``.
    extras : int32 array
        Descendants of each node, without its parent and the descendants of its parent.
    sizes : int64 array of n entries
        |R(u)|, not counting the node itself.
    order : int32 array of n entries
        Depth-first preorder of the forest, the heaviest child of a node last.
    start : int32 array of n entries
        Position of every node in `order`.
    subtree : int32 array of n entries
        Number of nodes below u in the forest, including u: positions ``start[u] : start[u] +
        subtree[u]``.
    slot : int32 array of n entries
        Number of steps on the way from the root that do not lead to a heaviest child; at most
        log2(n). A walk in preorder needs this many buffers plus one.

    Examples
    --------
    >>> from atpgraph.closure import closure_forest
    >>> from atpgraph.graph import DiGraph
    >>> forest = closure_forest(DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 3], 4))
    >>> forest.n_pairs, forest.n_extras
    (5, 1)
    >>> forest.descendants(0).tolist(), forest.ancestors(3).tolist()
    ([1, 2, 3], [0, 1, 2])
    >>> forest.reaches([0, 1], [3, 2]).tolist()
    [True, False]
    """

    parent: Int32Array
    extras_indptr: Int64Array
    extras: Int32Array
    sizes: Int64Array
    order: Int32Array
    start: Int32Array
    subtree: Int32Array
    slot: Int32Array

    @classmethod
    def assemble(
        cls, parent: Int32Array, indptr: Int64Array, extras: Int32Array, sizes: Int64Array,
        parents_first: Int32Array,
    ) -> ClosureForest:  # fmt: skip
        """Add the depth-first order; `parents_first` has every parent before its children."""
        return cls(parent, indptr, extras, sizes, *depth_first(parents_first, parent))

    def __repr__(self) -> str:
        return f"ClosureForest(nodes={self.n_nodes}, pairs={self.n_pairs}, extras={self.n_extras})"

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.parent)

    @cached_property
    def n_pairs(self) -> int:
        """Number of reachable pairs."""
        return int(self.sizes.sum())

    @property
    def n_extras(self) -> int:
        """Number of extras, the part of the closure that is stored."""
        return len(self.extras)

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes, including those that the first query adds."""
        held = [each if isinstance(each, tuple) else (each,) for each in vars(self).values()]
        arrays = (array for each in held for array in each if isinstance(array, np.ndarray))
        return sum(array.nbytes for array in arrays)

    @cached_property
    def holders(self) -> tuple[Int64Array, Int32Array]:
        """For each node, its holders: the nodes that have it as an extra, as positions in `order`.

        The nodes that reach v are those below v in the forest, and the holders of v with all nodes
        below them. These are disjoint intervals of the preorder, because R only grows down the
        forest and the extras of a node are not in R of its parent.
        """
        n = self.n_nodes
        listed = (np.ones(self.n_extras, dtype=np.int8), self.extras, self.extras_indptr)
        columns = sp.csr_array(listed, shape=(n, n))[self.order].tocsc()
        return columns.indptr.astype(np.int64), columns.indices.astype(np.int32)

    @cached_property
    def _lookup(self) -> tuple[IntArray, Int32Array]:
        """The lookup table of :func:`_answer`, a row for each node, and the end of each interval.

        A row holds `start`, `subtree`, and where the node's holders begin and end.
        """
        indptr, holders = self.holders
        rows = np.stack([self.start, self.subtree, indptr[:-1], indptr[1:]], axis=1)
        ends = np.asarray(holders + self.subtree[self.order[holders]], dtype=np.int32)
        return rows.astype(np.int32 if self.n_extras < 2**31 else np.int64), ends

    def reaches(self, sources: npt.ArrayLike, targets: npt.ArrayLike) -> BoolArray:
        """Return whether a path of at least one edge leads from each source to its target.

        O(log n) for each pair. The first call indexes the extras (8 bytes each).
        """
        u, v = np.broadcast_arrays(self._nodes(sources), self._nodes(targets))
        same = np.arange(self.n_nodes, dtype=np.int32)
        flat = (np.ascontiguousarray(nodes).reshape(-1) for nodes in (u, v))
        return np.asarray(self.answer(same, *flat).reshape(u.shape) & (u != v))

    def answer(self, node: Int32Array, sources: Int64Array, targets: Int64Array) -> BoolArray:
        """Return whether ``node[source]`` reaches, or is, ``node[target]``, without any check."""
        answer = np.empty(len(sources), dtype=np.bool_)
        _answer(node, sources, targets, *self._lookup, self.holders[1], answer)
        return answer

    def descendants(self, nodes: npt.ArrayLike) -> Int32Array:
        """Return all nodes reachable from any of `nodes` (a node or several), ascending."""
        reached = np.zeros(self.n_nodes, dtype=np.bool_)
        for node in self._nodes(nodes).reshape(-1).tolist():
            above = path_from_root(node, self.parent)  # the node last
            reached[above[:-1]] = True
            for u in above.tolist():
                reached[self.extras[self.extras_indptr[u] : self.extras_indptr[u + 1]]] = True
        return np.flatnonzero(reached).astype(np.int32)

    def ancestors(self, nodes: npt.ArrayLike) -> Int32Array:
        """Return all nodes that reach any of `nodes` (a node or several), ascending."""
        indptr, holders = self.holders
        change = np.zeros(self.n_nodes + 1, dtype=np.int64)
        for v in self._nodes(nodes).reshape(-1).tolist():
            first = holders[indptr[v] : indptr[v + 1]]
            np.add.at(change, first, 1)
            np.add.at(change, first + self.subtree[self.order[first]], -1)
            change[self.start[v] + 1] += 1
            change[self.start[v] + self.subtree[v]] -= 1
        return np.sort(self.order[np.cumsum(change[:-1]) > 0])

    def to_sparse(self, levels: npt.ArrayLike, kernel: Kernel = "log") -> sp.csr_array:
        """Return the matrix M with f(Δ) at every reachable pair.

        It needs about 40 bytes for each reachable pair; nothing else in the package builds it.

        Parameters
        ----------
        levels : array of n entries
            Levels, rising along every edge (:func:`atpgraph.hierarchy.levels`).
        kernel
            The weight function; see :func:`~atpgraph.closure.kernel_table`.
        """
        level = np.asarray(levels, dtype=np.int64)
        table, n = kernel_table(kernel, int(np.ptp(level)) + 1 if len(level) else 1), self.n_nodes
        # Intervals of the preorder for each column: below its holders, and below itself.
        indptr, holders = self.holders
        first = np.concatenate([holders, self.start + 1])
        count = np.concatenate([self.subtree[self.order[holders]], self.subtree - 1])
        column = np.concatenate([np.repeat(np.arange(n), np.diff(indptr)), np.arange(n)])
        place = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        rows, columns = self.order[place], np.repeat(column, count)
        values = table[level[columns] - level[rows]]
        matrix = sp.csr_array((values, (rows, columns)), shape=(n, n))
        matrix.sum_duplicates()  # there are none: this sorts the columns
        return matrix

    def _nodes(self, nodes: npt.ArrayLike) -> Int64Array:
        numbers = np.asarray(nodes, dtype=np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.n_nodes:
            bad = numbers[(numbers < 0) | (numbers >= self.n_nodes)].flat[0]
            raise InputError(f"{bad} is not a node index; they go from 0 to {self.n_nodes - 1}.")
        return numbers


@compiled
def _preorder(
    parents_first: Int32Array,
    parent: Int32Array,
    start: Int32Array,
    size: Int32Array,
    slot: Int32Array,
) -> None:
    """Number the nodes of the forest depth first, the heaviest child last.

    ``start[u]`` is the position of u, and its subtree takes ``size[u]`` positions from there.
    ``slot[u]`` is the number of edges on the way from the root that do not lead to the last child.
    Each such edge at least halves the subtree, so slots stay below log2(n) + 1 however deep the
    forest is.
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
    """Return the nodes in preorder, and `start`, `size` and `slot` of the preorder."""
    n = len(parent)
    start, size, slot = (np.empty(n, dtype=np.int32) for _ in range(3))
    _preorder(parents_first, parent, start, size, slot)
    order = np.empty(n, dtype=np.int32)
    order[start] = np.arange(n, dtype=np.int32)
    return order, start, size, slot


@compiled
def path_from_root(node: int, parent: Int32Array) -> Int32Array:
    """Return the nodes from the root of the forest down to `node`; empty for −1."""
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


@compiled
def _answer(
    node: Int32Array,
    sources: Int64Array,
    targets: Int64Array,
    rows: IntArray,
    ends: Int32Array,
    holders: Int32Array,
    answer: BoolArray,
) -> None:
    """Answer with one binary search for the last holder of the target before the source."""
    for q in range(len(sources)):
        u, v = node[sources[q]], node[targets[q]]
        if u == v:  # rare, or nearly always, as in a graph that is one component
            answer[q] = True
            continue
        place = rows[u, 0]
        # No branch: which of the pairs are joined is as good as random.
        found = (place >= rows[v, 0]) & (place < rows[v, 0] + rows[v, 1])
        first = low = rows[v, 2]
        high = rows[v, 3]
        while low < high:
            middle = (low + high) >> 1
            if holders[middle] <= place:
                low = middle + 1
            else:
                high = middle
        if low > first:
            found |= place < ends[low - 1]
        answer[q] = found
