"""Paths and non-paths for the regression over pairs, where the closure is too large to hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph._bits import popcount
from atpgraph._jit import kernel
from atpgraph._threads import Workers
from atpgraph._typing import BoolArray, Float64Array, Int32Array, Int64Array, IntArray, UInt64Array
from atpgraph.closure.panel import COLUMNS, WORDS, Panel
from atpgraph.closure.sketch import Sketcher
from atpgraph.graph.digraph import DiGraph

_PANEL = 2**28  # bytes of the panel, about; two sheets at the least
_MOST_SHEETS = 16
_SPARE = 2  # members of a sketch for each that is drawn


def panel_sheets(n: int) -> int:
    """How many times 512 nodes the panel of a graph holds; they take 64 bytes a node each."""
    return int(np.clip(_PANEL // (8 * WORDS * max(n, 1)), 2, _MOST_SHEETS))


class SketchedPaths:
    """Draws descendants from sketches made anew in every round, and non-paths from a panel.

    A sketch of fresh ranks gives every node a fresh uniform sample of its descendants. Nodes share
    what they sample: in one round only the nodes of lowest rank are drawn by those with many
    descendants. So the pairs of a graph are to be drawn from both ends, here and from the graph
    turned round. What is no path is told by a panel of nodes, fresh in every round too, of which it
    is known exactly who reaches them.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles.
    levels : int32 array
        Those of the graph, rising along every edge.
    sizes : int64 array
        Number of descendants of every node, or an estimate, 0 where there is none.
    popularity : float array
        How likely each node is to be in the panel, beside nodes drawn uniformly.
    """

    def __init__(
        self, dag: DiGraph, levels: Int32Array, sizes: Int64Array, popularity: Float64Array
    ) -> None:
        self.sizes = sizes
        self._sketcher = Sketcher(dag, levels)
        self._columns = np.flatnonzero(dag.in_degree > 0)
        shares = np.cumsum(popularity[self._columns])
        self._popular = shares / shares[-1] if len(shares) else shares
        sheets = panel_sheets(dag.n_nodes)
        self._draws = sheets * COLUMNS // 4  # the fourth part by popularity
        self._width = sheets * COLUMNS - self._draws

    def renew(
        self, draws: int, rng: np.random.Generator, workers: Workers
    ) -> tuple[Int32Array, Int32Array]:
        """New samples of descendants, and a new panel: its nodes drawn uniformly, and those drawn
        by popularity.
        """
        n = len(self.sizes)
        ranks = rng.permutation(n).astype(np.int32)
        kept = max(_SPARE * draws, 2)
        self._found, self._counts, _ = self._sketcher.by_rank(ranks, kept, workers)
        self._node_of = np.empty(n, dtype=np.int32)
        self._node_of[ranks] = np.arange(n, dtype=np.int32)
        uniform = rng.permutation(self._columns)[: self._width].astype(np.int32)
        some = np.searchsorted(self._popular, rng.random(self._draws if len(uniform) else 0))
        popular = np.unique(self._columns[some]).astype(np.int32)
        others = np.setdiff1d(popular, uniform)
        self._uniform = len(uniform)
        self._panel = Panel(self._sketcher.view, np.concatenate([uniform, others]), workers)
        return uniform, popular

    def draw(self, nodes: Int32Array, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` descendants of each node, as pairs in the order of `nodes`.

        From the panel where it has enough, as these are drawn for each node by itself; else from
        the sketch.
        """
        rows = self._sketcher.view.position[nodes]
        drawn = np.minimum(self._counts[rows], count)
        targets = np.empty(int(drawn.sum()), dtype=np.int32)
        _take(
            nodes, rows, drawn, seed, self._panel.bits, self._panel.columns, self._panel.slot,
            self._uniform, self._found, self._counts, self._node_of, targets,
        )  # fmt: skip
        return np.repeat(nodes, drawn), targets

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path leads from each `u` to its `v`, a node of the panel."""
        return self._panel.joined(u, v)


@kernel
def _take(
    nodes: Int32Array,
    rows: Int32Array,
    drawn: Int32Array,
    seed: np.uint64,
    bits: UInt64Array,
    columns: Int32Array,
    slot: Int32Array,
    uniform: int,
    found: Int32Array,
    counts: Int32Array,
    node_of: Int32Array,
    targets: Int32Array,
) -> None:
    """Descendants at even distances from a random place on: of the first `uniform` columns of the
    panel, or if too few of those are reached, of the members of the sketch.
    """
    one = np.uint64(1)
    words = np.empty((uniform + 63) >> 6, dtype=np.uint64)
    state = seed
    at = 0
    for i in range(len(rows)):
        u = rows[i]
        many: Any = 0
        for w in range(len(words)):
            words[w] = bits[(64 * w) // COLUMNS, u, w % WORDS]
        if uniform & 63:
            words[-1] &= (one << np.uint64(uniform & 63)) - one
        own = slot[nodes[i]]
        if 0 <= own < uniform:
            words[own >> 6] &= ~(one << np.uint64(own & 63))
        for w in range(len(words)):
            many += np.int64(popcount(words[w]))
        state ^= state << np.uint64(13)  # xorshift
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        place = np.float64(state >> np.uint64(11)) / 2.0**53
        if many < drawn[i]:
            for part in range(drawn[i]):
                member = np.int64((part + place) * counts[u] / drawn[i])
                targets[at] = node_of[found[u, member]]
                at += 1
            continue
        # The bits wanted come in ascending order: one walk over the words finds them all.
        w = -1
        before: Any = 0
        upto: Any = 0
        for part in range(drawn[i]):
            wanted = np.int64((part + place) * many / drawn[i])
            while upto <= wanted:
                w += 1
                before = upto
                upto += np.int64(popcount(words[w]))
            word = words[w]
            for _ in range(wanted - before):
                word &= word - one
            low = word & (~word + one)
            targets[at] = columns[64 * w + np.int64(popcount(low - one))]
            at += 1
