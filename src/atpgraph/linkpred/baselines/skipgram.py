"""Rows that learn by skip-gram with negative sampling: LINE from edges, APP from random walks.

Randomness stays outside the kernel: pairs and noise nodes are drawn with NumPy, a chunk at a
time. One thread learns, so the same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.protocols.method import EmbeddingMethod
from atpgraph.util.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from atpgraph.util.jit import fast_kernel
from atpgraph.util.random import RandomState, generator

CHUNK = 2**18


@dataclass(eq=False)
class LINE(EmbeddingMethod):
    """Second-order LINE: maximize Σ_(u,v) ln σ(s_u·t_v) + K · E_w ln σ(−s_u·t_w).

    Edges are drawn by weight, noise nodes w in proportion to degree^¾. The authors' program takes a
    number of steps to be chosen for each graph; the result depends on it.

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

    n_components: int = 64
    _: KW_ONLY
    negatives: int = 5  # noise nodes per edge, K
    samples_per_edge: float = 100.0  # steps per edge; a choice made here, not tuned
    learning_rate: float = 0.025  # at the start; falls linearly to (almost) 0
    random_state: RandomState = 0

    def fit(self, graph: DiGraph) -> Self:
        """Train on edges drawn at random."""
        if not graph.n_edges:
            raise InputError("LINE learns from edges, and the graph has none.")
        if graph.weights is not None and graph.weights.min() <= 0:
            raise InputError("LINE draws edges by weight; all weights must be positive.")
        rng = generator(self.random_state)
        noise = (graph.out_degree + graph.in_degree).astype(np.float64) ** 0.75
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


@dataclass(eq=False)
class APP(EmbeddingMethod):
    """Asymmetric proximity preserving embedding: s_u·t_v follows ln PPR(u, v) + constant.

    From every node u, walks are sampled that stop with probability `stop` after each step; the
    end v is a draw from the rooted PageRank of u. Each pair (u, v) is a positive example of
    skip-gram with negative sampling, s_u the source and t_v the target vector. Noise nodes are
    uniform, under which the optimum is ln(n · PPR(u, v)) − ln K.

    Notes
    -----
    The number and length of walks, the chance to stop and K follow common re-implementations, not
    the paper itself. The learning rate was chosen on validation splits of wiki-Vote and
    p2p-Gnutella31: of 0.025, 0.1 and 0.25 the last had the highest AUC, mean over protocols and the
    two graphs, narrowly, and the highest MRR on the second (on the first it was level with 0.1).

    A node without out-edges begins no walk and keeps its initial vector, near zero; its pairs then
    score about 0, above most trained pairs, whose optimum is negative. So AUC below ½ is possible
    where negatives start at such nodes.

    References
    ----------
    Zhou, Liu, Liu, Liu, Gao: Scalable graph embedding for asymmetric proximity. AAAI 2017.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> app = APP(n_components=8, walks=3000).fit(graph)
    >>> u = np.array([0])
    >>> bool(app.score(u, np.array([1]))[0] > app.score(u, np.array([3]))[0])
    True
    """

    name = "APP"

    n_components: int = 64
    _: KW_ONLY
    walks: int = 200  # from every node
    stop: float = 0.5  # chance to stop after each step (the paper's jumping factor)
    max_steps: int = 10
    negatives: int = 5  # noise nodes per pair, K
    learning_rate: float = 0.25  # at the start; falls linearly to (almost) 0
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.stop <= 1:
            raise InputError(f"stop is {self.stop}; it must be in (0, 1].")

    def fit(self, graph: DiGraph) -> Self:
        """Train on the ends of random walks."""
        rng = generator(self.random_state)
        walkers = np.flatnonzero(graph.out_degree > 0)
        self.source_, self.target_ = train(
            self._pairs(graph, walkers, rng),
            self.walks * len(walkers),
            np.arange(graph.n_nodes, dtype=np.int32),
            (graph.n_nodes, self.n_components),
            self.negatives,
            self.learning_rate,
            rng,
        )
        return self

    def _pairs(
        self, graph: DiGraph, walkers: Int64Array, rng: np.random.Generator
    ) -> Iterator[tuple[Int32Array, Int32Array]]:
        """Start and end of one walk from every node, in random order, as often as asked."""
        degree = graph.out_degree
        for _ in range(self.walks):
            start = rng.permutation(walkers)
            end = start.copy()
            going = np.arange(len(start))
            for _ in range(self.max_steps):
                going = going[degree[end[going]] > 0]
                at = end[going]
                end[going] = graph.targets[graph.indptr[at] + rng.integers(degree[at])]
                going = going[rng.random(len(going)) >= self.stop]
                if not len(going):
                    break
            moved = end != start  # a walk that came back teaches nothing
            yield start[moved].astype(np.int32), end[moved].astype(np.int32)


def noise_table(weights: Float64Array, size: int = 2**20) -> Int32Array:
    """Nodes repeated in proportion to their weights, so that a uniform draw is a weighted one.

    Every share is right to within one of the (at least) `size` places.

    Examples
    --------
    >>> np.bincount(noise_table(np.array([1.0, 3.0]), size=40)).tolist()
    [10, 30]
    """
    places = max(size, 16 * len(weights))
    ends = np.round(np.cumsum(weights) * (places / weights.sum())).astype(np.int64)
    return np.repeat(np.arange(len(weights), dtype=np.int32), np.diff(ends, prepend=0))


def train(
    pairs: Iterable[tuple[Int32Array, Int32Array]],
    total: int,
    noise: Int32Array,
    shape: tuple[int, int],
    negatives: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> tuple[Float32Array, Float32Array]:
    """Maximize ln σ(s_u·t_v) + Σ_w ln σ(−s_u·t_w) over pairs (u, v) and noise nodes w.

    Parameters
    ----------
    pairs : iterable of (u, v)
        Chunks of pairs in the order of learning.
    total : int
        About how many pairs there will be: the learning rate falls linearly until then.
    noise : array
        See :func:`noise_table`.
    shape : (nodes, dimension)
    negatives : int
        Noise nodes per pair.
    learning_rate : float
    rng : numpy.random.Generator

    Returns
    -------
    source, target : float32 arrays
        Source vectors start small and random, target vectors at zero.
    """
    source = ((rng.random(shape) - 0.5) / shape[1]).astype(np.float32)
    target = np.zeros(shape, dtype=np.float32)
    done = 0
    for u, v in pairs:
        others = noise[rng.integers(len(noise), size=(len(u), negatives))]
        share = np.maximum(1.0 - (done + np.arange(len(u))) / max(total, 1), 1e-4)
        _learn(source, target, u, v, others, (learning_rate * share).astype(np.float32))
        done += len(u)
    return source, target


@fast_kernel
def _learn(
    source: Float32Array,
    target: Float32Array,
    heads: Int32Array,
    tails: Int32Array,
    noise: Int32Array,
    rates: Float32Array,
) -> None:
    k = source.shape[1]
    step = np.empty(k, dtype=np.float32)
    one = np.float32(1.0)
    for i in range(len(heads)):
        u, v = heads[i], tails[i]
        step[:] = 0.0
        for j in range(noise.shape[1] + 1):
            node: Any = v if j == 0 else noise[i, j - 1]
            if j > 0 and node == v:
                continue
            dot = np.float32(0.0)
            for c in range(k):
                dot += source[u, c] * target[node, c]
            # Beyond ±30 the sigmoid is 0 or 1 in single precision.
            sigma = one / (one + np.exp(-min(max(dot, np.float32(-30.0)), np.float32(30.0))))
            gain = rates[i] * ((one if j == 0 else np.float32(0.0)) - sigma)
            for c in range(k):
                step[c] += gain * target[node, c]
                target[node, c] += gain * source[u, c]
        for c in range(k):
            source[u, c] += step[c]
