"""The compiled kernel that makes the first vectors of a fit by panels."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.closure.panel import WORDS
from atpgraph.util.arrays import Float32Array, Int32Array, UInt64Array
from atpgraph.util.bits import popcount
from atpgraph.util.jit import fast_kernel


@fast_kernel
def first_vectors(
    first: int,
    stop: int,
    seed: np.uint64,
    nodes: Int32Array,
    columns: Int32Array,
    bits: UInt64Array,
    levels: Int32Array,
    table: Float32Array,
    margin: np.float32,
    weights: Float32Array,
    base: Float32Array,
    calm: np.float32,
    trust: np.float32,
    noise: np.float32,
    free: int,
    vectors: Float32Array,
    seen: Float32Array,
) -> None:
    """Make the vectors of the positions first … stop.

    A vector is `base` plus Σ (f(Δ) + margin) weights[p] over the `columns` p that it reaches, the
    first ones of a panel. ``seen`` becomes `calm` plus `trust` times its squared length. Then
    numbers between −noise and noise are added to the first `free` components.
    """
    one = np.uint64(1)
    width = vectors.shape[1]
    total = np.empty(width, dtype=np.float32)
    reached = np.empty(len(columns) + 3, dtype=np.int64)
    values = np.empty(len(columns) + 3, dtype=np.float32)
    state = seed
    for i in range(first, stop):
        u = nodes[i]
        many = 0
        for w in range((len(columns) + 63) >> 6):
            word = bits[w // WORDS, i, w % WORDS]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                p: Any = 64 * w + np.int64(popcount(low - one))
                if p < len(columns) and columns[p] != u:
                    reached[many] = p
                    values[many] = table[abs(levels[columns[p]] - levels[u])] + margin
                    many += 1
        for c in range(width):
            total[c] = base[c]
        for at in range(many, many + 3):  # up to a multiple of four
            reached[at] = 0
            values[at] = 0
        for at in range(0, many, 4):
            a, b, d, e = values[at], values[at + 1], values[at + 2], values[at + 3]
            p, q, r, s = reached[at], reached[at + 1], reached[at + 2], reached[at + 3]
            for c in range(width):
                total[c] += (
                    a * weights[p, c] + b * weights[q, c] + d * weights[r, c] + e * weights[s, c]
                )
        square = np.float32(0)
        for c in range(width):
            square += total[c] * total[c]
        seen[u] = calm + trust * square
        for c in range(free):
            if c & 3 == 0:
                state ^= state << np.uint64(13)  # xorshift
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
            part = (state >> np.uint64(16 * (c & 3))) & np.uint64(0xFFFF)
            total[c] += noise * (np.float32(part) / np.float32(32767.5) - np.float32(1))
        for c in range(width):
            vectors[u, c] = total[c]
