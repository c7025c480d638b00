"""What evidence is: numbers that speak for or against a link u → v."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence._rows import Workspace, gather
from atpgraph.util.arrays import Float32Array, Float64Array, Int32Array, Int64Array, IntArray
from atpgraph.util.threads import Workers

_ENTRIES = 2**18  # room for rows that are being computed, and at least one
_HELD = 2**22  # entries of the rows that a task holds, if they were full


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
        step = sources_at_once(self.n_nodes)
        tasks = [wanted[low : low + step] for low in range(0, len(wanted), step)]
        if len(tasks) <= 1:
            return self.rows_of(wanted)
        with Workers(n_jobs) as workers:
            parts = list(workers.map(self.rows_of, tasks))
        return _joined(parts)

    def pairs(self, u: IntArray, v: IntArray, *, n_jobs: int | None = None) -> Float64Array:
        """The entry of each pair; the row of a source is computed once for all its pairs."""
        return local_pairs([self], u, v, n_jobs=n_jobs)

    def rows_of(self, sources: Int64Array, room: Workspace | None = None) -> Rows:
        """The rows of a few sources, on the thread that calls; `room` can be used again."""
        room = room or Workspace.of(self.n_nodes)
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


def sources_at_once(n_nodes: int) -> int:
    """Sources whose rows are held at once: fewer in large graphs, whose rows may be long."""
    return int(np.clip(_HELD // max(n_nodes, 1), 4, 64))


def local_pairs(
    parts: Sequence[LocalEvidence], u: IntArray, v: IntArray, *, n_jobs: int | None = None
) -> Float64Array:
    """The entries of pairs, a column for each evidence; all were fitted to one graph."""
    order = np.argsort(u, kind="stable")
    sources, first = np.unique(np.asarray(u, dtype=np.int64)[order], return_index=True)
    bounds = np.append(first, len(order)).astype(np.int64)
    targets = np.ascontiguousarray(np.asarray(v, dtype=np.int64)[order])
    found = np.empty((len(parts), len(order)))
    step = sources_at_once(parts[0].n_nodes) if parts else 1

    def one(low: int) -> None:
        high = min(low + step, len(sources))
        room = Workspace.of(parts[0].n_nodes)
        these = slice(bounds[low], bounds[high])
        for line, part in zip(found, parts, strict=True):
            rows = part.rows_of(sources[low:high], room)
            gather(*rows, bounds[low : high + 1] - bounds[low], targets[these], room.value,
                   line[these])  # fmt: skip

    if parts:
        _each(one, range(0, len(sources), step), n_jobs)
    result = np.empty((len(order), len(parts)))
    result[order] = found.T
    return result


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
