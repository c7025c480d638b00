"""Building closure forests, within a memory budget that is checked first."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from atpgraph.closure._blocks import (
    MAX_WORDS,
    Extras,
    Workspace,
    block_forest,
    block_width,
    choose_parents,
    gather_rows,
    smallest_draws,
)
from atpgraph.closure._search import search_forest
from atpgraph.closure.forest import ClosureForest
from atpgraph.closure.panel import Positions
from atpgraph.errors import BudgetError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array, Int32Array
from atpgraph.util.memory import budget_bytes, human_bytes
from atpgraph.util.random import generator
from atpgraph.util.threads import interruptible, thread_count

_SKETCH_DRAWS = 16
_SAMPLE_COLUMNS = 1024
_SAMPLE_WORDS = 8
# Peak bytes of one extra: its value and its share of (node, count) in a block, and its final place.
_BYTES_PER_EXTRA = 12
_BYTES_PER_NODE = 80


@dataclass(frozen=True)
class ClosureEstimate:
    """What the closure forest of a graph would take, from a sample of target columns.

    Attributes
    ----------
    pairs, extras : float
        Estimated numbers of reachable pairs and of extras.
    bytes_held, bytes_peak : int
        Estimated size of the forest, and of the memory needed while building it.
    seconds : float
        Estimated building time on one thread.
    """

    pairs: float
    extras: float
    bytes_held: int
    bytes_peak: int
    seconds: float


def closure_forest(
    dag: DiGraph,
    levels: Int32Array | None = None,
    *,
    memory: str | float | None = None,
    n_jobs: int | None = None,
) -> ClosureForest:
    """Descendants of every node of an acyclic graph, as a forest.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles.
    levels : int32 array, optional
        Those of the graph, if they are known already.
    memory : str or number of bytes, optional
        Budget, such as "4GB"; by default half of what the machine has free.
    n_jobs : int, optional
        Threads; by default all cores. The result does not depend on it.

    Raises
    ------
    BudgetError
        If the estimate, made first, does not fit the budget.
    InputError
        If the graph has a cycle.
    """
    return interruptible(_one_forest, dag, levels, budget_bytes(memory), thread_count(n_jobs))


def _one_forest(
    dag: DiGraph, levels: Int32Array | None, budget: int, threads: int
) -> ClosureForest:
    view = Positions.of(dag, levels)
    sample = _sampled(view)
    _refuse_if_too_large(view, sample.estimate, budget, held=0)
    return _build(view, sample, budget, threads)


def closure_forests(
    dag: DiGraph,
    levels: Int32Array | None = None,
    *,
    memory: str | float | None = None,
    n_jobs: int | None = None,
) -> tuple[ClosureForest, ClosureForest]:
    """The forests of the graph (rows: descendants) and of its reverse (columns: ancestors).

    Parameters as for :func:`closure_forest`; the budget holds for both forests together.

    Examples
    --------
    >>> rows, columns = closure_forests(DiGraph.from_codes([0, 1], [1, 2], 3))
    >>> rows.sizes.tolist(), columns.sizes.tolist()
    ([2, 1, 0], [0, 1, 2])
    """
    return interruptible(_two_forests, dag, levels, budget_bytes(memory), thread_count(n_jobs))


def _two_forests(
    dag: DiGraph, levels: Int32Array | None, budget: int, threads: int
) -> tuple[ClosureForest, ClosureForest]:
    down, up = Positions.of(dag, levels), Positions.of(dag.reverse())
    of_down, of_up = _sampled(down), _sampled(up)
    _refuse_if_too_large(down, of_down.estimate, budget, held=0)
    _refuse_if_too_large(up, of_up.estimate, budget, held=of_down.estimate.bytes_held)
    rows = _build(down, of_down, budget, threads)
    return rows, _build(up, of_up, budget - rows.nbytes, threads)


def estimate_closure(dag: DiGraph) -> ClosureEstimate:
    """Estimate the size of the closure forest from random target columns, in O(n + m).

    Graphs of up to a thousand nodes are not worth a sample: the numbers are an upper bound.

    Examples
    --------
    >>> estimate_closure(DiGraph.from_codes([0, 1], [1, 2], 3)).pairs
    3.0
    """
    return _sampled(Positions.of(dag)).estimate


def _build(view: Positions, sample: _Sample, budget: int, threads: int) -> ClosureForest:
    words, threads = block_width(view.n, budget, threads)
    if sample.parent is not None and _searching_is_faster(view, sample.estimate.extras):
        return _by_node_index(view, search_forest(view, sample.parent, threads))
    return _by_node_index(view, block_forest(view, words, threads))


def _searching_is_faster(view: Positions, extras: float) -> bool:
    """Whether looking at the edges of all extras takes less than passing blocks over all edges.

    As measured, an edge of the search takes three times as long as a row of a block.
    """
    n, m = view.n, view.dag.n_edges
    return 3 * (extras * (1 + m / n) + n + m) < n / (64 * MAX_WORDS) * (n + m)


def _by_node_index(view: Positions, built: Extras) -> ClosureForest:
    position, nodes = view.position, view.nodes
    parent = np.where(built.parent >= 0, nodes[built.parent], np.int32(-1))[position]
    indptr = np.zeros(view.n + 1, dtype=np.int64)
    np.cumsum(np.diff(built.indptr)[position], out=indptr[1:])
    extras = np.empty_like(built.extras)
    gather_rows(position, built.indptr, built.extras, nodes, indptr, extras)
    return ClosureForest.assemble(parent, indptr, extras, built.sizes[position], nodes)


@dataclass(frozen=True, eq=False)
class _Sample:
    """What a sample of columns says: how large the forest gets, and likely parents if it says."""

    estimate: ClosureEstimate
    parent: Int32Array | None


def _sampled(view: Positions) -> _Sample:
    n = view.n
    if n <= _SAMPLE_COLUMNS:
        pairs = n * (n - 1) / 2
        return _Sample(_estimate_of(n, pairs, pairs, 0.0), None)
    started = time.perf_counter()
    rng = generator(0)
    sample = rng.choice(n, _SAMPLE_COLUMNS, replace=False).astype(np.int32)
    blocks = [np.sort(part) for part in np.split(sample, _SAMPLE_COLUMNS // (64 * _SAMPLE_WORDS))]
    scale = n / _SAMPLE_COLUMNS
    space = Workspace(n, _SAMPLE_WORDS)
    for block in blocks:
        space.count(view, block)
    counted = time.perf_counter() - started
    # Where few sampled columns are reached, their number says little: there a sketch of the size
    # is better. The sample that judges the parents is not the one that chose them.
    guess = np.where(space.sizes >= 16, space.sizes * scale, _sketched_sizes(view, rng))
    parent = choose_parents(view, (256 * guess).astype(np.int64))
    pairs = float(space.sizes.sum()) * scale
    fresh = rng.choice(n, _SAMPLE_COLUMNS, replace=False).astype(np.int32)
    started = time.perf_counter()
    extras = sum(
        len(space.extras(view, np.sort(part), parent)[2]) for part in np.split(fresh, len(blocks))
    )
    seconds = (counted + time.perf_counter() - started) * scale
    return _Sample(_estimate_of(n, pairs, extras * scale, seconds), parent)


def _sketched_sizes(view: Positions, rng: np.random.Generator) -> Float64Array:
    draws = rng.standard_exponential((view.n, _SKETCH_DRAWS), dtype=np.float32)
    smallest = np.full(draws.shape, np.inf, dtype=np.float32)
    smallest_draws(*view.predecessors, draws, smallest)
    sums: Float64Array = smallest.sum(axis=1, dtype=np.float64)
    return (_SKETCH_DRAWS - 1) / sums


def _estimate_of(n: int, pairs: float, extras: float, seconds: float) -> ClosureEstimate:
    held = int(4 * extras + 44 * n)
    peak = int(_BYTES_PER_EXTRA * extras + _BYTES_PER_NODE * n + Workspace.bytes_for(n, 1))
    return ClosureEstimate(pairs, extras, held, peak, seconds)


def _refuse_if_too_large(
    view: Positions, estimate: ClosureEstimate, budget: int, held: int
) -> None:
    needed = estimate.bytes_peak + held
    if needed <= budget:
        return
    raise BudgetError(
        f"The closure of this graph ({view.n:,} nodes, {view.dag.n_edges:,} edges) needs "
        f"about {human_bytes(needed)} ({estimate.pairs:,.0f} reachable pairs, "
        f"{estimate.extras:,.0f} extras) but the budget is {human_bytes(budget)}; "
        "raise the memory budget, or embed a smaller or sparser graph."
    )
