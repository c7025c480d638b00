"""Building closure forests in column blocks, within a memory budget that is checked first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from atpgraph._memory import budget_bytes, human_bytes
from atpgraph._progress import stage
from atpgraph._random import generator
from atpgraph._threads import thread_count
from atpgraph.closure import _bitset
from atpgraph.closure.forest import ClosureForest
from atpgraph.errors import BudgetError
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels as peel

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
T = TypeVar("T")

_MAX_WORDS = 16
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
    dag: DiGraph, *, memory: str | float | None = None, n_jobs: int | None = None
) -> ClosureForest:
    """Descendants of every node of an acyclic graph, as a forest.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles.
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
    budget = budget_bytes(memory)
    view = _Sweep.of(dag)
    _refuse_if_too_large(view, _estimate(view), budget, held=0)
    return _build(view, budget, thread_count(n_jobs))


def closure_forests(
    dag: DiGraph, *, memory: str | float | None = None, n_jobs: int | None = None
) -> tuple[ClosureForest, ClosureForest]:
    """The forests of the graph (rows: descendants) and of its reverse (columns: ancestors).

    Parameters as for :func:`closure_forest`; the budget holds for both forests together.

    Examples
    --------
    >>> rows, columns = closure_forests(DiGraph.from_codes([0, 1], [1, 2], 3))
    >>> rows.sizes.tolist(), columns.sizes.tolist()
    ([2, 1, 0], [0, 1, 2])
    """
    budget = budget_bytes(memory)
    threads = thread_count(n_jobs)
    down, up = _Sweep.of(dag), _Sweep.of(dag.reverse())
    expected = _estimate(down)
    _refuse_if_too_large(down, expected, budget, held=0)
    _refuse_if_too_large(up, _estimate(up), budget, held=expected.bytes_held)
    rows = _build(down, budget, threads)
    return rows, _build(up, budget - rows.nbytes, threads)


def estimate_closure(dag: DiGraph) -> ClosureEstimate:
    """Estimate the size of the closure forest from random target columns, in O(n + m).

    Graphs of up to a thousand nodes are not worth a sample: the numbers are an upper bound.

    Examples
    --------
    >>> estimate_closure(DiGraph.from_codes([0, 1], [1, 2], 3)).pairs
    3.0
    """
    return _estimate(_Sweep.of(dag))


@dataclass(frozen=True)
class _Sweep:
    """The graph in positions, sinks first, with the predecessors of every position."""

    nodes: I32  # the node at every position
    indptr: I64
    predecessors: I32

    @classmethod
    def of(cls, dag: DiGraph) -> _Sweep:
        n = dag.n_nodes
        nodes = np.argsort(-peel(dag), kind="stable").astype(np.int32)
        position = np.empty(n, dtype=np.int32)
        position[nodes] = np.arange(n, dtype=np.int32)
        back = dag.reverse()
        degree = back.out_degree[nodes]
        indptr = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(degree, out=indptr[1:])
        edges = np.repeat(back.indptr[nodes] - indptr[:-1], degree) + np.arange(dag.n_edges)
        return cls(nodes, indptr, position[back.targets[edges]])

    @property
    def n(self) -> int:
        return len(self.nodes)


class _Workspace:
    """Arrays of one thread; between blocks `bits` and `touched` are zero and `slot` is −1."""

    def __init__(self, n: int, words: int) -> None:
        self.bits = np.zeros((n, words), dtype=np.uint64)
        self.touched = np.zeros(n // 64 + 1, dtype=np.uint64)
        self.slot = np.full(n, -1, dtype=np.int32)
        self.visited = np.empty(n, dtype=np.int32)
        self.sizes = np.zeros(n, dtype=np.int64)

    @staticmethod
    def bytes_for(n: int, words: int) -> int:
        return n * (8 * words + 17)

    def count(self, view: _Sweep, columns: I32) -> None:
        """Add the closure sizes within the block to `sizes`."""
        found = self._spread(view, columns)
        _bitset.add_sizes(self.bits, self.visited, found, self.sizes)
        self._clear(columns, found)

    def extras(self, view: _Sweep, columns: I32, parent: I32) -> tuple[I32, I32, I32]:
        """Nodes with extras in the block, how many, and the extras one after the other."""
        found = self._spread(view, columns)
        counts = np.empty(found, dtype=np.int32)
        arguments = (self.bits, self.visited, found, parent, self.slot, columns, counts)
        total = _bitset.list_extras(*arguments, np.empty(0, dtype=np.int32))
        values = np.empty(total, dtype=np.int32)
        if total:
            _bitset.list_extras(*arguments, values)
        some = counts > 0
        holders = self.visited[:found][some]
        self._clear(columns, found)
        return holders, counts[some], values

    def _spread(self, view: _Sweep, columns: I32) -> int:
        return _bitset.spread(
            view.indptr,
            view.predecessors,
            columns,
            self.slot,
            self.bits,
            self.touched,
            self.visited,
        )

    def _clear(self, columns: I32, found: int) -> None:
        _bitset.clear(columns, self.slot, self.bits, self.touched, self.visited, found)


def _build(view: _Sweep, budget: int, threads: int) -> ClosureForest:
    n = view.n
    words, threads = _block_width(n, budget, threads)
    spaces: SimpleQueue[_Workspace] = SimpleQueue()
    for _ in range(threads):
        spaces.put(_Workspace(n, words))
    positions = np.arange(n, dtype=np.int32)
    blocks = [positions[i : i + 64 * words] for i in range(0, n, 64 * words)]

    def with_space(work: Callable[[_Workspace, I32], T]) -> Iterable[T]:
        def task(columns: I32) -> T:
            space = spaces.get()
            try:
                return work(space, columns)
            finally:
                spaces.put(space)

        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(task, blocks)

    sizes = np.zeros(n, dtype=np.int64)
    parent = np.full(n, -1, dtype=np.int32)
    with stage("closure: sizes", len(blocks)) as progress:
        for _ in with_space(lambda space, columns: space.count(view, columns)):
            progress.advance()
    for _ in range(threads):
        space = spaces.get()
        sizes += space.sizes
        spaces.put(space)
    _bitset.choose_parents(view.indptr, view.predecessors, sizes, parent)

    found: list[tuple[I32, I32, I32]] = []
    extras_indptr = np.zeros(n + 1, dtype=np.int64)
    with stage("closure: extras", len(blocks)) as progress:
        for block in with_space(lambda space, columns: space.extras(view, columns, parent)):
            extras_indptr[block[0] + 1] += block[1]
            found.append(block)
            progress.advance()
    for _ in range(threads):
        spaces.get()  # give the bitsets back before the extras are put together
    np.cumsum(extras_indptr, out=extras_indptr)
    extras = np.empty(extras_indptr[-1], dtype=np.int32)
    cursor = extras_indptr[:-1].copy()
    found.reverse()
    while found:
        _bitset.place(*found.pop(), cursor, extras)
    return _in_node_numbers(view, parent, extras_indptr, extras, sizes)


def _in_node_numbers(
    view: _Sweep, parent: I32, extras_indptr: I64, extras: I32, sizes: I64
) -> ClosureForest:
    n = view.n
    position = np.empty(n, dtype=np.int32)
    position[view.nodes] = np.arange(n, dtype=np.int32)
    node_parent = np.where(parent >= 0, view.nodes[parent], np.int32(-1))[position]
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.diff(extras_indptr)[position], out=indptr[1:])
    by_node = np.empty_like(extras)
    _bitset.gather_rows(position, extras_indptr, extras, view.nodes, indptr, by_node)
    return ClosureForest.assemble(node_parent, indptr, by_node, sizes[position], view.nodes)


def _block_width(n: int, budget: int, threads: int) -> tuple[int, int]:
    """Words per block row and threads such that the bitsets take at most half the budget."""
    needed = max(-(-n // 64), 1)
    while threads > 1 and threads * _Workspace.bytes_for(n, 1) > budget // 2:
        threads -= 1
    words = _MAX_WORDS
    while words > 1 and (
        words >= 2 * needed or threads * _Workspace.bytes_for(n, words) > budget // 2
    ):
        words //= 2
    return words, threads


def _estimate(view: _Sweep) -> ClosureEstimate:
    n = view.n
    if n <= _SAMPLE_COLUMNS:
        pairs = n * (n - 1) / 2
        return _estimate_of(n, pairs, pairs, 0.0)
    started = time.perf_counter()
    rng = generator(0)
    sample = rng.choice(n, _SAMPLE_COLUMNS, replace=False).astype(np.int32)
    blocks = [np.sort(part) for part in np.split(sample, _SAMPLE_COLUMNS // (64 * _SAMPLE_WORDS))]
    scale = n / _SAMPLE_COLUMNS
    space = _Workspace(n, _SAMPLE_WORDS)
    for block in blocks:
        space.count(view, block)
    counted = time.perf_counter() - started
    parent = np.full(n, -1, dtype=np.int32)
    # Where few sampled columns are reached, their number says little: there a sketch of the size
    # is better. The sample that judges the parents is not the one that chose them.
    guess = np.where(space.sizes >= 16, space.sizes * scale, _sketched_sizes(view, rng))
    _bitset.choose_parents(view.indptr, view.predecessors, (256 * guess).astype(np.int64), parent)
    pairs = float(space.sizes.sum()) * scale
    fresh = rng.choice(n, _SAMPLE_COLUMNS, replace=False).astype(np.int32)
    started = time.perf_counter()
    extras = sum(
        len(space.extras(view, np.sort(part), parent)[2]) for part in np.split(fresh, len(blocks))
    )
    seconds = (counted + time.perf_counter() - started) * scale
    return _estimate_of(n, pairs, extras * scale, seconds)


def _sketched_sizes(view: _Sweep, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    draws = rng.standard_exponential((view.n, _SKETCH_DRAWS), dtype=np.float32)
    smallest = np.full(draws.shape, np.inf, dtype=np.float32)
    _bitset.sketch(view.indptr, view.predecessors, draws, smallest)
    sums: npt.NDArray[np.float64] = smallest.sum(axis=1, dtype=np.float64)
    return (_SKETCH_DRAWS - 1) / sums


def _estimate_of(n: int, pairs: float, extras: float, seconds: float) -> ClosureEstimate:
    held = int(4 * extras + 44 * n)
    peak = int(_BYTES_PER_EXTRA * extras + _BYTES_PER_NODE * n + _Workspace.bytes_for(n, 1))
    return ClosureEstimate(pairs, extras, held, peak, seconds)


def _refuse_if_too_large(view: _Sweep, estimate: ClosureEstimate, budget: int, held: int) -> None:
    needed = estimate.bytes_peak + held
    if needed <= budget:
        return
    raise BudgetError(
        f"The closure of this graph ({view.n:,} nodes, {len(view.predecessors):,} edges) needs "
        f"about {human_bytes(needed)} ({estimate.pairs:,.0f} reachable pairs, "
        f"{estimate.extras:,.0f} extras) but the budget is {human_bytes(budget)}; "
        "raise the memory budget, or embed a smaller or sparser graph."
    )
