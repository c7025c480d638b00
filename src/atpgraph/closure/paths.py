"""Count the paths of an acyclic graph, and draw samples of them for every round of learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atpgraph.closure.panel import (
    COLUMNS,
    WORDS,
    Panel,
    Positions,
    ReachSketch,
    popularity,
    sketch_nodes,
    sketch_ranks,
)
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Float64Array, Int32Array, Int64Array, UInt64Array
from atpgraph.util.checks import Registry
from atpgraph.util.jit import kernel as compiled
from atpgraph.util.jit import popcount
from atpgraph.util.progress import stage
from atpgraph.util.threads import Workers, interruptible

SHEETS = 2  # of 512 columns each, in a panel: 128 bytes per node
_POPULAR = SHEETS * COLUMNS // 4  # columns of a panel that are drawn by popularity
_SPARE = 2  # members of a sketch for each that is drawn
_ROWS = 2**16  # positions per task
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
    """Return the values f(Δ) of a weight function for Δ = 0 … n_levels − 1; f(0) = 0 is never used.

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
    """The samples of one round, by position, in the form that compiled kernels take.

    A position that reaches enough uniform columns draws from them alone: its sketch is empty and
    counts as full.
    """

    nodes: Int32Array  # the node at every position
    indptr: Int64Array  # positions of the successors, in CSR form
    successors: Int32Array
    columns: Int32Array  # the nodes of the panel
    uniform: int  # number of columns, from the first on, that stand for all nodes
    popular: Int32Array  # places in `columns` of nodes drawn by popularity, or uniform ones too
    own: Int32Array  # the place in `columns` of every node, −1 if it has none
    bits: UInt64Array  # which positions reach which column (:class:`~atpgraph.closure.panel.Panel`)
    found: Int32Array  # the sketch of every position, as ranks
    counts: Int32Array  # its number of members
    node_of: Int32Array  # the node of every rank


@dataclass(frozen=True, eq=False)
class PanelSource:
    """Samples of the descendants of every node, drawn anew in every round.

    A sketch with new ranks gives every node a new uniform sample of its descendants; a panel of new
    nodes tells exactly which nodes reach them. All nodes share these draws: in one round, nodes
    with many descendants only meet the few nodes of the panel. So only the vectors of the rows
    learn from a round, while those of the columns stay fixed; for the other side, use the reverse
    graph.
    """

    view: Positions
    sizes: Int64Array  # descendants of every node: exact up to 16, estimated above
    back_sizes: Int64Array  # ancestors
    popularity: Float64Array  # share of paths that end at every node, if each node draws 16

    def renew(
        self,
        draws: int,
        rng: np.random.Generator,
        workers: Workers,
        last: PanelRound | None = None,
        *,
        tilted: bool = False,
    ) -> PanelRound:
        """Draw new sketches for up to `draws` descendants per node, and a new panel.

        A `tilted` round prefers columns with few ancestors, with the weight min(1, draws /
        ancestors): otherwise they would hardly ever be drawn together with their ancestors. The
        arrays of the `last` round are overwritten.
        """
        n, view = len(self.sizes), self.view
        reached = view.dag.in_degree > 0
        columns = np.flatnonzero(reached)
        order = rng.permutation(n).astype(np.int32)
        uniform = rng.permutation(columns)[: SHEETS * COLUMNS - _POPULAR]
        if tilted:
            # Exponential variables divided by weights: the smallest are a weighted sample.
            keys = rng.standard_exponential(n) * np.maximum(self.back_sizes / draws, 1.0)
            order = np.argsort(keys, kind="stable").astype(np.int32)
            inner = order[reached[order]][: len(uniform)]
            uniform = rng.permutation(inner)
        ranks = np.empty(n, dtype=np.int32)
        ranks[order] = np.arange(n, dtype=np.int32)
        shares = np.cumsum(self.popularity[columns])
        drawn_shares = rng.random(_POPULAR if len(uniform) else 0)
        popular = np.unique(columns[np.searchsorted(shares / shares[-1:], drawn_shares)])
        others = np.setdiff1d(popular, uniform)
        room, found = (None, None) if last is None else (last.bits, last.found)
        panel = Panel(view, np.concatenate([uniform, others]), workers, room)
        drawn = PanelRound(
            view.nodes, *view.successors, panel.columns, len(uniform), panel.slot[popular],
            panel.slot, panel.bits, np.empty((0, 0), np.int32), np.empty(0, np.int32), order,
        )  # fmt: skip
        enough = np.empty(n, dtype=np.bool_)

        def look(first: int) -> None:
            _reaches_enough(first, min(first + _ROWS, n), draws, drawn, enough)

        for _ in workers.map(look, range(0, n, _ROWS)):
            pass
        found, counts, _ = sketch_ranks(view, ranks, max(_SPARE * draws, 2), workers, enough, found)
        return drawn._replace(found=found, counts=counts)


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of an acyclic graph; build one with :func:`collect_paths`."""

    sides: tuple[PanelSource, PanelSource]  # what source vectors and target vectors learn from
    ends: Int32Array  # a random descendant of every node, −1 if it has none
    n_pairs: int  # number of pairs joined by a path, an estimate on all but small graphs

    @property
    def dag(self) -> DiGraph:
        """The graph."""
        return self.sides[0].view.dag

    @property
    def levels(self) -> Int32Array:
        """Level of every node."""
        return self.sides[0].view.levels


def collect_paths(dag: DiGraph, levels: Int32Array, n_jobs: int | None = None) -> Paths:
    """Sketch the descendants and ancestors of every node of an acyclic graph.

    Examples
    --------
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> collect_paths(dag, levels(dag)).n_pairs
    3
    """
    # The levels of the reverse count from the other end.
    other_end = np.asarray(levels.max(initial=0) + 1 - levels, dtype=np.int32)
    views = Positions.of(dag, levels), Positions.of(dag.reverse(), other_end)
    return interruptible(_collect, views, n_jobs)


def _collect(views: tuple[Positions, Positions], n_jobs: int | None) -> Paths:
    def sketch(side: int, workers: Workers) -> tuple[ReachSketch, int]:
        view, rng = views[side], np.random.default_rng(_SEED)
        found = sketch_nodes(view, _SKETCH, rng, workers)
        n_pairs = found.n_pairs
        if side == 0 and not found.complete.all():
            # The errors of the sizes are correlated; a panel estimates their sum better.
            some = rng.permutation(view.n)[: 2 * COLUMNS]
            joined = int(Panel(view, some, workers).sizes().sum()) - len(some)
            n_pairs = round(joined * view.n / len(some))
        progress.advance()
        return found, n_pairs

    with stage("sketch", 2) as progress, Workers(n_jobs) as workers:
        (down, n_pairs), (up, _) = workers.both(sketch)
    ahead = PanelSource(views[0], down.sizes, up.sizes, popularity(up, down, _DRAWS))
    back = PanelSource(views[1], up.sizes, down.sizes, popularity(down, up, _DRAWS))
    return Paths((ahead, back), down.members[:, 0].copy(), n_pairs)


@compiled
def uniform_words(i: int, drawn: PanelRound, words: UInt64Array) -> Any:
    """Copy the bits of the uniform columns that position i reaches, except itself; count them."""
    one = np.uint64(1)
    uniform = drawn.uniform
    for w in range(len(words)):
        words[w] = drawn.bits[w // WORDS, i, w % WORDS]
    if uniform & 63:
        words[-1] &= (one << np.uint64(uniform & 63)) - one
    itself = drawn.own[drawn.nodes[i]]
    if 0 <= itself < uniform:
        words[itself >> 6] &= ~(one << np.uint64(itself & 63))
    many: Any = 0
    for word in words:
        many += np.int64(popcount(word))
    return many


@compiled
def _reaches_enough(
    first: int, stop: int, draws: int, drawn: PanelRound, enough: BoolArray
) -> None:
    """Return which positions reach `draws` of the uniform columns; all their ancestors do, too."""
    words = np.empty((drawn.uniform + 63) >> 6, dtype=np.uint64)
    for i in range(first, stop):
        enough[i] = uniform_words(i, drawn, words) >= draws


@compiled
def take(
    i: int, count: int, place: float, drawn: PanelRound, words: UInt64Array, targets: Int32Array
) -> None:
    """Draw `count` evenly spaced descendants of position i; `place`, in [0, 1), shifts them all.

    They come from the uniform columns of the panel if it reaches that many of them, otherwise from
    its sketch. `words` is scratch space for the bits of a row.
    """
    one = np.uint64(1)
    many = uniform_words(i, drawn, words)
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
