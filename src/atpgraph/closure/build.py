"""Build closure forests by searching, within a memory budget that is checked first.

A depth-first walk over the forest marks the current parent and everything that it reaches. A search
from the other successors stops at marked nodes; the nodes that it finds are new, are stored, and
are marked in turn for the nodes below. So the time depends on the number of edges and of stored
nodes, not on the depth of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from atpgraph.closure.forest import ClosureForest, depth_first, path_from_root
from atpgraph.closure.panel import Panel, Positions, sketch_nodes
from atpgraph.errors import BudgetError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph.util.memory import budget_bytes, human_bytes
from atpgraph.util.progress import stage
from atpgraph.util.random import generator
from atpgraph.util.threads import Workers, checkpoint, interruptible, thread_count

_SAMPLE = 1024  # columns from which a forest is estimated
_FEW = 16  # reached columns, below which a sketch estimates the number of descendants better
_NODE_BYTES, _EXTRA_BYTES = 44, 4  # of a forest
_PEAK_BYTES = 190  # of a node while the forest is estimated and built
_SECONDS = 4e-9  # for an edge that a search looks at
_TASKS_PER_THREAD = 4
_LEAST_TASK = 10_000  # nodes
_SLICE = 20_000_000  # edges: some tenths of a second


@dataclass(frozen=True)
class ClosureEstimate:
    """Estimated size of the closure forest of a graph, from a sample of target columns."""

    pairs: float  # reachable pairs
    extras: float
    bytes_held: int  # size of the forest,
    bytes_peak: int  # and memory needed while building it
    seconds: float  # building time on one thread


def closure_forest(
    dag: DiGraph,
    levels: Int32Array | None = None,
    *,
    memory: str | float | None = None,
    n_jobs: int | None = None,
) -> ClosureForest:
    """Return the descendants of every node of an acyclic graph, as a forest.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles.
    levels : int32 array, optional
        Levels of the graph, if they are already known.
    memory : str or number of bytes, optional
        Budget, such as "4GB"; by default half of the free memory.
    n_jobs : int, optional
        Threads; by default all cores. The result does not depend on it.

    Raises
    ------
    BudgetError
        If the estimate, which is made first, exceeds the budget.
    InputError
        If the graph has a cycle.
    """
    return _forests([(dag, levels)], memory, n_jobs)[0]


def closure_forests(
    dag: DiGraph,
    levels: Int32Array | None = None,
    *,
    memory: str | float | None = None,
    n_jobs: int | None = None,
) -> tuple[ClosureForest, ClosureForest]:
    """Return the forests of the graph (rows: descendants) and of its reverse (columns: ancestors).

    Parameters as for :func:`closure_forest`; the budget is for both forests together.

    Examples
    --------
    >>> rows, columns = closure_forests(DiGraph.from_codes([0, 1], [1, 2], 3))
    >>> rows.sizes.tolist(), columns.sizes.tolist()
    ([2, 1, 0], [0, 1, 2])
    """
    rows, columns = _forests([(dag, levels), (dag.reverse(), None)], memory, n_jobs)
    return rows, columns


def estimate_closure(dag: DiGraph) -> ClosureEstimate:
    """Estimate the size of the closure forest from random target columns, in O(n + m).

    Examples
    --------
    >>> estimate_closure(DiGraph.from_codes([0, 1], [1, 2], 3)).pairs
    3.0
    """
    return _estimate(Positions.of(dag), 1)[0]


def _forests(
    dags: list[tuple[DiGraph, Int32Array | None]], memory: str | float | None, n_jobs: int | None
) -> list[ClosureForest]:
    budget, threads = budget_bytes(memory), thread_count(n_jobs)

    def work() -> list[ClosureForest]:
        views = [Positions.of(dag, levels) for dag, levels in dags]
        estimates = [_estimate(view, threads) for view in views]
        held = 0
        for view, (estimate, _) in zip(views, estimates, strict=True):
            needed = estimate.bytes_peak + held
            if needed > budget:
                raise BudgetError(
                    f"The closure of this graph ({view.n:,} nodes, {view.dag.n_edges:,} edges) "
                    f"needs about {human_bytes(needed)} ({estimate.pairs:,.0f} reachable pairs, "
                    f"{estimate.extras:,.0f} extras) but the budget is {human_bytes(budget)}; "
                    "raise the memory budget, or embed a smaller or sparser graph."
                )
            held += estimate.bytes_held
        both = zip(views, estimates, strict=True)
        return [_build(view, parent, threads) for view, (_, parent) in both]

    return interruptible(work)


def _estimate(view: Positions, threads: int) -> tuple[ClosureEstimate, Int32Array]:
    """Estimate the size of the forest; also return likely parents."""
    n, m, rng = view.n, view.dag.n_edges, generator(0)
    columns = [rng.permutation(n)[:_SAMPLE].astype(np.int32) for _ in range(2)]
    scale = n / max(len(columns[0]), 1)
    with Workers(threads) as workers:
        counts = Panel(view, columns[0], workers).sizes()
        counts[columns[0]] -= 1
        guess = counts * scale
        if scale > 1:
            sketched = sketch_nodes(view, _FEW, rng, workers).sizes
            guess = np.where(counts >= _FEW, guess, sketched)
        parent = _largest_successors(view, (256 * guess).astype(np.int64))
        # The sample that judges the parents is not the one that chose them.
        bits = Panel(view, columns[1], workers).bits
    at = np.where(parent >= 0, view.position[parent], -1)[view.nodes]
    has, new = at >= 0, -int(np.count_nonzero(parent[columns[1]] >= 0))
    for words in (words for sheet in bits for words in sheet.T):  # new, compared to the parent
        new += int(np.bitwise_count(words[has] & ~words[at[has]]).sum())
    pairs, extras = float(counts.sum()) * scale, new * scale
    held = int(_EXTRA_BYTES * extras + _NODE_BYTES * n)
    seconds = 2 * _SECONDS * (extras * (1 + m / max(n, 1)) + n + m)
    peak = int(_EXTRA_BYTES * extras + _PEAK_BYTES * n)
    return ClosureEstimate(pairs, extras, held, peak, seconds), parent


def _build(view: Positions, guessed: Int32Array, threads: int) -> ClosureForest:
    """Search with guessed parents to find the sizes, then with the parents that these imply."""
    n = view.n
    counts, nothing = np.zeros(n, dtype=np.int64), np.zeros(0, dtype=np.int32)
    order, start, subtree, _ = depth_first(view.nodes, guessed)
    walk = Walk(view.dag.indptr, view.dag.targets, guessed, counts, counts, nothing)
    _walk("closure: sizes", walk, order, threads)
    # What is new at a node counts for all nodes below it: an interval of the order.
    new, change = np.where(guessed >= 0, counts + 1, 0), np.zeros(n + 1, dtype=np.int64)
    change[start] = new
    np.subtract.at(change, start + subtree, new)
    sizes = np.cumsum(change)[start]
    parent = _largest_successors(view, sizes)
    # The sizes tell how many extras each node will have, so every search knows where its own go.
    counts = np.where(parent >= 0, sizes - sizes[parent] - 1, 0)
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    extras = np.empty(indptr[-1], dtype=np.int32)
    forest = ClosureForest.assemble(parent, indptr, extras, sizes, view.nodes)
    walk = walk._replace(parent=parent, counts=counts, starts=indptr, extras=extras)
    _walk("closure: extras", walk, forest.order, threads)
    return forest


def _largest_successors(view: Positions, sizes: Int64Array) -> Int32Array:
    """Return the successor of every node that has the largest closure, −1 if it has none.

    Ties go to the successor farthest from the sinks, the safer choice if sizes are estimates.
    """
    dag, parent = view.dag, np.full(view.n, -1, dtype=np.int32)
    inner = dag.out_degree > 0
    keys = sizes[dag.targets] * view.n + view.position[dag.targets]
    if len(keys):
        parent[inner] = view.nodes[np.maximum.reduceat(keys, dag.indptr[:-1][inner]) % view.n]
    return parent


class Walk(NamedTuple):
    """Input and output arrays of the searches."""

    indptr: Int64Array
    targets: Int32Array
    parent: Int32Array
    counts: Int64Array  # gets the number of extras of every node
    starts: Int64Array  # where the extras of a node begin in `extras`
    extras: Int32Array  # gets the extras; if it is empty they are only counted


class Marks(NamedTuple):
    """Work arrays of one thread; only nodes on the current path or stored so far are marked."""

    mark: BoolArray
    held: Int32Array  # what is new at each node of the path,
    path: Int32Array  # the way from the root
    begins: Int32Array  # where in `held` that of each node begins
    state: Int64Array  # lengths of `path` and `held`


def _walk(name: str, walk: Walk, order: Int32Array, threads: int) -> None:
    """Search from all nodes, which are given in depth-first order."""
    n = len(order)
    free: SimpleQueue[Marks] = SimpleQueue()
    for _ in range(threads):
        held, path, begins = np.empty((3, n), dtype=np.int32)
        free.put(Marks(np.zeros(n, np.bool_), held, path, begins, np.zeros(2, np.int64)))

    def task(bounds: tuple[int, int]) -> int:
        part = order[bounds[0] : bounds[1]]
        # From the root down to the first node, so that its parent's descendants are marked.
        nodes = np.concatenate([path_from_root(walk.parent[part[0]], walk.parent), part])
        marks = free.get()
        done = 0
        try:
            while done < len(nodes):
                checkpoint()
                done = search(nodes, done, walk, marks, _SLICE)
        finally:
            marks.mark[:] = False
            marks.state[:] = 0
            free.put(marks)
        return len(part)

    pieces = max(min(_TASKS_PER_THREAD * threads, n // _LEAST_TASK), 1)
    cuts = np.unique(np.linspace(0, n, pieces + 1).astype(np.int64)).tolist()
    with stage(name, n) as progress, Workers(threads) as workers:
        for count in workers.map(task, pairwise(cuts)):
            progress.advance(count)


@kernel
def search(nodes: Int32Array, first: int, walk: Walk, marks: Marks, limit: int) -> int:
    """Find the extras of ``nodes[first:]``, in depth-first order; stop after about `limit` edges.

    Returns where it stopped.
    """
    indptr, targets, parent = walk.indptr, walk.targets, walk.parent
    mark, held, path, begins, state = marks
    depth, top = state[0], state[1]
    i, work = first, 0
    while i < len(nodes) and work < limit:
        u = nodes[i]
        p = parent[u]
        while depth > 0 and path[depth - 1] != p:
            depth -= 1
            mark[path[depth]] = False
            for k in range(begins[depth], top):
                mark[held[k]] = False
            top = begins[depth]
        begin = top
        x = u
        k = begin
        while p >= 0:
            work += indptr[x + 1] - indptr[x] + 1
            for e in range(indptr[x], indptr[x + 1]):
                y = targets[e]
                if not mark[y]:
                    mark[y] = True
                    held[top] = y
                    top += 1
            if k == top:
                break
            x = held[k]
            k += 1
        walk.counts[u] = top - begin
        if len(walk.extras) > 0:
            for k in range(top - begin):
                walk.extras[walk.starts[u] + k] = held[begin + k]
        path[depth] = u
        begins[depth] = begin
        mark[u] = True
        depth += 1
        i += 1
    state[0], state[1] = depth, top
    return i
