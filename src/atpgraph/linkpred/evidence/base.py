"""What evidence is: numbers that speak for or against a link u → v."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from atpgraph._threads import Workers
from atpgraph._typing import Float32Array, Float64Array, Int32Array, Int64Array, IntArray
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence._rows import Workspace, gather

_SOURCES = 64  # of one task
_ENTRIES = 2**18  # room for the rows of a task, and at least one


class Rows(NamedTuple):
    """Sparse rows in the form of a CSR matrix; the columns of a row are in no order."""

    indptr: Int64Array
    nodes: Int32Array
    values: Float32Array


class Evidence(ABC):
    """One kind of evidence.

    ``fit`` gets a graph; ``pairs`` returns the numbers of ordered pairs of node indices, a column
    for each of ``names``; ``terms`` turns these numbers into what a linear model weighs.
    """

    names: tuple[str, ...]
    term_names: tuple[str, ...]

    @abstractmethod
    def fit(self, graph: DiGraph) -> Self:
        """Keep what is needed of the graph."""

    @abstractmethod
    def pairs(self, u: IntArray, v: IntArray, *, n_jobs: int | None = None) -> Float64Array:
        """The evidence of the pairs (u[i], v[i]): an array of shape (pairs, names)."""

    @abstractmethod
    def terms(self, found: Float64Array) -> Float64Array:
        """What :meth:`pairs` found as terms of a linear model: shape (pairs, term_names)."""

    def add_row(self, u: int, weights: Float64Array, line: Float64Array) -> None:
        """Add the weighted terms of the pairs (u, v), for every node v, to `line`."""
        everyone = np.arange(len(line))
        line += self.terms(self.pairs(np.full(len(line), u), everyone)) @ weights


class LocalEvidence(Evidence):
    """Evidence that is 0 except near the source, so that a row of it is sparse.

    Its terms are whether there is any, log(value / floor) where there is, else 0, and the root of
    the value, which tells much from very much. A subclass says in ``_fill`` how rows are computed.
    """

    name: str
    n_nodes: int
    floor: float = 1e-3

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one name."""
        return (self.name,)

    @property
    def term_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Whether there is any, and how much."""
        return (f"any {self.name}", f"log {self.name}", f"root of {self.name}")

    def terms(self, found: Float64Array) -> Float64Array:
        """Whether there is any, the logarithm of how much, and the root."""
        value = found[:, 0]
        there = value > 0
        size = np.where(there, np.log(np.where(there, value, 1.0) / self.floor), 0.0)
        return np.column_stack([there, size, np.sqrt(value)])

    def add_row(self, u: int, weights: Float64Array, line: Float64Array) -> None:
        """Add the weighted terms of the nodes that the row reaches."""
        rows = self.rows(np.array([u]))
        line[rows.nodes] += self.terms(rows.values[:, None].astype(np.float64)) @ weights

    @abstractmethod
    def _fill(
        self,
        sources: Int64Array,
        room: Workspace,
        ends: Int64Array,
        nodes: Int32Array,
        values: Float32Array,
    ) -> int:
        """Write rows of as many sources as surely fit; returns how many that were."""

    def rows(self, sources: IntArray, *, n_jobs: int | None = None) -> Rows:
        """The rows of the sources, computed in tasks of a few sources on several threads."""
        wanted = np.asarray(sources, dtype=np.int64)
        tasks = [wanted[low : low + _SOURCES] for low in range(0, len(wanted), _SOURCES)]
        if len(tasks) <= 1:
            return self._task(wanted)
        with Workers(n_jobs) as workers:
            parts = list(workers.map(self._task, tasks))
        return _joined(parts)

    def pairs(self, u: IntArray, v: IntArray, *, n_jobs: int | None = None) -> Float64Array:
        """The entry of each pair; the row of a source is computed once for all its pairs."""
        order = np.argsort(u, kind="stable")
        sources, first = np.unique(np.asarray(u)[order], return_index=True)
        bounds = np.append(first, len(order)).astype(np.int64)
        targets = np.ascontiguousarray(np.asarray(v, dtype=np.int64)[order])
        found = np.empty(len(order))

        def one(low: int) -> None:
            high = min(low + _SOURCES, len(sources))
            rows = self._task(sources[low:high].astype(np.int64))
            part = slice(bounds[low], bounds[high])
            gather(
                rows.indptr, rows.nodes, rows.values, bounds[low : high + 1] - bounds[low],
                targets[part], np.zeros(self.n_nodes), found[part],
            )  # fmt: skip

        _each(one, range(0, len(sources), _SOURCES), n_jobs)
        result = np.empty(len(order))
        result[order] = found
        return result[:, None]

    def _task(self, sources: Int64Array) -> Rows:
        room = Workspace.of(self.n_nodes)
        parts: list[Rows] = []
        while len(sources) or not parts:
            size = max(self.n_nodes, _ENTRIES)
            nodes, values = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
            ends = np.zeros(len(sources) + 1, dtype=np.int64)
            done = self._fill(sources, room, ends[1:], nodes, values)
            last = int(ends[done])
            parts.append(Rows(ends[: done + 1], nodes[:last].copy(), values[:last].copy()))
            sources = sources[done:]
        return _joined(parts)


def _each(work: Callable[[int], None], tasks: range, n_jobs: int | None) -> None:
    if len(tasks) <= 1:
        for task in tasks:
            work(task)
        return
    with Workers(n_jobs) as workers:
        for _ in workers.map(work, tasks):
            pass


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    shifts = np.cumsum([0] + [len(part.nodes) for part in parts])
    ends = [part.indptr[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
    return Rows(
        np.concatenate([[0], *ends]).astype(np.int64),
        np.concatenate([part.nodes for part in parts]),
        np.concatenate([part.values for part in parts]),
    )
