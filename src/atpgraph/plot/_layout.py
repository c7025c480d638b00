"""Lay out a graph in layers, with few crossings and short, straight edges.

An edge over several levels gets a *bend* in every level it passes, and bends are placed like
nodes, so that edges run between the nodes and not through them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from atpgraph.util.arrays import Float64Array, Int64Array

GAP = 0.2
_SWEEPS = 24
_ROUNDS = 40


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
    gap: float = GAP,
    start: Float64Array | None = None,
) -> Layout:
    """Arrange nodes in rows by level.

    `sources` and `targets` are edges in either direction; edges within a row do not influence the
    layout. `width` is the room that each node needs, and `gap` the room between nodes; bends need
    less. `start` has positions that give the initial order, by default that of the nodes.

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
    room = np.full(len(row), 0.4 * gap)
    room[: len(level)] = width + gap
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
    """Move nodes towards their neighbors; order and distances within a row are kept.

    The nearest positions that keep them are an isotonic regression, once each node's distance from
    the beginning of its row is taken off. No row gets wider than the one that needs most room.
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
