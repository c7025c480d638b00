"""Exact paths of a few nodes of a large graph, by sweeps over its edges."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from atpgraph._threads import Workers
from atpgraph._typing import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.closure._positions import Positions
from atpgraph.closure.panel import COLUMNS, Panel
from atpgraph.closure.sketch import turned
from atpgraph.graph.digraph import DiGraph


class SweptPaths:
    """Answers what :class:`~atpgraph.closure.PathSampler` does, exactly, without a closure forest.

    A sweep over the edges serves 512 nodes: for thousands of questions, not for millions.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles.
    levels : int32 array
        Those of the graph.
    sizes : int64 array
        Number of descendants of every node, estimated where it is large.

    Examples
    --------
    >>> from atpgraph.hierarchy import levels
    >>> dag = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> paths = SweptPaths(dag, levels(dag), np.array([3, 2, 1, 0]))
    >>> paths.joined(np.array([0, 2]), np.array([3, 1])).tolist()
    [True, False]
    >>> [found.tolist() for found in paths.reached(np.array([1, 2]))]
    [[2, 3], [3]]
    """

    def __init__(self, dag: DiGraph, levels: Int32Array, sizes: Int64Array) -> None:
        self._dag, self._levels, self.sizes = dag, levels, sizes

    @cached_property
    def _back(self) -> Positions:
        return Positions.of(self._dag.reverse(), turned(self._levels))

    def _panels(self, nodes: IntArray) -> Iterator[Panel]:
        with Workers(1) as workers:
            for first in range(0, len(nodes), COLUMNS):
                yield Panel(self._back, nodes[first : first + COLUMNS], workers)

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
            sizes = panel.sizes()
            places = np.full((len(sizes), count), -1, dtype=np.int64)
            for at, size in enumerate(sizes.tolist()):
                some = np.arange(size) if size <= count else rng.choice(size, count, replace=False)
                places[at, : len(some)] = some
            order = np.argsort(places, axis=1)
            found = np.empty(places.shape, dtype=np.int32)
            np.put_along_axis(
                found, order, panel.pick(np.take_along_axis(places, order, axis=1)), axis=1
            )
            targets.append(found[places >= 0])
            sources.append(np.repeat(panel.columns, np.minimum(sizes, count)))
        return np.concatenate(sources), np.concatenate(targets)

    def joined(self, u: IntArray, v: IntArray) -> BoolArray:
        """Whether a path leads from each `u` to its `v`."""
        answer = np.zeros(len(u), dtype=np.bool_)
        sources, place = np.unique(u, return_inverse=True)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(0, len(sources) + COLUMNS, COLUMNS))
        for at, panel in enumerate(self._panels(sources)):
            asked = order[ends[at] : ends[at + 1]]
            answer[asked] = panel.joined(v[asked], u[asked])
        return np.asarray(answer & (np.asarray(u) != v))
