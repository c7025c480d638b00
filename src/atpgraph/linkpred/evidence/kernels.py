"""Compiled kernels of local evidence: local push and short walks around one source.

Values go into one row per node of a table with a column for each evidence, so that all values of a
pair lie on one or two cache lines. A :class:`Room` belongs to one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atpgraph.graph.traversal import TwoWayRows
from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from atpgraph.util.jit import kernel

DEPTH, WIDTH = 3, 3  # longest walk, and weightings that share its steps


class Room(NamedTuple):
    """Workspace for one source; ``table``, ``seen`` and sums are zero between two sources.

    ``nodes[: size[0]]`` are the nodes with a value in any column of ``table``.
    """

    table: Float32Array
    nodes: Int32Array
    size: Int64Array
    seen: BoolArray
    value: Float64Array
    residual: Float64Array
    touched: Int32Array
    queue: Int32Array
    queued: BoolArray
    sums: Float32Array
    lists: Int32Array

    @classmethod
    def of(cls, n: int, columns: int) -> Room:
        """Allocate the workspace for a graph of n nodes."""
        return cls(
            np.zeros((n, columns), dtype=np.float32),
            np.empty(n, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            np.zeros(n, dtype=np.bool_),
            np.zeros(n),
            np.zeros(n),
            np.empty(n, dtype=np.int32),
            np.empty(n, dtype=np.int32),
            np.zeros(n, dtype=np.bool_),
            np.zeros((DEPTH, n, WIDTH), dtype=np.float32),
            np.empty((DEPTH, n), dtype=np.int32),
        )

    @property
    def near(self) -> Int32Array:
        """The nodes with any evidence."""
        return self.nodes[: self.size[0]]

    def clear(self) -> None:
        """Reset the workspace for the next source."""
        self.table[self.near] = 0.0
        self.seen[self.near] = False
        self.size[0] = 0


class Steps(NamedTuple):
    """A tree of the steps of all walks, in depth-first order; patterns share common beginnings.

    Column c of step t continues column ``parent[t, c]`` of the step it follows, counts
    degree ** −damping[t, c] where it leaves a node, and is written to column ``output[t, c]`` of
    the table (−1: to none), times ways ** −arrival[t, c].
    """

    depth: Int64Array
    forward: BoolArray
    width: Int64Array
    parent: Int64Array
    damping: Float64Array
    output: Int64Array
    arrival: Float64Array


@kernel
def push(
    indptr: Int64Array,
    targets: Int32Array,
    least: Float64Array,
    restart: float,
    source: int,
    column: int,
    room: Room,
) -> None:
    """Write the approximate personalized PageRank of a source into a column.

    The walk continues from x with probability 1 − restart, to a neighbor of x, and ends where there
    is none. The probability left unspread at x is below least[x].
    """
    n = len(indptr) - 1
    value, residual, touched = room.value, room.residual, room.touched
    queue, queued = room.queue, room.queued
    touched[0] = source
    reached = 1
    residual[source] = 1.0
    queue[0] = source
    queued[source] = True
    head, waiting = 0, 1
    while waiting > 0:
        x = queue[head]
        head = head + 1 if head + 1 < n else 0
        waiting -= 1
        queued[x] = False
        mass = residual[x]
        residual[x] = 0.0
        value[x] += restart * mass
        low, high = indptr[x], indptr[x + 1]
        if low == high:
            continue
        part = (1.0 - restart) * mass / (high - low)
        for e in range(low, high):
            y = targets[e]
            if residual[y] == 0.0 and value[y] == 0.0 and not queued[y] and y != source:
                touched[reached] = y
                reached += 1
            residual[y] += part
            if residual[y] >= least[y] and not queued[y]:
                queued[y] = True
                last = head + waiting
                queue[last if last < n else last - n] = y
                waiting += 1
    filled = room.size[0]
    for i in range(reached):
        y = touched[i]
        if value[y] > 0.0:
            room.table[y, column] = value[y]
            if not room.seen[y]:
                room.seen[y] = True
                room.nodes[filled] = y
                filled += 1
        value[y] = 0.0
        residual[y] = 0.0
    room.size[0] = filled


@kernel
def walk(ends: TwoWayRows, steps: Steps, hub: int, budget: int, source: int, room: Room) -> None:
    """Write weighted numbers of walks from a source into the columns of their patterns.

    After the first step, a walk ends at a node with more than `hub` edges to choose from. For a
    step that would follow more than `budget` edges, this limit is halved until it does not.
    """
    n = len(ends.indptr) - 1
    sums, lists = room.sums, room.lists
    counts = np.zeros(DEPTH, dtype=np.int64)
    part = np.empty(WIDTH, dtype=np.float32)
    filled = room.size[0]
    for step in range(len(steps.depth)):
        d, width = steps.depth[step], steps.width[step]
        for i in range(counts[d]):  # of the sibling before
            for c in range(WIDTH):
                sums[d, lists[d, i], c] = 0.0
        forward = steps.forward[step]
        indptr = ends.indptr if forward else ends.rev_indptr
        targets = ends.targets if forward else ends.rev_targets
        before = 1 if d == 0 else counts[d - 1]
        limit = n if d == 0 else hub
        while d > 0:
            edges = 0
            for i in range(before):
                degree = indptr[lists[d - 1, i] + 1] - indptr[lists[d - 1, i]]
                if degree <= limit:
                    edges += degree
            if edges <= budget:
                break
            limit //= 2
        found = 0
        for i in range(before):
            x = source if d == 0 else lists[d - 1, i]
            low, high = indptr[x], indptr[x + 1]
            degree = high - low
            if degree == 0 or degree > limit:
                continue
            for c in range(width):
                power = steps.damping[step, c]
                part[c] = 1.0 if d == 0 else sums[d - 1, x, steps.parent[step, c]]
                if power == 1.0:
                    part[c] /= degree
                elif power == 0.5:
                    part[c] /= np.sqrt(degree)
                elif power != 0.0:
                    part[c] /= degree**power
            for e in range(low, high):
                y = targets[e]
                if sums[d, y, 0] == 0.0:  # column 0 is positive wherever a walk arrived
                    lists[d, found] = y
                    found += 1
                sums[d, y, 0] += part[0]
                if width > 1:
                    sums[d, y, 1] += part[1]
                if width > 2:
                    sums[d, y, 2] += part[2]
        counts[d] = found
        back = ends.rev_indptr if forward else ends.indptr
        for c in range(width):
            column, arrival = steps.output[step, c], steps.arrival[step, c]
            if column < 0:
                continue
            for i in range(found):
                y = lists[d, i]
                value = sums[d, y, c]
                if arrival == 0.5:
                    value /= np.sqrt(np.float32(back[y + 1] - back[y]))
                elif arrival != 0.0:
                    value /= np.float32((back[y + 1] - back[y]) ** arrival)
                room.table[y, column] = value
                if not room.seen[y]:
                    room.seen[y] = True
                    room.nodes[filled] = y
                    filled += 1
    for d in range(DEPTH):
        for i in range(counts[d]):
            for c in range(WIDTH):
                sums[d, lists[d, i], c] = 0.0
    room.size[0] = filled


@kernel
def weigh(room: Room, weights: Float64Array, floors: Float64Array, scores: Float64Array) -> None:
    """Write the weighted terms of the local evidence of ``room.near`` to `scores`.

    The terms of a value x > 0 are 1, log(x / floor) and √x, and 0 where there is none.
    """
    for i in range(room.size[0]):
        y = room.nodes[i]
        total = 0.0
        for c in range(len(floors)):
            x = room.table[y, c]
            if x > 0.0:
                total += weights[c, 0] + weights[c, 1] * np.log(x / floors[c])
                total += weights[c, 2] * np.sqrt(x)
        scores[i] = total


@kernel
def best_of(room: Room, free: BoolArray, k: int) -> Int32Array:
    """Return the k free nodes of the largest positive values in each column, one row per column.

    Ties go to the first node; −1 where there are fewer than k.
    """
    columns = room.table.shape[1]
    best = np.full((columns, k), -1, dtype=np.int32)
    value = np.zeros((columns, k), dtype=np.float32)  # of `best`, largest first
    for i in range(room.size[0]):
        y = room.nodes[i]
        if not free[y]:
            continue
        for c in range(columns):
            x = room.table[y, c]
            if x <= value[c, k - 1]:  # most nodes: a pass over the table instead of a sort
                continue
            at = k - 1
            while at > 0 and x > value[c, at - 1]:
                value[c, at], best[c, at] = value[c, at - 1], best[c, at - 1]
                at -= 1
            value[c, at], best[c, at] = x, y
    return best
