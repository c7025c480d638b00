"""LINE, second order: the vertex vector is the source, the context vector the target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.baselines._skipgram import CHUNK, noise_table, train
from atpgraph.linkpred.protocols.method import EmbeddingMethod, check_components
from atpgraph.util.arrays import Int32Array
from atpgraph.util.random import RandomState, generator


class LINE(EmbeddingMethod):
    """Second-order LINE: maximise Σ_(u,v) ln σ(s_u·t_v) + K · E_w ln σ(−s_u·t_w).

    Edges are drawn by weight, noise nodes w in proportion to degree^¾.

    Parameters
    ----------
    n_components : int
        Dimension of the vertex (source) and of the context (target) vectors.
    negatives : int
        Noise nodes per edge, K.
    samples_per_edge : float
        Number of steps divided by the number of edges. The authors' program takes a fixed number
        of steps to be chosen for each graph; 100 per edge is a choice made here, not tuned, and the
        result depends on it.
    learning_rate : float
        At the start; falls linearly to (almost) 0.
    noise_power : float
        Exponent of the degree in the noise distribution.
    random_state : int, Generator or None

    Attributes
    ----------
    source_, target_ : float32 arrays of shape (nodes, n_components)

    Notes
    -----
    The degree of the noise distribution counts in- and out-edges, as the authors' program does
    when it reads a directed graph. With out-degrees alone, nodes without out-edges would never be
    noise and their target vectors would only grow.

    A node without out-edges keeps its initial source vector, near zero, and its pairs score about
    0, above most trained pairs, whose optimum (pointwise mutual information − ln K) is negative.
    So AUC below ½ is possible where negatives start at such nodes; the ATP paper reports it too.

    References
    ----------
    Tang, Qu, Wang, Zhang, Yan, Mei: LINE: large-scale information network embedding. WWW 2015.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 2, 3], [1, 2, 3, 0], 4)
    >>> line = LINE(n_components=8, samples_per_edge=2000).fit(graph)
    >>> u = np.array([0])
    >>> bool(line.score(u, np.array([1]))[0] > line.score(u, np.array([3]))[0])
    True
    """

    name = "LINE"

    def __init__(
        self,
        n_components: int = 64,
        *,
        negatives: int = 5,
        samples_per_edge: float = 100.0,
        learning_rate: float = 0.025,
        noise_power: float = 0.75,
        random_state: RandomState = 0,
    ) -> None:
        self.n_components = check_components(n_components)
        self.negatives = negatives
        self.samples_per_edge = samples_per_edge
        self.learning_rate = learning_rate
        self.noise_power = noise_power
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Train on edges drawn at random."""
        if not graph.n_edges:
            raise InputError("LINE learns from edges, and the graph has none.")
        if graph.weights is not None and graph.weights.min() <= 0:
            raise InputError("LINE draws edges by weight; all weights must be positive.")
        rng = generator(self.random_state)
        noise = (graph.out_degree + graph.in_degree).astype(np.float64) ** self.noise_power
        total = int(self.samples_per_edge * graph.n_edges)
        self.source_, self.target_ = train(
            self._pairs(graph, total, rng),
            total,
            noise_table(noise),
            (graph.n_nodes, self.n_components),
            self.negatives,
            self.learning_rate,
            rng,
        )
        return self

    def _pairs(
        self, graph: DiGraph, total: int, rng: np.random.Generator
    ) -> Iterator[tuple[Int32Array, Int32Array]]:
        """Edges drawn at random, by weight if there are weights."""
        upto = None if graph.weights is None else np.cumsum(graph.weights)
        for low in range(0, total, CHUNK):
            size = min(CHUNK, total - low)
            if upto is None:
                edges = rng.integers(graph.n_edges, size=size)
            else:
                edges = np.searchsorted(upto, rng.random(size) * upto[-1], side="right")
                edges = np.minimum(edges, graph.n_edges - 1)  # rounding at the very end
            yield graph.sources[edges], graph.targets[edges]
