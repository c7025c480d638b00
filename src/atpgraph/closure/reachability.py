"""Who reaches whom in any directed graph, exactly: cycles are condensed, not broken."""

from __future__ import annotations

import logging
import os
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from atpgraph.closure.build import closure_forest
from atpgraph.closure.forest import ClosureForest
from atpgraph.errors import BudgetError
from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import condense
from atpgraph.graph.traversal import reachable
from atpgraph.util.archive import Field, check_pointers, pointers, read_archive, write_archive
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Int32Array,
    Int64Array,
    IntArray,
    UInt64Array,
)
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel

log = logging.getLogger(__name__)

FORMAT = "atpgraph-reachability"
VERSION = 1
# c components and the x extras of their forest.
_FIELDS = GRAPH_FIELDS | {
    "parent": Field("i", ("c",), low=-1, high="c"),
    "extras_indptr": pointers("c", "x"),
    "extras": Field("i", ("x",), low=0, high="c"),
}
_WORDS = 8  # of 64 columns that a sweep takes together

Labels = Hashable | Sequence[Hashable] | AnyArray


class Reachability:
    """Paths of a directed graph, with or without cycles: exact answers by label.

    Nodes on a common cycle reach the same nodes, so each strongly connected component becomes one
    node and nothing is lost. What is asked once is searched for; what is asked often is looked up
    in a closure forest of the condensed graph, O(log n) a pair.

    A node reaches itself by the path without edges: ``reaches(u, u)`` is true and ``path(u, u)`` is
    ``[u]``. It is not listed among its own descendants or ancestors, on a cycle or not. This is
    what ``networkx.has_path``, ``shortest_path``, ``descendants`` and ``ancestors`` say.

    Parameters
    ----------
    graph : DiGraph, or anything :func:`atpgraph.as_graph` takes
    index : bool, optional
        True builds the index now and raises a :class:`~atpgraph.BudgetError` where it does not fit;
        False never builds it. By default it is built as soon as searching has cost as much as
        building it would have, if it fits.
    memory : str or number of bytes, optional
        Budget of the index, such as "4GB"; by default half of what the machine has free.
    n_jobs : int, optional
        Threads that build the index; by default all cores.

    Attributes
    ----------
    graph : DiGraph
    component : int32 array
        Strongly connected component of every node. Edges between components go from the higher
        number to the lower.
    condensation : DiGraph
        The acyclic graph of the components.

    Examples
    --------
    >>> reach = Reachability([("app", "lib"), ("lib", "core"), ("core", "lib"), ("core", "libc")])
    >>> reach.reaches("app", "libc"), reach.reaches(["libc", "lib"], ["app", "core"]).tolist()
    (True, [False, True])
    >>> reach.descendants("lib").tolist()
    ['core', 'libc']
    >>> reach.path("app", "libc")
    ['app', 'lib', 'core', 'libc']
    """

    def __init__(
        self,
        graph: Any,
        *,
        index: bool | None = None,
        memory: str | float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.graph = as_graph(graph)
        self.component, self.condensation = condense(self.graph)
        count = self.condensation.n_nodes
        self._sizes = np.bincount(self.component, minlength=count).astype(np.int64)
        self._forest: ClosureForest | None = None
        self._counts: dict[bool, Int64Array] = {}
        self._budget = {"memory": memory, "n_jobs": n_jobs}
        # Work is counted in edges times words of 64 columns; a build passes twice over all columns.
        self._sweep_cost = self.condensation.n_edges + count
        self._patience = -1 if index is False else 2 * (count // 64 + 1) * self._sweep_cost
        if index:
            self._build()

    def __repr__(self) -> str:
        return (
            f"Reachability(nodes={self.graph.n_nodes}, edges={self.graph.n_edges}, "
            f"components={self.condensation.n_nodes}, indexed={self.indexed})"
        )

    @property
    def indexed(self) -> bool:
        """Whether the index has been built."""
        return self._forest is not None

    def reaches(self, u: Labels, v: Labels) -> bool | BoolArray:
        """Whether a path leads from u to v; every node reaches itself.

        Lists or arrays of labels, of the same length or one of them a single label, give an array
        of bool; two labels give a bool.
        """
        if isinstance(u, (list, np.ndarray)) or isinstance(v, (list, np.ndarray)):
            return self._all_reach(*self.graph.pair_codes(u, v))
        return self._one_reaches(self.graph.code(u), self.graph.code(v))

    def descendants(self, u: Hashable) -> AnyArray:
        """Labels of all nodes that u reaches, itself left out, in the order of the graph."""
        return self._others(self.graph, u)

    def ancestors(self, v: Hashable) -> AnyArray:
        """Labels of all nodes that reach v, itself left out, in the order of the graph."""
        return self._others(self.graph.reverse(), v)

    def n_descendants(self, nodes: Labels | None = None) -> int | Int64Array:
        """Number of descendants: of a label an int; of several, or of all nodes, an array.

        The numbers of all nodes are computed together, without the index in n / 512 sweeps over
        the edges, and kept.

        Examples
        --------
        >>> reach = Reachability([(1, 2), (2, 1), (2, 3)])
        >>> reach.n_descendants(), reach.n_ancestors(3)
        (array([2, 2, 0]), 2)
        """
        return self._count(nodes, backwards=False)

    def n_ancestors(self, nodes: Labels | None = None) -> int | Int64Array:
        """Number of ancestors, as :meth:`n_descendants`."""
        return self._count(nodes, backwards=True)

    def path(self, u: Hashable, v: Hashable) -> list[Any] | None:
        """Labels along a path with the fewest edges from u to v, both ends included; or None."""
        nodes, _ = self._search(self.graph.code(u), self.graph.code(v))
        return None if nodes is None else list(self.graph.labels[nodes].tolist())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write graph and index to one ``.npz`` file without pickle; builds the index first.

        Examples
        --------
        >>> import tempfile
        >>> file = f"{tempfile.mkdtemp()}/reach.npz"
        >>> Reachability([("a", "b"), ("b", "c")]).save(file)
        >>> Reachability.load(file).reaches("a", "c")
        True
        """
        forest = self._forest or self._build()
        write_archive(
            path,
            {"format": FORMAT, "version": VERSION},
            graph_arrays(self.graph)
            | {
                "parent": forest.parent,
                "extras_indptr": forest.extras_indptr,
                "extras": forest.extras,
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Reachability:
        """Read what :meth:`save` wrote."""

        def restore(_: dict[str, Any], content: dict[str, AnyArray]) -> Reachability:
            reach = cls(graph_from(content), index=False)
            reach._forest = _restored(
                reach.condensation, content["parent"], content["extras_indptr"], content["extras"]
            )
            return reach

        hint = "a reachability index; make one with 'atp reach GRAPH --output FILE'"
        return read_archive(path, FORMAT, VERSION, hint, _FIELDS, restore)

    def _build(self) -> ClosureForest:
        self._forest = closure_forest(self.condensation, **self._budget)  # type: ignore[arg-type]
        return self._forest

    def _spend(self, work: int) -> None:
        """Take note of work that an index would save; build it once that has cost as much."""
        if self._forest is not None or self._patience < 0:
            return
        self._patience = max(self._patience - work, 0)
        if self._patience == 0:
            try:
                self._build()
            except BudgetError as error:
                log.info("Paths are searched for, without an index: %s", error)
                self._patience = -1

    def _one_reaches(self, source: int, target: int) -> bool:
        a, b = self.component[source], self.component[target]
        if a <= b:  # edges go down: lower numbers never reach higher ones
            return bool(a == b)
        if self._forest is not None:
            return self._forest.joined(int(a), int(b))
        path, work = self._search(source, target)
        self._spend(work)
        return path is not None

    def _all_reach(self, sources: IntArray, targets: IntArray) -> BoolArray:
        a, b = self.component[sources], self.component[targets]
        found = np.asarray(a == b)
        undecided = np.flatnonzero(a > b)
        if len(undecided):
            a, b = a[undecided], b[undecided]
            self._spend((len(np.unique(b)) // 64 + 1) * self._sweep_cost)
            if self._forest is not None:
                found[undecided] = self._forest.reaches(a, b)
            else:
                found[undecided] = _swept(self.condensation, a, b)
        return found

    def _search(self, source: int, target: int) -> tuple[list[int] | None, int]:
        """Nodes along a shortest path, and the number of edges looked at."""
        n = self.graph.n_nodes
        back = self.graph.reverse()
        ways = np.full((2, n), -1, dtype=np.int32)
        meeting, work = _meet(
            self.graph.indptr, self.graph.targets, back.indptr, back.targets, self.component,
            source, target, ways, np.empty((2, n), dtype=np.int32),
        )  # fmt: skip
        if meeting < 0:
            return None, work
        before, after = [int(meeting)], [int(meeting)]
        while before[-1] != source:
            before.append(int(ways[0, before[-1]]))
        while after[-1] != target:
            after.append(int(ways[1, after[-1]]))
        return before[::-1] + after[1:], work

    def _others(self, graph: DiGraph, node: Hashable) -> AnyArray:
        start = self.graph.code(node)
        found = reachable(graph, np.array([start]))
        return np.asarray(graph.labels[found[found != start]])

    def _count(self, nodes: Labels | None, backwards: bool) -> int | Int64Array:
        if nodes is not None and not isinstance(nodes, (list, np.ndarray)):
            return len(self.ancestors(nodes) if backwards else self.descendants(nodes))
        if backwards not in self._counts:
            beyond = self._sizes_beyond(backwards)
            self._counts[backwards] = (beyond + self._sizes - 1)[self.component]
        every = self._counts[backwards]
        return every.copy() if nodes is None else every[self.graph.codes(nodes)]

    def _sizes_beyond(self, backwards: bool) -> Int64Array:
        """Nodes in the other components that each component reaches, or is reached from."""
        n = self.condensation.n_nodes
        self._spend((self.graph.n_nodes // 64 + 1) * self._sweep_cost)
        if self._forest is not None:
            count = _sizes_above if backwards else _sizes_below
            return count(self._forest, self._sizes)
        # The numbers of the reverse run backwards, so that its edges go down too.
        dag = self.condensation
        sizes = self._sizes
        if backwards:
            dag = DiGraph.from_codes(n - 1 - dag.targets, n - 1 - dag.sources, n)
            sizes = sizes[::-1]
        counts = _swept_sizes(dag, sizes)
        return counts[::-1] if backwards else counts


def _sizes_below(forest: ClosureForest, sizes: Int64Array) -> Int64Array:
    """Total size of the descendants of every node of a forest."""
    totals = np.zeros(forest.n_extras + 1, dtype=np.int64)
    np.cumsum(sizes[forest.extras], out=totals[1:])
    new = np.diff(totals[forest.extras_indptr])
    new += np.where(forest.parent >= 0, sizes[forest.parent], 0)
    # What is new at a node, its whole subtree has: an interval of the preorder.
    change = np.zeros(forest.n_nodes + 1, dtype=np.int64)
    np.add.at(change, forest.start, new)
    np.add.at(change, forest.start + forest.subtree, -new)
    return np.asarray(np.cumsum(change)[forest.start])


def _sizes_above(forest: ClosureForest, sizes: Int64Array) -> Int64Array:
    """Total size of the ancestors of every node of a forest."""
    before = np.concatenate([[0], np.cumsum(sizes[forest.order])])
    subtree = before[forest.start + forest.subtree] - before[forest.start]
    holding = np.repeat(subtree, np.diff(forest.extras_indptr))
    through_extras = np.bincount(forest.extras, holding, forest.n_nodes).astype(np.int64)
    return np.asarray(subtree - sizes + through_extras)


def _swept(dag: DiGraph, sources: Int32Array, targets: Int32Array) -> BoolArray:
    """Whether each source reaches its target, 512 distinct targets in a sweep over the edges."""
    found = np.zeros(len(sources), dtype=np.bool_)
    order = np.argsort(targets, kind="stable")
    distinct, first = np.unique(targets[order], return_index=True)
    ends = np.append(first, len(order))
    for start in range(0, len(distinct), 64 * _WORDS):
        columns = distinct[start : start + 64 * _WORDS]
        pairs = order[ends[start] : ends[start + len(columns)]]
        low, high = int(columns[0]), int(sources[pairs].max())
        bits = _own_bits(columns, low, high)
        _sweep(dag.indptr, dag.targets, low, bits)
        slot = np.searchsorted(columns, targets[pairs])
        words = bits[sources[pairs] - low, slot >> 6]
        found[pairs] = (words >> (slot & 63).astype(np.uint64)) & np.uint64(1)
    return found


def _swept_sizes(dag: DiGraph, sizes: Int64Array) -> Int64Array:
    """Total size of the descendants of every node; a node of size s stands for s columns."""
    counts = np.zeros(dag.n_nodes, dtype=np.int64)
    holder = np.repeat(np.arange(dag.n_nodes), sizes)
    for start in range(0, len(holder), 64 * _WORDS):
        columns = holder[start : start + 64 * _WORDS]
        low = int(columns[0])
        own = _own_bits(columns, low, dag.n_nodes - 1)
        bits = own.copy()
        _sweep(dag.indptr, dag.targets, low, bits)
        _add_counts(own, bits, counts[low:])
    return counts


def _own_bits(columns: IntArray, low: int, high: int) -> UInt64Array:
    """A row of bits for each of the nodes low … high; bit k set at the node of column k."""
    slots = np.arange(len(columns))
    bits = np.zeros((high - low + 1, (len(columns) + 63) // 64), dtype=np.uint64)
    ones = np.left_shift(np.uint64(1), (slots & 63).astype(np.uint64))
    np.bitwise_or.at(bits, (columns - low, slots >> 6), ones)
    return bits


def _restored(
    dag: DiGraph, parent: AnyArray, extras_indptr: AnyArray, extras: AnyArray
) -> ClosureForest:
    """The forest that a file holds; a ``ValueError`` if it cannot be that of the graph."""
    n, numbers = dag.n_nodes, np.arange(dag.n_nodes, dtype=np.int32)
    check_pointers(extras_indptr, len(extras))
    if len(parent) != n or not (
        np.all(parent < numbers)
        and np.all((parent < 0) == (dag.out_degree == 0))
        and np.all(extras < np.repeat(numbers, np.diff(extras_indptr)))
    ):
        raise ValueError("its index does not fit its graph")
    forest = ClosureForest.assemble(
        parent.astype(np.int32),
        extras_indptr.astype(np.int64),
        extras.astype(np.int32),
        np.zeros(n, dtype=np.int64),
        numbers,
    )
    forest.sizes[:] = _sizes_below(forest, np.ones(n, dtype=np.int64))
    return forest


@kernel
def _meet(
    indptr: Int64Array,
    targets: Int32Array,
    back_indptr: Int64Array,
    back_targets: Int32Array,
    number: Int32Array,
    source: int,
    target: int,
    ways: Int32Array,
    queues: Int32Array,
) -> tuple[int, int]:
    """Breadth-first searches from both ends, layer by layer, the shorter frontier first.

    Returns the node where they meet on a shortest path (−1 if they do not) and the number of edges
    looked at. ``ways[0]`` gets the node before each one found from the source, ``ways[1]`` the node
    after each one found from the target. Numbers fall along edges, so a node numbered below the
    target, or above the source, is on no path.
    """
    low, high = number[target], number[source]
    ways[0, source] = source
    ways[1, target] = target
    queues[0, 0] = source
    queues[1, 0] = target
    place = np.zeros(2, dtype=np.int64)
    count = np.ones(2, dtype=np.int64)
    work = 0
    if source == target:
        return source, work
    while place[0] < count[0] and place[1] < count[1]:
        side = 0 if count[0] - place[0] <= count[1] - place[1] else 1
        ends, following = (indptr, targets) if side == 0 else (back_indptr, back_targets)
        layer = count[side]
        while place[side] < layer:
            node = queues[side, place[side]]
            place[side] += 1
            work += ends[node + 1] - ends[node]
            for edge in range(ends[node], ends[node + 1]):
                other = following[edge]
                if ways[side, other] < 0 and low <= number[other] <= high:
                    ways[side, other] = node
                    if ways[1 - side, other] >= 0:
                        return other, work
                    queues[side, count[side]] = other
                    count[side] += 1
    return -1, work


@kernel
def _sweep(indptr: Int64Array, targets: Int32Array, low: int, bits: UInt64Array) -> None:
    """Let every node take over the bits of its successors, which have lower numbers.

    Row i belongs to node low + i; nodes below hold none. A row that came with the bits of the node
    itself ends with those of all its descendants too.
    """
    words = bits.shape[1]
    for i in range(bits.shape[0]):
        for edge in range(indptr[low + i], indptr[low + i + 1]):
            j = targets[edge] - low
            if j >= 0:
                for w in range(words):
                    bits[i, w] |= bits[j, w]


@kernel
def _add_counts(own: UInt64Array, bits: UInt64Array, counts: Int64Array) -> None:
    """Add the number of bits of every row that are not its own."""
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for w in range(bits.shape[1]):
            total += popcount(bits[i, w] & ~own[i, w])
        counts[i] += np.int64(total)
