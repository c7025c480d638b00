"""Sets of nodes that remember their graph, as reachability queries return them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray, IntArray


class NodeSet:
    """A set of nodes of a graph, in the order of the graph.

    Combine sets with ``&``, ``|``, ``-`` and ``^``; the other side may be any iterable of labels.
    NumPy converts it to an array of labels.

    Parameters
    ----------
    graph : DiGraph
    codes : integer array
        Distinct node indices, ascending.

    Examples
    --------
    >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c")])
    >>> first, second = NodeSet(graph, np.array([0, 1])), NodeSet(graph, np.array([1, 2]))
    >>> first & second, (first | second).tolist(), "a" in first - second
    (NodeSet(['b']), ['a', 'b', 'c'], True)
    """

    def __init__(self, graph: DiGraph, codes: IntArray) -> None:
        self.graph, self.codes = graph, codes

    @property
    def labels(self) -> AnyArray:
        """Return the labels of the nodes."""
        return np.asarray(self.graph.labels[self.codes])

    def tolist(self) -> list[Any]:
        """Return the labels as a list."""
        return list(self.labels.tolist())

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, at: Any) -> Any:
        return self.labels[at]

    def __contains__(self, label: Hashable) -> bool:
        code = int(self.graph.codes_or_minus_one([label])[0])
        at = int(np.searchsorted(self.codes, code))
        return code >= 0 and at < len(self.codes) and bool(self.codes[at] == code)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.labels, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NodeSet) and other.graph.labels is self.graph.labels:
            return np.array_equal(self.codes, other.codes)
        if isinstance(other, (NodeSet, set, frozenset)):
            return set(self) == set(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Iterable[Hashable]) -> NodeSet:
        return self._with(other, np.intersect1d)

    def __or__(self, other: Iterable[Hashable]) -> NodeSet:
        return self._with(other, np.union1d)

    def __sub__(self, other: Iterable[Hashable]) -> NodeSet:
        return self._with(other, np.setdiff1d)

    def __xor__(self, other: Iterable[Hashable]) -> NodeSet:
        return self._with(other, np.setxor1d)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.labels[:10].tolist()))
        return f"NodeSet([{shown}{', …' if len(self) > 10 else ''}])"

    def _with(
        self, other: Iterable[Hashable], operation: Callable[[Any, Any], AnyArray]
    ) -> NodeSet:
        # Graphs with the same nodes but other edges share their labels.
        if isinstance(other, NodeSet) and other.graph.labels is self.graph.labels:
            codes = other.codes
        else:
            other = list(other)
            codes = self.graph.codes_or_minus_one(other)
        found = operation(self.codes, codes)
        if len(found) and found[0] < 0:
            self.graph.codes(list(other))  # names the unknown node
        return NodeSet(self.graph, found)
