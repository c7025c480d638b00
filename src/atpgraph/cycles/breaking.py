"""Break the cycles of a graph."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from atpgraph.cycles.methods import METHODS, Workspace
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array, Int64Array, IntArray
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import interruptible


@dataclass(frozen=True, eq=False)
class CycleBreak:
    """A graph with its cycles broken.

    Attributes
    ----------
    method : str
        The method that chose the edges, also where "auto" was asked for.
    graph : DiGraph
        The graph as it was.
    removed : int64 array
        Indices of the removed edges in `graph`, self-loops included.
    scores : float64 array
        The score that condemned each removed edge: how far it goes down in the units of the
        method's node score; votes; the probability of pointing down for ``"bayes"`` (where it
        falls back on ``"sa-g"``, the score of that); infinity for a self-loop.
    timings : dict
        Seconds by stage.
    """

    method: str
    graph: DiGraph
    removed: Int64Array
    scores: Float64Array
    timings: dict[str, float]

    @cached_property
    def dag(self) -> DiGraph:
        """The same nodes without the removed edges; acyclic."""
        return self.graph.without_edges(self.removed)

    @property
    def removed_edges(self) -> list[tuple[Any, Any]]:
        """The removed edges as pairs of labels."""
        sources, targets = self.graph.edge_labels(self.removed)
        return list(zip(sources.tolist(), targets.tolist(), strict=True))

    @property
    def removed_graph(self) -> DiGraph:
        """The removed edges as a graph of all nodes, weighted by their scores.

        A self-loop, whose score is infinite, weighs one more than the worst of the others.

        Examples
        --------
        >>> broken = CycleBreaker(DiGraph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)])).run("dfs")
        >>> list(broken.removed_graph.edges()) == broken.removed_edges
        True
        """
        finite = np.isfinite(self.scores)
        worst = self.scores[finite].max() + 1.0 if finite.any() else 1.0
        kept = np.zeros(self.graph.n_edges, dtype=np.bool_)
        kept[self.removed] = True
        weights = np.where(finite, self.scores, worst)
        return replace(self.graph.keep_edges(kept), weights=weights)

    def agreement(self, truth: IntArray) -> Agreement:
        """Compare the removed edges with those of the indices in `truth`."""
        hits = len(np.intersect1d(self.removed, truth))
        precision = hits / len(self.removed) if len(self.removed) else 0.0
        recall = hits / len(truth) if len(truth) else 0.0
        both = precision + recall
        return Agreement(precision, recall, 2.0 * precision * recall / both if both else 0.0)


@dataclass(frozen=True)
class Agreement:
    """How well the removed edges match the ones that should go."""

    precision: float
    recall: float
    f1: float


class CycleBreaker:
    """Several methods on one graph, sharing what they have in common.

    Parameters
    ----------
    graph : DiGraph
    random_state : int, Generator or None
        Seed of all draws: the order of TrueSkill matches and ties. Each method has draws of its
        own, so its result does not depend on which others ran.

    Examples
    --------
    >>> breaker = CycleBreaker(DiGraph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)]))
    >>> [breaker.run(method).removed_edges for method in ("sa-g", "ts-g")]
    [[(2, 0)], [(2, 0)]]
    """

    def __init__(self, graph: DiGraph, random_state: RandomState = 0) -> None:
        self.graph = graph
        self._space = Workspace(graph, int(generator(random_state).integers(2**63)))

    @property
    def agony(self) -> int:
        """Minimum social agony of the graph."""
        return self._space.agony.value

    def run(self, method: str) -> CycleBreak:
        """Break the cycles by one method, or by the one that "auto" stands for here."""
        if method != "auto":
            METHODS[method]  # an unknown name is refused before the work
        return interruptible(self._run, method)

    def _run(self, method: str) -> CycleBreak:
        started = time.perf_counter()
        space = self._space
        edges = space.core_edges
        method = space.settle(method)
        prepared = time.perf_counter()
        condemned, core_scores = space.solve(method)
        solved = time.perf_counter()
        loops = np.flatnonzero(self.graph.sources == self.graph.targets)
        removed = np.concatenate([loops, edges[condemned]])
        scores = np.full(len(removed), np.inf)
        scores[len(loops) :] = core_scores[condemned]
        order = np.argsort(removed, kind="stable")  # at once where there are no loops
        removed, scores = removed[order], scores[order]
        timings = {"components": prepared - started, "choose": solved - prepared}
        return CycleBreak(method, self.graph, removed, scores, timings)


def break_cycles(graph: Any, method: str = "auto", *, random_state: RandomState = 0) -> CycleBreak:
    """Remove edges until the graph has no cycles.

    Parameters
    ----------
    graph : DiGraph, or anything :func:`atpgraph.as_graph` takes
    method : str
        One of ``dfs``, ``mfas``, ``eades``, ``pagerank``, ``sa-g``, ``sa-f``, ``sa-b``,
        ``sa-voting``, ``ts-g``, ``ts-f``, ``ts-b``, ``ts-voting``, ``h-voting`` (the ATP paper's),
        ``springs`` (cheap on large graphs), ``bayes`` (the most accurate on noisy hierarchies).
        ``auto`` is ``h-voting`` up to a million edges on cycles, beyond that ``springs``.
    random_state : int, Generator or None
        Seed of the draws; ties are drawn, never decided by the order of the input.

    Returns
    -------
    CycleBreak

    Examples
    --------
    >>> result = break_cycles(DiGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")]))
    >>> result.removed_edges
    [('c', 'a')]
    >>> result.dag
    DiGraph(nodes=3, edges=3, self_loops=0)
    """
    from atpgraph.graph.convert import as_graph

    return CycleBreaker(as_graph(graph), random_state).run(method)
