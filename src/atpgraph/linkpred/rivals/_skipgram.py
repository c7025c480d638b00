"""Kernels of the stochastic embeddings: skip-gram with negative sampling over directed pairs.

One thread, one small generator (xorshift64*) carried in the kernel: same seed, same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph._jit import fast_kernel, kernel

Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
State = npt.NDArray[np.uint64]


def alias_table(weights: Floats) -> tuple[Floats, Codes]:
    """Walker's tables for drawing i with probability weights[i] / Σ weights in constant time.

    Examples
    --------
    >>> chance, other = alias_table(np.array([1.0, 3.0]))
    >>> chance.tolist(), other.tolist()
    ([0.5, 1.0], [1, 1])
    """
    return _alias(weights * (len(weights) / weights.sum()))


@kernel
def _alias(scaled: Floats) -> tuple[Floats, Codes]:
    n = len(scaled)
    chance = np.ones(n)
    other = np.arange(n).astype(np.int32)
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    n_small, n_large = 0, 0
    for i in range(n):
        if scaled[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        low = small[n_small]
        high = large[n_large - 1]
        chance[low] = scaled[low]
        other[low] = high
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            n_large -= 1
            small[n_small] = high
            n_small += 1
    return chance, other


@kernel
def _next(state: State) -> Any:
    """Next number of xorshift64*; state is an array of one uint64, never 0."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@kernel
def _uniform(state: State) -> Any:
    return np.float64(_next(state) >> np.uint64(11)) * 1.1102230246251565e-16


@kernel
def _below(state: State, n: int) -> Any:
    return np.int64(_uniform(state) * n)


@kernel
def _draw(state: State, chance: Floats, other: Codes) -> Any:
    i = _below(state, len(chance))
    if _uniform(state) < chance[i]:
        return i
    return np.int64(other[i])


@fast_kernel
def _learn(
    source: Vectors,
    target: Vectors,
    u: Any,
    v: Any,
    negatives: int,
    chance: Floats,
    other: Codes,
    rate: Any,
    state: State,
    step: Vectors,
) -> None:
    """One step on ln σ(s_u·t_v) + Σ ln σ(−s_u·t_w) over `negatives` noise nodes w."""
    k = source.shape[1]
    step[:] = 0.0
    for i in range(negatives + 1):
        node, label = v, np.float32(1.0)
        if i > 0:
            node, label = _draw(state, chance, other), np.float32(0.0)
            if node == v:
                continue
        dot = np.float32(0.0)
        for c in range(k):
            dot += source[u, c] * target[node, c]
        if dot > 30.0:
            sigma = np.float32(1.0)
        elif dot < -30.0:
            sigma = np.float32(0.0)
        else:
            sigma = np.float32(1.0) / (np.float32(1.0) + np.exp(-dot))
        gain = rate * (label - sigma)
        for c in range(k):
            step[c] += gain * target[node, c]
            target[node, c] += gain * source[u, c]
    for c in range(k):
        source[u, c] += step[c]


@fast_kernel
def train_edges(
    heads: Codes,
    tails: Codes,
    edge_chance: Floats,
    edge_other: Codes,
    chance: Floats,
    other: Codes,
    source: Vectors,
    target: Vectors,
    samples: int,
    negatives: int,
    rate: float,
    seed: np.uint64,
) -> None:
    """LINE: `samples` edges drawn by weight, each one step; the rate falls linearly."""
    state = np.array([seed], dtype=np.uint64)
    step = np.zeros(source.shape[1], dtype=np.float32)
    for i in range(samples):
        e = _draw(state, edge_chance, edge_other)
        now = np.float32(rate * max(1.0 - i / samples, 1e-4))
        _learn(
            source,
            target,
            np.int64(heads[e]),
            np.int64(tails[e]),
            negatives,
            chance,
            other,
            now,
            state,
            step,
        )


@fast_kernel
def train_walks(
    indptr: Ints,
    targets: Codes,
    chance: Floats,
    other: Codes,
    source: Vectors,
    target: Vectors,
    walks: int,
    max_steps: int,
    stop: float,
    negatives: int,
    rate: float,
    seed: np.uint64,
) -> None:
    """APP: from every node `walks` walks that end with probability `stop` after each step.

    The pair (start, end) is one step; walks that end where they began teach nothing.
    """
    n = len(indptr) - 1
    state = np.array([seed], dtype=np.uint64)
    step = np.zeros(source.shape[1], dtype=np.float32)
    order = np.arange(n)
    for round_ in range(walks):
        for i in range(n - 1, 0, -1):
            j = _below(state, i + 1)
            order[i], order[j] = order[j], order[i]
        now = np.float32(rate * max(1.0 - round_ / walks, 1e-4))
        for u in order:
            node = u
            for _ in range(max_steps):
                degree = indptr[node + 1] - indptr[node]
                if degree == 0:
                    break
                node = np.int64(targets[indptr[node] + _below(state, degree)])
                if _uniform(state) < stop:
                    break
            if node != u:
                _learn(source, target, u, node, negatives, chance, other, now, state, step)
