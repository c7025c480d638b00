"""Skip-gram with negative sampling over directed pairs: the learning step LINE and APP share.

Randomness stays outside the kernel: pairs and noise nodes are drawn with NumPy, a chunk at a
time. One thread learns, so the same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from atpgraph.util.arrays import Float32Array, Float64Array, Int32Array
from atpgraph.util.jit import fast_kernel

CHUNK = 2**18


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
    """Maximise ln σ(s_u·t_v) + Σ_w ln σ(−s_u·t_w) over pairs (u, v) and noise nodes w.

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
