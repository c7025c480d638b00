"""Lay out a graph on a page: levels as rows, with few crossings and short, straight edges.

An edge over several levels gets a *bend* in every level it passes, and bends are placed like
nodes, so that edges run between the nodes and not through them. Connected components are laid out
separately and packed into *shelves*, the tallest first. A level too wide for the page takes several
rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from atpgraph.util.arrays import Float64Array, Int64Array

GAP = 0.2
_SWEEPS = 24
_ROUNDS = 40
PAGES = (12.0, 15.0, 19.0, 24.0)  # inches: the narrowest that makes the drawing wide, not tall
_LEVEL, _ROW = 0.85, 0.5  # inches between levels, and between the rows of one
_TALL = 30.0  # inches from which levels move closer together
_APART, _SHELF = 0.5, 0.9  # inches between parts, and between shelves


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of nodes and edges."""

    x: Float64Array  # of every node in its row
    routes: list[Float64Array]  # for every edge the points (x, level) it passes, with both ends
    crossings: int  # pairs of edges that cross between neighboring rows


def layered(
    level: Int64Array,
    sources: Int64Array,
    targets: Int64Array,
    width: Float64Array,
    start: Float64Array | None = None,
) -> Layout:
    """Arrange nodes in rows by level.

    `sources` and `targets` are edges in either direction; edges within a row do not influence the
    layout. `width` is the space that each node needs, without the gap to the next node. `start` has
    positions for the initial order, by default the order of the nodes.

    Examples
    --------
    >>> level = np.array([1, 1, 2, 2])
    >>> made = layered(level, np.array([0, 1]), np.array([3, 2]), np.ones(4))
    >>> made.crossings
    0
    >>> bool((made.x[0] - made.x[1]) * (made.x[3] - made.x[2]) > 0)
    True
    """
    chains, row, lower, upper = _with_bends(level, sources, targets)
    # Half a gap on either side; bends need little room, and none of their own.
    room = np.full(len(row), 0.4 * GAP)
    room[: len(level)] = width + GAP
    links = _Links(row, lower, upper)
    place = np.zeros(len(row))
    if start is not None:
        for chain in chains:
            place[chain] = np.linspace(start[chain[0]], start[chain[-1]], len(chain))
        place[: len(level)] = start
    by_place = np.argsort(place, kind="stable")
    rows = [by_place[row[by_place] == at] for at in np.unique(row)]
    rows, crossings = _fewest_crossings(rows, links)
    # Straightening bends matters most, then keeping them in line with the ends of the edge.
    bends = (lower >= len(level)).astype(float) + (upper >= len(level))
    x = _positions(rows, links, room, 1.0 + 3.0 * bends)
    return Layout(
        x[: len(level)], [np.column_stack([x[chain], row[chain]]) for chain in chains], crossings
    )


class _Links:
    """Segments between neighboring rows, lower end first."""

    def __init__(self, row: Int64Array, lower: Int64Array, upper: Int64Array) -> None:
        self.row, self.lower, self.upper = row, lower, upper
        self.count = len(row)

    def mean(self, value: Float64Array, weight: Float64Array, down: bool, up: bool) -> Float64Array:
        """Return the mean over the neighbors below, above, or both; NaN where there are none."""
        total, mass = np.zeros(self.count), np.zeros(self.count)
        for wanted, here, there in (
            (down, self.upper, self.lower),
            (up, self.lower, self.upper),
        ):
            if wanted:
                total += np.bincount(here, weight * value[there], self.count)
                mass += np.bincount(here, weight, self.count)
        mean: Float64Array = np.divide(total, mass, out=np.full(self.count, np.nan), where=mass > 0)
        return mean

    def crossings(self, place: Float64Array) -> int:
        """Count the pairs of segments between the same two rows that cross."""
        found = 0
        floor = self.row[self.lower]
        for at in np.unique(floor):
            low, high = place[self.lower[floor == at]], place[self.upper[floor == at]]
            sign = np.sign(low[:, None] - low) * np.sign(high[:, None] - high)
            found += int(np.count_nonzero(sign < 0)) // 2
        return found


def _with_bends(
    level: Int64Array, sources: Int64Array, targets: Int64Array
) -> tuple[list[Int64Array], Int64Array, Int64Array, Int64Array]:
    """Return the nodes that each edge passes, the row of all nodes and bends, and the segments."""
    chains: list[Int64Array] = []
    row = level.tolist()
    lower: list[int] = []
    upper: list[int] = []
    for u, v in zip(sources.tolist(), targets.tolist(), strict=True):
        low, high = (u, v) if level[u] <= level[v] else (v, u)
        between = range(int(level[low]) + 1, int(level[high]))
        chain = [low, *range(len(row), len(row) + len(between)), high]
        row += between
        if level[low] < level[high]:
            lower += chain[:-1]
            upper += chain[1:]
        chains.append(np.array(chain if low == u else chain[::-1], dtype=np.int64))
    return chains, *(np.array(part, dtype=np.int64) for part in (row, lower, upper))  # type: ignore[return-value]


def _fewest_crossings(rows: list[Int64Array], links: _Links) -> tuple[list[Int64Array], int]:
    """Sort each row by the mean place of its neighbors, sweeping up and down; keep the best."""
    even = np.ones(len(links.lower))

    def places(rows: list[Int64Array]) -> Float64Array:
        place = np.zeros(links.count)
        for members in rows:
            place[members] = np.arange(len(members)) - (len(members) - 1) / 2
        return place

    best, fewest = rows, links.crossings(places(rows))
    for sweep in range(_SWEEPS):
        upwards = sweep % 2 == 0
        rows = list(rows)
        for at in range(len(rows)) if upwards else range(len(rows) - 1, -1, -1):
            place = places(rows)
            wish = links.mean(place, even, down=upwards, up=not upwards)[rows[at]]
            wish = np.where(np.isnan(wish), place[rows[at]], wish)
            # Reverse ties on every other pair of sweeps, or a bad start could never be left.
            order = np.arange(len(wish)) * (-1 if sweep % 4 >= 2 else 1)
            rows[at] = rows[at][np.lexsort((order, wish))]
        crossings = links.crossings(places(rows))
        if crossings < fewest:
            best, fewest = rows, crossings
        if fewest == 0:
            break
    return best, fewest


def _positions(
    rows: list[Int64Array], links: _Links, room: Float64Array, pull: Float64Array
) -> Float64Array:
    """Move nodes toward their neighbors; order and distances within a row are kept.

    The nearest positions that keep them are an isotonic regression, once each node's distance from
    the beginning of its row is subtracted. No row gets wider than the row that needs the most
    space.
    """
    x = np.zeros(links.count)
    offsets = []
    half = max(float(room[members].sum()) for members in rows) / 2
    for members in rows:
        step = (room[members][1:] + room[members][:-1]) / 2
        offset = np.concatenate([[0.0], np.cumsum(step)])[: len(members)]
        offsets.append(offset)
        x[members] = offset - offset[-1:].sum() / 2
    for turn in range(_ROUNDS):
        both = turn >= _ROUNDS // 2
        upwards = turn % 2 == 0
        order = range(len(rows)) if upwards else range(len(rows) - 1, -1, -1)
        for at in order:
            wish = links.mean(x, pull, down=both or upwards, up=both or not upwards)[rows[at]]
            wish = np.where(np.isnan(wish), x[rows[at]], wish)
            start = isotonic_regression(wish - offsets[at]).x
            least = room[rows[at][0]] / 2 - half
            most = half - room[rows[at][-1]] / 2 - offsets[at][-1]
            x[rows[at]] = np.clip(start, least, max(most, least)) + offsets[at]
    return x


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
    the space that each node needs, in inches.

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
