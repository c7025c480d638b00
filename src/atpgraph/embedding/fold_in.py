"""Vectors of a new node from its edges."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from atpgraph.factorization import PairRows, RowSolver
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.util.arrays import (
    AnyArray,
    Float64Array,
    FloatArray,
    Int32Array,
    IntArray,
)


class Rows(Protocol):
    """Vectors of rows of their own, all others kept; rows come in the form of a CSR matrix."""

    def sources(
        self, indptr: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike
    ) -> FloatArray:
        """Source vectors of new nodes from their descendants."""

    def targets(
        self, indptr: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike
    ) -> FloatArray:
        """Target vectors of new nodes from their ancestors."""


class NnlsRows:
    """Rows by non-negative least squares; what all of them need is computed once."""

    def __init__(self, source: FloatArray, target: FloatArray, **weights: float) -> None:
        self._source, self._target, self._weights = source, target, weights

    @cached_property
    def sources(self) -> RowSolver:
        """Source vectors of new nodes from their descendants."""
        return RowSolver(self._target, **self._weights)

    @cached_property
    def targets(self) -> RowSolver:
        """Target vectors of new nodes from their ancestors."""
        return RowSolver(self._source, **self._weights)


class FoldIn:
    """Vectors of new nodes of one model.

    Parameters
    ----------
    dag : DiGraph
        The graph without its cycles.
    levels : int32 array
        Level of every node.
    table : float64 array
        Weight of a pair by the difference of the levels.
    rows : Rows
        What solves a row, such as :class:`~atpgraph.factorization.PairRows`.
    """

    def __init__(self, dag: DiGraph, levels: Int32Array, table: Float64Array, rows: Rows) -> None:
        self._dag, self._levels, self._rows = dag, levels, rows
        # A new node can stand one level above all others: the table may end one short.
        self._weight = np.append(table, table[-1:]) if len(table) else np.ones(2)
        if len(table) == 1:
            self._weight = np.array([0.0, 1.0])

    @classmethod
    def of(cls, model: Any) -> FoldIn:
        """For the nodes of a fitted model."""
        rows: Rows
        if model.solver_ == "pairs":
            rows = PairRows(
                model.source_,
                model.target_,
                model.n_descendants_,
                model.popularity_,
                margin=model.margin_,
                regularization=model.regularization_,
            )
        else:
            rows = NnlsRows(
                model.source_,
                model.target_,
                zero_weight=model.zero_weight_,
                regularization=model.regularization_,
            )
        return cls(model.dag_, model.levels_, model.kernel_table_, rows)

    def source(self, out_edges: IntArray, in_edges: IntArray) -> FloatArray:
        """Source vector of a node with edges to `out_edges` and from `in_edges`."""
        # Ancestors matter as far as they are descendants too, and those stand at least as high.
        lowest = int(self._levels[out_edges].min(initial=np.iinfo(np.int32).max))
        ancestors = reachable(self._dag.reverse(), in_edges, within=self._levels >= lowest)
        return self._source_of(out_edges, ancestors, self.level(in_edges))

    def vectors(self, out_edges: IntArray, in_edges: IntArray) -> tuple[FloatArray, FloatArray]:
        """Source and target vector of a node with edges to `out_edges` and from `in_edges`."""
        ancestors = reachable(self._dag.reverse(), in_edges)
        here = self.level(in_edges)
        below = self._weights(here - self._levels[ancestors])
        (target,) = self._rows.targets([0, len(ancestors)], ancestors, below)
        return self._source_of(out_edges, ancestors, here), target

    def level(self, in_edges: IntArray) -> int:
        """One above the highest in-neighbour, 1 if there is none, as peeling would give it."""
        return 1 + int(self._levels[in_edges].max(initial=0))

    def _source_of(self, out_edges: IntArray, ancestors: IntArray, here: int) -> FloatArray:
        reached = reachable(self._dag, out_edges)
        descendants = np.setdiff1d(reached, ancestors, assume_unique=True)
        # What it reaches is at least one level above it.
        above = self._weights(np.clip(self._levels[descendants] - here, 1, None))
        (source,) = self._rows.sources([0, len(descendants)], descendants, above)
        return np.asarray(source)

    def _weights(self, difference: AnyArray) -> FloatArray:
        return np.asarray(self._weight[np.minimum(difference, len(self._weight) - 1)])
