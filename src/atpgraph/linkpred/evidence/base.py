"""What evidence is: numbers that speak for or against a link u → v."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array, Int64Array, IntArray


@dataclass(frozen=True, eq=False)
class NewNode:
    """A node added to a fitted graph: its index is the last of ``graph``."""

    graph: DiGraph
    out: Int64Array  # nodes that it has edges to
    into: Int64Array  # and from
    attributes: Any = None


class Evidence(ABC):
    """One or more numbers for each ordered pair of nodes.

    ``names`` are those of the numbers, ``kinds`` the kind of evidence that each belongs to, and
    ``term_names`` and ``term_kinds`` the same for the terms of the linear models.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    term_names: tuple[str, ...]

    @property
    def term_kinds(self) -> tuple[str, ...]:
        """The kind of each term."""
        return (self.kinds[0],) * len(self.term_names)

    @abstractmethod
    def fit(self, graph: DiGraph) -> Self:
        """Keep what is needed of the graph."""

    @abstractmethod
    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return the numbers of the pairs (u[i], v[i]): an array of shape (pairs, names)."""

    def from_source(self, u: int, n: int) -> Float64Array:
        """Return the numbers of (u, v) for all n nodes v."""
        return self.pairs(np.full(n, u), np.arange(n))

    @abstractmethod
    def terms(self, found: Float64Array) -> Float64Array:
        """Turn numbers into terms of a linear model: an array of shape (pairs, term_names)."""

    def grown(self, new: NewNode) -> Evidence:
        """Return the evidence of the graph with one node more; this one does not change."""
        return type(self)().fit(new.graph)
