"""Pairs that are not links, drawn uniformly: any non-edge, or against the direction of paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import condense
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, UInt64Array
from atpgraph.util.jit import kernel, popcount

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
        """Return the pairs at these positions, or where this mask is true."""
        return Pairs(self.sources[which], self.targets[which])

    @classmethod
    def of_edges(cls, graph: DiGraph, edges: Int64Array) -> Pairs:
        """Return the ends of some edges of a graph."""
        return cls(graph.sources[edges].astype(np.int64), graph.targets[edges].astype(np.int64))


def non_edges(graph: DiGraph, count: int, rng: np.random.Generator) -> Pairs:
    """Return up to `count` distinct ordered pairs u ≠ v without an edge."""
    n = graph.n_nodes
    available = n * (n - 1) - (graph.n_edges - graph.n_self_loops)
    if available <= 4 * count:
        taken = np.zeros((n, n), dtype=bool)  # small: n² is at most m + n + 4 count
        taken[graph.sources, graph.targets] = True
        np.fill_diagonal(taken, True)
        keys = rng.permutation(np.flatnonzero(~taken))[:count]
    else:
        keys = np.empty(0, dtype=np.int64)
        while len(keys) < count:
            u, v = rng.integers(n, size=2 * count), rng.integers(n - 1, size=2 * count)
            v += v >= u
            both = np.concatenate([keys, (u * n + v)[graph.find_edges(u, v) < 0]])
            _, first = np.unique(both, return_index=True)
            keys = both[np.sort(first)][:count]
    return Pairs(*np.divmod(keys, n))


def free_nodes(graph: DiGraph, u: int) -> BoolArray:
    """Return the nodes other than u that u has no edge to."""
    free = np.ones(graph.n_nodes, dtype=bool)
    free[graph.targets[graph.indptr[u] : graph.indptr[u + 1]]] = False
    free[u] = False
    return free


def non_neighbors(
    graph: DiGraph, sources: Int64Array, size: int, rng: np.random.Generator
) -> Int64Array:
    """Return rows of up to `size` distinct nodes that a source has no edge to, padded with −1."""
    sampled = np.full((len(sources), size), -1, dtype=np.int64)
    for row, u in zip(sampled, sources, strict=True):
        others = np.flatnonzero(free_nodes(graph, u))
        chosen = rng.choice(others, min(size, len(others)), replace=False)
        row[: len(chosen)] = chosen
    return sampled


def one_way_pairs(
    graph: DiGraph, count: int, rng: np.random.Generator, among: Int64Array | None = None
) -> Pairs:
    """Return up to `count` distinct pairs (u, v) where v reaches u but u does not reach v.

    If there are fewer, all of them are returned. u is drawn from `among`, distinct nodes, by
    default all; the time grows with their number.

    Notes
    -----
    The component of v strictly precedes that of u in the condensation. The descendants of every
    component are bit sets over the nodes, a block of columns at a time, so memory is bounded. A
    first pass counts the pairs per block; distinct numbers below the total are drawn; a second pass
    finds the pairs with those numbers.

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> pairs = one_way_pairs(chain, 10, np.random.default_rng(0))
    >>> sorted(zip(pairs.sources.tolist(), pairs.targets.tolist()))
    [(1, 0), (2, 0), (2, 1)]
    """
    component, dag = condense(graph)
    members, start = _by_component(np.arange(graph.n_nodes), component, dag.n_nodes)
    size = np.diff(start)
    columns, first_column = members, start  # the same of the nodes that u is drawn from
    if among is not None:
        columns, first_column = _by_component(among, component, dag.n_nodes)
    words = int(np.clip(_BLOCK_BYTES // (8 * max(len(size), 1)), 1, 64))
    lows = list(range(0, len(columns), 64 * words))
    rows = np.zeros((len(size), words), dtype=np.uint64)
    below = np.zeros(len(size), dtype=np.int64)
    totals = np.zeros(len(lows), dtype=np.int64)
    for block, low in enumerate(lows):
        _reach(dag.indptr, dag.targets, first_column, low, rows, below)
        totals[block] = below @ size
    total = int(totals.sum())
    numbers = np.arange(total)
    if total > count:
        numbers = np.sort(rng.choice(total, count, replace=False, shuffle=False))
    u, v = np.empty((2, len(numbers)), dtype=np.int64)
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


def _by_component(
    nodes: Int64Array, component: Int32Array, count: int
) -> tuple[Int64Array, Int64Array]:
    """Return nodes sorted by component, and where those of each begin."""
    sizes = np.bincount(component[nodes], minlength=count)
    order = np.argsort(component[nodes], kind="stable")
    return nodes[order], np.concatenate([[0], np.cumsum(sizes)])


@kernel
def _reach(
    indptr: Int64Array,
    targets: Int32Array,
    start: Int64Array,
    low: int,
    rows: UInt64Array,
    below: Int64Array,
) -> None:
    """Write to row c the members of c and of all its descendants, as bits of the block from `low`.

    ``below[c]`` counts the strict descendants. Components are in reverse topological order.
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
    """Return the position, over all columns, of strict descendant numbers[i] of components[i]."""
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
