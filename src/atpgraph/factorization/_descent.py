"""Compiled kernels of the descent over pairs: what violates the margin, and the steps.

Vectors are rows of `source` and `target`, float32 and padded to a multiple of 16 columns. Where
there are biases, column `bias` of a source vector holds the bias of the source and column
``bias + 1`` a constant 1; a target vector has them the other way round. `bias` is −1 without.
"""

from __future__ import annotations

import numpy as np

from atpgraph.util.arrays import BoolArray, Float32Array, Int32Array
from atpgraph.util.jit import fast_kernel


@fast_kernel
def product(source: Float32Array, u: int, target: Float32Array, v: int) -> np.float32:
    """⟨s_u, t_v⟩."""
    total = np.float32(0)
    for c in range(source.shape[1]):
        total += source[u, c] * target[v, c]
    return total


@fast_kernel
def violations(
    sources: Int32Array,
    columns: Int32Array,
    popular: Int32Array,
    count: int,
    seed: np.uint64,
    source: Float32Array,
    target: Float32Array,
    margin: np.float32,
    path: Int32Array,
    column: Int32Array,
) -> int:
    """Columns drawn for each path's source whose score is not below −margin.

    For every path, `count` are drawn from `columns` and as many from `popular`, such as the targets
    of the other paths. Fills the number of the path and the column; returns how many there are.
    Whether a path leads to them is not asked here: most columns fall through at the price of one
    product.
    """
    state = seed
    found = 0
    for e in range(len(sources)):
        u = sources[e]
        for draw in range(2 * count):
            state ^= state << np.uint64(13)  # xorshift
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            pool = columns if draw < count else popular
            if len(pool) == 0:
                continue
            # The upper half of the state times the length, shifted down: a number below it.
            v = pool[np.int64(((state >> np.uint64(32)) * np.uint64(len(pool))) >> np.uint64(32))]
            if v != u and product(source, u, target, v) > -margin:
                path[found] = e
                column[found] = v
                found += 1
    return found


@fast_kernel
def step(
    source: Float32Array,
    u: int,
    target: Float32Array,
    v: int,
    slope: np.float32,
    seen: Float32Array,
    bias: int,
    rate: np.float32,
    decay: np.float32,
) -> None:
    """One step of Adagrad for a pair, with one learning rate for each vector.

    `slope` is the derivative of the loss by the score; ``seen[0, u]`` and ``seen[1, v]`` sum up the
    mean squares of the gradients so far.
    """
    width = source.shape[1]
    of_target = np.float32(0)
    of_source = np.float32(0)
    for c in range(width):
        of_target += target[v, c] * target[v, c]
        of_source += source[u, c] * source[u, c]
    share = slope * slope / np.float32(width)
    seen[0, u] += share * of_target
    seen[1, v] += share * of_source
    tiny = np.float32(1e-8)
    rate_u = rate / np.sqrt(seen[0, u] + tiny)
    rate_v = rate / np.sqrt(seen[1, v] + tiny)
    keep_u = np.float32(1) - rate_u * decay
    keep_v = np.float32(1) - rate_v * decay
    rate_u *= slope
    rate_v *= slope
    for c in range(width):
        s = source[u, c]
        t = target[v, c]
        source[u, c] = keep_u * s - rate_u * t
        target[v, c] = keep_v * t - rate_v * s
    if bias >= 0:
        source[u, bias + 1] = np.float32(1)
        target[v, bias] = np.float32(1)


@fast_kernel
def descend(
    sources: Int32Array,
    targets: Int32Array,
    path: Int32Array,
    column: Int32Array,
    joined: BoolArray,
    levels: Int32Array,
    table: Float32Array,
    source: Float32Array,
    target: Float32Array,
    seen: Float32Array,
    bias: int,
    margin: np.float32,
    clip: np.float32,
    rate: np.float32,
    decay: np.float32,
) -> float:
    """A step for every path, each followed by those for the violations of its source.

    A pair that is `joined` after all is passed over. Returns the sum of the losses met.
    """
    loss = 0.0
    q = 0
    for e in range(len(sources)):
        u = sources[e]
        v = targets[e]
        wanted = table[levels[v] - levels[u]]
        slope = product(source, u, target, v) - wanted
        loss += slope * slope
        slope = min(max(slope, -clip), clip)
        step(source, u, target, v, slope, seen, bias, rate, decay)
        while q < len(path) and path[q] == e:
            if not joined[q]:
                w = column[q]
                slope = product(source, u, target, w) + margin
                if slope > 0:  # steps before this one may have put it right
                    loss += slope * slope
                    step(source, u, target, w, min(slope, clip), seen, bias, rate, decay)
            q += 1
    return loss / 2
