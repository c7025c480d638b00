"""Evidence around a source: personalized PageRank by local push, and short directed walks.

Both are 0 except near the source, so that all of it for one source costs a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.linkpred.evidence.kernels import (
    DEPTH,
    WIDTH,
    Adjacency,
    Room,
    Steps,
    best_scores,
    push,
    walk,
)
from atpgraph.util.arrays import Float64Array, Int64Array, IntArray
from atpgraph.util.registry import unknown_name
from atpgraph.util.threads import Workers

T = TypeVar("T")

HUB = 1000  # edges of a node that no walk passes through
BUDGET = 2**15  # edges that a step follows from one source
DIRECTIONS = ("both", "out", "in")
_AT_ONCE = 32  # sources of a task


@dataclass(frozen=True)
class PageRank:
    """p = restart · Σ_k (1 − restart)^k P^k e_u, entries below the tolerance left out.

    P steps to a random neighbor: along either direction of the edges (``both``), forward (``out``)
    or backward (``in``). A walk ends at a node without neighbors to go to. Local push never looks
    at a node that gets less than `tolerance` times its degree, so that a source costs at most
    1 / (restart · tolerance) steps, whatever the size of the graph.

    References
    ----------
    Andersen, Chung, Lang: Local graph partitioning using PageRank vectors. 2006.
    """

    direction: Literal["both", "out", "in"] = "both"
    name: str = "proximity"
    kind: str = "proximity"
    restart: float = 0.15
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise unknown_name("direction", self.direction, DIRECTIONS)
        if not 0 < self.restart < 1 or not self.tolerance > 0:
            raise InputError(
                f"restart is {self.restart} and tolerance {self.tolerance}; restart must be "
                "between 0 and 1, tolerance above 0."
            )

    @property
    def floor(self) -> float:
        """The smallest value."""
        return self.restart * self.tolerance


@dataclass(frozen=True)
class Walk:
    """Number of walks from u to v of a given pattern, each weighted by the degrees it passes.

    The pattern is written as arrows: ``>`` follows an edge, ``<`` goes against one. ``>>`` is
    u → x → v, ``><>`` is u → x ← y → v (who points where u points, points to v), ``<>`` is
    u ← x → v (cited together), ``><`` is u → x ← v (cite the same), ``<`` is the edge v → u.
    A walk that leaves a node by one of d edges counts d ** −damping there, one damping for each
    step after the first. It counts d ** −arrival for the d edges by which it could have arrived at
    v: ``Walk("><>", damping=(0.5, 0), arrival=0.5)`` is the item-item cosine, summed over the
    targets of u.
    """

    pattern: str
    name: str = ""
    kind: str = "paths"
    damping: tuple[float, ...] = ()
    arrival: float = 0.0
    floor: float = 1e-3

    def __post_init__(self) -> None:
        if not 1 <= len(self.pattern) <= DEPTH or set(self.pattern) - {">", "<"}:
            raise InputError(
                f"The pattern {self.pattern!r} is not made of one to {DEPTH} arrows '>' and '<'."
            )
        steps = len(self.pattern) - 1
        if not self.damping:
            object.__setattr__(self, "damping", (1.0,) * steps)
        if len(self.damping) != steps:
            raise InputError(
                f"{len(self.damping)} dampings for the {steps} steps of {self.pattern!r} after "
                "the first."
            )
        if not self.name:
            object.__setattr__(self, "name", self.pattern)


class Local(Evidence):
    """Columns of PageRank and walks, computed together.

    Walks that begin alike share their first steps. No walk passes through a hub, a node with more
    than `hub` edges to choose from: it says next to nothing about the two ends, and would cost most
    of the time. Where a step from one source would follow more than `budget` edges, the limit of a
    hub is halved until it does not.

    Terms of each column are whether there is any, log(value / floor) where there is, and the root
    of the value, which tells much from very much.

    Examples
    --------
    >>> diamond = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 3, 3], 4)
    >>> two_steps = Local([Walk(">>", damping=(0.0,))]).fit(diamond)
    >>> two_steps.pairs(np.array([0, 3]), np.array([3, 0])).ravel()
    array([2., 0.])
    >>> path = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> forward = Local([PageRank("out", restart=0.5)]).fit(path)
    >>> forward.pairs(np.array([0, 0, 1]), np.array([1, 2, 0])).ravel().tolist()
    [0.25, 0.125, 0.0]
    """

    def __init__(
        self,
        columns: Sequence[PageRank | Walk],
        *,
        hub: int = HUB,
        budget: int = BUDGET,
        n_jobs: int | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.hub = hub
        self.budget = budget
        self.n_jobs = n_jobs
        self.names = tuple(column.name for column in columns)
        self.kinds = tuple(column.kind for column in columns)
        self.term_names = tuple(
            f"{form}{name}" for name in self.names for form in ("any ", "log ", "root of ")
        )
        self.floors = np.array([column.floor for column in columns])
        self._steps = _tree(self.columns)

    @property
    def term_kinds(self) -> tuple[str, ...]:
        """The kind of each term."""
        return tuple(kind for kind in self.kinds for _ in range(3))

    def fit(self, graph: DiGraph) -> Self:
        """Keep both directions of the adjacency, and the graph without directions."""
        self.graph = graph
        back = graph.reverse()
        self._ends = Adjacency(graph.indptr, graph.targets, back.indptr, back.targets)
        self._pushes = []
        for at, column in enumerate(self.columns):
            if isinstance(column, PageRank):
                walked = {"out": graph, "in": back}.get(column.direction) or _undirected(graph)
                degree = np.maximum(np.diff(walked.indptr), 1)
                least = column.tolerance * degree
                self._pushes.append((walked.indptr, walked.targets, least, column.restart, at))
        return self

    def grown(self, new: NewNode) -> Local:
        """Return the same evidence of the graph with the node."""
        return Local(
            self.columns, hub=self.hub, budget=self.budget, n_jobs=self.n_jobs
        ).fit(new.graph)  # fmt: skip

    def best_scores(
        self, sources: Int64Array, weights: Float64Array, room: Room | None = None
    ) -> Float64Array:
        """Return the best weighted score of a new target of each source, and its share.

        Walks only, not PageRank; `weights` are those of the terms of all columns.
        """
        found = np.empty((len(sources), 2))
        own = np.ascontiguousarray(weights.reshape(-1, 3))
        limits = (self.hub, self.budget)
        room = self.room() if room is None else room
        best_scores(self._ends, self._steps, limits, sources, own, self.floors, room, found)
        return found

    def cheaper(self) -> Local:
        """Return walks of two steps and item-item cosine alone, with a small budget per source."""
        few = [c for c in self.columns if isinstance(c, Walk) and len(c.pattern) <= 2]
        few += [c for c in self.columns if isinstance(c, Walk) and c.arrival]
        return Local(few, hub=self.hub, budget=2**12, n_jobs=self.n_jobs).fit(self.graph)

    def room(self) -> Room:
        """Return a workspace for one thread."""
        return Room.of(self.graph.n_nodes, len(self.columns))

    def fill(self, source: int, room: Room) -> None:
        """Compute the evidence of all pairs (source, v); the caller clears the room."""
        for indptr, targets, least, restart, column in self._pushes:
            push(indptr, targets, least, restart, source, column, room)
        if len(self._steps.depth):
            walk(self._ends, self._steps, self.hub, self.budget, source, room)

    def scan(self, sources: IntArray, visit: Callable[[int, Room], T]) -> list[T]:
        """Return visit(i, room) for every source, with its evidence in the room.

        Several threads visit; the results are in the order of the sources.
        """

        def some(low: int) -> list[T]:
            room, found = self.room(), []
            for at in range(low, min(low + _AT_ONCE, len(sources))):
                self.fill(int(sources[at]), room)
                found.append(visit(at, room))
                room.clear()
            return found

        lows = range(0, len(sources), _AT_ONCE)
        if len(lows) <= 1:
            return [each for low in lows for each in some(low)]
        with Workers(self.n_jobs) as workers:
            return [each for part in workers.map(some, lows) for each in part]

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return the values of the pairs; those of a source are computed once for all its pairs."""
        order, sources, bounds = grouped(u)
        targets = np.asarray(v, dtype=np.int64)[order]
        found = np.zeros((len(order), len(self.columns)))

        def visit(at: int, room: Room) -> None:
            these = slice(bounds[at], bounds[at + 1])
            found[order[these]] = room.table[targets[these]]

        self.scan(sources, visit)
        return found

    def terms(self, found: Float64Array) -> Float64Array:
        """Return whether there is any, the logarithm of how much, and the root."""
        there = found > 0
        size = np.where(there, np.log(np.where(there, found, 1.0) / self.floors), 0.0)
        return np.stack([there, size, np.sqrt(found)], axis=2).reshape(len(found), -1)


def grouped(u: IntArray) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the order of pairs by source, the sources, and where the pairs of each begin."""
    order = np.argsort(u, kind="stable")
    sources, first = np.unique(np.asarray(u, dtype=np.int64)[order], return_index=True)
    return order, sources, np.append(first, len(order)).astype(np.int64)


def _undirected(graph: DiGraph) -> DiGraph:
    ends = np.concatenate([graph.sources, graph.targets])
    others = np.concatenate([graph.targets, graph.sources])
    return DiGraph.from_codes(ends, others, graph.n_nodes)


def _tree(columns: Sequence[PageRank | Walk]) -> Steps:
    """Return the steps of all walks, those of common beginnings once."""
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
    if len(order) and steps.width.max() > WIDTH:
        raise InputError(f"More than {WIDTH} weightings of one pattern.")
    for at, prefix in enumerate(order):
        before = list(prefixes.get(prefix[:-1], {}))
        for c, ((damping, arrival), output) in enumerate(prefixes[prefix].items()):
            if damping:
                steps.parent[at, c] = before.index((damping[:-1], 0.0))
                steps.damping[at, c] = damping[-1]
            steps.output[at, c], steps.arrival[at, c] = output, arrival
    return steps
