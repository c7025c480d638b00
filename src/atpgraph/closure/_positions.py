"""An acyclic graph in positions, sinks first: descendants of a node have lower positions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels as levels_of
from atpgraph.util.arrays import Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class Positions:
    """The nodes by position, and the predecessors and successors of every position."""

    dag: DiGraph
    nodes: Int32Array  # the node at every position

    @classmethod
    def of(cls, dag: DiGraph, levels: Int32Array | None = None) -> Positions:
        level = levels_of(dag) if levels is None else levels
        return cls(dag, np.argsort(-level, kind="stable").astype(np.int32))

    @property
    def n(self) -> int:
        return len(self.nodes)

    @cached_property
    def position(self) -> Int32Array:
        """Position of every node."""
        position = np.empty(self.n, dtype=np.int32)
        position[self.nodes] = np.arange(self.n, dtype=np.int32)
        return position

    @cached_property
    def predecessors(self) -> tuple[Int64Array, Int32Array]:
        """Pointers and list, as of a CSR matrix."""
        return self._neighbours(self.dag.reverse())

    @cached_property
    def successors(self) -> tuple[Int64Array, Int32Array]:
        """Pointers and list, as of a CSR matrix."""
        return self._neighbours(self.dag)

    def _neighbours(self, graph: DiGraph) -> tuple[Int64Array, Int32Array]:
        degree = graph.out_degree[self.nodes]
        indptr = np.zeros(self.n + 1, dtype=np.int64)
        np.cumsum(degree, out=indptr[1:])
        edges = np.repeat(graph.indptr[self.nodes] - indptr[:-1], degree)
        edges += np.arange(graph.n_edges)
        return indptr, self.position[graph.targets[edges]]


@dataclass(frozen=True, eq=False)
class Extras:
    """A closure forest in positions: parents, what is new at every position, and sizes."""

    parent: Int32Array
    indptr: Int64Array
    extras: Int32Array
    sizes: Int64Array
