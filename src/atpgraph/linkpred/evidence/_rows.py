"""Compiled rows of local evidence: what a walk of a few steps, or a push, finds from one source.

Both kernels write the rows of several sources one behind the other, as the entries of a CSR matrix,
and stop when the next row might not fit. A workspace belongs to one thread.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atpgraph.util.arrays import (
    BoolArray,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
    IntArray,
)
from atpgraph.util.jit import kernel


class Workspace(NamedTuple):
    """Room for one row; all zero between two calls."""

    value: Float64Array
    other: Float64Array
    touched: Int32Array
    spare: Int32Array
    queued: BoolArray

    @classmethod
    def of(cls, n: int) -> Workspace:
        """Room for a graph of n nodes."""
        return cls(
            np.zeros(n),
            np.zeros(n),
            np.empty(n, dtype=np.int32),
            np.empty(n, dtype=np.int32),
            np.zeros(n, dtype=np.bool_),
        )


@kernel
def push_rows(
    indptr: Int64Array,
    targets: Int32Array,
    sources: Int64Array,
    restart: float,
    least: Float64Array,
    value: Float64Array,
    residual: Float64Array,
    touched: Int32Array,
    queue: Int32Array,
    queued: BoolArray,
    ends: Int64Array,
    nodes: Int32Array,
    values: FloatArray,
) -> int:
    """Approximate personalised PageRank of each source; returns how many sources were done.

    The walk goes on from x with probability 1 − restart, to a neighbour of x, and ends where there
    is none. What is left unspread at x is below least[x].
    """
    n = len(indptr) - 1
    filled = 0
    for at in range(len(sources)):
        if len(nodes) - filled < n:
            return at
        source = sources[at]
        touched[0] = source
        seen = 1
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
                    touched[seen] = y
                    seen += 1
                residual[y] += part
                if residual[y] >= least[y] and not queued[y]:
                    queued[y] = True
                    last = head + waiting
                    queue[last if last < n else last - n] = y
                    waiting += 1
        for i in range(seen):
            y = touched[i]
            if value[y] > 0.0:
                nodes[filled] = y
                values[filled] = value[y]
                filled += 1
            value[y] = 0.0
            residual[y] = 0.0
        ends[at] = filled
    return len(sources)


@kernel
def walk_rows(
    out_indptr: Int64Array,
    out_targets: Int32Array,
    in_indptr: Int64Array,
    in_targets: Int32Array,
    forward: BoolArray,
    damping: Float64Array,
    factor: Float64Array,
    hub: int,
    budget: int,
    sources: Int64Array,
    value: Float64Array,
    fresh: Float64Array,
    here: Int32Array,
    there: Int32Array,
    queued: BoolArray,
    ends: Int64Array,
    nodes: Int32Array,
    values: FloatArray,
) -> int:
    """Weighted numbers of walks from each source; returns how many sources were done.

    Step s follows edges forward or backward. A walk that stands at a node with d edges to choose
    from counts d ** −damping[s]; after the first step it ends where d exceeds `hub`, or what is
    left of it when it is halved until a step follows no more than `budget` edges. What arrives at y
    counts factor[y].
    """
    n = len(out_indptr) - 1
    filled = 0
    for at in range(len(sources)):
        if len(nodes) - filled < n:
            return at
        here[0] = sources[at]
        value[sources[at]] = 1.0
        count = 1
        for step in range(len(forward)):
            indptr = out_indptr if forward[step] else in_indptr
            targets = out_targets if forward[step] else in_targets
            limit = n if step == 0 else hub
            while step > 0:
                edges = 0
                for i in range(count):
                    degree = indptr[here[i] + 1] - indptr[here[i]]
                    if degree <= limit:
                        edges += degree
                if edges <= budget:
                    break
                limit //= 2
            found = 0
            for i in range(count):
                x = here[i]
                low, high = indptr[x], indptr[x + 1]
                part = value[x]
                value[x] = 0.0
                if low == high or high - low > limit:
                    continue
                if damping[step] != 0.0:
                    part /= (high - low) ** damping[step]
                for e in range(low, high):
                    y = targets[e]
                    if not queued[y]:
                        queued[y] = True
                        there[found] = y
                        found += 1
                    fresh[y] += part
            for i in range(found):
                y = there[i]
                here[i] = y
                value[y] = fresh[y]
                fresh[y] = 0.0
                queued[y] = False
            count = found
        for i in range(count):
            y = here[i]
            nodes[filled] = y
            values[filled] = value[y] * factor[y]
            filled += 1
            value[y] = 0.0
        ends[at] = filled
    return len(sources)


@kernel
def gather(
    indptr: Int64Array,
    nodes: Int32Array,
    values: FloatArray,
    starts: Int64Array,
    targets: IntArray,
    line: Float64Array,
    found: Float64Array,
) -> None:
    """Entries of CSR rows: row i at the columns targets[starts[i] : starts[i + 1]], 0 if absent."""
    for row in range(len(indptr) - 1):
        for e in range(indptr[row], indptr[row + 1]):
            line[nodes[e]] = values[e]
        for i in range(starts[row], starts[row + 1]):
            found[i] = line[targets[i]]
        for e in range(indptr[row], indptr[row + 1]):
            line[nodes[e]] = 0.0


@kernel
def best_of(
    nodes: Int32Array,
    values: FloatArray,
    free: BoolArray,
    best: Int64Array,
    score: Float64Array,
) -> int:
    """The free nodes of the largest values, largest first, into `best`; returns how many."""
    count = 0
    for i in range(len(nodes)):
        if not free[nodes[i]]:
            continue
        if count < len(best):
            at = count
            count += 1
        elif values[i] > score[count - 1]:
            at = count - 1
        else:
            continue
        while at > 0 and score[at - 1] < values[i]:
            best[at], score[at] = best[at - 1], score[at - 1]
            at -= 1
        best[at], score[at] = nodes[i], values[i]
    return count
