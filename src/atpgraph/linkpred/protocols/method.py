"""What a link predictor is: fit on a graph, then score ordered pairs of its nodes."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array, FloatArray, IntArray

_CHUNK = 2**16


@runtime_checkable
class Scorer(Protocol):
    """What gives scores.

    ``score`` gets two arrays of node indices and returns one number per pair, larger where an edge
    u → v is likelier. ``score_from`` returns the scores of the given sources against all nodes, one
    row each.
    """

    name: str

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Scores of the pairs (u[i], v[i])."""

    def score_from(self, u: IntArray) -> FloatArray:
        """Scores of (u[i], v) for every node v: a matrix with a row for each source."""


@runtime_checkable
class Method(Scorer, Protocol):
    """A link predictor: ``fit`` gets the training graph and nothing else."""

    def fit(self, graph: DiGraph) -> Self:
        """Learn from the graph."""


@runtime_checkable
class PerProtocol(Protocol):
    """A method that learned different weights for each protocol, from the training graph alone."""

    def under(self, protocol: str) -> Scorer:
        """The scores to use under a protocol."""


def under(method: Method, protocol: str) -> Scorer:
    """What a method is judged by under a protocol: itself, unless it is :class:`PerProtocol`."""
    return method.under(protocol) if isinstance(method, PerProtocol) else method


def fit_method(method: Any, graph: DiGraph, times: Float64Array | None) -> None:
    """Fit a method, with times of nodes or edges if it has the attribute ``uses_times``."""
    if times is not None and getattr(method, "uses_times", False):
        method.fit(graph, times=times)
    else:
        method.fit(graph)


class EmbeddingMethod:
    """Base of the methods that score by ⟨source vector of u, target vector of v⟩.

    A subclass sets ``source_`` and ``target_`` in ``fit``, arrays of shape
    (nodes, `n_components`). The dimension is that of each side, for every method alike.
    """

    name: str
    n_components: int
    source_: FloatArray
    target_: FloatArray

    def __post_init__(self) -> None:
        """Validate the dimension of a method that is a dataclass."""
        if self.n_components < 1:
            raise InputError(f"The dimension is {self.n_components}; it must be at least 1.")

    def score(self, u: IntArray, v: IntArray) -> FloatArray:
        """Inner products of source and target vectors."""
        scores = np.empty(len(u), dtype=np.float64)
        for low in range(0, len(u), _CHUNK):
            part = slice(low, low + _CHUNK)
            scores[part] = np.einsum("ik,ik->i", self.source_[u[part]], self.target_[v[part]])
        return scores

    def score_from(self, u: IntArray) -> FloatArray:
        """Inner products with the target vectors of all nodes."""
        scores: FloatArray = self.source_[u] @ self.target_.T
        return scores
