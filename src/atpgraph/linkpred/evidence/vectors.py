"""Evidence from vectors: ATP's know the direction, those of the SVD know who is alike.

Scores of the reverse pair are evidence too: the model weighs one against the other.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np

from atpgraph.embedding import ATP
from atpgraph.embedding.ranking import pair_scores
from atpgraph.errors import BudgetError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.linkpred.factor import leading_factors
from atpgraph.util.arrays import Float32Array, Float64Array, FloatArray, Int64Array, IntArray
from atpgraph.util.random import generator


class VectorEvidence(Evidence):
    """⟨source vector of u, target vector of v⟩, and the other way round."""

    source_: Float32Array
    target_: Float32Array

    def use(self, source: FloatArray, target: FloatArray) -> Self:
        """Take vectors that were computed before."""
        self.source_ = np.ascontiguousarray(source, dtype=np.float32)
        self.target_ = np.ascontiguousarray(target, dtype=np.float32)
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return inner products there and back."""
        there, back = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
        scores = [
            pair_scores(self.source_, self.target_, *p) for p in ((there, back), (back, there))
        ]
        return np.column_stack(scores)

    def grown(self, new: NewNode) -> Self:
        """Return the evidence with vectors for the node; others keep theirs."""
        vectors = zip((self.source_, self.target_), self.fold_in(new.out, new.into), strict=True)
        return copy.copy(self).use(*(np.concatenate([old, row[None]]) for old, row in vectors))

    def fold_in(self, out: Int64Array, into: Int64Array) -> tuple[FloatArray, FloatArray]:
        """Return the vectors of a node with edges to `out` and from `into`."""
        raise NotImplementedError


class AtpScore(VectorEvidence):
    """How strongly ATP's vectors for links say that u leads to v.

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> there, back = AtpScore(4).fit(chain).pairs(np.array([0]), np.array([3]))[0]
    >>> bool(there > back)
    True
    """

    names = ("ATP score", "ATP score of v → u")
    kinds = ("atp",) * 2
    term_names = ("log ATP score", "log ATP score of v → u")

    def __init__(
        self, n_components: int = 32, *, n_jobs: int | None = None, random_state: int = 0
    ) -> None:
        self.n_components = n_components
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Embed the graph."""
        model = ATP(
            self.n_components,
            purpose="paper",
            zero_weight="auto",
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        try:
            model.fit(graph)
        except BudgetError:  # too many paths to store them all
            model.set_params(purpose="reachability", zero_weight=0.0).fit(graph)
        return self.use(model.source_, model.target_)

    def terms(self, found: Float64Array) -> Float64Array:
        """Return log(1 + score): the vectors are not negative."""
        return np.log1p(np.maximum(found, 0.0))

    def fold_in(self, out: Int64Array, into: Int64Array) -> tuple[FloatArray, FloatArray]:
        """Return vectors as large, in each component, as those of the nodes next to it.

        The node reaches all that its targets reach, and is reached by all that reach its sources.
        """
        return self.source_[out].max(axis=0, initial=0.0), self.target_[into].max(axis=0, initial=0)


class SpectralScore(VectorEvidence):
    """The entry of low-rank approximations of the adjacency matrix, of all components and of fewer.

    The first components say who is popular with whom at large, the last ones who is close; what
    they are worth differs from graph to graph, so the sums over the first eighth, quarter and half
    of them are evidence of their own.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> SpectralScore(3).fit(graph).pairs(np.array([0]), np.array([1]))[0, :2].round(6).tolist()
    [1.0, 0.0]
    """

    kinds = ("spectral",) * 5
    names = (
        "spectral score",
        "spectral score of v → u",
        *(f"spectral score, {share}" for share in ("an eighth", "a quarter", "half")),
    )
    term_names = (
        *names,
        *(f"root of {name}" for name in names),
        *(f"log of {name}" for name in names),
    )

    def __init__(self, n_components: int = 64, *, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Factor the adjacency matrix; a second fit starts from the vectors of the first."""
        forward = graph.keep_edges(graph.sources != graph.targets).to_scipy().astype(np.float32)
        forward.data[:] = 1.0  # an edge is an edge
        k = max(min(self.n_components, graph.n_nodes), 1)
        start = getattr(self, "target_", None)
        return self.use(*leading_factors(forward, k, generator(self.random_state), start))

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return inner products there and back, then of the first components."""
        there, back = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
        parts = [
            pair_scores(self.source_[:, low:high], self.target_[:, low:high], there, back)
            for low, high in self._blocks()
        ]
        return _sums(parts, pair_scores(self.source_, self.target_, back, there))

    def from_source(self, u: int, n: int) -> Float64Array:
        """Return the same for all targets of one source: products of a matrix and a vector."""
        parts = [
            self.target_[:, low:high] @ self.source_[u, low:high] for low, high in self._blocks()
        ]
        return _sums(parts, self.source_ @ self.target_[u])

    def fold_in(self, out: Int64Array, into: Int64Array) -> tuple[FloatArray, FloatArray]:
        """Return the projections a V Σ^−½ of the rows of the node, one for each direction."""
        sides = ((self.target_, out), (self.source_, into))
        # V √Σ is what is known; its columns have norm √σ.
        scales = [(side.astype(np.float64) ** 2).sum(axis=0) for side, _ in sides]
        source, target = (
            np.asarray(side[nodes].sum(axis=0) / np.where(scale > 0, scale, 1.0))
            for (side, nodes), scale in zip(sides, scales, strict=True)
        )
        return source, target

    def _blocks(self) -> list[tuple[int, int]]:
        """Return the components of the first eighth, and of what each further sum adds."""
        k = self.source_.shape[1]
        bounds = [0, -(-k // 8), -(-k // 4), -(-k // 2), k]
        return list(pairwise(bounds))

    def terms(self, found: Float64Array) -> Float64Array:
        """Return the scores, their roots and their logarithms, cut at a thousandth."""
        positive = np.maximum(found, 0.0)
        return np.concatenate([found, np.sqrt(positive), np.log(np.maximum(found, 1e-3))], axis=1)


def _sums(parts: Sequence[FloatArray], reverse: FloatArray) -> Float64Array:
    """Return the sum of all parts, the reverse score, and the sums of the first parts."""
    sums = np.cumsum(np.asarray(parts, dtype=np.float64), axis=0)
    return np.column_stack([sums[3], reverse, *sums[:3]])
