"""Pairs that are not links, drawn uniformly: any non-edge, or against the direction of paths.

Paths: inside a strongly connected component both directions are reachable, and between two
components at most one is; so the pairs (u, v) where v reaches u and u does not reach v are those
where the component of v strictly precedes that of u in the condensation. The descendants of every
component are found as bit sets over the nodes, a block of columns at a time, so memory is bounded
whatever the graph. A first pass counts the pairs per block, which fixes the total P; distinct
numbers below P are drawn; a second pass finds the pairs with those numbers. Every pair has the same
probability, and none is drawn twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import condense
from atpgraph.util.arrays import Int32Array, Int64Array, UInt64Array
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel

_BLOCK_BYTES = 64 * 2**20
_PICK = 1024


@dataclass(frozen=True, eq=False)
class Pairs:
    """Ordered pairs of node indices."""

    sources: Int64Array
    targets: Int64Array

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, which: npt.NDArray[np.generic]) -> Pairs:
        """The pairs at these positions, or where this mask is true."""
        return Pairs(self.sources[which], self.targets[which])


def non_edges(graph: DiGraph, count: int, rng: np.random.Generator) -> Pairs:
    """Up to `count` distinct ordered pairs u ≠ v without an edge, uniformly."""
    n = graph.n_nodes
    available = n * (n - 1) - (graph.n_edges - graph.n_self_loops)
    if available <= 4 * count:
        taken = np.zeros((n, n), dtype=bool)  # small: n² is at most m + n + 4 count
        taken[graph.sources, graph.targets] = True
        np.fill_diagonal(taken, True)
        u, v = np.nonzero(~taken)
        some = rng.permutation(len(u))[:count]
        return Pairs(u[some].astype(np.int64), v[some].astype(np.int64))
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        u = rng.integers(n, size=2 * count)
        v = rng.integers(n - 1, size=2 * count)
        v += v >= u
        fresh = (u * n + v)[graph.find_edges(u, v) < 0]
        both = np.concatenate([keys, fresh])
        _, first = np.unique(both, return_index=True)
        keys = both[np.sort(first)][:count]
    u, v = np.divmod(keys, n)
    return Pairs(u, v)


def non_neighbours(
    graph: DiGraph, sources: Int64Array, size: int, rng: np.random.Generator
) -> Int64Array:
    """For each source, `size` distinct nodes that it has no edge to, itself left out.

    A source with fewer has them all, in random order; −1 fills up its row.
    """
    n = graph.n_nodes
    own_loop = graph.find_edges(np.arange(n), np.arange(n)) >= 0
    others = n - graph.out_degree - ~own_loop
    few = others[sources] <= 2 * size
    sampled = np.full((len(sources), size), -1, dtype=np.int64)
    for i in np.flatnonzero(few):
        u = sources[i]
        free = np.ones(n, dtype=bool)
        free[graph.targets[graph.indptr[u] : graph.indptr[u + 1]]] = False
        free[u] = False
        chosen = rng.permutation(np.flatnonzero(free))[:size]
        sampled[i, : len(chosen)] = chosen
    many = np.flatnonzero(~few)
    if len(many) and size:
        sampled[many] = _distinct_non_neighbours(graph, sources[many], size, rng)
    return sampled


def one_way_pairs(
    graph: DiGraph, count: int, rng: np.random.Generator, among: Int64Array | None = None
) -> Pairs:
    """Up to `count` distinct pairs (u, v) where v reaches u but u does not reach v.

    Parameters
    ----------
    graph : DiGraph
    count : int
        If the graph has fewer such pairs, all of them are returned.
    rng : numpy.random.Generator
    among : int64 array, optional
        Distinct nodes that u is drawn from; by default all. The time grows with their number.

    Returns
    -------
    Pairs
        In random order. There is no edge (u, v), since u would reach v.

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> pairs = one_way_pairs(chain, 10, np.random.default_rng(0))
    >>> sorted(zip(pairs.sources.tolist(), pairs.targets.tolist()))
    [(1, 0), (2, 0), (2, 1)]
    """
    component, dag = condense(graph)
    size = np.bincount(component, minlength=dag.n_nodes).astype(np.int64)
    members = np.argsort(component, kind="stable")  # of component c: start[c] : start[c + 1]
    start = np.concatenate([[0], np.cumsum(size)])
    columns, first_column = members, start  # the same of the nodes that u is drawn from
    if among is not None:
        columns = among[np.argsort(component[among], kind="stable")]
        counts = np.bincount(component[among], minlength=dag.n_nodes)
        first_column = np.concatenate([[0], np.cumsum(counts)])
    words = int(np.clip(_BLOCK_BYTES // (8 * max(len(size), 1)), 1, 64))
    lows = list(range(0, len(columns), 64 * words))
    rows = np.zeros((len(size), words), dtype=np.uint64)
    below = np.zeros(len(size), dtype=np.int64)
    totals = np.zeros(len(lows), dtype=np.int64)
    for block, low in enumerate(lows):
        _reach(dag.indptr, dag.targets, first_column, low, rows, below)
        totals[block] = below @ size
    total = int(totals.sum())
    if total <= count:
        numbers = np.arange(total)
    else:
        numbers = np.sort(rng.choice(total, count, replace=False, shuffle=False))
    u = np.empty(len(numbers), dtype=np.int64)
    v = np.empty(len(numbers), dtype=np.int64)
    ends = np.cumsum(totals)
    for block, low in enumerate(lows):
        first, last = np.searchsorted(numbers, [ends[block] - totals[block], ends[block]])
        if first == last:
            continue
        _reach(dag.indptr, dag.targets, first_column, low, rows, below)
        upto = np.cumsum(below * size)
        rest = numbers[first:last] - (ends[block] - totals[block])
        above = np.searchsorted(upto, rest, side="right")
        rest -= upto[above] - (below * size)[above]
        which, bit = np.divmod(rest, below[above])
        v[first:last] = members[start[above] + which]
        u[first:last] = columns[_pick(rows, first_column, low, above, bit)]
    shuffled = rng.permutation(len(u))
    return Pairs(u[shuffled], v[shuffled])


def _distinct_non_neighbours(
    graph: DiGraph, sources: Int64Array, size: int, rng: np.random.Generator
) -> Int64Array:
    """Rows of distinct nodes that the source has no edge to: bad draws are drawn again."""
    drawn = rng.integers(graph.n_nodes, size=(len(sources), size))
    while True:
        order = np.argsort(drawn, axis=1, kind="stable")
        ordered = np.take_along_axis(drawn, order, axis=1)
        again = np.zeros_like(drawn, dtype=bool)
        np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        again |= drawn == sources[:, None]
        flat = np.repeat(sources, size)
        again |= (graph.find_edges(flat, drawn.reshape(-1)) >= 0).reshape(drawn.shape)
        if not again.any():
            return drawn
        drawn[again] = rng.integers(graph.n_nodes, size=int(again.sum()))


@kernel
def _reach(
    indptr: Int64Array,
    targets: Int32Array,
    start: Int64Array,
    low: int,
    rows: UInt64Array,
    below: Int64Array,
) -> None:
    """Row c: the members of c and of all its descendants, as bits of the block from `low`.

    ``below[c]`` counts the strict descendants. Components are numbered in reverse topological
    order, so children come first.
    """
    words = rows.shape[1]
    one = np.uint64(1)
    for c in range(len(below)):
        for w in range(words):
            rows[c, w] = np.uint64(0)
        for e in range(indptr[c], indptr[c + 1]):
            child = targets[e]
            for w in range(words):
                rows[c, w] |= rows[child, w]
        below[c] = 0
        for w in range(words):
            below[c] += np.int64(popcount(rows[c, w]))
        first = max(start[c] - low, 0)
        last = min(start[c + 1] - low, 64 * words)
        for column in range(first, last):
            rows[c, column // 64] |= one << np.uint64(column % 64)


def _pick(
    rows: UInt64Array, start: Int64Array, low: int, components: Int64Array, numbers: Int64Array
) -> Int64Array:
    """Position, over all columns, of strict descendant numbers[i] of components[i]."""
    picked = np.empty(len(components), dtype=np.int64)
    columns = low + np.arange(64 * rows.shape[1])
    for first in range(0, len(components), _PICK):
        part = slice(first, first + _PICK)
        c = components[part]
        octets = rows[c].astype("<u8").view(np.uint8)
        bits = np.unpackbits(octets, axis=1, bitorder="little").astype(bool)
        bits &= (columns < start[c, None]) | (columns >= start[c + 1, None])
        rank = np.cumsum(bits, axis=1, dtype=np.int32)
        picked[part] = low + np.argmax(rank > numbers[part, None], axis=1)
    return picked
