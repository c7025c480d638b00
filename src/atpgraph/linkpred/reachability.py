"""Uniform draws from the pairs (u, v) where v reaches u and u does not reach v.

Inside a strongly connected component both directions are reachable, and between two components
at most one is; so the pairs wanted are those where the component of v strictly precedes that of
u in the condensation. The descendants of every component are found as bit sets over the nodes, a
block of columns at a time, so memory is bounded whatever the graph. A first pass counts the pairs
per block, which fixes the total P; distinct numbers below P are drawn; a second pass finds the
pairs with those numbers. Every pair has the same probability, and none is drawn twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from atpgraph._jit import kernel
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import strongly_connected_components

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

_BLOCK_BYTES = 64 * 2**20
_PICK = 1024


@dataclass(frozen=True, eq=False)
class _Condensation:
    component: Ints
    indptr: Ints
    targets: Ints
    members: Ints  # nodes, component by component
    start: Ints  # members of c: start[c] : start[c + 1]


def one_way_pairs(graph: DiGraph, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Up to `count` distinct pairs (u, v) where v reaches u but u does not reach v.

    Parameters
    ----------
    graph : DiGraph
    count : int
        If the graph has fewer such pairs, all of them are returned.
    rng : numpy.random.Generator

    Returns
    -------
    u, v : int64 arrays
        In random order. There is no edge (u, v), since u would reach v.

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> u, v = one_way_pairs(chain, 10, np.random.default_rng(0))
    >>> sorted(zip(u.tolist(), v.tolist()))
    [(1, 0), (2, 0), (2, 1)]
    """
    dag = _condense(graph)
    size = np.diff(dag.start)
    words = int(np.clip(_BLOCK_BYTES // (8 * max(len(size), 1)), 1, 64))
    lows = list(range(0, graph.n_nodes, 64 * words))
    rows = np.zeros((len(size), words), dtype=np.uint64)
    found = np.zeros(len(size), dtype=np.int64)
    totals = np.zeros(len(lows), dtype=np.int64)
    for block, low in enumerate(lows):
        _reach(dag.indptr, dag.targets, dag.start, low, rows, found)
        totals[block] = found @ size
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
        _reach(dag.indptr, dag.targets, dag.start, low, rows, found)
        upto = np.cumsum(found * size)
        rest = numbers[first:last] - (ends[block] - totals[block])
        above = np.searchsorted(upto, rest, side="right")
        rest -= upto[above] - (found * size)[above]
        which, bit = np.divmod(rest, found[above])
        v[first:last] = dag.members[dag.start[above] + which]
        u[first:last] = dag.members[_pick(rows, dag.start, low, above, bit)]
    shuffled = rng.permutation(len(u))
    return u[shuffled], v[shuffled]


def _condense(graph: DiGraph) -> _Condensation:
    component = strongly_connected_components(graph).astype(np.int64)
    n_components = int(component.max()) + 1 if len(component) else 0
    a, b = component[graph.sources], component[graph.targets]
    keep = a != b
    shape = (n_components, n_components)
    ones = np.ones(int(keep.sum()), dtype=np.int8)
    dag = sp.coo_array((ones, (a[keep], b[keep])), shape=shape).tocsr()
    indptr, targets = dag.indptr.astype(np.int64), dag.indices.astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(component, minlength=n_components))])
    return _Condensation(
        component,
        indptr,
        targets,
        np.argsort(component, kind="stable"),
        start.astype(np.int64),
    )


@kernel
def _reach(indptr: Ints, targets: Ints, start: Ints, low: int, rows: Bits, found: Ints) -> None:
    """Row c: the members of c and of all its descendants, as bits of the block from `low`.

    ``found[c]`` counts the strict descendants. Components are numbered in reverse topological
    order, so children come first.
    """
    words = rows.shape[1]
    one = np.uint64(1)
    for c in range(len(found)):
        for w in range(words):
            rows[c, w] = np.uint64(0)
        for e in range(indptr[c], indptr[c + 1]):
            child = targets[e]
            for w in range(words):
                rows[c, w] |= rows[child, w]
        found[c] = 0
        for w in range(words):
            word = rows[c, w]  # the parallel sum of its bits follows
            word -= (word >> one) & np.uint64(0x5555555555555555)
            word = (word & np.uint64(0x3333333333333333)) + (
                (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
            )
            word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            found[c] += np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
        first = max(start[c] - low, 0)
        last = min(start[c + 1] - low, 64 * words)
        for column in range(first, last):
            rows[c, column // 64] |= one << np.uint64(column % 64)


def _pick(rows: Bits, start: Ints, low: int, components: Ints, numbers: Ints) -> Ints:
    """Position, over all members, of strict descendant numbers[i] of components[i]."""
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
