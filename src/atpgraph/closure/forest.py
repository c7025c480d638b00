"""The closure forest: all reachable pairs, stored by what is new at each node."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from atpgraph.closure import _walk
from atpgraph.closure.kernels import Kernel, kernel_table
from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array


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
        Descendants of a node that its parent neither reaches nor is, highest level first.
    sizes : int64 array of n entries
        |R(u)|, the node itself not counted.
    order : int32 array of n entries
        Depth-first preorder of the forest, the heaviest child of a node last.
    start : int32 array of n entries
        Place of every node in `order`.
    subtree : int32 array of n entries
        Nodes in the forest below u, u included: the places ``start[u] : start[u] + subtree[u]``.
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
        cls,
        parent: Int32Array,
        extras_indptr: Int64Array,
        extras: Int32Array,
        sizes: Int64Array,
        parents_first: Int32Array,
    ) -> ClosureForest:
        """Add the depth-first order to parents and extras.

        `parents_first` lists all nodes so that every parent stands before its children.
        """
        placed = _walk.depth_first(parents_first, parent)
        return cls(parent, extras_indptr, extras, sizes, *placed)

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
        """Bytes held by the arrays."""
        return sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))

    @cached_property
    def holders(self) -> tuple[Int64Array, Int32Array]:
        """The places in `order` of the nodes that hold each node as an extra, ascending.

        The nodes that reach v are the forest below v and from each holder of v down: disjoint
        intervals of the preorder, because R only grows down the forest and an extra is new where it
        is listed.
        """
        indptr = np.zeros(self.n_nodes + 1, dtype=np.int64)
        holders = np.empty(self.n_extras, dtype=np.int32)
        _walk.transpose(self.order, self.extras_indptr, self.extras, indptr, holders)
        return indptr, holders

    def reaches(self, sources: npt.ArrayLike, targets: npt.ArrayLike) -> BoolArray:
        """Whether a path of at least one edge leads from each source to its target.

        O(log n) for a pair. The first call indexes the extras once (4 bytes each).
        """
        u, v = np.broadcast_arrays(self._nodes(sources), self._nodes(targets))
        answer = np.zeros(u.size, dtype=np.bool_)
        _walk.reaches(
            np.ascontiguousarray(u).reshape(-1),
            np.ascontiguousarray(v).reshape(-1),
            self.order,
            self.start,
            self.subtree,
            *self.holders,
            answer,
        )
        return answer.reshape(u.shape)

    def joined(self, u: int, v: int) -> bool:
        """:meth:`reaches` for one pair of node indices, without the cost of arrays."""
        indptr, holders = self.holders
        place = self.start[u]
        if self.start[v] < place < self.start[v] + self.subtree[v]:
            return True
        first, end = indptr[v], indptr[v + 1]
        at = bisect_right(holders, place, first, end)
        if at == first:
            return False
        top = holders[at - 1]
        return bool(place < top + self.subtree[self.order[top]])

    def descendants(self, nodes: npt.ArrayLike) -> Int32Array:
        """All nodes reachable from any of `nodes` (a node or several), ascending."""
        reached = np.zeros(self.n_nodes, dtype=np.bool_)
        for node in self._nodes(nodes).reshape(-1).tolist():
            _walk.mark_descendants(node, self.parent, self.extras_indptr, self.extras, reached)
        return np.flatnonzero(reached).astype(np.int32)

    def ancestors(self, nodes: npt.ArrayLike) -> Int32Array:
        """All nodes that reach any of `nodes` (a node or several), ascending."""
        indptr, holders = self.holders
        change = np.zeros(self.n_nodes + 1, dtype=np.int64)
        for v in self._nodes(nodes).reshape(-1).tolist():
            first = holders[indptr[v] : indptr[v + 1]]
            np.add.at(change, first, 1)
            np.add.at(change, first + self.subtree[self.order[first]], -1)
            change[self.start[v] + 1] += 1
            change[self.start[v] + self.subtree[v]] -= 1
        return np.sort(self.order[np.cumsum(change[:-1]) > 0])

    def to_sparse(
        self, levels: npt.ArrayLike, kernel: Kernel = "log", c: float = 0.0
    ) -> sp.csr_array:
        """Write the matrix M out: f(Δ) at every reachable pair.

        Needs 12 bytes for each reachable pair; everything else in the package works without it.

        Parameters
        ----------
        levels : array of n entries
            Levels, rising along every edge (:func:`atpgraph.hierarchy.levels`).
        kernel, c
            The weight function; see :func:`~atpgraph.closure.kernel_table`.
        """
        level = np.ascontiguousarray(levels, dtype=np.int32)
        span = int(level.max() - level.min()) + 1 if len(level) else 1
        table = kernel_table(kernel, span, c)
        indptr = np.zeros(self.n_nodes + 1, dtype=np.int64)
        np.cumsum(self.sizes, out=indptr[1:])
        columns = np.empty(self.n_pairs, dtype=np.int32)
        values = np.empty(self.n_pairs, dtype=np.float64)
        _walk.fill_rows(
            self.order,
            self.start,
            self.subtree,
            *self.holders,
            level,
            table,
            indptr[:-1].copy(),
            columns,
            values,
        )
        shape = (self.n_nodes, self.n_nodes)
        return sp.csr_array((values, columns, indptr), shape=shape)

    def _nodes(self, nodes: npt.ArrayLike) -> Int64Array:
        numbers = np.asarray(nodes, dtype=np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.n_nodes:
            bad = numbers[(numbers < 0) | (numbers >= self.n_nodes)].flat[0]
            raise InputError(f"{bad} is not a node index; they go from 0 to {self.n_nodes - 1}.")
        return numbers
