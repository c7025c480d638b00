"""Sample pairs of nodes with and without a path, to judge vectors by.

Truth comes from bit panels: one sweep over the edges of an acyclic graph tells exactly what 512
nodes reach, at any size. Everything is sampled from both ends of the paths, so that a graph and its
reverse are judged alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from atpgraph.closure import Positions
from atpgraph.closure.panel import COLUMNS, Panel
from atpgraph.closure.sketch import reach_sketch, reversed_levels
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    Int32Array,
    Int64Array,
    IntArray,
    UInt64Array,
)
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel
from atpgraph.util.threads import Workers, checkpoint, interruptible

DISTANCES = {"2": (2, 2), "3-5": (3, 5), "6-10": (6, 10), "more": (11, None)}  # 1 is an edge
_SMALL = 1024  # every node of a graph up to this size is a row
_UNIFORM, _HARD, _LARGE = 128, 384, 512  # rows drawn uniformly, among hard ones, by size
_PER_ROW = 8  # paths of a row
_EDGES = 20_000
_MANY_DESCENDANTS = 5
_HARD_PATHS = 4
_TRIES = 20
_WORDS = 4  # of 64 rows whose distances are found, in graphs up to
_MANY_EDGES = 2_000_000  # nodes and edges; one word beyond
_DENSE_ROWS, _DENSE = 2**15, 256  # draw among that many nodes if they hold that many paths


class WeightedPairs(NamedTuple):
    """Pairs (u, v), each standing for `weight` pairs of the closure."""

    u: Int64Array
    v: Int64Array
    weight: Float64Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Nodes whose scores with all others are looked at.

    Attributes
    ----------
    nodes : int64 array
    sizes : int64 array
        Exact number of descendants of each.
    bits : int64 array
        The bit of `Side.reached` that stands for each.
    """

    nodes: Int64Array
    sizes: Int64Array
    bits: Int64Array


@dataclass(frozen=True, eq=False)
class Side:
    """Pairs sampled from one end: some rows, and what they reach.

    Attributes
    ----------
    n_pairs : float
        Number of pairs of the closure, estimated from the rows.
    paths : WeightedPairs
        A sample of the closure.
    by_distance : dict of WeightedPairs
        Samples of the pairs at each distance of :data:`DISTANCES`.
    hard_paths, look_alikes : int64 arrays of shape (2, pairs)
        Nodes with several of their descendants; the same nodes with targets of those paths that
        they do not reach, though those are on a higher level.
    rows, hard_rows : Rows
        Nodes drawn uniformly, and among the nodes with at least five descendants (with one, if no
        node has five).
    reached : uint64 array of shape (nodes, words)
        Which rows reach a node, a bit for each row.
    """

    n_pairs: float
    paths: WeightedPairs
    by_distance: dict[str, WeightedPairs]
    hard_paths: Int64Array
    look_alikes: Int64Array
    rows: Rows
    hard_rows: Rows
    reached: UInt64Array

    def joined(self, bits: IntArray, nodes: IntArray) -> BoolArray:
        """Whether the row with each bit reaches each node."""
        word = self.reached[nodes, bits >> 6]
        return np.asarray(word >> (bits & 63).astype(np.uint64) & np.uint64(1) != 0)


@dataclass(frozen=True, eq=False)
class PathSample:
    """Pairs of an acyclic graph for which it is known whether a path joins them.

    Attributes
    ----------
    levels : int32 array
        Level of every node.
    edges : int64 array of shape (2, edges)
        All edges, or 20,000 drawn uniformly.
    sides : pair of Side
        Sampled from the sources of paths, and from their targets. In the second one, pairs are
        (target, source): it is the first one of the reversed graph.

    Examples
    --------
    >>> sample = PathSample.of(DiGraph.from_codes([0, 1, 3], [1, 2, 4], 5))
    >>> sample.sides[0].n_pairs, np.stack(sample.sides[0].paths[:2]).tolist()
    (4.0, [[0, 0, 1, 3], [1, 2, 2, 4]])
    """

    levels: Int32Array
    edges: Int64Array
    sides: tuple[Side, Side]

    @classmethod
    def of(
        cls,
        dag: DiGraph,
        levels: Int32Array | None = None,
        sizes: tuple[Int64Array, Int64Array] | None = None,
        *,
        effort: float = 1.0,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> PathSample:
        """Sample an acyclic graph.

        Parameters
        ----------
        dag : DiGraph
            A graph without cycles.
        levels : int32 array, optional
            Level of every node.
        sizes : pair of int64 arrays, optional
            Number of descendants and of ancestors of every node, or estimates of them; exact zeros.
            By default they are estimated with sketches.
        effort : float
            Multiplies the number of rows.
        n_jobs : int, optional
            Threads; by default all cores. The result does not depend on it.
        random_state : int
            Seed.
        """
        if levels is None:
            from atpgraph.hierarchy import levels as levels_of

            levels = levels_of(dag)
        if sizes is None:
            sizes = (
                reach_sketch(dag, levels, size=16, n_jobs=n_jobs).sizes,
                reach_sketch(dag.reverse(), reversed_levels(levels), size=16, n_jobs=n_jobs).sizes,
            )
        edges_rng, *rngs = np.random.default_rng(random_state).spawn(3)
        chosen = _some(dag.n_edges, round(_EDGES * effort), edges_rng)
        edges = np.stack([dag.sources[chosen], dag.targets[chosen]]).astype(np.int64)
        graphs = (dag, levels), (dag.reverse(), reversed_levels(levels))

        def side(at: int, workers: Workers) -> Side:
            return _side(*graphs[at], graphs[1 - at], sizes[at], effort, rngs[at], workers)

        def both() -> list[Side]:
            with Workers(n_jobs) as workers:
                return workers.both(side)

        first, second = interruptible(both)
        return cls(levels, edges, (first, second))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.levels)

    @property
    def n_pairs(self) -> float:
        """Number of pairs of the closure, as estimated."""
        return (self.sides[0].n_pairs + self.sides[1].n_pairs) / 2


def _some(n: int, count: int, rng: np.random.Generator) -> Int64Array:
    """Up to `count` of the numbers below n, ascending."""
    return np.sort(rng.choice(n, min(n, count), replace=False)).astype(np.int64)


class _Drawn(NamedTuple):
    """Drawn nodes, each once, with how often it was drawn and how often that was to be expected."""

    nodes: Int64Array
    times: Int64Array
    expected: Float64Array

    @classmethod
    def of(cls, draws: list[Int64Array], chances: Float64Array) -> _Drawn:
        """Join draws of several kinds, which have a column of `chances` each; first come first."""
        every = np.concatenate(draws)
        _, first = np.unique(every, return_index=True)
        nodes = every[np.sort(first)]
        times = np.bincount(every, minlength=1)[nodes]
        number = np.array([len(each) for each in draws], dtype=np.float64)
        return cls(nodes, times, chances[nodes, : len(draws)] @ number)


def _side(
    dag: DiGraph,
    levels: Int32Array,
    reverse: tuple[DiGraph, Int32Array],
    sizes: Int64Array,
    effort: float,
    rng: np.random.Generator,
    workers: Workers,
) -> Side:
    n = dag.n_nodes
    able = np.flatnonzero(sizes > 0)
    hard = np.flatnonzero(sizes >= _MANY_DESCENDANTS)
    if not len(hard):
        hard = able
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
        share = np.cumsum(sizes[able], dtype=np.float64)
        places = rng.random(n_large if len(able) else 0) * share.max(initial=0.0)
        large = np.searchsorted(share, places, side="right")
        draws = [rows, hard_rows, able[large]]
    drawn = _Drawn.of(draws, chances)
    # Bits of the reversed graph: who is reached from a column, itself not included.
    view = Positions.of(*reverse)
    panel = Panel(view, drawn.nodes, workers)
    at = np.arange(len(drawn.nodes))
    own = ~(np.uint64(1) << (at & 63).astype(np.uint64))
    panel.bits[at // COLUMNS, view.position[drawn.nodes], (at >> 6) % (COLUMNS // 64)] &= own
    exact, paths = _draw(panel.bits, view, drawn, rng)
    n_pairs = float((exact * drawn.times / drawn.expected).sum()) if len(exact) else 0.0
    hard_paths, look_alikes = _hard_pairs(paths, panel, levels, hard_rows, rng)
    hard_rows = hard_rows[: len(rows)]
    uniform, several = (
        Rows(nodes, exact[panel.slot[nodes]], panel.slot[nodes].astype(np.int64))
        for nodes in (rows, hard_rows)
    )
    words = int(max(uniform.bits.max(initial=0), several.bits.max(initial=0))) // 64 + 1
    sheets = panel.bits[: -(-64 * words // COLUMNS), view.position]
    reached = np.concatenate(list(sheets), axis=1)[:, :words]
    by_distance = _by_distance(view, draws, chances, rng)
    return Side(n_pairs, paths, by_distance, hard_paths, look_alikes, uniform, several, reached)


def _draw(
    sheets: UInt64Array, view: Positions, drawn: _Drawn, rng: np.random.Generator
) -> tuple[Int64Array, WeightedPairs]:
    """Number of nodes in every column of the bits, and some of these nodes, weighted."""
    n, width = sheets.shape[1], 64 * sheets.shape[2]
    every = np.arange(n)
    some = np.sort(rng.choice(n, min(n, _DENSE_ROWS), replace=False))
    sizes = [np.zeros(0, dtype=np.int64)]
    parts: list[tuple[AnyArray, AnyArray, AnyArray]] = []
    for at, words in enumerate(sheets):
        checkpoint()
        part = slice(at * width, (at + 1) * width)
        nodes, times, expected = drawn.nodes[part], drawn.times[part], drawn.expected[part]
        size, found = np.zeros((2, width), dtype=np.int64)
        _count_bits(every, words, size)
        _count_bits(some, words, found)
        size, found = size[: len(nodes)], found[: len(nodes)]
        wanted = np.minimum(_PER_ROW * times, size)
        # Draws among a random part of the nodes are draws among all, if it holds enough.
        dense = (found >= _DENSE) & (found >= 4 * wanted) & (len(some) < n)
        for picked, held, positions in ((dense, found, some), (~dense, size, every)):
            count = np.where(picked, wanted, 0)
            places = _places(held, count, rng)
            ends = np.full(width + 1, len(places))
            ends[: len(nodes) + 1] = np.concatenate([[0], np.cumsum(count)])
            target = np.empty(len(places), dtype=np.int64)
            if len(places):
                _pick_bits(positions, words, ends, places, target)
            each = times * size / (expected * np.maximum(wanted, 1))
            column = np.repeat(np.arange(len(nodes)), count)
            parts.append((nodes[column], view.nodes[target].astype(np.int64), each[column]))
        sizes.append(size)
    u, v, weight = map(np.concatenate, zip(*parts, strict=True))
    return np.concatenate(sizes), WeightedPairs(u, v, weight)


def _places(sizes: Int64Array, counts: Int64Array, rng: np.random.Generator) -> Int64Array:
    """`counts` different numbers below each of `sizes`, ascending, one list after another.

    They are evenly spaced from a random place on, so each number is equally likely.
    """
    start = np.repeat(rng.random(len(sizes)), counts)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    spacing = np.repeat(sizes / np.maximum(counts, 1), counts)
    last = np.repeat(sizes, counts) - 1
    return np.minimum((within + start) * spacing, last).astype(np.int64)


def _by_distance(
    view: Positions, draws: list[Int64Array], chances: Float64Array, rng: np.random.Generator
) -> dict[str, WeightedPairs]:
    """Pairs by distance: breadth-first search from many rows at a time, a bit for each."""
    most = 64 * (_WORDS if view.n + view.dag.n_edges <= _MANY_EDGES else 1)
    share = min(1.0, most / max(sum(map(len, draws)), 1))
    drawn = _Drawn.of([rng.permutation(x)[: int(share * len(x))] for x in draws], chances)
    at = np.arange(len(drawn.nodes))
    words = np.zeros((view.n, max(-(-len(at) // 64), 1)), dtype=np.uint64)
    words[view.position[drawn.nodes], at >> 6] = np.uint64(1) << (at & 63).astype(np.uint64)
    words = _steps(view, words, 1)
    result = {}
    for name, (first, last) in DISTANCES.items():
        before = words
        if last is None:  # in place and sinks first: all that is reached
            words = before.copy()
            _gather(*view.successors, words, words)
        else:
            words = _steps(view, before, last - first + 1)
        result[name] = _draw((words & ~before)[None], view, drawn, rng)[1]
    return result


def _steps(view: Positions, words: UInt64Array, count: int) -> UInt64Array:
    for _ in range(count):
        checkpoint()
        before, words = words, np.empty_like(words)
        _gather(*view.successors, before, words)
    return words


def _hard_pairs(
    paths: WeightedPairs,
    panel: Panel,
    levels: Int32Array,
    hard_rows: Int64Array,
    rng: np.random.Generator,
) -> tuple[Int64Array, Int64Array]:
    """Up to four paths of each hard row, and for each of them a pair that looks like it."""
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
    kept = alike if alike.any() else ~alike
    return np.stack([u[kept], v[kept]]), np.stack([u[alike], found[alike]])


@kernel
def _gather(
    indptr: Int64Array, successors: Int32Array, before: UInt64Array, after: UInt64Array
) -> None:
    """Give every position the bits of its successors, which have lower positions."""
    for u in range(len(indptr) - 1):
        for w in range(before.shape[1]):
            after[u, w] = before[u, w]
        for e in range(indptr[u], indptr[u + 1]):
            for w in range(before.shape[1]):
                after[u, w] |= before[successors[e], w]


@kernel
def _count_bits(positions: Int64Array, words: UInt64Array, sizes: Int64Array) -> None:
    one = np.uint64(1)
    for i in range(len(positions)):
        for w in range(words.shape[1]):
            word = words[positions[i], w]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                sizes[64 * w + np.int64(popcount(low - one))] += 1


@kernel
def _pick_bits(
    positions: Int64Array,
    words: UInt64Array,
    indptr: Int64Array,
    places: Int64Array,
    found: Int64Array,
) -> None:
    """Find the set bits at the given places of every column, which ascend."""
    one = np.uint64(1)
    passed = np.zeros(len(indptr) - 1, dtype=np.int64)
    done = indptr[:-1].copy()
    for i in range(len(positions)):
        for w in range(words.shape[1]):
            word = words[positions[i], w]
            while word != 0:
                low = word & (~word + one)
                word ^= low
                c = 64 * w + np.int64(popcount(low - one))
                if done[c] < indptr[c + 1] and places[done[c]] == passed[c]:
                    found[done[c]] = positions[i]
                    done[c] += 1
                passed[c] += 1
