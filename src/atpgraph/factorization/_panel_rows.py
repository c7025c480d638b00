"""Compiled kernels of the descent over panels: vectors of rows learn, those of columns stand.

`near` holds the vectors of the side that learns, `far` those of the other side, `panel` a copy of
those of the columns as rows meet them, small enough for the cache; all are float32 and padded to a
multiple of 16 columns. Component `constant` of a near vector faces the bias of a far one and stays
1; it is −1 where there are no biases. What else describes a round is explained at
:class:`~atpgraph.closure.sketched_paths.PanelRound`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.closure.panel import COLUMNS, WORDS
from atpgraph.closure.sketched_paths import take
from atpgraph.factorization._descent import product
from atpgraph.factorization._simd import LANES, adagrad_step
from atpgraph.util.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from atpgraph.util.jit import fast_kernel

GROUP = LANES  # columns that a row meets at a time
_BITS, _WORDS, _COLUMNS = np.uint64(64), np.uint64(WORDS), np.uint64(COLUMNS)


@fast_kernel
def mean_square(vectors: Float32Array, v: int) -> np.float32:
    """Of the components of a vector."""
    return product(vectors, v, vectors, v) / np.float32(vectors.shape[1])


@fast_kernel
def learn_rows(
    first: int,
    stop: int,
    seed: np.uint64,
    passes: int,
    draws: int,
    edges: int,
    nodes: Int32Array,
    indptr: Int64Array,
    successors: Int32Array,
    columns: Int32Array,
    uniform: int,
    own: Int32Array,
    bits: UInt64Array,
    rivals: UInt64Array,
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

    Each draws up to `draws` descendants, and then `edges` successors from a random one on. With
    each of these it meets a group of columns, which follow each other in `rivals`; those that it
    does not reach, and that score above −margin, are put down. `panel` has the vectors of the
    rivals. `told` gets the sum of losses and the number of paths.
    """
    width = near.shape[1]
    words = np.empty((uniform + 63) >> 6, dtype=np.uint64)
    targets = np.empty(draws + edges, dtype=np.int32)
    paths = np.empty((draws + edges, width), dtype=np.float32)
    wanted = np.empty(draws + edges, dtype=np.float32)
    mine = np.empty((1, width), dtype=np.float32)
    squares = np.empty(len(panel), dtype=np.float32)
    for p in range(len(panel)):
        squares[p] = mean_square(panel, p)
    groups = np.uint64(len(rivals) // GROUP)
    state = seed
    loss = 0.0
    for number in range(passes * (stop - first)):
        i = first + number % (stop - first)
        u = nodes[i]
        if counts[i] == 0 or not only[u]:
            continue
        state ^= state << np.uint64(13)  # xorshift
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        # Of 32 bits, so that it and a whole number add up without rounding.
        place = np.float64(state >> np.uint64(32)) / 2.0**32
        drawn: Any = min(np.int64(counts[i]), draws)
        take(
            i, drawn, place, nodes, columns, uniform, own, bits, found, counts, node_of, words,
            targets,
        )  # fmt: skip
        degree = indptr[i + 1] - indptr[i]
        start = np.int64(place * degree)
        for part in range(edges):
            targets[drawn + part] = nodes[successors[indptr[i] + (start + part) % degree]]
        # All at once: memory takes its time for each, and fetches many together.
        for part in range(drawn + edges):
            v = targets[part]
            wanted[part] = table[abs(levels[v] - levels[u])]
            for c in range(width):
                paths[part, c] = far[v, c]
        for c in range(width):
            mine[0, c] = near[u, c]
        mass = seen[u]
        for part in range(drawn + edges):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            # The upper half of the state times the length, shifted down: a number below it.
            group = ((state >> np.uint64(32)) * groups) >> np.uint64(32)
            at: Any = GROUP * np.int64(group)
            free = np.uint64(0)
            for j in range(GROUP):
                rival = rivals[at + j]  # unsigned, as i: no index is taken for one from the end
                word = bits[rival // _COLUMNS, np.uint64(i), rival // _BITS % _WORDS]
                free |= (~(word >> rival % _BITS) & np.uint64(1)) << np.uint64(j)
            lost, mass = adagrad_step(
                mine, 0, mass, paths, part, wanted[part], panel, at, squares, free, constant,
                margin, clip, rate, decay,
            )  # fmt: skip
            loss += float(lost)
        for c in range(width):
            near[u, c] = mine[0, c]
        seen[u] = mass
        told[1] += drawn + edges
    told[0] += loss / 2
