"""A whole drawing on a page: connected components on shelves, levels as rows.

Components are laid out by themselves and stand side by side on *shelves*, like books, the tallest
first. A level too wide for the page takes several rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from atpgraph.plot._layout import GAP, Layout, layered
from atpgraph.util.arrays import Float64Array, Int64Array

PAGES = (12.0, 15.0, 19.0, 24.0)  # inches: the narrowest that makes the drawing wide, not tall
_LEVEL, _ROW = 0.85, 0.5  # inches between levels, and between the rows of one
_TALL = 30.0  # inches from which levels move closer together
_APART, _SHELF = 0.5, 0.9  # inches between components, and between shelves


@dataclass(frozen=True, eq=False)
class Row:
    """The rows of one level on one shelf.

    Attributes
    ----------
    shelf, level : int
        Shelves count from 0 at the top, levels from 1.
    heights : float64 array
        The y of each row, the lowest first.
    """

    shelf: int
    level: int
    heights: Float64Array


@dataclass(frozen=True, eq=False)
class Sheet:
    """A whole drawing, in inches; y grows upwards.

    Attributes
    ----------
    x, y : float64 arrays of n entries
        Centres of the nodes.
    routes : list of (k, 2) arrays
        For every edge the points it passes, its two ends included.
    rows : list of Row
    width, height : float
        Room that all of it takes; the lower left corner is the origin.
    """

    x: Float64Array
    y: Float64Array
    routes: list[Float64Array]
    rows: list[Row]
    width: float
    height: float


def arranged(
    level: Int64Array, sources: Int64Array, targets: Int64Array, width: Float64Array
) -> Sheet:
    """Arrange a graph on a page: components on shelves, levels as rows, the lowest at the bottom.

    Parameters
    ----------
    level : int64 array of n entries
        From 1 in every connected component.
    sources, targets : int64 arrays of m entries
        Edges in either direction.
    width : float64 array of n entries
        Room that a node needs, in inches.

    Examples
    --------
    >>> level = np.array([1, 2, 1, 2])
    >>> sheet = arranged(level, np.array([0, 2]), np.array([1, 3]), np.ones(4))
    >>> bool(sheet.y[1] > sheet.y[0]), bool(sheet.x[2] - sheet.x[0] >= 1)
    (True, True)
    >>> far = arranged(np.ones(60, dtype=np.int64), *np.zeros((2, 0), dtype=np.int64), np.ones(60))
    >>> len({row.shelf for row in far.rows}), far.width <= PAGES[0]
    (8, True)
    """
    pitch = float(np.clip(_TALL / level.max(), _ROW, _LEVEL))
    count, member = connected_components(
        coo_array((np.ones(len(sources)), (sources, targets)), shape=(len(level),) * 2),
        directed=False,
    )
    books = [
        _Book(
            level, sources, targets, width, np.flatnonzero(member == number),
            np.flatnonzero(member[sources] == number),
        )
        for number in range(count)
    ]  # fmt: skip
    for page in PAGES:
        sheet = _sheet(_shelved([book.wrapped(page) for book in books], page), pitch, len(sources))
        if sheet.height <= sheet.width:
            break
    return sheet


def _sheet(shelves: list[list[_Book]], pitch: float, n_edges: int) -> Sheet:
    """Put the shelves above each other."""
    n_nodes = sum(len(book.nodes) for shelf in shelves for book in shelf)
    x, y = np.zeros(n_nodes), np.zeros(n_nodes)
    routes: list[Float64Array] = [np.zeros((0, 2))] * n_edges
    rows: list[Row] = []
    floor = 0.0
    for shelf in range(len(shelves) - 1, -1, -1):
        heights: list[Float64Array] = []
        for at in range(max(book.top for book in shelves[shelf])):
            deep = max(book.rows_of[at] for book in shelves[shelf] if book.top > at)
            heights.append(floor + _ROW * np.arange(deep))
            floor = float(heights[-1][-1]) + pitch
        floor += _SHELF - pitch
        rows += [Row(shelf, at, ys) for at, ys in enumerate(heights, start=1)]
        left = 0.0
        for book in shelves[shelf]:
            y_of = np.concatenate(
                [ys[:deep] for ys, deep in zip(heights, book.rows_of, strict=False)]
            )
            x[book.nodes] = left + book.layout.x
            y[book.nodes] = y_of[book.row]
            for edge, route in zip(book.edges.tolist(), book.layout.routes, strict=True):
                routes[edge] = np.column_stack([left + route[:, 0], y_of[route[:, 1].astype(int)]])
            left += book.width + _APART
    across = max(sum(book.width + _APART for book in shelf) for shelf in shelves) - _APART
    return Sheet(x, y, routes, rows[::-1], across, floor - _SHELF)


class _Book:
    """A connected component, laid out by itself; its left edge is at 0."""

    def __init__(
        self,
        level: Int64Array,
        sources: Int64Array,
        targets: Int64Array,
        width: Float64Array,
        nodes: Int64Array,
        edges: Int64Array,
    ) -> None:
        self.nodes, self.edges = nodes, edges
        self._ends = np.searchsorted(nodes, sources[edges]), np.searchsorted(nodes, targets[edges])
        self._level, self._room = level[nodes] - 1, width[nodes]
        self.top = int(level[nodes].max())
        self._lay_out(self._level, np.ones(self.top, dtype=np.int64))

    def wrapped(self, page: float) -> _Book:
        """A book whose levels take several rows where one is wider than the page."""
        needed = np.bincount(self._level, self._room + GAP, self.top)
        rows_of = np.maximum(np.ceil(needed / page), 1).astype(np.int64)
        if rows_of.max() == 1:
            return self
        row = (np.cumsum(rows_of) - rows_of)[self._level]
        for at in np.flatnonzero(rows_of > 1):
            members = np.flatnonzero(self._level == at)
            members = members[np.argsort(self.layout.x[members], kind="stable")]
            row[members] += np.arange(len(members)) % rows_of[at]  # neighbors in turn
        book = copy(self)
        book._lay_out(row, rows_of, self.layout.x)
        return book

    def _lay_out(
        self, row: Int64Array, rows_of: Int64Array, start: Float64Array | None = None
    ) -> None:
        self.row, self.rows_of = row, rows_of
        made = layered(row, *self._ends, self._room, start=start)
        edges = [made.x - self._room / 2, made.x + self._room / 2]
        every = np.concatenate([*edges, *(route[:, 0] for route in made.routes)])
        left, self.width = float(every.min()), float(np.ptp(every))
        routes = [route - np.array([left, 0.0]) for route in made.routes]
        self.layout = Layout(made.x - left, routes, made.crossings)


def _shelved(books: list[_Book], page: float) -> list[list[_Book]]:
    """Tall books first, each on the first shelf that has room for it."""
    order = sorted(books, key=lambda book: (-len(book.rows_of), -book.width, book.nodes[0]))
    shelves: list[list[_Book]] = []
    taken: list[float] = []
    for book in order:
        at = next((i for i, used in enumerate(taken) if used + book.width <= page), len(shelves))
        if at == len(shelves):
            shelves.append([])
            taken.append(0.0)
        shelves[at].append(book)
        taken[at] += book.width + _APART
    return shelves
