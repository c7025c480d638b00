"""Evidence around a source: personalized PageRank by local push, and short directed walks.

Both are 0 except near the source, so computing them for one source takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import TwoWayRows
from atpgraph.linkpred.evidence.kernels import WIDTH, Room, Steps, push, walk, weigh
from atpgraph.util.arrays import Float64Array, Int64Array, IntArray
from atpgraph.util.progress import Stage
from atpgraph.util.threads import Workers

T = TypeVar("T")

_AT_ONCE = 32  # sources of a task
_WORK = 2**35  # edges that a step may follow from one source, times edges of the graph
_BUDGET = 2**15, 2**18  # least and most edges that a step may follow from one source


@dataclass(frozen=True)
class PageRank:
    """p = restart · Σ_k (1 − restart)^k P^k e_u, without entries below the tolerance.

    P steps to a random neighbor: along either direction of the edges (``both``), forward (``out``)
    or backward (``in``). A walk ends at a node without neighbors to go to. Local push (Andersen,
    Chung, Lang, 2006) skips nodes that get less than `tolerance` times their degree, so that a
    source costs at most 1 / (restart · tolerance) steps.
    """

    direction: str = "both"
    name: str = "proximity"
    kind: str = "proximity"
    restart: float = 0.15
    tolerance: float = 1e-5

    @property
    def floor(self) -> float:  # the smallest value
        return self.restart * self.tolerance


@dataclass(frozen=True)
class Walk:
    """Number of walks from u to v of a given pattern, each weighted by the degrees it passes.

    The pattern is written as up to three arrows: ``>`` follows an edge, ``<`` goes against one.
    ``>>`` is u → x → v, ``><>`` is u → x ← y → v (a node with a target in common with u points to
    v), ``<>`` is u ← x → v (cited together), ``><`` is u → x ← v (cite the same), ``<`` is the edge
    v → u. A walk that leaves a node by one of d edges counts d ** −damping there, one damping for
    each step after the first. It also counts d ** −arrival if it could have arrived at v by d
    edges: ``Walk("><>", damping=(0.5, 0), arrival=0.5)`` is the item-item cosine, summed over the
    targets of u.
    """

    pattern: str
    title: str = ""
    kind: str = "paths"
    damping: tuple[float, ...] = (1.0, 1.0)
    arrival: float = 0.0
    floor: float = 1e-3

    @property
    def name(self) -> str:
        return self.title or self.pattern


class Local:
    """Columns of PageRank and walks, computed together.

    Walks that begin alike share their first steps. No walk passes through a hub, a node with more
    than `hub` edges to choose from: such walks say little about the two ends and would take most of
    the time. If a step from one source would follow more than `budget` edges, the limit of a hub is
    halved until it does not; by default the budget is smaller in large graphs, so that a fit stays
    affordable. The terms of each column are whether the value is positive, log(value / floor) if it
    is, and the root of the value, which distinguishes large from very large values.

    Examples
    --------
    >>> diamond = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 3], 4)
    >>> two_steps = Local([Walk(">>", damping=(0.0,))]).fit(diamond)
    >>> two_steps.pairs(np.array([0, 3]), np.array([3, 0])).ravel()
    array([2., 0.])
    """

    def __init__(
        self,
        columns: Sequence[PageRank | Walk],
        *,
        hub: int = 1000,
        budget: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.hub, self.n_jobs = hub, n_jobs
        self._given_budget = budget
        self.names = [column.name for column in columns]
        self.term_names = [
            f"{form}{name}" for name in self.names for form in ("any ", "log ", "root of ")
        ]
        self.floors = np.array([column.floor for column in columns])
        self._steps = _tree(self.columns)
        self._rooms: list[Room] = []

    def fit(self, graph: DiGraph) -> Self:
        """Keep both directions of the adjacency, and the graph without directions."""
        self.graph = graph
        usual = int(np.clip(_WORK // max(graph.n_edges, 1), *_BUDGET))
        self.budget = usual if self._given_budget is None else self._given_budget
        back = graph.reverse()
        self._rooms.clear()
        self._ends = TwoWayRows.of(graph)
        self._pushes = []
        for at, column in enumerate(self.columns):
            if isinstance(column, PageRank):
                walked = {"out": graph, "in": back}.get(column.direction) or undirected(graph)
                least = column.tolerance * np.maximum(np.diff(walked.indptr), 1)
                self._pushes.append((walked.indptr, walked.targets, least, column.restart, at))
        return self

    def cheaper(self) -> Local:
        """Return walks of two steps and item-item cosine alone, with a small budget per source."""
        walks = [column for column in self.columns if isinstance(column, Walk)]
        few = [c for c in walks if len(c.pattern) <= 2] + [c for c in walks if c.arrival]
        return Local(few, hub=self.hub, budget=2**12, n_jobs=self.n_jobs).fit(self.graph)

    def scan(
        self, sources: IntArray, visit: Callable[[int, Room], T], progress: Stage | None = None
    ) -> list[T]:
        """Return visit(i, room) for every source, with its evidence in the room.

        Several threads visit; the results are in the order of the sources.
        """

        def some(low: int) -> list[T]:
            try:
                room = self._rooms.pop()
            except IndexError:
                room = Room.of(self.graph.n_nodes, len(self.columns))
            found = []
            for at in range(low, min(low + _AT_ONCE, len(sources))):
                source = int(sources[at])
                for indptr, targets, least, restart, column in self._pushes:
                    push(indptr, targets, least, restart, source, column, room)
                if len(self._steps.depth):
                    walk(self._ends, self._steps, self.hub, self.budget, source, room)
                found.append(visit(at, room))
                room.clear()
            self._rooms.append(room)
            return found

        lows = range(0, len(sources), _AT_ONCE)
        if len(lows) <= 1:
            return some(0)
        results: list[T] = []
        with Workers(self.n_jobs) as workers:
            for part in workers.map(some, lows):
                results += part
                if progress is not None:
                    progress.advance(len(part))
        return results

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return the values of the pairs; those of a source are computed once for all its pairs."""
        order = np.argsort(u, kind="stable")
        sources, first = np.unique(np.asarray(u, dtype=np.int64)[order], return_index=True)
        bounds, targets = np.append(first, len(order)), np.asarray(v, dtype=np.int64)[order]
        found = np.zeros((len(order), len(self.columns)))

        def visit(at: int, room: Room) -> None:
            these = slice(bounds[at], bounds[at + 1])
            found[order[these]] = room.table[targets[these]]

        self.scan(sources, visit)
        return found

    def terms(self, found: Float64Array) -> Float64Array:
        """Return the terms: whether a value is positive, its logarithm, and its root."""
        there = found > 0
        size = np.where(there, np.log(np.where(there, found, 1.0) / self.floors), 0.0)
        terms = np.stack([there, size, np.sqrt(found)], axis=2)
        return terms.reshape(len(found), 3 * found.shape[1])

    def scores(self, room: Room, weights: Float64Array) -> Float64Array:
        """Return the weighted terms of nodes near the source; `weights` has three per column."""
        scores = np.empty(len(room.near))
        weigh(room, np.ascontiguousarray(weights.reshape(-1, 3)), self.floors, scores)
        return scores


def targets_of(graph: DiGraph, u: int) -> Int64Array:
    """Return the nodes that u has edges to."""
    return graph.targets[graph.indptr[u] : graph.indptr[u + 1]].astype(np.int64)


def undirected(graph: DiGraph) -> DiGraph:
    """Return the graph with an edge in both directions where it has one in either."""
    ends = graph.sources, graph.targets
    return DiGraph.from_codes(np.concatenate(ends), np.concatenate(ends[::-1]), graph.n_nodes)


def _tree(columns: Sequence[PageRank | Walk]) -> Steps:
    """Return the steps of all walks; steps that several walks share occur once."""
    # Of every prefix: its weightings (dampings so far) with the table column each ends in.
    prefixes: dict[str, dict[tuple[tuple[float, ...], float], int]] = {}
    for at, column in enumerate(columns):
        if isinstance(column, Walk):
            for length in range(1, len(column.pattern) + 1):
                whole = length == len(column.pattern)
                key = (column.damping[: length - 1], column.arrival if whole else 0.0)
                weightings = prefixes.setdefault(column.pattern[:length], {})
                weightings[key] = at if whole else weightings.get(key, -1)
    order = sorted(prefixes)  # a prefix comes before what it begins
    shape = (len(order), WIDTH)
    steps = Steps(
        np.array([len(prefix) - 1 for prefix in order], dtype=np.int64),
        np.array([prefix[-1] == ">" for prefix in order], dtype=np.bool_),
        np.array([len(prefixes[prefix]) for prefix in order], dtype=np.int64),
        np.zeros(shape, dtype=np.int64), np.zeros(shape), np.full(shape, -1), np.zeros(shape),
    )  # fmt: skip
    for at, prefix in enumerate(order):
        before = list(prefixes.get(prefix[:-1], {}))
        for c, ((damping, arrival), output) in enumerate(prefixes[prefix].items()):
            if damping:
                steps.parent[at, c] = before.index((damping[:-1], 0.0))
                steps.damping[at, c] = damping[-1]
            steps.output[at, c], steps.arrival[at, c] = output, arrival
    return steps
