"""Exact paths of a few nodes of a large graph, by sweeps over its edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from atpgraph.closure._positions import Positions
from atpgraph.closure.panel import COLUMNS, Panel
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.util.threads import Workers

_AT_ONCE = 2 * COLUMNS


class SweptPaths:
    """Answers what :class:`~atpgraph.closure.PathSampler` does, exactly, without a closure forest.

    A sweep over the edges serves 512 nodes, and two run at a time: for thousands of questions, not
    for millions.

    Parameters
    ----------
    back : Positions
        A graph without cycles, turned round.
    sizes : int64 array
        Number of descendants of every node, estimated where it is large.
    n_jobs : int, optional
        Threads; by default all cores.

    Examples
    --------
    >>> from atpgraph.graph import DiGraph
    >>> dag = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> paths = SweptPaths(Positions.of(dag.reverse()), np.array([3, 2, 1, 0]))
    >>> paths.joined(np.array([0, 2]), np.array([3, 1])).tolist()
    [True, False]
    >>> [found.tolist() for found in paths.reached(np.array([1, 2]))]
    [[2, 3], [3]]
    """

    def __init__(self, back: Positions, sizes: Int64Array, n_jobs: int | None = None) -> None:
        self._back, self.sizes, self._n_jobs = back, sizes, n_jobs

    def _panels(self, nodes: IntArray) -> Iterator[Panel]:
        room = None
        with Workers(self._n_jobs) as workers:
            for first in range(0, len(nodes), _AT_ONCE):
                panel = Panel(self._back, nodes[first : first + _AT_ONCE], workers, room)
                room = panel.bits
                yield panel

    def reached(self, nodes: IntArray) -> Iterator[Int32Array]:
        """The descendants of each node, ascending; each node may be there once."""
        for panel in self._panels(nodes):
            for at in range(len(panel.columns)):
                yield panel.reaching(at)

    def draw(self, nodes: Int32Array, count: int, seed: np.uint64) -> tuple[Int32Array, Int32Array]:
        """Up to `count` descendants of each node, each as likely, as pairs in their order."""
        rng = np.random.default_rng(int(seed))
        sources, targets = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
        for panel in self._panels(nodes):
            found = panel.draw(count, rng)
            targets.append(found[found >= 0])
            sources.append(np.repeat(panel.columns, (found >= 0).sum(axis=1)))
        return np.concatenate(sources), np.concatenate(targets)

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path leads from each `u` to its `v`."""
        answer = np.zeros(len(u), dtype=np.bool_)
        sources, place = np.unique(u, return_inverse=True)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(0, len(sources) + _AT_ONCE, _AT_ONCE))
        for at, panel in enumerate(self._panels(sources)):
            asked = order[ends[at] : ends[at + 1]]
            answer[asked] = panel.joined(v[asked], u[asked])
        return np.asarray(answer & (np.asarray(u) != v))
