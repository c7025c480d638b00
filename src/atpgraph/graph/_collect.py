"""Edges on their way into a graph: numbered as they come, sorted at the end, within a budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from atpgraph.errors import BudgetError
from atpgraph.graph import csr
from atpgraph.graph._numbering import Numbering, renumber
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray, ByteArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.memory import human_bytes
from atpgraph.util.threads import checkpoint

_LEAST = 1 << 23  # bytes that the smallest file may take, whatever the budget


class EdgeCollector:
    """All edges read so far, as node indices in the order of the file.

    Parameters
    ----------
    path : Path or str
        What is read, for messages.
    budget : int
        Bytes that reading may take; more is a :class:`BudgetError`.
    keep_integers : bool
        Whether ids that are integers stay integers where others are text.
    """

    def __init__(self, path: Path | str, budget: int, keep_integers: bool = False) -> None:
        self.keep_integers = keep_integers
        self.path, self.budget = path, max(budget, _LEAST)
        self.numbering = Numbering()
        self.n_rows = 0
        self._pieces: list[Int32Array] = []
        self._weights: list[Float64Array] = []
        self._types: list[Int32Array] = []
        self._type_names = Numbering()
        self._order: Int64Array | None = None

    def add(
        self,
        data: ByteArray,
        ids: Int64Array,
        lengths: Int32Array,
        weights: Float64Array | None = None,
    ) -> None:
        """Number more edges; the arrays are those of :meth:`Numbering.number`."""
        self._pieces.append(self.numbering.number(data, ids, lengths))
        self.n_rows += len(ids)
        if weights is not None:
            self._weights.append(weights)

    def add_types(self, data: ByteArray, starts: AnyArray, sizes: AnyArray) -> None:
        """Add the types of the edges that were added last, as strings in `data`."""
        # Twice, because ids are numbered in pairs.
        ids = np.stack([starts, starts], axis=1).astype(np.int64)
        lengths = np.stack([sizes, sizes], axis=1).astype(np.int32)
        self._types.append(self._type_names.number(data, ids, lengths)[:, 0].copy())

    def drop_weights(self) -> None:
        """Forget the weights."""
        self._weights = []

    def check(self, buffers: int, done: float = 1.0) -> None:
        """Refuse to go on if the edges, and as many more as the rest of the file has, do not fit.

        Parameters
        ----------
        buffers : int
            Bytes that the reader itself holds.
        done : float
            Share of the file that has been read.
        """
        each = 4 + csr.BYTES_PER_EDGE
        if self._weights:
            each += 8 + csr.BYTES_PER_WEIGHT
        if self._types:
            each += 36  # codes, rows and their places in the graph
        nodes = self.numbering.nbytes + csr.BYTES_PER_NODE * len(self.numbering)
        need = int(self.n_rows / max(done, 1e-9) * each) + nodes + buffers
        if need > self.budget:
            raise BudgetError(
                f"{self.path} needs at least {human_bytes(need)} to be read, and the budget is "
                f"{human_bytes(self.budget)}; raise memory."
            )

    @property
    def first(self) -> list[int]:
        """Numbers of the two ids of the first edge."""
        return [int(code) for code in self._pieces[0][0]]

    def drop_first(self) -> None:
        """Forget the first edge, which names columns; nodes are numbered as if without it."""
        self._pieces[0] = self._pieces[0][1:].copy()
        if self._weights:
            self._weights[0] = self._weights[0][1:]
        if self._types:
            self._types[0] = self._types[0][1:]
        self.n_rows -= 1
        number = np.full(len(self.numbering), -1, dtype=np.int32)
        known = 0
        for piece in self._pieces:
            known = renumber(piece, number, known)
        order = np.argsort(number, kind="stable")
        self._order = order[len(order) - known :]

    def labels(self) -> AnyArray:
        """Labels of the nodes, by number."""
        return self.numbering.labels(self._order, self.keep_integers)

    def rows(self) -> tuple[Int32Array, AnyArray]:
        """The edges in the order of the file, repeats included, and the labels."""
        return np.concatenate(self._pieces), self.labels()

    def graph(self) -> DiGraph:
        """The edges as a graph; the collector is empty afterwards."""
        labels = self.labels()
        del self.numbering
        rows = np.concatenate(self._pieces) if self._types else None
        indptr, targets, weights = csr.sorted_rows(
            self._pieces, len(labels), self._weights or None, checkpoint
        )
        graph = DiGraph(indptr, targets, labels, weights)
        if rows is None:
            return graph
        used, codes = np.unique(np.concatenate(self._types), return_inverse=True)
        return graph.with_types(rows, codes, [self._type_names.text(int(code)) for code in used])
