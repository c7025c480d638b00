"""Compiled kernels of the descent over panels: vectors of rows learn, those of columns stand.

`near` holds the vectors of the side that learns, `far` those of the other side, `panel` a copy of
those of the panel, small enough for the cache; all are float32 and padded to a multiple of 16
columns. Component `constant` of a near vector faces the bias of a far one and stays 1; it is −1
where there are no biases. What else describes a round is explained at
:class:`~atpgraph.closure.sketched_paths.PanelRound`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph._bits import popcount
from atpgraph._jit import fast_kernel
from atpgraph._typing import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from atpgraph.closure.panel import COLUMNS, WORDS
from atpgraph.closure.sketched_paths import take
from atpgraph.factorization._descent import product


@fast_kernel
def project(
    first: int,
    stop: int,
    nodes: Int32Array,
    columns: Int32Array,
    bits: UInt64Array,
    levels: Int32Array,
    table: Float32Array,
    margin: np.float32,
    weights: Float32Array,
    near: Float32Array,
) -> None:
    """Add Σ (f(Δ) + margin) weights[p] to the vectors of positions, p the columns they reach.

    `columns` are the first ones of a panel.
    """
    one = np.uint64(1)
    for i in range(first, stop):
        u = nodes[i]
        for w in range((len(columns) + 63) >> 6):
            word = bits[w // WORDS, i, w % WORDS]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                p = 64 * w + np.int64(popcount(low - one))
                if p < len(columns) and columns[p] != u:
                    value = table[abs(levels[columns[p]] - levels[u])] + margin
                    for c in range(near.shape[1]):
                        near[u, c] += value * weights[p, c]


@fast_kernel
def row_step(
    near: Float32Array,
    u: int,
    far: Float32Array,
    v: int,
    slope: np.float32,
    seen: Float32Array,
    constant: int,
    rate: np.float32,
    decay: np.float32,
) -> None:
    """One step of Adagrad for the near vector of a pair, with one learning rate for all of it.

    `slope` is the derivative of the loss by the score; ``seen[u]`` sums up the mean squares of the
    gradients so far.
    """
    width = near.shape[1]
    square = np.float32(0)
    for c in range(width):
        square += far[v, c] * far[v, c]
    seen[u] += slope * slope / np.float32(width) * square
    length = rate / np.sqrt(seen[u] + np.float32(1e-8))
    keep = np.float32(1) - length * decay
    length *= slope
    for c in range(width):
        near[u, c] = keep * near[u, c] - length * far[v, c]
    if constant >= 0:
        near[u, constant] = np.float32(1)


@fast_kernel
def learn_rows(
    first: int,
    stop: int,
    seed: np.uint64,
    passes: int,
    draws: int,
    edges: int,
    negatives: int,
    nodes: Int32Array,
    indptr: Int64Array,
    successors: Int32Array,
    columns: Int32Array,
    uniform: int,
    popular: Int32Array,
    own: Int32Array,
    bits: UInt64Array,
    found: Int32Array,
    counts: Int32Array,
    node_of: Int32Array,
    only: BoolArray,
    levels: Int32Array,
    table: Float32Array,
    near: Float32Array,
    far: Float32Array,
    panel: Float32Array,
    seen: Float32Array,
    constant: int,
    margin: np.float32,
    clip: np.float32,
    rate: np.float32,
    decay: np.float32,
    told: Float64Array,
) -> None:
    """Steps for the vectors of the positions first … stop, of those nodes that `only` says, in
    so many passes.

    Each draws up to `draws` descendants, and then `edges` successors from a random one on. After
    each of these come `negatives` columns drawn uniformly and as many popular ones; those that it
    does not reach, and that score above −margin, are put down. `told` gets the sum of losses and
    the number of paths.
    """
    one = np.uint64(1)
    words = np.empty((uniform + 63) >> 6, dtype=np.uint64)
    targets, slots = np.empty((2, draws + edges), dtype=np.int32)
    state = seed
    loss = 0.0
    for step in range(passes * (stop - first)):
        i = first + step % (stop - first)
        u = nodes[i]
        if counts[i] == 0 or not only[u]:
            continue
        state ^= state << np.uint64(13)  # xorshift
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        place = np.float64(state >> np.uint64(11)) / 2.0**53
        drawn: Any = min(np.int64(counts[i]), draws)
        take(
            i, drawn, place, nodes, columns, uniform, own, bits, found, counts, node_of, words,
            targets, slots,
        )  # fmt: skip
        degree = indptr[i + 1] - indptr[i]
        start = np.int64(place * degree)
        for part in range(edges):
            targets[drawn + part] = nodes[successors[indptr[i] + (start + part) % degree]]
            slots[drawn + part] = -1
        for part in range(drawn + edges):
            v, slot = targets[part], slots[part]
            wanted = table[abs(levels[v] - levels[u])]
            if slot >= 0:
                slope = product(near, u, panel, slot) - wanted
                loss += slope * slope
                slope = min(max(slope, -clip), clip)
                row_step(near, u, panel, slot, slope, seen, constant, rate, decay)
            else:
                slope = product(near, u, far, v) - wanted
                loss += slope * slope
                slope = min(max(slope, -clip), clip)
                row_step(near, u, far, v, slope, seen, constant, rate, decay)
            for draw in range(2 * negatives):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                # The upper half of the state times the length, shifted down: a number below it.
                high = state >> np.uint64(32)
                if draw < negatives:
                    at: Any = np.int64((high * np.uint64(uniform)) >> np.uint64(32))
                else:
                    pick = np.int64((high * np.uint64(len(popular))) >> np.uint64(32))
                    at = np.int64(popular[pick])
                word = bits[at // COLUMNS, i, (at >> 6) % WORDS]
                if (word >> np.uint64(at & 63)) & one == 0:
                    slope = product(near, u, panel, at) + margin
                    if slope > 0:
                        loss += slope * slope
                        slope = min(slope, clip)
                        row_step(near, u, panel, at, slope, seen, constant, rate, decay)
        told[1] += drawn + edges
    told[0] += loss / 2
