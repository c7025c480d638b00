"""Vectors of a new node from its edges."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph._jit import kernel
from atpgraph.factorization import RowSolver
from atpgraph.graph.digraph import DiGraph, IntArray

Floats = npt.NDArray[np.floating[Any]]


class FoldIn:
    """Vectors of new nodes of one model; what all of them need is computed once.

    Parameters
    ----------
    dag : DiGraph
        The graph without its cycles.
    rank : int32 array
        Level of every node.
    table : float64 array
        Weight of a pair by the difference of the levels.
    source, target : arrays of shape (nodes, k)
        The vectors.
    zero_weight, regularization : float
        As used when the vectors were fitted.
    """

    def __init__(
        self,
        dag: DiGraph,
        rank: npt.NDArray[np.int32],
        table: npt.NDArray[np.float64],
        source: Floats,
        target: Floats,
        *,
        zero_weight: float,
        regularization: float,
    ) -> None:
        self._dag, self._rank = dag, rank
        self._source, self._target = source, target
        self._options = {"zero_weight": zero_weight, "regularization": regularization}
        # A new node can stand one rank above all others: the table may end one short.
        self._weight = np.append(table, table[-1:]) if len(table) else np.ones(2)
        if len(table) == 1:
            self._weight = np.array([0.0, 1.0])

    @classmethod
    def of(cls, model: Any) -> FoldIn:
        """Of a fitted :class:`~atpgraph.ATP`."""
        return cls(
            model.dag_,
            model.levels_,
            model.kernel_table_,
            model.source_,
            model.target_,
            zero_weight=model.zero_weight_,
            regularization=model.regularization_,
        )

    @cached_property
    def _from_targets(self) -> RowSolver:
        return RowSolver(self._target, **self._options)

    @cached_property
    def _from_sources(self) -> RowSolver:
        return RowSolver(self._source, **self._options)

    def source(self, out_edges: IntArray, in_edges: IntArray) -> Floats:
        """Source vector of a node with edges to `out_edges` and from `in_edges`."""
        # Ancestors matter as far as they are descendants too, and those stand at least as high.
        least = int(self._rank[out_edges].min(initial=np.iinfo(np.int32).max))
        ancestors = reachable(self._dag.reverse(), in_edges, self._rank, least)
        return self._source_of(out_edges, ancestors, self.level(in_edges))

    def vectors(self, out_edges: IntArray, in_edges: IntArray) -> tuple[Floats, Floats]:
        """Source and target vector of a node with edges to `out_edges` and from `in_edges`."""
        ancestors = reachable(self._dag.reverse(), in_edges)
        here = self.level(in_edges)
        below = self._weights(here - self._rank[ancestors])
        (target,) = self._from_sources([0, len(ancestors)], ancestors, below)
        return self._source_of(out_edges, ancestors, here), target

    def level(self, in_edges: IntArray) -> int:
        """One above the highest in-neighbour, 1 if there is none, as peeling would give it."""
        return 1 + int(self._rank[in_edges].max(initial=0))

    def _source_of(self, out_edges: IntArray, ancestors: IntArray, here: int) -> Floats:
        reached = reachable(self._dag, out_edges)
        descendants = np.setdiff1d(reached, ancestors, assume_unique=True)
        # What it reaches is at least one rank above it.
        above = self._weights(np.clip(self._rank[descendants] - here, 1, None))
        (source,) = self._from_targets([0, len(descendants)], descendants, above)
        return np.asarray(source)

    def _weights(self, difference: npt.NDArray[Any]) -> Floats:
        return np.asarray(self._weight[np.minimum(difference, len(self._weight) - 1)])


def reachable(
    graph: DiGraph,
    start: IntArray,
    rank: npt.NDArray[np.int32] | None = None,
    least: int = 0,
) -> npt.NDArray[np.int64]:
    """The nodes of `start` and all that they reach, ascending; with a rank of `least` if given.

    Examples
    --------
    >>> reachable(DiGraph.from_codes([0, 1, 3], [1, 2, 2], 4), np.array([1])).tolist()
    [1, 2]
    """
    seen = np.zeros(graph.n_nodes, dtype=np.bool_)
    first = np.unique(np.asarray(start, dtype=np.int64))
    if rank is None:
        rank = np.zeros(graph.n_nodes, dtype=np.int32)
    else:
        first = first[rank[first] >= least]
    seen[first] = True
    queue = np.empty(graph.n_nodes, dtype=np.int32)
    queue[: len(first)] = first
    count = _spread(graph.indptr, graph.targets, rank, least, len(first), seen, queue)
    return np.sort(queue[:count]).astype(np.int64)


@kernel
def _spread(
    indptr: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int32],
    rank: npt.NDArray[np.int32],
    least: int,
    count: int,
    seen: npt.NDArray[np.bool_],
    queue: npt.NDArray[np.int32],
) -> int:
    """Breadth-first search from the first `count` nodes of the queue; the length of the queue."""
    place = 0
    while place < count:
        node = queue[place]
        place += 1
        for edge in range(indptr[node], indptr[node + 1]):
            following = targets[edge]
            if not seen[following] and rank[following] >= least:
                seen[following] = True
                queue[count] = following
                count += 1
    return count
