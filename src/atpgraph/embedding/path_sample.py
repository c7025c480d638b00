"""Sample pairs of nodes with and without a path, for evaluating vectors.

Truth comes from bit panels: one sweep over the edges of an acyclic graph tells exactly which nodes
512 nodes reach, at any size. Everything is sampled from both ends of the paths, so that a graph and
its reverse are evaluated alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from atpgraph.closure import PanelSource, Paths, Positions
from atpgraph.closure.panel import COLUMNS, Panel, bit
from atpgraph.graph.traversal import sweep
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    Int32Array,
    Int64Array,
    IntArray,
    UInt64Array,
)
from atpgraph.util.jit import kernel, popcount
from atpgraph.util.threads import Workers, checkpoint, interruptible

DISTANCES = {  # 1 is an edge
    "distance_2": (2, 2),
    "distance_3_to_5": (3, 5),
    "distance_6_to_10": (6, 10),
    "distance_above_10": (11, None),
}
_SMALL = 1024  # every node of a graph up to this size is a row
_UNIFORM, _HARD, _LARGE = 128, 384, 512  # rows drawn uniformly, among hard ones, by size
_PER_ROW = 8  # paths of a row
_EDGES = 20_000
_MANY_DESCENDANTS = 5
_HARD_PATHS = 4
_TRIES = 20
_BLOCK = 255  # rows whose bits are counted at a time: eight binary digits
_WORDS = 4  # of 64 rows whose distances are found, in graphs up to
_MANY_EDGES = 2_000_000  # nodes and edges; one word beyond


class WeightedPairs(NamedTuple):
    """Pairs (u, v), each standing for `weight` pairs of the closure."""

    u: Int64Array
    v: Int64Array
    weight: Float64Array


class Rows(NamedTuple):
    """Nodes whose scores with all other nodes are examined."""

    nodes: Int64Array
    sizes: Int64Array  # exact number of descendants of each
    bits: Int64Array  # the bit of `Side.reached` that stands for each


class Side(NamedTuple):
    """Pairs sampled from one end: some nodes, and the nodes that they reach.

    A look-alike pairs the source of a hard path with the target of another hard path, on a higher
    level, that it does not reach.
    """

    paths: WeightedPairs  # a sample of the closure, whose weights add up to its estimated size
    by_distance: dict[str, WeightedPairs]  # samples of the pairs at each of the distances
    hard_paths: Int64Array  # of shape (2, pairs): nodes with several of their descendants
    look_alikes: Int64Array
    rows: Rows  # nodes drawn uniformly,
    hard_rows: Rows  # and among those with at least five descendants, if there are any
    reached: UInt64Array  # of shape (nodes, words): which rows reach a node, a bit for each row

    def joined(self, bits: IntArray, nodes: IntArray) -> BoolArray:
        """Return, for each bit and node, whether the row of the bit reaches the node."""
        return np.asarray(self.reached[nodes, bits >> 6] & bit(bits) != 0)


@dataclass(frozen=True, eq=False)
class PathSample:
    """Pairs of nodes of an acyclic graph, with and without a path.

    Examples
    --------
    >>> from atpgraph.closure import collect_paths
    >>> from atpgraph.graph import DiGraph
    >>> dag = DiGraph.from_codes([0, 1, 3], [1, 2, 4], 5)
    >>> sample = PathSample.of(collect_paths(dag, np.array([1, 2, 3, 1, 2], dtype=np.int32)))
    >>> np.stack(sample.sides[0].paths[:2]).tolist()
    [[0, 0, 1, 3], [1, 2, 2, 4]]
    """

    levels: Int32Array
    edges: Int64Array  # of shape (2, edges): all edges, or 20,000 drawn uniformly
    # Sampled from the sources of paths, and from their targets. In the second one, pairs are
    # (target, source): it is the first one of the reversed graph.
    sides: tuple[Side, Side]

    @classmethod
    def of(
        cls, paths: Paths, *, effort: float = 1.0, n_jobs: int | None = None, random_state: int = 0
    ) -> PathSample:
        """Sample the paths of an acyclic graph; `effort` multiplies the number of rows."""
        dag = paths.dag
        edges_rng, *rngs = np.random.default_rng(random_state).spawn(3)
        count = min(dag.n_edges, round(_EDGES * effort))
        chosen = np.sort(edges_rng.choice(dag.n_edges, count, replace=False))
        edges = np.stack([dag.sources[chosen], dag.targets[chosen]]).astype(np.int64)

        def side(at: int, workers: Workers) -> Side:
            ahead, back = paths.sides[at], paths.sides[1 - at].view
            return _side(ahead, back, effort, rngs[at], workers)

        def both() -> list[Side]:
            with Workers(n_jobs) as workers:
                return workers.both(side)

        first, second = interruptible(both)
        return cls(paths.levels, edges, (first, second))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.levels)


class _Drawn(NamedTuple):
    """Distinct drawn nodes, with how often each was drawn and how often that was expected."""

    nodes: Int64Array
    times: Int64Array
    expected: Float64Array

    @classmethod
    def of(cls, draws: list[Int64Array], chances: Float64Array) -> _Drawn:
        """Join draws of several kinds, in their order; each kind has a column of `chances`."""
        every = np.concatenate(draws)
        _, first = np.unique(every, return_index=True)
        nodes = every[np.sort(first)]
        times = np.bincount(every, minlength=1)[nodes]
        number = np.array([len(each) for each in draws], dtype=np.float64)
        return cls(nodes, times, chances[nodes, : len(draws)] @ number)


def _side(
    ahead: PanelSource, back: Positions, effort: float, rng: np.random.Generator, workers: Workers
) -> Side:
    """Sample from one end; `back` is the reversed graph."""
    n, sizes = back.n, ahead.sizes
    hard = np.flatnonzero(sizes >= _MANY_DESCENDANTS)
    if not len(hard):
        hard = np.flatnonzero(sizes > 0)
    # The chance of a node in one draw of each kind.
    chances = np.zeros((n, 3))
    chances[:, 0] = 1 / max(n, 1)
    chances[hard, 1] = 1 / max(len(hard), 1)
    chances[:, 2] = sizes / max(float(sizes.sum()), 1.0)
    if n <= _SMALL * effort:
        rows, hard_rows = np.arange(n), hard
        draws = [rows]
    else:
        n_uniform, n_hard, n_large = (round(x * effort) for x in (_UNIFORM, _HARD, _LARGE))
        rows, hard_rows = rng.permutation(n)[:n_uniform], rng.permutation(hard)[:n_hard]
        share = np.cumsum(sizes, dtype=np.float64)
        places = rng.random(n_large if share[-1] else 0) * share[-1]
        draws = [rows, hard_rows, np.searchsorted(share, places, side="right")]
    drawn = _Drawn.of(draws, chances)
    # Bits of the reversed graph: who is reached from a column, itself not included.
    panel = Panel(back, drawn.nodes, workers)
    at = np.arange(len(drawn.nodes))
    own = back.position[drawn.nodes]
    panel.bits[at // COLUMNS, own, (at >> 6) % (COLUMNS // 64)] &= ~bit(at)
    exact, paths = _draw(panel.bits, back, drawn, rng)
    hard_paths, look_alikes = _hard_pairs(paths, panel, ahead.view.levels, hard_rows, rng)
    uniform, several = (
        Rows(nodes, exact[panel.slot[nodes]], panel.slot[nodes].astype(np.int64))
        for nodes in (rows, hard_rows[: len(rows)])
    )
    words = int(max(uniform.bits.max(initial=0), several.bits.max(initial=0))) // 64 + 1
    sheets = panel.bits[: -(-64 * words // COLUMNS), back.position]
    reached = np.concatenate(list(sheets), axis=1)[:, :words]
    by_distance = _by_distance(back, draws, chances, rng)
    return Side(paths, by_distance, hard_paths, look_alikes, uniform, several, reached)


def _draw(
    sheets: UInt64Array, view: Positions, drawn: _Drawn, rng: np.random.Generator
) -> tuple[Int64Array, WeightedPairs]:
    """Return the number of nodes in every column of the bits, and some of these nodes, weighted."""
    width = 64 * sheets.shape[2]
    sizes = [np.zeros(0, dtype=np.int64)]
    parts: list[tuple[AnyArray, AnyArray, AnyArray]] = []
    for at, words in enumerate(sheets):
        checkpoint()
        part = slice(at * width, (at + 1) * width)
        nodes, times, expected = drawn.nodes[part], drawn.times[part], drawn.expected[part]
        before = np.zeros((-(-len(words) // _BLOCK) + 1, width), dtype=np.int64)
        _count_bits(words, before)
        np.cumsum(before, axis=0, out=before)
        size = before[-1, : len(nodes)]
        count = np.minimum(_PER_ROW * times, size)
        # Evenly spaced places from a random one on, so each is equally likely.
        column = np.repeat(np.arange(len(nodes)), count)
        within = np.arange(len(column)) - (np.cumsum(count) - count)[column]
        within = within + rng.random(len(nodes))[column]
        places = (within * (size / np.maximum(count, 1))[column]).astype(np.int64)
        target = np.empty(len(column), dtype=np.int64)
        _pick_bits(words, before, column, np.minimum(places, size[column] - 1), target)
        each = times * size / (expected * np.maximum(count, 1))
        parts.append((nodes[column], view.nodes[target].astype(np.int64), each[column]))
        sizes.append(size)
    u, v, weight = map(np.concatenate, zip(*parts, strict=True))
    return np.concatenate(sizes), WeightedPairs(u, v, weight)


def _by_distance(
    view: Positions, draws: list[Int64Array], chances: Float64Array, rng: np.random.Generator
) -> dict[str, WeightedPairs]:
    """Pairs by distance: breadth-first search from many rows at a time, a bit for each."""
    most = 64 * (_WORDS if view.n + view.dag.n_edges <= _MANY_EDGES else 1)
    share = min(1.0, most / max(sum(map(len, draws)), 1))
    drawn = _Drawn.of([rng.permutation(x)[: int(share * len(x))] for x in draws], chances)
    at = np.arange(len(drawn.nodes))
    words = np.zeros((view.n, max(-(-len(at) // 64), 1)), dtype=np.uint64)
    words[view.position[drawn.nodes], at >> 6] = bit(at)
    words = _steps(view, words, 1)
    result = {}
    for name, (first, last) in DISTANCES.items():
        before = words
        words = _steps(view, before, None if last is None else last - first + 1)
        result[name] = _draw((words & ~before)[None], view, drawn, rng)[1]
    return result


def _steps(view: Positions, words: UInt64Array, count: int | None) -> UInt64Array:
    """Give every position the bits of all positions at most `count` edges away (None: any)."""
    order = np.arange(view.n)
    for _ in range(count or 1):
        checkpoint()
        before, words = words, words.copy()
        # In place, and sinks first, the bits travel all the way.
        source = words if count is None else before
        sweep(order, *view.successors, source, words, 0, words.shape[1])
    return words


def _hard_pairs(
    paths: WeightedPairs,
    panel: Panel,
    levels: Int32Array,
    hard_rows: Int64Array,
    rng: np.random.Generator,
) -> tuple[Int64Array, Int64Array]:
    """Return up to four paths of each hard row, and a look-alike for each of them."""
    mixed = rng.permutation(np.flatnonzero(np.isin(paths.u, hard_rows)))
    mixed = mixed[np.argsort(paths.u[mixed], kind="stable")]
    u = paths.u[mixed]
    few = np.arange(len(u)) - np.searchsorted(u, u) < _HARD_PATHS
    u, v = u[few], paths.v[mixed[few]]
    found = np.full(len(u), -1, dtype=np.int64)
    for _ in range(_TRIES):
        left = np.flatnonzero(found < 0)
        if not len(left):
            break
        tried = rng.choice(v, len(left))
        fits = levels[tried] > levels[u[left]]
        fits[fits] = ~panel.joined(tried[fits], u[left[fits]])
        found[left[fits]] = tried[fits]
    alike = found >= 0
    # Of nodes without look-alikes the paths are left out as well, unless there are none at all.
    used = alike if alike.any() else ~alike
    return np.stack([u[used], v[used]]), np.stack([u[alike], found[alike]])


@kernel
def _count_bits(words: UInt64Array, counts: Int64Array) -> None:
    """Count the set bits of every column in blocks of rows; ``counts[b + 1]`` is for block b."""
    one = np.uint64(1)
    # Bit c of planes[p] is bit p of the count of column c: one carry adds a row to all 64 columns.
    planes = np.empty(8, dtype=np.uint64)
    for first in range(0, words.shape[0], _BLOCK):
        for w in range(words.shape[1]):
            planes[:] = 0
            for i in range(first, min(first + _BLOCK, words.shape[0])):
                carry = words[i, w]
                p = 0
                while carry != 0:
                    both = planes[p] & carry
                    planes[p] ^= carry
                    carry = both
                    p += 1
            for p in range(8):
                plane = planes[p]
                while plane != 0:
                    low = plane & (~plane + one)  # the lowest set bit
                    plane ^= low
                    counts[first // _BLOCK + 1, 64 * w + np.int64(popcount(low - one))] += 1 << p


@kernel
def _pick_bits(
    words: UInt64Array,
    before: Int64Array,
    columns: Int64Array,
    places: Int64Array,
    found: Int64Array,
) -> None:
    """Find the row of each set bit, numbered within its column; `before` counts the bits above."""
    for q in range(len(places)):
        c = columns[q]
        block = np.searchsorted(before[:, c], places[q], side="right") - 1
        left = places[q] - before[block, c]
        i = block * _BLOCK
        mask = np.uint64(1) << np.uint64(c & 63)
        while left > 0 or words[i, c >> 6] & mask == 0:
            if words[i, c >> 6] & mask != 0:
                left -= 1
            i += 1
        found[q] = i
