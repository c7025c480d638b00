"""Break the cycles of a graph."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from atpgraph.cycles.closing import closing_cycles
from atpgraph.cycles.methods import METHODS, Workspace, remove_by_edge
from atpgraph.errors import InputError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph, pair_array, weight_array
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array, IntArray
from atpgraph.util.frames import html_table
from atpgraph.util.random import RandomState, generator
from atpgraph.util.threads import interruptible


class Reason(NamedTuple):
    """Why an edge was removed.

    Attributes
    ----------
    edge : pair of labels
    confidence : float
        The score that the method gives the edge; see :attr:`CycleBreak.scores`.
    cycle : list of labels
        A shortest cycle that the edge closes with edges that stayed: the nodes in order, from the
        source of the edge, which is not repeated at the end. It is empty where the method, run as
        published, removed an edge that could stay.
    """

    edge: tuple[Any, Any]
    confidence: float
    cycle: list[Any]


@dataclass(frozen=True, eq=False)
class CycleBreak:
    """A graph with its cycles broken.

    Attributes
    ----------
    method : str
        The method that chose the edges, also if "auto" was requested.
    graph : DiGraph
        The graph as it was.
    removed : int64 array
        Indices of the removed edges in `graph`, self-loops included.
    scores : float64 array
        The confidence that each removed edge is wrong, in the units of the method: the probability
        of pointing down for ``"bayes"``, ``"sift"`` and ``"minimum"`` (if ``"bayes"`` falls back on
        ``"sa-g"``, the score of that); the number of votes for voting methods; otherwise how far
        the edge goes down by the method's node score. A self-loop has infinity.
    weight : float
        Sum of the weights of the removed edges; without weights, their number.
    lower_bound : float or None
        Lower bound on the weight of any set of edges that breaks all cycles, by ``"minimum"`` only.
    reverse : bool
        Whether `dag` contains the removed edges, reversed.
    timings : dict
        Seconds by stage.
    """

    method: str
    graph: DiGraph
    removed: Int64Array
    scores: Float64Array
    timings: dict[str, float]
    weight: float = 0.0
    lower_bound: float | None = None
    reverse: bool = False

    def __repr__(self) -> str:
        what = "reversed" if self.reverse else "removed"
        return f"CycleBreak(method={self.method!r}, {what}={len(self.removed)}, graph={self.graph})"

    @property
    def proved(self) -> bool:
        """Whether the weight of the removed edges is proven to be the least possible."""
        return bool(self.weight <= (self.lower_bound or 0.0) * (1.0 + 1e-6))

    @cached_property
    def dag(self) -> DiGraph:
        """The acyclic graph: the same nodes without the removed edges, or with these reversed."""
        dag = self.graph.without_edges(self.removed)
        if not self.reverse:
            return dag
        proper = self.graph.sources != self.graph.targets
        return dag.merged(self.graph.keep_edges(self._is_removed & proper).reverse())

    @property
    def removed_edges(self) -> list[tuple[Any, Any]]:
        """The removed edges as pairs of labels."""
        sources, targets = self.graph.edge_labels(self.removed)
        return list(zip(sources.tolist(), targets.tolist(), strict=True))

    @property
    def removed_graph(self) -> DiGraph:
        """The removed edges as a graph of all nodes, weighted by their scores.

        A self-loop, whose score is infinite, weighs one more than the highest other score.

        Examples
        --------
        >>> broken = break_cycles([(0, 1), (1, 2), (2, 0), (0, 2)], "dfs")
        >>> list(broken.removed_graph.edges()) == broken.removed_edges
        True
        """
        finite = np.isfinite(self.scores)
        worst = self.scores[finite].max() + 1.0 if finite.any() else 1.0
        weights = np.where(finite, self.scores, worst)
        return replace(self.graph.keep_edges(self._is_removed), weights=weights)

    @property
    def _is_removed(self) -> BoolArray:
        mask = np.zeros(self.graph.n_edges, dtype=np.bool_)
        mask[self.removed] = True
        return mask

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks: the edges removed with the most confidence."""
        rows = {
            f"{u} → {v}": " → ".join(map(str, [*cycle, u])) for (u, v), _, cycle in self.reasons(10)
        }
        removed = f"{len(self.removed):,} of {self.graph.n_edges:,} edges removed by {self.method}"
        return html_table(removed, rows)

    def reasons(self, most: int | None = None) -> list[Reason]:
        """Explain why edges were removed, highest confidence first.

        Parameters
        ----------
        most : int, optional
            How many edges to explain, by default all.

        Examples
        --------
        >>> break_cycles([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")]).reasons()[0].cycle
        ['c', 'a']
        """
        order = np.lexsort([self.removed, -self.scores])[:most]
        edges = self.removed[order]
        cycles = interruptible(closing_cycles, self.graph, self._is_removed, edges)
        names = self.graph.labels.tolist()
        return [
            # From the source on: the path ends there and starts at the target.
            Reason((names[u], names[v]), score, [names[i] for i in np.roll(cycle, 1).tolist()])
            for u, v, score, cycle in zip(
                self.graph.sources[edges].tolist(),
                self.graph.targets[edges].tolist(),
                self.scores[order].tolist(),
                cycles,
                strict=True,
            )
        ]

    def agreement(self, truth: IntArray) -> Agreement:
        """Compare the removed edges with the edges that `truth` lists by index."""
        hits = len(np.intersect1d(self.removed, truth))
        precision = hits / len(self.removed) if len(self.removed) else 0.0
        recall = hits / len(truth) if len(truth) else 0.0
        both = precision + recall
        return Agreement(precision, recall, 2.0 * precision * recall / both if both else 0.0)


class Agreement(NamedTuple):
    """How well the removed edges match the edges that should be removed."""

    precision: float
    recall: float
    f1: float


def _edge_costs(graph: DiGraph, weights: Any) -> Float64Array:
    """Return what removing each edge costs; see :func:`break_cycles`."""
    if isinstance(weights, str):
        if graph.weights is None:
            raise InputError(
                f"The graph has no edge weights, so {weights!r} cannot be looked up; name the "
                "column that has them, or give an array or a dictionary of costs."
            )
        costs = graph.weights
    elif isinstance(weights, Mapping):
        costs = np.ones(graph.n_edges)
        edges = edge_indices(graph, list(weights), "weights")
        costs[edges] = weight_array(list(weights.values()))
    else:
        costs = weight_array(weights)
    if len(costs) != graph.n_edges:
        raise InputError(f"The graph has {graph.n_edges} edges but there are {len(costs)} weights.")
    bad = np.flatnonzero(~(np.isfinite(costs) & (costs >= 0)))
    if len(bad):
        u, v = (ends[0] for ends in graph.edge_labels(bad[:1]))
        raise InputError(
            f"The edge {u} → {v} has the weight {costs[bad[0]]}; costs are finite and not negative."
        )
    if len(costs) and float(costs.max()) * len(costs) > 1e300:
        raise InputError(f"The weights reach {costs.max():g}, too much to add up; scale them.")
    return costs


def _kept_edges(graph: DiGraph, keep: Any) -> BoolArray:
    """Return the edges that must stay as a mask; they must not form a cycle."""
    kept = np.zeros(graph.n_edges, dtype=np.bool_)
    if isinstance(keep, np.ndarray) and keep.ndim == 1 and keep.dtype.kind in "biu":
        try:
            kept[keep] = True
        except IndexError as error:
            raise InputError(f"keep does not fit the edges of the graph: {error}.") from None
    else:
        kept[edge_indices(graph, keep, "keep")] = True
    for reason in break_cycles(graph.keep_edges(kept), "dfs").reasons(1):
        shown = " → ".join(map(str, [*reason.cycle, reason.cycle[0]]))
        raise InputError(f"The edges to keep form the cycle {shown}; leave out one of them.")
    return kept


def edge_indices(graph: DiGraph, pairs: Any, what: object) -> IntArray:
    """Return the indices of edges given as pairs of labels, a graph, a table or a file.

    All must be in `graph`; the error for a missing edge names `what` as the source.
    """
    if not isinstance(pairs, (list, tuple, set, np.ndarray)):
        listed = as_graph(pairs)
        is_file = isinstance(pairs, (str, os.PathLike))
        pairs = list((listed.named_as_in(graph) if is_file else listed).edges())
    ends = pair_array(pairs)
    u, v = (graph.codes_or_minus_one(ends[:, side]) for side in (0, 1))
    edges = graph.find_edges(u, v)
    if len(edges) and edges.min() < 0:
        at = int(edges.argmin())
        raise InputError(
            f"{what} lists the edge {ends[at, 0]} → {ends[at, 1]}, which is not in the graph."
        )
    return edges


def break_cycles(
    graph: Any,
    method: str = "auto",
    *,
    weights: Any = None,
    keep: Any = None,
    reverse: bool = False,
    time_limit: float = 10.0,
    random_state: RandomState = 0,
) -> CycleBreak:
    """Remove edges until the graph has no cycles.

    Except for the published methods (``sa-*``, ``ts-*`` and the voting methods), a final pass
    restores removed edges that close no cycle.

    Parameters
    ----------
    graph : DiGraph, or anything :func:`atpgraph.as_graph` takes
    method : str
        One of ``dfs``, ``mfas``, ``eades``, ``pagerank``, ``sa-g``, ``sa-f``, ``sa-b``,
        ``sa-voting``, ``ts-g``, ``ts-f``, ``ts-b``, ``ts-voting``, ``h-voting`` (the ATP paper's),
        ``springs`` (cheap on large graphs), ``bayes`` (probably wrong edges), ``sift`` (few edges,
        preferring those that are probably wrong), ``minimum`` (the fewest, or the least weight,
        with a proof if `time_limit` suffices). ``auto`` is ``sift`` up to 300,000 edges on
        cycles, beyond that ``springs``.
    weights : str, array or mapping, optional
        What removing each edge costs: ``"weight"`` for the weights of the graph, another name for a
        column or edge attribute to read, an array with an entry for each edge of the graph, or
        costs by pairs of labels (1 for edges without). Only
        ``mfas``, ``springs``, ``bayes``, ``sift`` and ``minimum`` take weights.
    keep : pairs of labels, a graph, a table, a file, or array of edge indices, optional
        Edges that must stay.
    reverse : bool
        Reverse the edges in ``dag`` instead of removing them, as layered layouts need.
    time_limit : float
        Seconds that ``minimum`` may spend on the proof, after the local search.
    random_state : int, Generator or None
        Seed of the random draws; ties are broken at random, never by the order of the input.

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

    The edge c → a may not go, so two others must:

    >>> edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")]
    >>> best = break_cycles(edges, "minimum", keep=[("c", "a")], weights={("b", "c"): 5})
    >>> best.removed_edges, best.weight, best.proved
    ([('a', 'b'), ('a', 'c')], 2.0, True)
    """
    named = isinstance(weights, str) and weights != "weight"
    graph = as_graph(graph, weight=weights if named else None)
    if not isinstance(time_limit, (int, float)) or not time_limit >= 0:
        raise InputError(f"time_limit is {time_limit!r}; give a number of seconds from 0.")
    weighted = method == "auto" or METHODS[method].weighted
    if weights is not None and not weighted:
        known = ", ".join(name for name in METHODS if METHODS[name].weighted)
        raise InputError(f"The method {method} ignores weights; use one of {known} or auto.")
    costs = None if weights is None else _edge_costs(graph, weights)
    kept = None if keep is None else _kept_edges(graph, keep)
    seed = int(generator(random_state).integers(2**63))
    space = Workspace(graph, seed, costs, kept, float(time_limit))
    return interruptible(_break, space, method, reverse)


def _break(space: Workspace, name: str, reverse: bool) -> CycleBreak:
    """Run a method, restore edges that may stay, and add all self-loops to the removed edges."""
    started = time.perf_counter()
    graph, edges = space.graph, space.on_cycles.edges
    method = METHODS[space.settle(name)]
    prepared = time.perf_counter()
    condemned, core_scores, bound = space.solve(method.name)
    if np.any(condemned & space.kept):
        condemned = remove_by_edge(space, condemned, core_scores, name="keep")
    if reverse or not method.as_published:
        condemned = space.restored(condemned, core_scores)
    solved = time.perf_counter()
    loops = np.flatnonzero(graph.sources == graph.targets)
    removed = np.concatenate([loops, edges[condemned]])
    scores = np.full(len(removed), np.inf)
    scores[len(loops) :] = core_scores[condemned]
    order = np.argsort(removed, kind="stable")  # at once where there are no loops
    removed, scores = removed[order], scores[order]
    timings = {"components": prepared - started, "choose": solved - prepared}
    costs = np.ones(graph.n_edges) if space.weights is None else space.weights
    weight = float(costs[removed].sum())
    if bound is not None:  # exact to a millionth of the mean weight
        bound = min(bound + float(costs[loops].sum()), weight)
    return CycleBreak(method.name, graph, removed, scores, timings, weight, bound, reverse)
