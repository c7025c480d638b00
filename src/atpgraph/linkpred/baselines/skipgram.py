"""Embeddings by skip-gram with negative sampling: LINE learns from edges, APP from walks.

Each function takes a graph, the dimension of a side and a seed, and returns the source and the
target vector of every node. Randomness stays outside the kernel: pairs and noise nodes are drawn
with NumPy, a chunk at a time. One thread learns, so the same seed gives the same bytes. A node
without out-edges keeps its initial source vector, near zero, and its pairs score about 0, above
most trained pairs, whose optimum is negative. So AUC below ½ is possible where negatives start at
such nodes; the ATP paper reports it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float32Array, Float64Array, Int32Array
from atpgraph.util.jit import fast_kernel
from atpgraph.util.random import RandomState, generator

Chunks = Iterator[tuple[Int32Array, Int32Array]]
_CHUNK = 2**18
_NEGATIVES = 5  # noise nodes per pair


def line(
    graph: DiGraph, k: int, seed: RandomState = 0, samples_per_edge: float = 100.0
) -> tuple[Float32Array, Float32Array]:
    """Second-order LINE: edges drawn by weight, noise nodes in proportion to degree^¾.

    The authors' program takes a number of steps, to be chosen for each graph, on which the result
    depends; here, `samples_per_edge` sets it and was not tuned. The degree of the noise
    distribution counts in- and out-edges, as their program does when it reads a directed graph.
    With out-degrees alone, nodes without out-edges would never be noise and their target vectors
    would only grow.

    References
    ----------
    Tang, Qu, Wang, Zhang, Yan, Mei: LINE: large-scale information network embedding. WWW 2015.
    """
    if not graph.n_edges:
        raise InputError("LINE learns from edges, and the graph has none.")
    if graph.weights is not None and graph.weights.min() <= 0:
        raise InputError("LINE draws edges by weight; all weights must be positive.")
    noise = noise_table((graph.out_degree + graph.in_degree).astype(np.float64) ** 0.75)
    rng, total = generator(seed), int(samples_per_edge * graph.n_edges)
    return _skip_gram(graph, k, rng, drawn_edges(graph, total, rng), total, noise, 0.025)


def drawn_edges(graph: DiGraph, total: int, rng: np.random.Generator) -> Chunks:
    """Yield edges drawn at random, by weight if there are weights."""
    upto = None if graph.weights is None else np.cumsum(graph.weights)
    for low in range(0, total, _CHUNK):
        size = min(_CHUNK, total - low)
        if upto is None:
            edges = rng.integers(graph.n_edges, size=size)
        else:
            edges = np.searchsorted(upto, rng.random(size) * upto[-1], side="right")
            edges = np.minimum(edges, graph.n_edges - 1)  # rounding at the very end
        yield graph.sources[edges], graph.targets[edges]


def app(
    graph: DiGraph,
    k: int,
    seed: RandomState = 0,
    walks: int = 200,
    stop: float = 0.5,
    max_steps: int = 10,
) -> tuple[Float32Array, Float32Array]:
    """Asymmetric proximity preserving embedding: s_u·t_v follows ln PPR(u, v) + constant.

    From every node u, `walks` walks are sampled that stop with probability `stop` (the paper's
    jumping factor) after each step; the end v is a draw from the rooted PageRank of u, and (u, v) a
    pair to learn. Noise nodes are uniform, under which the optimum is ln(n · PPR(u, v)) − ln K.

    The number and length of walks, the chance to stop and K follow common re-implementations, not
    the paper itself. The learning rate was chosen on validation splits of wiki-Vote and
    p2p-Gnutella31: of 0.025, 0.1 and 0.25, the last had the highest mean AUC over protocols and
    both graphs, by a small margin, and the highest MRR on the second graph (on the first it tied
    with 0.1).

    References
    ----------
    Zhou, Liu, Liu, Liu, Gao: Scalable graph embedding for asymmetric proximity. AAAI 2017.
    """
    rng, total = generator(seed), walks * int(np.count_nonzero(graph.out_degree))
    pairs = walk_ends(graph, walks, stop, max_steps, rng)
    noise = np.arange(graph.n_nodes, dtype=np.int32)
    return _skip_gram(graph, k, rng, pairs, total, noise, 0.25)


def walk_ends(
    graph: DiGraph, walks: int, stop: float, max_steps: int, rng: np.random.Generator
) -> Chunks:
    """Yield the start and end of walks, one per node in random order, `walks` times."""
    degree, walkers = graph.out_degree, np.flatnonzero(graph.out_degree > 0)
    for _ in range(walks):
        start = rng.permutation(walkers)
        end = start.copy()
        going = np.arange(len(start))
        for _ in range(max_steps):
            going = going[degree[end[going]] > 0]
            at = end[going]
            end[going] = graph.targets[graph.indptr[at] + rng.integers(degree[at])]
            going = going[rng.random(len(going)) >= stop]
            if not len(going):
                break
        moved = end != start  # a walk that came back teaches nothing
        yield start[moved].astype(np.int32), end[moved].astype(np.int32)


def _skip_gram(
    graph: DiGraph,
    k: int,
    rng: np.random.Generator,
    pairs: Chunks,
    total: int,
    noise: Int32Array,
    rate: float,
) -> tuple[Float32Array, Float32Array]:
    """Maximize ln σ(s_u·t_v) + Σ_w ln σ(−s_u·t_w) over pairs (u, v) and noise nodes w.

    Source vectors start small, target vectors at zero; the learning rate falls to (almost) 0.
    """
    source = ((rng.random((graph.n_nodes, k)) - 0.5) / k).astype(np.float32)
    target, done = np.zeros_like(source), 0
    for u, v in pairs:
        others = noise[rng.integers(len(noise), size=(len(u), _NEGATIVES))]
        share = np.maximum(1.0 - (done + np.arange(len(u))) / max(total, 1), 1e-4)
        learn(source, target, u, v, others, (rate * share).astype(np.float32))
        done += len(u)
    return source, target


def noise_table(weights: Float64Array, size: int = 2**20) -> Int32Array:
    """Return nodes repeated by weight, so that a uniform draw from them is a weighted draw.

    Every share is right to within one of the (at least) `size` places.
    """
    places = max(size, 16 * len(weights))
    ends = np.round(np.cumsum(weights) * (places / weights.sum())).astype(np.int64)
    return np.repeat(np.arange(len(weights), dtype=np.int32), np.diff(ends, prepend=0))


@fast_kernel
def learn(
    source: Float32Array,
    target: Float32Array,
    heads: Int32Array,
    tails: Int32Array,
    noise: Int32Array,
    rates: Float32Array,
) -> None:
    """Take one gradient step for every pair, in place."""
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
