"""Count the paths of an acyclic graph, and draw samples of them for every round of learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atpgraph.closure.panel import COLUMNS, WORDS, Panel
from atpgraph.closure.sketch import ReachSketch, Sketcher, reversed_levels
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from atpgraph.util.bits import popcount
from atpgraph.util.jit import kernel as compiled
from atpgraph.util.progress import stage
from atpgraph.util.registry import Registry
from atpgraph.util.threads import Workers, interruptible

SHEETS = 2  # of 512 columns each, in a panel: 128 bytes per node
_POPULAR = SHEETS * COLUMNS // 4  # columns of a panel that are drawn by popularity
_SPARE = 2  # members of a sketch for each that is drawn
_ROWS = 2**16  # positions per task
_PATHS = 100_000
_SKETCH = 16  # members: they estimate sizes; pairs are drawn from new sketches in every round
_DRAWS = 16  # per node, when a node's popularity is computed
_SEED = 0  # of the ranks: what is collected depends on the graph alone
# Largest weight of a pair: vectors are single precision, and solvers square the weights.
LARGEST_WEIGHT = 1e12

Kernel = str | Callable[[Float64Array], npt.ArrayLike]

KERNELS: Registry[Callable[[Float64Array], Float64Array]] = Registry(
    "kernel",
    {
        "log": lambda delta: np.log(np.e + delta),
        "harmonic": lambda delta: np.cumsum(1.0 / delta),
        "linear": np.array,
        "constant": np.ones_like,
    },
)


def kernel_table(kernel: Kernel, n_levels: int) -> Float64Array:
    """Values f(Δ) of a weight function for Δ = 0 … n_levels − 1; f(0) = 0 is never used.

    Parameters
    ----------
    kernel : {"constant", "linear", "harmonic", "log"} or callable
        1, Δ, Σ_{k ≤ Δ} 1/k, ln(e + Δ), or a function that gets the array 1 … n_levels − 1
        and returns as many numbers from 0 to 10¹².
    n_levels : int
        The largest difference is one less.

    Examples
    --------
    >>> kernel_table("harmonic", 4).tolist()
    [0.0, 1.0, 1.5, 1.8333333333333333]
    >>> kernel_table(lambda delta: delta**2, 4).tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    delta = np.arange(1, max(n_levels, 1), dtype=np.float64)
    if callable(kernel):
        values = np.asarray(kernel(delta), dtype=np.float64)
        if values.shape != delta.shape:
            raise InputError(
                f"The kernel returned an array of shape {values.shape}, not {delta.shape}."
            )
    else:
        values = KERNELS[kernel](delta)
    bad = np.flatnonzero(~((values >= 0) & (values <= LARGEST_WEIGHT)))
    if len(bad):
        raise InputError(
            f"The kernel is {values[bad[0]]} at a difference of {bad[0] + 1} levels; "
            f"weights must be from 0 to {LARGEST_WEIGHT:g}."
        )
    return np.concatenate([[0.0], values])


class PanelRound(NamedTuple):
    """What the nodes draw from in one round, by position; compiled kernels take it as it is.

    Attributes
    ----------
    nodes : int32 array
        The node at every position.
    indptr, successors : int64 and int32 array
        Positions of the successors, in CSR form.
    columns : int32 array
        The nodes of the panel.
    uniform : int
        Number of columns, from the first on, that stand for all nodes.
    popular : int32 array
        Places in `columns` of the nodes drawn by popularity; some are among the uniform ones.
    own : int32 array
        The place in `columns` of every node, −1 if it has none.
    bits : uint64 array
        Which positions reach which column (:class:`~atpgraph.closure.panel.Panel`).
    found, counts : int32 arrays
        The sketch of every position as ranks, and its number of members. A position that reaches
        enough uniform columns draws from them alone: its sketch is empty and counts as full.
    node_of : int32 array
        The node of every rank.
    """

    nodes: Int32Array
    indptr: Int64Array
    successors: Int32Array
    columns: Int32Array
    uniform: int
    popular: Int32Array
    own: Int32Array
    bits: UInt64Array
    found: Int32Array
    counts: Int32Array
    node_of: Int32Array


def some_paths(drawn: PanelRound) -> tuple[Int32Array, Int32Array]:
    """Return the ends of one path from each of up to 100,000 nodes that have descendants."""
    step = len(drawn.nodes) // _PATHS + 1
    starts = drawn.nodes[::step]
    ends = np.empty(len(starts), dtype=np.int32)
    _one_of_each(step, drawn, ends)
    return starts[ends >= 0], ends[ends >= 0]


class PanelSource:
    """Samples of the descendants of every node, drawn afresh for every round.

    A sketch with new ranks gives every node a new uniform sample of its descendants; a panel of new
    nodes says exactly which nodes reach them. All nodes share these draws: in one round, nodes with
    many descendants only meet the few nodes of the panel. So the vectors of the rows may learn from
    a round while those of the columns stay fixed; the reverse graph serves the other side.

    Parameters
    ----------
    sketcher : Sketcher
        Of an acyclic graph.
    sizes : int64 array
        Number of descendants of every node, or an estimate; 0 where there is none.
    back_sizes : int64 array
        Number of ancestors.
    popularity : float array
        Probability of each node to be in the panel, in addition to nodes drawn uniformly.
    """

    def __init__(
        self,
        sketcher: Sketcher,
        sizes: Int64Array,
        back_sizes: Int64Array,
        popularity: Float64Array,
    ) -> None:
        self.sizes, self._back_sizes, self._sketcher = sizes, back_sizes, sketcher
        self._reached: BoolArray = sketcher.view.dag.in_degree > 0
        self._columns = np.flatnonzero(self._reached)
        shares = np.cumsum(popularity[self._columns])
        self._popular = shares / shares[-1] if len(shares) else shares
        self._room: tuple[UInt64Array | None, Int32Array | None] = None, None

    def renew(
        self, draws: int, rng: np.random.Generator, workers: Workers, *, tilted: bool = False
    ) -> PanelRound:
        """Draw new sketches for up to `draws` descendants per node, and a new panel.

        A `tilted` round prefers columns with few ancestors, with the weight
        min(1, draws / ancestors): otherwise a node hardly ever meets them, although they meet it
        in every round of the other side. The arrays of the last round are overwritten.
        """
        n, view = len(self.sizes), self._sketcher.view
        order = rng.permutation(n).astype(np.int32)
        uniform = rng.permutation(self._columns)[: SHEETS * COLUMNS - _POPULAR]
        if tilted:
            # Exponential variables divided by weights: the smallest are a weighted sample.
            keys = rng.standard_exponential(n) * np.maximum(self._back_sizes / draws, 1.0)
            order = np.argsort(keys, kind="stable").astype(np.int32)
            inner = order[self._reached[order]][: len(uniform)]
            uniform = rng.permutation(inner)
        ranks = np.empty(n, dtype=np.int32)
        ranks[order] = np.arange(n, dtype=np.int32)
        some = np.searchsorted(self._popular, rng.random(_POPULAR if len(uniform) else 0))
        popular = np.unique(self._columns[some])
        others = np.setdiff1d(popular, uniform)
        bits, found = self._room
        panel = Panel(view, np.concatenate([uniform, others]), workers, bits)
        enough = np.empty(n, dtype=np.bool_)

        def look(first: int) -> None:
            _reaches_enough(
                first, min(first + _ROWS, n), draws, view.nodes, len(uniform), panel.slot,
                panel.bits, enough,
            )  # fmt: skip

        for _ in workers.map(look, range(0, n, _ROWS)):
            pass
        found, counts, _ = self._sketcher.by_rank(
            ranks, max(_SPARE * draws, 2), workers, enough, found
        )
        self._room = panel.bits, found
        return PanelRound(
            view.nodes, *view.successors, panel.columns, len(uniform), panel.slot[popular],
            panel.slot, panel.bits, found, counts, order,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of an acyclic graph: how many there are, and where to draw and look them up.

    Build one with :func:`collect_paths`.

    Attributes
    ----------
    dag : DiGraph
    levels : int32 array
    sizes, back_sizes : int64 arrays
        Number of descendants and of ancestors of every node, estimated above 16.
    popularity, back_popularity : float arrays
        Share of paths that end, and that start, at every node if each node draws 16.
    n_pairs : int
        Number of pairs joined by a path, an estimate on all but small graphs.
    n_jobs : int, optional
        Threads.
    """

    dag: DiGraph
    levels: Int32Array
    sizes: Int64Array
    back_sizes: Int64Array
    popularity: Float64Array
    back_popularity: Float64Array
    n_pairs: int
    n_jobs: int | None = None

    def parts(self) -> dict[str, AnyArray]:
        """Return the arrays that were collected, by name."""
        names = ("sizes", "back_sizes", "popularity", "back_popularity")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def _sketchers(self) -> tuple[Sketcher, Sketcher]:
        """Sketchers for the graph and its reverse."""
        return sketcher(self.dag, self.levels, 0), sketcher(self.dag, self.levels, 1)

    @property
    def sides(self) -> tuple[PanelSource, PanelSource]:
        """What source vectors, and what target vectors learn from."""
        ahead, back = self._sketchers
        return (
            PanelSource(ahead, self.sizes, self.back_sizes, self.popularity),
            PanelSource(back, self.back_sizes, self.sizes, self.back_popularity),
        )


def collect_paths(dag: DiGraph, levels: Int32Array, n_jobs: int | None = None) -> Paths:
    """Sketch the descendants and ancestors of every node of an acyclic graph.

    Examples
    --------
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> collect_paths(dag, levels(dag)).n_pairs
    3
    """
    return interruptible(_collect, dag, levels, n_jobs)


def _collect(dag: DiGraph, levels: Int32Array, n_jobs: int | None) -> Paths:
    def sketch(side: int, some: Workers) -> tuple[Sketcher, ReachSketch, int]:
        found = sketch_side(dag, levels, side, some)
        progress.advance()
        return found

    with stage("sketch", 2) as progress, Workers(n_jobs) as workers:
        (ahead, down, n_pairs), (back, up, _) = workers.both(sketch)
    paths = Paths(
        dag, levels, down.sizes, up.sizes, up.popularity(down, _DRAWS), down.popularity(up, _DRAWS),
        n_pairs, n_jobs,
    )  # fmt: skip
    paths.__dict__["_sketchers"] = ahead, back
    return paths


def sketcher(dag: DiGraph, levels: Int32Array, side: int) -> Sketcher:
    """Return a sketcher for the graph (side 0) or its reverse (side 1)."""
    return Sketcher(dag.reverse(), reversed_levels(levels)) if side else Sketcher(dag, levels)


def sketch_side(
    dag: DiGraph, levels: Int32Array, side: int, workers: Workers
) -> tuple[Sketcher, ReachSketch, int]:
    """Sketch the descendants (side 0) or ancestors (side 1) of all nodes.

    Returns the sketcher, the sketch, and the number of pairs.
    """
    rng = np.random.default_rng(_SEED)
    made = sketcher(dag, levels, side)
    found = made.sketch(rng.permutation(dag.n_nodes).astype(np.int32), _SKETCH, workers)
    n_pairs = found.n_pairs
    if side == 0 and not found.complete.all():
        # The errors of the sizes are correlated; a panel estimates their sum better.
        some = rng.permutation(dag.n_nodes)[: 2 * COLUMNS]
        joined = Panel(made.view, some, workers).count() - len(some)
        n_pairs = round(joined * dag.n_nodes / len(some))
    return made, found, n_pairs


@compiled
def _reaches_enough(
    first: int,
    stop: int,
    draws: int,
    nodes: Int32Array,
    uniform: int,
    own: Int32Array,
    bits: UInt64Array,
    enough: BoolArray,
) -> None:
    """Whether each position reaches `draws` of the uniform columns: then so do its ancestors."""
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


@compiled
def take(
    i: int,
    count: int,
    place: float,
    drawn: PanelRound,
    words: UInt64Array,
    targets: Int32Array,
) -> None:
    """Draw `count` descendants of position i at even distances, starting at a place in [0, 1).

    They come from the uniform columns of the panel if it reaches that many of them, otherwise from
    its sketch. `words` is scratch space for the bits of a row.
    """
    one = np.uint64(1)
    uniform = drawn.uniform
    used = (uniform + 63) >> 6
    many: Any = 0
    for w in range(used):
        words[w] = drawn.bits[w // WORDS, i, w % WORDS]
    if uniform & 63:
        words[used - 1] &= (one << np.uint64(uniform & 63)) - one
    itself = drawn.own[drawn.nodes[i]]
    if 0 <= itself < uniform:
        words[itself >> 6] &= ~(one << np.uint64(itself & 63))
    for w in range(used):
        many += np.int64(popcount(words[w]))
    if many < count:
        for part in range(count):
            member = np.int64((part + place) * drawn.counts[i] / count)
            targets[part] = drawn.node_of[drawn.found[i, member]]
        return
    # The bits come in ascending order: one walk over the words finds them all.
    w = -1
    before: Any = 0
    upto: Any = 0
    for part in range(count):
        wanted = np.int64((part + place) * many / count)
        while upto <= wanted:
            w += 1
            before = upto
            upto += np.int64(popcount(words[w]))
        word = words[w]
        for _ in range(wanted - before):
            word &= word - one
        low = word & (~word + one)
        targets[part] = drawn.columns[64 * w + np.int64(popcount(low - one))]


@compiled
def _one_of_each(step: int, drawn: PanelRound, ends: Int32Array) -> None:
    """Draw a descendant of every `step`-th position, −1 where there is none."""
    words = np.empty((drawn.uniform + 63) >> 6, dtype=np.uint64)
    targets = np.empty(1, dtype=np.int32)
    for at in range(len(ends)):
        i = at * step
        ends[at] = -1
        if drawn.counts[i] > 0:
            take(i, 1, 0.5, drawn, words, targets)
            ends[at] = targets[0]
