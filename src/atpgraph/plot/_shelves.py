"""Arrange a whole drawing on a page: connected components side by side, levels as rows.

Components are laid out separately and packed into *shelves*, the tallest first. A level too wide
for the page takes several rows.
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
_APART, _SHELF = 0.5, 0.9  # inches between parts, and between shelves


@dataclass(frozen=True, eq=False)
class Row:
    """The rows of one level on one shelf."""

    shelf: int  # from 0 at the top
    level: int  # from 1
    heights: Float64Array  # the y of each row, the lowest first


@dataclass(frozen=True, eq=False)
class Sheet:
    """A whole drawing, in inches from the lower left corner."""

    x: Float64Array  # centers of the nodes
    y: Float64Array
    routes: list[Float64Array]  # for every edge the points it passes, with both ends
    rows: list[Row]
    width: float
    height: float


def arranged(
    level: Int64Array, sources: Int64Array, targets: Int64Array, width: Float64Array
) -> Sheet:
    """Arrange a graph on a page: components on shelves, levels as rows, the lowest at the bottom.

    Levels count from 1 in every connected component, edges have either direction, and `width` is
    the room that each node needs, in inches.

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
    parts = [
        _Part(
            level, sources, targets, width, np.flatnonzero(member == number),
            np.flatnonzero(member[sources] == number),
        )
        for number in range(count)
    ]  # fmt: skip
    for page in PAGES:
        sheet = _sheet(_shelved([part.wrapped(page) for part in parts], page), pitch, len(sources))
        if sheet.height <= sheet.width:
            break
    return sheet


def _sheet(shelves: list[list[_Part]], pitch: float, n_edges: int) -> Sheet:
    """Stack the shelves."""
    n_nodes = sum(len(part.nodes) for shelf in shelves for part in shelf)
    x, y = np.zeros(n_nodes), np.zeros(n_nodes)
    routes: list[Float64Array] = [np.zeros((0, 2))] * n_edges
    rows: list[Row] = []
    floor = 0.0
    for shelf in range(len(shelves) - 1, -1, -1):
        heights: list[Float64Array] = []
        for at in range(max(part.top for part in shelves[shelf])):
            deep = max(part.rows_of[at] for part in shelves[shelf] if part.top > at)
            heights.append(floor + _ROW * np.arange(deep))
            floor = float(heights[-1][-1]) + pitch
        floor += _SHELF - pitch
        rows += [Row(shelf, at, ys) for at, ys in enumerate(heights, start=1)]
        left = 0.0
        for part in shelves[shelf]:
            y_of = np.concatenate(
                [ys[:deep] for ys, deep in zip(heights, part.rows_of, strict=False)]
            )
            x[part.nodes] = left + part.layout.x
            y[part.nodes] = y_of[part.row]
            for edge, route in zip(part.edges.tolist(), part.layout.routes, strict=True):
                routes[edge] = np.column_stack([left + route[:, 0], y_of[route[:, 1].astype(int)]])
            left += part.width + _APART
    across = max(sum(part.width + _APART for part in shelf) for shelf in shelves) - _APART
    return Sheet(x, y, routes, rows[::-1], across, floor - _SHELF)


class _Part:
    """A connected component, laid out separately; its left edge is at 0."""

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

    def wrapped(self, page: float) -> _Part:
        """Return the component with several rows for each level that is wider than the page."""
        needed = np.bincount(self._level, self._room + GAP, self.top)
        rows_of = np.maximum(np.ceil(needed / page), 1).astype(np.int64)
        if rows_of.max() == 1:
            return self
        row = (np.cumsum(rows_of) - rows_of)[self._level]
        for at in np.flatnonzero(rows_of > 1):
            members = np.flatnonzero(self._level == at)
            members = members[np.argsort(self.layout.x[members], kind="stable")]
            row[members] += np.arange(len(members)) % rows_of[at]  # neighbors in turn
        part = copy(self)
        part._lay_out(row, rows_of, self.layout.x)
        return part

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


def _shelved(parts: list[_Part], page: float) -> list[list[_Part]]:
    """Put each component on the first shelf that has room for it, tall ones first."""
    order = sorted(parts, key=lambda part: (-len(part.rows_of), -part.width, part.nodes[0]))
    shelves: list[list[_Part]] = []
    taken: list[float] = []
    for part in order:
        at = next((i for i, used in enumerate(taken) if used + part.width <= page), len(shelves))
        if at == len(shelves):
            shelves.append([])
            taken.append(0.0)
        shelves[at].append(part)
        taken[at] += part.width + _APART
    return shelves
