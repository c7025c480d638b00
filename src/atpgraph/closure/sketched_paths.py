"""Paths and non-paths for the regression over panels, where the closure is too large to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.closure.panel import COLUMNS, WORDS, Panel
from atpgraph.closure.sketch import Sketcher
from atpgraph.util.arrays import BoolArray, Float64Array, Int32Array, Int64Array, UInt64Array
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel
from atpgraph.util.threads import Workers

SHEETS = 2  # of 512 nodes each, in a panel: 64 bytes a node
_POPULAR = SHEETS * COLUMNS // 4  # nodes of a panel that are drawn by popularity
_SPARE = 2  # members of a sketch for each that is drawn
_ROWS = 2**16  # of a task
_PATHS = 100_000


@dataclass(frozen=True, eq=False)
class PanelRound:
    """What the nodes draw from in one round, by position.

    Attributes
    ----------
    nodes : int32 array
        The node at every position.
    successors : int64 and int32 array
        Positions, as of a CSR matrix.
    columns : int32 array
        The nodes of the panel.
    uniform : int
        How many of them, from the first on, were drawn uniformly.
    popular : int32 array
        Places in `columns` of those drawn by popularity; they may be among the others.
    own : int32 array
        The place in `columns` of every node, −1 if it has none.
    bits : uint64 array
        Who reaches which column (:class:`~atpgraph.closure.panel.Panel`).
    found, counts : int32 arrays
        The sketch of every position as ranks, and how many there are. Where a position reaches
        enough of the uniform columns it draws from these alone: it has no sketch, which counts as
        full.
    node_of : int32 array
        The node of every rank.
    """

    nodes: Int32Array
    successors: tuple[Int64Array, Int32Array]
    columns: Int32Array
    uniform: int
    popular: Int32Array
    own: Int32Array
    bits: UInt64Array
    found: Int32Array
    counts: Int32Array
    node_of: Int32Array

    def some_paths(self) -> tuple[Int32Array, Int32Array]:
        """A path from each of up to 100,000 nodes that have any: where they start and end."""
        step = len(self.nodes) // _PATHS + 1
        starts = self.nodes[::step]
        ends = np.empty(len(starts), dtype=np.int32)
        one_of_each(
            step, self.nodes, self.columns, self.uniform, self.own, self.bits, self.found,
            self.counts, self.node_of, ends,
        )  # fmt: skip
        return starts[ends >= 0], ends[ends >= 0]


class SketchedPaths:
    """Descendants of every node, by sketch and by panel, both made anew for every round.

    A sketch of fresh ranks gives every node a fresh uniform sample of its descendants, a panel of
    fresh nodes tells exactly who reaches them. Nodes share what they draw: in one round those with
    many descendants meet the few nodes of the panel only. So it is the vectors of the rows that are
    to learn from it, all of them, while those of the panel stand still; and then the other way
    round, from the graph turned round.

    Parameters
    ----------
    sketcher : Sketcher
        Of a graph without cycles.
    sizes : int64 array
        Number of descendants of every node, or an estimate, 0 where there is none.
    popularity : float array
        How likely each node is to be in the panel, beside nodes drawn uniformly.
    """

    def __init__(self, sketcher: Sketcher, sizes: Int64Array, popularity: Float64Array) -> None:
        self.sizes, self._sketcher = sizes, sketcher
        self._columns = np.flatnonzero(sketcher.view.dag.in_degree > 0)
        shares = np.cumsum(popularity[self._columns])
        self._popular = shares / shares[-1] if len(shares) else shares
        self._room: tuple[UInt64Array | None, Int32Array | None] = None, None

    def renew(self, draws: int, rng: np.random.Generator, workers: Workers) -> PanelRound:
        """New samples of descendants, for up to `draws` of them, and a new panel.

        The last ones are overwritten.
        """
        n, view = len(self.sizes), self._sketcher.view
        uniform = self._columns[_some(len(self._columns), SHEETS * COLUMNS - _POPULAR, rng)]
        some = np.searchsorted(self._popular, rng.random(_POPULAR if len(uniform) else 0))
        popular = np.unique(self._columns[some])
        others = np.setdiff1d(popular, uniform)
        bits, found = self._room
        panel = Panel(view, np.concatenate([uniform, others]), workers, bits)
        enough = np.empty(n, dtype=np.bool_)

        def look(first: int) -> None:
            reaches_enough(
                first, min(first + _ROWS, n), draws, view.nodes, len(uniform), panel.slot,
                panel.bits, enough,
            )  # fmt: skip

        for _ in workers.map(look, range(0, n, _ROWS)):
            pass
        ranks = rng.permutation(n).astype(np.int32)
        found, counts, _ = self._sketcher.by_rank(
            ranks, max(_SPARE * draws, 2), workers, enough, found
        )
        self._room = panel.bits, found
        node_of = np.empty(n, dtype=np.int32)
        node_of[ranks] = np.arange(n, dtype=np.int32)
        return PanelRound(
            view.nodes, view.successors, panel.columns, len(uniform), panel.slot[popular],
            panel.slot, panel.bits, found, counts, node_of,
        )  # fmt: skip


def _some(n: int, count: int, rng: np.random.Generator) -> Int64Array:
    """Up to `count` of n numbers, in random order."""
    return np.asarray(rng.choice(n, min(n, count), replace=False))


@kernel
def reaches_enough(
    first: int,
    stop: int,
    draws: int,
    nodes: Int32Array,
    uniform: int,
    own: Int32Array,
    bits: UInt64Array,
    enough: BoolArray,
) -> None:
    """Whether each position reaches `draws` of the first `uniform` columns: it draws from these,
    and so do all that reach it.
    """
    one = np.uint64(1)
    used = (uniform + 63) >> 6
    rest = uniform & 63
    for i in range(first, stop):
        itself = own[nodes[i]]
        many: Any = -1 if 0 <= itself < uniform else 0
        for w in range(used):
            word = bits[w // WORDS, i, w % WORDS]
            if w == used - 1 and rest:
                word &= (one << np.uint64(rest)) - one
            many += np.int64(popcount(word))
        enough[i] = many >= draws


@kernel
def take(
    i: int,
    drawn: int,
    place: float,
    nodes: Int32Array,
    columns: Int32Array,
    uniform: int,
    own: Int32Array,
    bits: UInt64Array,
    found: Int32Array,
    counts: Int32Array,
    node_of: Int32Array,
    words: UInt64Array,
    targets: Int32Array,
) -> None:
    """Draw descendants of position i at even distances, from a place in [0, 1) on.

    Of the first `uniform` columns of the panel where it reaches so many, as these are drawn for
    each position by itself; else of its sketch. `words` is room for the bits of a row.
    """
    one = np.uint64(1)
    used = (uniform + 63) >> 6
    many: Any = 0
    for w in range(used):
        words[w] = bits[w // WORDS, i, w % WORDS]
    if uniform & 63:
        words[used - 1] &= (one << np.uint64(uniform & 63)) - one
    itself = own[nodes[i]]
    if 0 <= itself < uniform:
        words[itself >> 6] &= ~(one << np.uint64(itself & 63))
    for w in range(used):
        many += np.int64(popcount(words[w]))
    if many < drawn:
        for part in range(drawn):
            member = np.int64((part + place) * counts[i] / drawn)
            targets[part] = node_of[found[i, member]]
        return
    # The bits wanted come in ascending order: one walk over the words finds them all.
    w = -1
    before: Any = 0
    upto: Any = 0
    for part in range(drawn):
        wanted = np.int64((part + place) * many / drawn)
        while upto <= wanted:
            w += 1
            before = upto
            upto += np.int64(popcount(words[w]))
        word = words[w]
        for _ in range(wanted - before):
            word &= word - one
        low = word & (~word + one)
        targets[part] = columns[64 * w + np.int64(popcount(low - one))]


@kernel
def one_of_each(
    step: int,
    nodes: Int32Array,
    columns: Int32Array,
    uniform: int,
    own: Int32Array,
    bits: UInt64Array,
    found: Int32Array,
    counts: Int32Array,
    node_of: Int32Array,
    ends: Int32Array,
) -> None:
    """A descendant of every `step`-th position, −1 where there is none."""
    words = np.empty((uniform + 63) >> 6, dtype=np.uint64)
    targets = np.empty(1, dtype=np.int32)
    for at in range(len(ends)):
        i = at * step
        ends[at] = -1
        if counts[i] > 0:
            take(
                i, 1, 0.5, nodes, columns, uniform, own, bits, found, counts, node_of, words,
                targets,
            )  # fmt: skip
            ends[at] = targets[0]
