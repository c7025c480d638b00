"""Solve for the vectors of a new node from its edges, with all other vectors fixed."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from atpgraph.closure import collect_paths
from atpgraph.factorization.single_rows import LearnedRows, NnlsRows
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.util.arrays import AnyArray, Float64Array, FloatArray, Int32Array, IntArray


class Rows(Protocol):
    """Solves single rows, with all other vectors fixed."""

    def source(self, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return the source vector of a node from its descendants and their scores."""

    def target(self, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return the target vector of a node from its ancestors and their scores."""


class FoldIn:
    """Vectors of new nodes of one model.

    Parameters
    ----------
    dag : DiGraph
        The graph without its cycles.
    levels : int32 array
        Level of every node.
    table : float64 array
        Score of a pair by the difference of the levels.
    rows : Rows
        Solves a row, such as :class:`~atpgraph.factorization.LearnedRows`.
    """

    def __init__(self, dag: DiGraph, levels: Int32Array, table: Float64Array, rows: Rows) -> None:
        self._dag, self._levels, self._rows = dag, levels, rows
        # A new node can be one level above all others: the table may end one short.
        self._weight = np.append(table, table[-1:]) if len(table) else np.ones(2)
        if len(table) == 1:
            self._weight = np.array([0.0, 1.0])

    @classmethod
    def of(cls, model: Any) -> FoldIn:
        """Fold new nodes into a fitted :class:`~atpgraph.ATP`."""
        vectors, settings = (model.source_, model.target_), model.settings_
        rows: Rows
        if settings.purpose == "reachability":
            paths = collect_paths(model.dag_, model.levels_, model.n_jobs)
            rows = LearnedRows(*vectors, paths, model.margin_, settings.regularization)
        else:
            rows = NnlsRows(*vectors, settings.zero_weight, settings.regularization)
        return cls(model.dag_, model.levels_, model.kernel_table_, rows)

    def source(self, out_edges: IntArray, in_edges: IntArray) -> FloatArray:
        """Return the source vector of a node with edges to `out_edges` and from `in_edges`."""
        # Ancestors matter only if they are descendants too, and those are at least as high.
        lowest = int(self._levels[out_edges].min(initial=np.iinfo(np.int32).max))
        ancestors = reachable(self._dag.reverse(), in_edges, within=self._levels >= lowest)
        return self._source_of(out_edges, ancestors, self.level(in_edges))

    def vectors(self, out_edges: IntArray, in_edges: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return both vectors of a node with edges to `out_edges` and from `in_edges`."""
        ancestors = reachable(self._dag.reverse(), in_edges)
        here = self.level(in_edges)
        below = self._weights(here - self._levels[ancestors])
        target = self._rows.target(ancestors, below)
        return self._source_of(out_edges, ancestors, here), target

    def level(self, in_edges: IntArray) -> int:
        """Return one more than the highest level of an in-neighbor, 1 if there is none."""
        return 1 + int(self._levels[in_edges].max(initial=0))

    def _source_of(self, out_edges: IntArray, ancestors: IntArray, here: int) -> FloatArray:
        reached = reachable(self._dag, out_edges)
        descendants = np.setdiff1d(reached, ancestors, assume_unique=True)
        # What it reaches is at least one level above it.
        above = self._weights(np.clip(self._levels[descendants] - here, 1, None))
        return self._rows.source(descendants, above)

    def _weights(self, difference: AnyArray) -> Float64Array:
        return np.asarray(self._weight[np.minimum(difference, len(self._weight) - 1)])
