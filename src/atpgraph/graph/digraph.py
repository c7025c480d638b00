"""The one graph type of the project: a directed graph as CSR arrays plus node labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from atpgraph.errors import InputError
from atpgraph.graph._dialect import is_integer
from atpgraph.graph._lookup import IntegerLookup
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    Int32Array,
    Int64Array,
    IntArray,
    UInt64Array,
)
from atpgraph.util.checks import unknown_name

MAX_TYPES = 64  # bits of an edge
_NO_PAIR = (str, bytes, set, frozenset, dict)  # though they may have two items
_COMPARED = 100_000  # labels that a mistyped one is compared with, at most


@dataclass(frozen=True, eq=False)
class DiGraph:
    """A directed graph: sorted CSR adjacency, node labels and optional edge weights.

    Nodes have the indices 0 … n − 1 in the order in which their labels were first seen. Edges are
    sorted by (source, target), without parallel ones; edge *e* goes from ``sources[e]`` to
    ``targets[e]``. Self-loops are kept until a stage removes them.

    Build one with :meth:`from_edges`, or :func:`atpgraph.as_graph` for anything else.

    Parameters
    ----------
    indptr : int64 array of n + 1 entries
        The edges of node u are ``indptr[u] : indptr[u + 1]``.
    targets : int32 array of m entries
        Target of every edge, ascending within a node.
    labels : array of n entries
        Labels of the nodes: int64, or object for anything hashable.
    weights : float64 array of m entries, optional
        Edge weights, passed through unchanged.
    edge_types : uint64 array of m entries, optional
        Types of every edge as bits: bit k is set if the edge has the type ``type_names[k]``. One
        edge can have several, because parallel edges are merged.
    type_names : tuple of str
        Names of the types, at most 64; empty without `edge_types`.

    Examples
    --------
    >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("a", "b")])
    >>> graph
    DiGraph(nodes=3, edges=3, self_loops=0)
    >>> list(graph.edges())
    [('a', 'b'), ('b', 'c'), ('c', 'a')]
    """

    indptr: Int64Array
    targets: Int32Array
    labels: AnyArray
    weights: Float64Array | None = field(default=None)
    edge_types: UInt64Array | None = field(default=None)
    type_names: tuple[str, ...] = field(default=())

    @classmethod
    def from_edges(
        cls,
        edges: npt.ArrayLike | Iterable[tuple[Hashable, Hashable]],
        *,
        weights: npt.ArrayLike | None = None,
        types: Iterable[str] | None = None,
        nodes: Iterable[Hashable] | None = None,
    ) -> DiGraph:
        """Build a graph from pairs of labels.

        Parameters
        ----------
        edges : array of shape (m, 2), or iterable of pairs
            Labels of source and target.
        weights : array of m entries, optional
            Weights of parallel edges are added up.
        types : iterable of m names, optional
            Type of every edge, such as "is_a"; a merged edge has all types of its parallel edges.
        nodes : iterable of labels, optional
            Nodes to list first, in this order, edges or not.
        """
        first = None if nodes is None else _label_array(list(nodes))
        pairs = pair_array(edges)
        ends = np.ascontiguousarray(pairs).reshape(-1)
        if first is not None:
            ends = concatenate_labels(first, ends)
        codes, labels = factorize(ends)
        check_labels(labels)
        if first is not None and len(first):
            if len(np.unique(codes[: len(first)])) < len(first):
                raise InputError("The list of nodes names a node twice; list each node once.")
            codes = codes[len(first) :]
        return cls.from_codes(codes[0::2], codes[1::2], labels, weights, types)

    @classmethod
    def from_codes(
        cls,
        sources: npt.ArrayLike,
        targets: npt.ArrayLike,
        labels: npt.ArrayLike | int,
        weights: npt.ArrayLike | None = None,
        types: Iterable[str] | None = None,
    ) -> DiGraph:
        """Build a graph from node indices; `labels` may be just the number of nodes."""
        given = labels if isinstance(labels, (int, np.integer)) else _label_array(labels)
        n = len(given) if isinstance(given, np.ndarray) else int(given)
        if n >= 2**31:
            raise InputError(f"{n:,} nodes; at most {2**31 - 1:,} are supported.")
        names = given if isinstance(given, np.ndarray) else np.arange(n)
        source, target = _index_array(sources), _index_array(targets)
        if len(source) != len(target):
            raise InputError(f"{len(source)} sources but {len(target)} targets.")
        if len(source) and (
            min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= n
        ):
            raise InputError(f"An edge has a node index outside 0 … {n - 1}.")
        values: Float64Array | None = None
        if weights is not None:
            values = weight_array(weights)
            if len(values) != len(source):
                raise InputError(f"{len(source)} edges but {len(values)} weights.")
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                raise InputError(
                    f"Edge {bad[0]} has the weight {values[bad[0]]}; weights must be finite."
                )
        ones = np.ones(len(source), dtype=np.bool_)
        entries = ones if values is None else values
        # SciPy sorts the edges into rows, and adds up the weights of parallel ones.
        with np.errstate(over="ignore"):
            rows = sp.coo_array((entries, (source, target)), shape=(n, n)).tocsr()
        if not np.isfinite(rows.data).all():
            raise InputError("The weights of parallel edges add up to more than a float can hold.")
        graph = cls(*_pointers(rows), names, None if values is None else rows.data)
        if types is None:
            return graph
        type_codes, type_names = factorize(object_array(list(types)))
        return graph.with_types(source, target, type_codes, type_names.tolist())

    def with_types(
        self, sources: IntArray, targets: IntArray, codes: IntArray, names: Sequence[str]
    ) -> DiGraph:
        """Return the graph with types for its edges.

        `codes` has the type of each edge, between two node indices, as a position in `names`;
        parallel edges may have different types.
        """
        if len(codes) != len(sources):
            raise InputError(f"{len(sources)} edges but {len(codes)} types.")
        for name in names:
            if not isinstance(name, str) or not name:
                raise InputError(f"An edge has the type {name!r}; types are text.")
        if len(names) > MAX_TYPES:
            raise InputError(f"{len(names):,} types of edges; at most {MAX_TYPES} are supported.")
        bits = np.zeros(self.n_edges, dtype=np.uint64)
        places = self.find_edges(sources, targets)
        np.bitwise_or.at(bits, places, np.uint64(1) << np.asarray(codes, dtype=np.uint64))
        return replace(self, edge_types=bits, type_names=tuple(names))

    def has_type(self, types: str | Iterable[str]) -> BoolArray:
        """Return for every edge whether it has one of these types.

        Examples
        --------
        >>> edges = [("cat", "mammal"), ("paw", "cat")]
        >>> graph = DiGraph.from_edges(edges, types=["is_a", "part_of"])
        >>> list(graph.keep_edges(graph.has_type("part_of")).edges())
        [('paw', 'cat')]
        """
        if self.edge_types is None:
            raise InputError("The edges of the graph have no types; name the column of types.")
        wanted = np.uint64(0)
        for name in [types] if isinstance(types, str) else types:
            if name not in self.type_names:
                raise unknown_name("type of edge", name, self.type_names)
            wanted |= np.uint64(1 << self.type_names.index(name))
        return np.asarray((self.edge_types & wanted) != 0)

    @classmethod
    def from_scipy(cls, matrix: Any, *, labels: npt.ArrayLike | None = None) -> DiGraph:
        """Build a graph from a square sparse matrix: entry (i, j) is the edge i → j.

        Explicit zeros are not edges. A boolean matrix, or one whose entries are all 1, gives an
        unweighted graph.
        """
        coo = sp.coo_array(matrix)
        if coo.ndim != 2 or coo.shape[0] != coo.shape[1]:
            raise InputError(f"An adjacency matrix is square; this one is {coo.shape}.")
        rows, cols = coo.coords
        keep = coo.data != 0
        data = coo.data[keep]
        weights = None if np.all(data == 1) else data
        names = coo.shape[0] if labels is None else _label_array(labels)
        if not isinstance(names, int) and len(names) != coo.shape[0]:
            raise InputError(f"{coo.shape[0]} nodes but {len(names)} labels.")
        if not isinstance(names, int) and len(set(names.tolist())) < len(names):
            raise InputError("The list of labels names a node twice; labels are unique.")
        return cls.from_codes(rows[keep], cols[keep], names, weights)

    def __repr__(self) -> str:
        return (
            f"DiGraph(nodes={self.n_nodes}, edges={self.n_edges}, self_loops={self.n_self_loops})"
        )

    def __len__(self) -> int:
        return self.n_nodes

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @property
    def n_edges(self) -> int:
        """Number of edges, self-loops included."""
        return len(self.targets)

    @cached_property
    def sources(self) -> Int32Array:
        """Source of every edge."""
        return np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def n_self_loops(self) -> int:
        """Number of edges from a node to itself."""
        return int(np.count_nonzero(self.sources == self.targets))

    @property
    def out_degree(self) -> Int64Array:
        """Number of out-edges of every node."""
        return np.diff(self.indptr)

    @cached_property
    def in_degree(self) -> Int64Array:
        """Number of in-edges of every node."""
        return np.bincount(self.targets, minlength=self.n_nodes).astype(np.int64)

    def edges(self) -> Iterable[tuple[Any, Any]]:
        """Return all edges as pairs of labels."""
        names = self.labels.tolist()
        for u, v in zip(self.sources.tolist(), self.targets.tolist(), strict=True):
            yield names[u], names[v]

    def edge_labels(self, which: npt.ArrayLike | None = None) -> tuple[Any, Any]:
        """Return the source labels and the target labels of the edges (or of those in `which`)."""
        select: Any = slice(None) if which is None else which
        return self.labels[self.sources[select]], self.labels[self.targets[select]]

    @cached_property
    def _lookup(self) -> IntegerLookup:
        return IntegerLookup(self.labels)

    @cached_property
    def _code_of(self) -> dict[Any, int]:
        return {name: code for code, name in enumerate(self.labels.tolist())}

    def code(self, label: Any) -> int:
        """Return the index of the node with this label; an unknown label is an error."""
        try:
            return self._code_of[label]
        except KeyError:
            raise self.unknown(label) from None
        except TypeError:
            raise InputError(
                f"{_shortened(label)} cannot be a node label: it is not hashable."
            ) from None

    def unknown(self, label: Any) -> InputError:
        """Return the error for a label that no node has, with the most similar label."""
        few = self.labels.tolist() if self.n_nodes <= _COMPARED else []
        by_text = {str(each): each for each in few}
        near = get_close_matches(str(label)[:80], by_text, n=1)
        hint = f"; did you mean {by_text[near[0]]!r}?" if near else "."
        return InputError(f"The graph has no node {_shortened(label)}{hint}")

    def several(self, labels: Any) -> Sequence[Any] | AnyArray | None:
        """Return `labels` as a sequence if it names several nodes, None if it names one.

        A tuple is one node if the graph has a node with this label, else several.

        Examples
        --------
        >>> graph = DiGraph.from_edges([("a", "b"), ("b", ("c", 1))])
        >>> graph.several("a"), graph.several(("a", "b")), graph.several(("c", 1))
        (None, ['a', 'b'], None)
        """
        if isinstance(labels, (list, np.ndarray)):
            return labels
        if isinstance(labels, (str, bytes, int, float)) or not isinstance(labels, Iterable):
            return None
        with suppress(TypeError):  # not hashable, so not a label: a column of a data frame
            if labels in self._code_of:
                return None
        for name in ("tolist", "to_pylist"):  # items of Arrow and Torch are no plain values
            if hasattr(labels, name):
                return list(getattr(labels, name)())
        return list(labels)

    def codes(self, labels: Hashable | Sequence[Hashable] | AnyArray) -> IntArray:
        """Return the indices of the nodes with these labels; an unknown label is an InputError."""
        several = self.several(labels)
        names = _label_array([labels] if several is None else several)
        codes = self.codes_or_minus_one(names)
        if len(codes) and codes.min() < 0:
            raise self.unknown(names.tolist()[codes.argmin()])
        return codes

    def pair_codes(self, u: Any, v: Any) -> tuple[IntArray, IntArray]:
        """Return the node indices of pairs of labels; on one side, a single label may stand for
        all.

        Examples
        --------
        >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c")])
        >>> [side.tolist() for side in graph.pair_codes("a", ["b", "c"])]
        [[0, 0], [1, 2]]
        """
        sources, targets = self.codes(u), self.codes(v)
        if len(sources) != len(targets) and 1 not in (len(sources), len(targets)):
            raise InputError(
                f"Got {len(sources)} sources and {len(targets)} targets; "
                "give the same number of each."
            )
        first, second = np.broadcast_arrays(sources, targets)
        return first, second

    def codes_or_minus_one(self, labels: Sequence[Hashable] | AnyArray) -> IntArray:
        """Return the indices of the nodes with these labels, −1 for unknown labels."""
        given = labels if isinstance(labels, np.ndarray) else None
        if given is not None and given.dtype.kind == "i" and self.labels.dtype == np.int64:
            return self._lookup.find(given.astype(np.int64, copy=False))
        code_of = self._code_of
        names = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        try:
            return np.fromiter((code_of.get(x, -1) for x in names), np.int64, len(names))
        except TypeError as error:
            raise InputError(f"A node label must be hashable: {error}.") from None

    def same_labels(self, labels: Iterable[Any]) -> list[Any]:
        """Return labels from a file as this graph has them: 7 may be text in one of the two.

        Others become text if all labels of the graph are, and integers if all are.

        Examples
        --------
        >>> DiGraph.from_edges([("a", "7")]).same_labels([7, "a", 8])
        ['7', 'a', '8']
        >>> DiGraph.from_edges([(7, 8)]).same_labels(["7", "a", "9"])
        [7, 'a', 9]
        """
        given = list(labels)
        other = [int(x) if isinstance(x, str) and is_integer(x) else str(x) for x in given]
        known, turned = (self.codes_or_minus_one(side) >= 0 for side in (given, other))
        kind: Any = int
        if self.labels.dtype == object:
            kind = str if all(isinstance(x, str) for x in self.labels.tolist()) else ()
        return [
            y if not here and (there or isinstance(y, kind)) else x
            for x, y, here, there in zip(given, other, known, turned, strict=True)
        ]

    def named_as_in(self, graph: DiGraph) -> DiGraph:
        """Return this graph, which comes from a file, with labels as another graph has them."""
        return replace(self, labels=_label_array(graph.same_labels(self.labels.tolist())))

    def find_edges(self, sources: npt.ArrayLike, targets: npt.ArrayLike) -> IntArray:
        """Return the indices of the edges between pairs of node indices, −1 for missing ones."""
        u = np.asarray(sources, dtype=np.int64)
        v = np.asarray(targets, dtype=np.int64)
        keys = self.sources.astype(np.int64) * self.n_nodes + self.targets
        wanted = u * self.n_nodes + v
        if not len(keys):
            return np.full(len(wanted), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        known = (keys[at] == wanted) & (u >= 0) & (v >= 0)
        return np.where(known, at, -1).astype(np.int64)

    def keep_edges(self, mask: npt.ArrayLike) -> DiGraph:
        """Return a graph with the same nodes and the edges where `mask` is true."""
        keep = np.asarray(mask, dtype=bool)
        weights = None if self.weights is None else self.weights[keep]
        types = None if self.edge_types is None else self.edge_types[keep]
        indptr = row_bounds(self.sources[keep], self.n_nodes)
        return DiGraph(indptr, self.targets[keep], self.labels, weights, types, self.type_names)

    def without_edges(self, edges: npt.ArrayLike) -> DiGraph:
        """Return a graph with the same nodes and without the edges of these indices.

        Examples
        --------
        >>> list(DiGraph.from_edges([("a", "b"), ("b", "c")]).without_edges([0]).edges())
        [('b', 'c')]
        """
        keep = np.ones(self.n_edges, dtype=np.bool_)
        keep[np.asarray(edges, dtype=np.int64)] = False
        return self.keep_edges(keep)

    def with_edges(self, edges: Any, weights: npt.ArrayLike | None = None) -> DiGraph:
        """Return the graph with more edges between pairs of labels, new labels included.

        The nodes keep their indices and new ones follow. In a weighted graph a new edge weighs 1
        unless `weights` are given; an edge that is there already stays as it is. New edges have no
        type.

        Examples
        --------
        >>> graph = DiGraph.from_edges([("a", "b")]).with_edges([("b", "c"), ("a", "b")])
        >>> list(graph.edges())
        [('a', 'b'), ('b', 'c')]
        """
        added = DiGraph.from_edges(pair_array(edges), weights=weights)
        code = self.codes_or_minus_one(added.labels)
        known = self.find_edges(code[added.sources], code[added.targets]) >= 0
        return self.merged(added.keep_edges(~known))

    def merged(self, more: DiGraph) -> DiGraph:
        """Return the nodes and edges of both graphs, those of this one first.

        Nodes are identified by label. Weights of edges in both graphs are added up; in a graph
        without weights, every edge weighs 1. The types are those of this graph.

        Examples
        --------
        >>> merged = DiGraph.from_edges([("a", "b")]).merged(DiGraph.from_edges([("c", "a")]))
        >>> merged.labels.tolist(), list(merged.edges())
        (['a', 'b', 'c'], [('a', 'b'), ('c', 'a')])
        """
        code = self.codes_or_minus_one(more.labels)
        unknown = np.flatnonzero(code < 0)
        code[unknown] = self.n_nodes + np.arange(len(unknown))
        weights = None
        if self.weights is not None or more.weights is not None:
            both = ((each.weights, each.n_edges) for each in (self, more))
            weights = np.concatenate([np.ones(m) if w is None else w for w, m in both])
        graph = DiGraph.from_codes(
            np.concatenate([self.sources, code[more.sources]]),
            np.concatenate([self.targets, code[more.targets]]),
            concatenate_labels(self.labels, more.labels[unknown]),
            weights,
        )
        if self.edge_types is None:
            return graph
        bits = np.zeros(graph.n_edges, dtype=np.uint64)
        bits[graph.find_edges(self.sources, self.targets)] = self.edge_types
        return replace(graph, edge_types=bits, type_names=self.type_names)

    @cached_property
    def _reversed(self) -> DiGraph:
        edges = np.arange(self.n_edges, dtype=np.int32 if self.n_edges < 2**31 else np.int64)
        indptr, targets, edges = self.incoming(edges)
        weights = None if self.weights is None else self.weights[edges]
        types = None if self.edge_types is None else self.edge_types[edges]
        return DiGraph(indptr, targets, self.labels, weights, types, self.type_names)

    def reverse(self) -> DiGraph:
        """Return the graph with every edge reversed."""
        return self._reversed

    def incoming(self, values: AnyArray) -> tuple[Int64Array, Int32Array, AnyArray]:
        """Return the edges into every node: bounds, sources, and the `values` of these edges.

        Examples
        --------
        >>> graph = DiGraph.from_codes([0, 1, 2], [1, 2, 1], 3)
        >>> [part.tolist() for part in graph.incoming(np.array([7, 8, 9]))]
        [[0, 0, 2, 3], [0, 2, 1], [7, 9, 8]]
        """
        n = self.n_nodes
        # SciPy wants pointers of the same type as the targets.
        bounds = self.indptr.astype(np.int32) if self.n_edges < 2**31 else self.indptr
        rows = sp.csr_array((values, self.targets, bounds), shape=(n, n)).tocsc()
        return *_pointers(rows), rows.data

    def to_scipy(self) -> sp.csr_array:
        """Return the adjacency matrix, with the weights or ones."""
        data = np.ones(self.n_edges) if self.weights is None else self.weights
        shape = (self.n_nodes, self.n_nodes)
        return sp.csr_array((data, self.targets, self.indptr), shape=shape)


def row_bounds(ends: Int32Array, n: int) -> Int64Array:
    """Return where the row of each node begins, given one entry for each of these ends."""
    return np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])


def _pointers(rows: Any) -> tuple[Int64Array, Int32Array]:
    """Return bounds and ends of the rows of a sparse matrix, in our types."""
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False)


def factorize(values: AnyArray) -> tuple[Int64Array, AnyArray]:
    """Index the distinct values in the order of their first appearance.

    Examples
    --------
    >>> codes, labels = factorize(np.array([30, 10, 30, 20]))
    >>> codes.tolist(), labels.tolist()
    ([0, 1, 0, 2], [30, 10, 20])
    """
    if values.dtype == object:
        code_of: dict[Any, int] = {}
        try:
            codes = [code_of.setdefault(value, len(code_of)) for value in values.tolist()]
        except TypeError as error:
            raise InputError(f"A node label must be hashable: {error}.") from None
        return np.array(codes, dtype=np.int64), object_array(list(code_of))
    unique, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(unique), dtype=np.int64)
    number[order] = np.arange(len(unique))
    return number[inverse.reshape(-1)], _label_array(unique[order])


def sorted_unique(values: Int64Array) -> Int64Array:
    """Return the distinct values, ascending; far faster than ``np.unique`` of NumPy 2.3 and later.

    Examples
    --------
    >>> sorted_unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def check_labels(labels: AnyArray) -> None:
    """Raise an InputError if a label means a missing value: None, NaN, pandas.NA, NaT."""
    for label in labels.tolist() if labels.dtype == object else ():
        # pandas.NA compares to neither True nor False; a NaN differs from itself.
        if label is None or type(label).__name__ in ("NAType", "NaTType") or label != label:
            raise InputError(f"A node is labeled {label!r}; leave out edges with a missing end.")


def weight_array(values: npt.ArrayLike) -> Float64Array:
    """Return weights as an array of floats, or raise an InputError."""
    try:
        return np.asarray(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InputError(f"The weights are not all numbers: {error}.") from None


def _index_array(values: npt.ArrayLike) -> IntArray:
    """Return node indices as integers, unchanged if they already are."""
    array = np.asarray(values)
    if array.dtype.kind != "i":
        array = np.asarray(values, dtype=np.int64)
    return array.reshape(-1)


def object_array(values: Sequence[Any]) -> AnyArray:
    """Return an array of objects, one for each value."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):  # np.array would unpack tuples into columns
        array[position] = value
    return array


def _label_array(values: Any) -> AnyArray:
    """Return labels as int64 if all are plain integers, else as objects."""
    array = values if isinstance(values, np.ndarray) else None
    if array is None:
        values = list(values)
        if all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in values):
            try:
                return np.array(values, dtype=np.int64)
            except OverflowError:
                pass
        return object_array(values)
    if array.dtype.kind in "iu" and (array.dtype != np.uint64 or not (array >> 63).any()):
        return array.astype(np.int64, copy=False)
    if array.dtype == object:
        return array
    return object_array(array.tolist())


def concatenate_labels(first: AnyArray, second: AnyArray) -> AnyArray:
    """Return the labels of both, as objects if their types differ."""
    if not len(second) or (first.dtype == second.dtype and first.dtype != object):
        return np.concatenate([first, second.astype(first.dtype)])
    return np.concatenate([first.astype(object), _label_array(second).astype(object)])


def pair_array(edges: Any) -> AnyArray:
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "iuSU":
        array = edges
    else:
        pairs = edges.tolist() if isinstance(edges, np.ndarray) else list(edges)
        for position, pair in enumerate(pairs):
            if isinstance(pair, _NO_PAIR) or not isinstance(pair, Sized) or len(pair) != 2:
                raise InputError(f"Edge {position} is {pair!r}; an edge is a pair of labels.")
        array = _label_array([end for pair in pairs for end in pair]).reshape(-1, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"Edges have the shape (m, 2); these have {array.shape}.")
    return array


def _shortened(label: Any) -> str:
    text = repr(label)
    return text if len(text) <= 80 else f"{text[:79]}…"
