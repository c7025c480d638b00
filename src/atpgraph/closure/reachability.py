"""Answer exactly which nodes reach which in any directed graph; cycles are condensed."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from typing import Any, Literal

import numpy as np

from atpgraph.closure.build import closure_forest, estimate_closure
from atpgraph.closure.forest import ClosureForest
from atpgraph.closure.labels import ReachLabels
from atpgraph.closure.node_set import NodeSet
from atpgraph.errors import InputError
from atpgraph.graph.archive import GRAPH_FIELDS, graph_arrays, graph_from
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph, pair_array
from atpgraph.graph.scc import condense
from atpgraph.graph.traversal import TwoWayRows, meet, reachable, sweep
from atpgraph.util.archive import Field, check_pointers, read_archive, write_archive
from atpgraph.util.arrays import AnyArray, BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.util.frames import html_table
from atpgraph.util.memory import budget_bytes

FORMAT = "atpgraph-reachability"
VERSION = 1
# c components and the x extras of their forest; a file without a forest has labels made on loading.
_FIELDS = GRAPH_FIELDS | {
    "parent": Field("i", ("c",), low=-1, high="c", optional=True),
    "extras_indptr": Field("i", ("c+1",), low=0, high="x+1", ascending=True, optional=True),
    "extras": Field("i", ("x",), low=0, high="c", optional=True),
}
_PIECE = 1 << 15  # pairs of labels that are looked up together
_WORDS = 8  # of 64 columns that a sweep takes together
# A forest of at most this size is always used; a larger one if it takes few bytes per node, else it
# is slower to build, and no faster to read, than labels.
_SMALL_FOREST, _FOREST_BYTES = 8 << 20, 512

Labels = Hashable | Sequence[Hashable] | AnyArray
IndexKind = Literal["forest", "labels"]


class Reachability:
    """Paths of a directed graph, with or without cycles: exact answers by label.

    Nodes on a common cycle reach the same nodes, so each strongly connected component becomes one
    node and nothing is lost. A single question is answered by a search from both ends. Many
    questions are answered from an index: a closure forest if that is small (O(log n) per pair),
    else labels of 64 bytes per node, which decide most pairs and prune the search for the rest.

    A node reaches itself by the path without edges: ``reaches(u, u)`` is true and ``path(u, u)`` is
    ``[u]``. It is not listed among its own descendants or ancestors, even if it is on a cycle.
    NetworkX's ``has_path``, ``shortest_path``, ``descendants`` and ``ancestors`` agree.

    Parameters
    ----------
    graph : DiGraph, or anything :func:`atpgraph.as_graph` takes
    index : bool or "forest" or "labels", optional
        True builds an index now, of the kind that suits the graph; a name builds that kind (a
        forest that exceeds the budget raises a :class:`~atpgraph.BudgetError`). False never builds
        one. By default, an index is built once the searches have cost as much as building it.
    memory : str or number of bytes, optional
        Budget of the forest, such as "4GB"; by default half of the free memory.
    n_jobs : int, optional
        Threads that build the forest; by default all cores.

    Attributes
    ----------
    graph : DiGraph
    component : int32 array
        Strongly connected component of every node. Edges between components go from the higher
        number to the lower.
    condensation : DiGraph
        The acyclic graph of the components.
    index : "forest", "labels" or None
        The index in use.

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
        index: bool | IndexKind | None = None,
        memory: str | float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if index not in (None, True, False, "forest", "labels"):
            raise InputError(f'index is {index!r}; use True, False, "forest" or "labels".')
        self._asked, self._memory, self._n_jobs = index, memory, n_jobs
        self._set_graph(as_graph(graph))
        if index:
            self._build()

    def _set_graph(self, graph: DiGraph) -> None:
        """Replace the graph, and start without an index."""
        self.graph = graph
        self.component, self.condensation = condense(graph)
        self._sizes = np.bincount(self.component, minlength=self.condensation.n_nodes)
        self._index: ClosureForest | ReachLabels | None = None
        self._counts: dict[bool, Int64Array] = {}
        self._by_type: dict[frozenset[str], Reachability] = {}
        # Edges that searches may look at before an index is built. Labels take about ten passes.
        self._patience = 10 * (self.condensation.n_edges + self.condensation.n_nodes)
        if self._asked is True or isinstance(self._asked, str):
            self._patience = 0

    def __repr__(self) -> str:
        return (
            f"Reachability(nodes={self.graph.n_nodes}, edges={self.graph.n_edges}, "
            f"components={self.condensation.n_nodes}, index={self.index!r})"
        )

    @property
    def index(self) -> IndexKind | None:
        """Return the kind of index in use, or None."""
        if self._index is None:
            return None
        return "forest" if isinstance(self._index, ClosureForest) else "labels"

    @property
    def indexed(self) -> bool:
        """Return whether an index has been built."""
        return self._index is not None

    @property
    def nbytes(self) -> int:
        """Return the size of the index in bytes, without the graph."""
        return 0 if self._index is None else self._index.nbytes

    def only(self, types: str | Iterable[str]) -> Reachability:
        """Return the reachability along edges of one or more types, such as ``"is_a"``.

        The result is cached for the next call.

        Examples
        --------
        >>> edges = [("paw", "cat"), ("cat", "mammal")]
        >>> reach = Reachability(DiGraph.from_edges(edges, types=["part_of", "is_a"]))
        >>> reach.descendants("paw").tolist(), reach.only("part_of").descendants("paw").tolist()
        (['cat', 'mammal'], ['cat'])
        """
        names = frozenset([types] if isinstance(types, str) else types)
        if names not in self._by_type:
            self._by_type[names] = Reachability(
                self.graph.keep_edges(self.graph.has_type(names)),
                index=self._asked,
                memory=self._memory,
                n_jobs=self._n_jobs,
            )
        return self._by_type[names]

    def reaches(self, u: Labels, v: Labels) -> bool | BoolArray:
        """Return whether a path leads from u to v; every node reaches itself.

        For two labels, the result is a bool. For lists or arrays, it is an array of bool; they must
        have the same length, or one of the two is a single label.
        """
        many, others = self.graph.several(u), self.graph.several(v)
        if many is None and others is None:
            return self._one_reaches(self.graph.code(u), self.graph.code(v))
        first, second = ([u] if many is None else many), ([v] if others is None else others)
        if len(first) != len(second) or len(first) <= _PIECE:
            return self.reaches_codes(*self.graph.pair_codes(first, second))
        # The node indices of a piece stay in the cache; those of all pairs would need new memory.
        parts = (slice(at, at + _PIECE) for at in range(0, len(first), _PIECE))
        codes = (self.graph.pair_codes(first[part], second[part]) for part in parts)
        return np.concatenate([self.reaches_codes(*pair) for pair in codes])

    def reaches_codes(self, sources: IntArray, targets: IntArray) -> BoolArray:
        """Return whether a path leads from each source to its target, both given by node index."""
        # A search of one pair looks at some dozens of edges; a batch is worth an index sooner.
        self._spend(64 * len(sources))
        if self._index is None:
            pairs = zip(sources.tolist(), targets.tolist(), strict=True)
            return np.fromiter((self._one_reaches(u, v) for u, v in pairs), np.bool_, len(sources))
        u, v = (np.ascontiguousarray(nodes, dtype=np.int64) for nodes in (sources, targets))
        return self._index.answer(self.component, u, v)

    def descendants(self, nodes: Labels) -> NodeSet:
        """Return the nodes that a node reaches, excluding itself; for several nodes, the union."""
        return self._others(self.graph, nodes)

    def ancestors(self, nodes: Labels) -> NodeSet:
        """Return the nodes that reach a node, excluding itself; for several nodes, the union."""
        return self._others(self.graph.reverse(), nodes)

    def n_descendants(self, nodes: Labels | None = None) -> int | Int64Array:
        """Return the number of descendants of a label, or an array for several, or for all nodes.

        The numbers of all nodes are computed together and cached. Without a forest, this takes
        n/512 sweeps over the edges.

        Examples
        --------
        >>> reach = Reachability([(1, 2), (2, 1), (2, 3)])
        >>> reach.n_descendants(), reach.n_ancestors(3)
        (array([2, 2, 0]), 2)
        """
        return self._count(nodes, backwards=False)

    def n_ancestors(self, nodes: Labels | None = None) -> int | Int64Array:
        """Return the number of ancestors, with parameters as for :meth:`n_descendants`."""
        return self._count(nodes, backwards=True)

    def path(self, u: Hashable, v: Hashable) -> list[Any] | None:
        """Return the labels along a path with the fewest edges from u to v, both ends included.

        None if there is no path.
        """
        ends = self.graph.code(u), self.graph.code(v)
        nodes, _ = _shortest(self.graph, self.component, *ends)
        return None if nodes is None else list(self.graph.labels[nodes].tolist())

    def add_edges(self, edges: Any, *, inplace: bool = False) -> Reachability:
        """Return the reachability with more edges, given as pairs of labels; nodes may be new.

        With `inplace`, this object is changed and returned; otherwise it stays as it is. The index
        is kept if a path already joins the ends of every new edge.

        Examples
        --------
        >>> reach = Reachability([("a", "b"), ("b", "c")])
        >>> reach.add_edges([("c", "d")]).reaches("a", "d")
        True
        """
        graph = self.graph.with_edges(edges)
        fresh = graph.find_edges(self.graph.sources, self.graph.targets)
        added = np.setdiff1d(np.arange(graph.n_edges), fresh, assume_unique=True)
        u, v = graph.sources[added], graph.targets[added]
        same = graph.n_nodes == self.graph.n_nodes
        same = same and all(map(self._one_reaches, u.tolist(), v.tolist()))
        return self._changed(graph, same, inplace)

    def remove_edges(self, edges: Any, *, inplace: bool = False) -> Reachability:
        """Return the reachability without some edges, given as pairs of labels.

        With `inplace`, this object is changed and returned; otherwise it stays as it is. The index
        is kept if other paths bypass every removed edge. Raises an InputError if the graph lacks
        one of the edges.
        """
        pairs = pair_array(edges)
        u, v = (self.graph.codes(pairs[:, side]) for side in (0, 1))
        found = self.graph.find_edges(u, v)
        if len(found) and found.min() < 0:
            first, second = pairs[int(found.argmin())].tolist()
            raise InputError(f"The graph has no edge from {first!r} to {second!r}.")
        graph = self.graph.without_edges(found)
        # The old component numbers still fall along every edge, so they still prune the searches.
        others = all(
            _shortest(graph, self.component, a, b)[0] is not None
            for a, b in zip(u.tolist(), v.tolist(), strict=True)
        )
        return self._changed(graph, others, inplace)

    def _changed(self, graph: DiGraph, same_paths: bool, inplace: bool) -> Reachability:
        result = self if inplace else copy(self)
        if not same_paths:
            result._set_graph(graph)
            return result
        a, b = self.component[graph.sources], self.component[graph.targets]
        n = self.condensation.n_nodes
        result._by_type, result.graph = {}, graph
        result.condensation = DiGraph.from_codes(a[a != b], b[a != b], n)
        return result

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        rows = {
            "nodes": self.graph.n_nodes,
            "edges": self.graph.n_edges,
            "components": self.condensation.n_nodes,
            "index": self.index or "none yet: built when it pays",
        }
        return html_table("Reachability", rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph and its index, built if necessary, to one ``.npz`` file without pickle.

        Examples
        --------
        >>> import tempfile
        >>> file = f"{tempfile.mkdtemp()}/reach.npz"
        >>> Reachability([("a", "b"), ("b", "c")]).save(file)
        >>> Reachability.load(file).reaches("a", "c")
        True
        """
        index = self._index or self._build()
        arrays = graph_arrays(self.graph)
        if isinstance(index, ClosureForest):
            # A file is read with components numbered anew, which is how they are numbered here
            # unless edges were added or removed since.
            component, condensation = condense(self.graph)
            if not np.array_equal(component, self.component):
                index = closure_forest(condensation, memory=self._memory, n_jobs=self._n_jobs)
            arrays |= {
                "parent": index.parent,
                "extras_indptr": index.extras_indptr,
                "extras": index.extras,
            }
        write_archive(path, {"format": FORMAT, "version": VERSION}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Reachability:
        """Read a file that :meth:`save` wrote."""

        def restore(_: dict[str, Any], content: dict[str, AnyArray]) -> Reachability:
            reach = cls(graph_from(content))
            if "parent" not in content:
                reach._index = ReachLabels(reach.condensation)
                return reach
            reach._index = _restored(
                reach.condensation, content["parent"], content["extras_indptr"], content["extras"]
            )
            return reach

        hint = "a reachability index; make one with 'atp reach GRAPH --output FILE'"
        return read_archive(path, FORMAT, VERSION, hint, _FIELDS, restore)

    def _build(self) -> ClosureForest | ReachLabels:
        kind = self._asked if isinstance(self._asked, str) else self.suitable_index()
        if kind == "forest":
            self._index = closure_forest(
                self.condensation, memory=self._memory, n_jobs=self._n_jobs
            )
        else:
            self._index = ReachLabels(self.condensation)
        return self._index

    def suitable_index(self) -> IndexKind:
        """Return the kind of index that suits the graph, from an estimate of its forest."""
        forest = estimate_closure(self.condensation)
        most = max(_SMALL_FOREST, _FOREST_BYTES * self.condensation.n_nodes)
        small = forest.bytes_held <= most
        return "forest" if small and forest.bytes_peak <= budget_bytes(self._memory) else "labels"

    def _spend(self, work: int) -> None:
        """Charge `work` to the search budget; build an index when the budget is spent."""
        if self._index is None and self._asked is not False:
            self._patience -= work
            if self._patience < 0:
                self._build()

    def _one_reaches(self, source: int, target: int) -> bool:
        a, b = int(self.component[source]), int(self.component[target])
        if a <= b:  # edges go down: lower numbers never reach higher ones
            return a == b
        if self._index is not None:
            pair = np.array([[source], [target]])
            return bool(self._index.answer(self.component, *pair)[0])
        path, work = _shortest(self.graph, self.component, source, target)
        self._spend(work)
        return path is not None

    def _others(self, graph: DiGraph, nodes: Labels) -> NodeSet:
        start = self.graph.codes(nodes)
        found = reachable(graph, start)
        return NodeSet(self.graph, np.setdiff1d(found, start, assume_unique=len(start) == 1))

    def _count(self, nodes: Labels | None, backwards: bool) -> int | Int64Array:
        if nodes is not None and self.graph.several(nodes) is None:
            return len(self.ancestors(nodes) if backwards else self.descendants(nodes))
        if backwards not in self._counts:
            beyond = self._sizes_beyond(backwards)
            self._counts[backwards] = (beyond + self._sizes - 1)[self.component]
        every = self._counts[backwards]
        return every.copy() if nodes is None else every[self.graph.codes(nodes)]

    def _sizes_beyond(self, backwards: bool) -> Int64Array:
        """Count the nodes in other components that each component reaches, or is reached from."""
        if isinstance(self._index, ClosureForest):
            count = _sizes_above if backwards else _sizes_below
            return count(self._index, self._sizes)
        # The numbers of the reverse run backwards, so that its edges go down too.
        dag, sizes, n = self.condensation, self._sizes, self.condensation.n_nodes
        if backwards:
            dag = DiGraph.from_codes(n - 1 - dag.targets, n - 1 - dag.sources, n)
            sizes = sizes[::-1]
        counts = _swept_sizes(dag, sizes)
        return counts[::-1] if backwards else counts


def _shortest(
    graph: DiGraph, number: Int32Array, source: int, target: int
) -> tuple[list[int] | None, int]:
    """Return the nodes along a shortest path, and the number of edges that the search examined.

    `number` must not rise along any edge.
    """
    back, none = graph.reverse(), np.empty(0, dtype=np.int64)
    rows = TwoWayRows(graph.indptr, graph.targets, back.indptr, back.targets, none)
    scratch = np.empty((4, graph.n_nodes), dtype=np.int32)
    scratch[0] = 0
    found, work = meet(rows, source, target, none, -number, scratch, 1)
    path = [source] if found else []
    while path and path[-1] != target:
        path.append(int(scratch[1, path[-1]]))
    return path or None, work


def _sizes_below(forest: ClosureForest, sizes: Int64Array) -> Int64Array:
    """Return the total size of the descendants of every node of a forest."""
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
    """Return the total size of the ancestors of every node of a forest."""
    before = np.concatenate([[0], np.cumsum(sizes[forest.order])])
    subtree = before[forest.start + forest.subtree] - before[forest.start]
    holding = np.repeat(subtree, np.diff(forest.extras_indptr))
    through_extras = np.bincount(forest.extras, holding, forest.n_nodes).astype(np.int64)
    return np.asarray(subtree - sizes + through_extras)


def _swept_sizes(dag: DiGraph, sizes: Int64Array) -> Int64Array:
    """Return the total size of the descendants of every node; a node of size s is s columns."""
    counts = np.zeros(dag.n_nodes, dtype=np.int64)
    holder = np.repeat(np.arange(dag.n_nodes), sizes)
    for start in range(0, len(holder), 64 * _WORDS):
        columns = holder[start : start + 64 * _WORDS]
        low = int(columns[0])
        slots = np.arange(len(columns))
        own = np.zeros((dag.n_nodes, (len(columns) + 63) // 64), dtype=np.uint64)
        ones = np.left_shift(np.uint64(1), (slots & 63).astype(np.uint64))
        np.bitwise_or.at(own, (columns, slots >> 6), ones)
        bits = own.copy()
        # Nodes below the first column reach none of them: edges go down.
        order, words = np.arange(low, dag.n_nodes), bits.shape[1]
        sweep(order, dag.indptr, dag.targets, bits, bits, 0, words)
        counts += np.bitwise_count(bits & ~own).sum(axis=1, dtype=np.int64)
    return counts


def _restored(
    dag: DiGraph, parent: AnyArray, extras_indptr: AnyArray, extras: AnyArray
) -> ClosureForest:
    """Return the forest in a file; raise a ``ValueError`` if it does not fit the graph."""
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
