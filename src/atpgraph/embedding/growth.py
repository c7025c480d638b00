"""Vectors for new nodes and edges: solve for one node, or for all that new edges affect."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import minimize, nnls

from atpgraph.closure import Paths, collect_paths, kernel_table
from atpgraph.closure.reachability import Reachability
from atpgraph.cycles.growing import GrownGraph, grow
from atpgraph.factorization import Descent, Options, Start, fit_panels
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import AnyArray, Float64Array, FloatArray, Int64Array, IntArray

_NEGATIVES = 4  # of each kind, uniform and popular, that a path meets while vectors are learned
_LEAST_RIDGE = 1e-6


class FoldIn:
    """Vectors of new nodes of a fitted :class:`~atpgraph.ATP`."""

    def __init__(self, model: Any) -> None:
        self._dag, self._levels, table = model.dag_, model.levels_, model.kernel_table_
        vectors, settings = (model.source_, model.target_), model.settings_
        self._rows: LearnedRows | NnlsRows
        if settings.purpose == "reachability":
            paths = collect_paths(self._dag, self._levels, model.n_jobs)
            margin = model.margin_ + model.zero_
            self._rows = LearnedRows(vectors, paths, margin, settings.regularization)
        else:
            self._rows = NnlsRows(vectors, settings.zero_weight, settings.regularization)
        # A new node can be one level above all others: the table may end one short.
        self._table = np.append(table, table[-1]) if len(table) > 1 else np.array([0.0, 1.0])
        self._table = self._table - model.zero_  # how much lower all scores are

    def source(self, out_edges: IntArray, in_edges: IntArray) -> FloatArray:
        """Return the source vector of a node with edges to `out_edges` and from `in_edges`."""
        # Ancestors matter only if they are descendants too, and those are at least as high.
        lowest = int(self._levels[out_edges].min(initial=np.iinfo(np.int32).max))
        ancestors = reachable(self._dag.reverse(), in_edges, within=self._levels >= lowest)
        return self._source_of(out_edges, ancestors, self._level(in_edges))

    def vectors(self, out_edges: IntArray, in_edges: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return both vectors of a node with edges to `out_edges` and from `in_edges`."""
        ancestors = reachable(self._dag.reverse(), in_edges)
        here = self._level(in_edges)
        target = self._rows.solve(1, ancestors, self._scores(here - self._levels[ancestors]))
        return self._source_of(out_edges, ancestors, here), target

    def _level(self, in_edges: IntArray) -> int:
        return 1 + int(self._levels[in_edges].max(initial=0))

    def _source_of(self, out_edges: IntArray, ancestors: IntArray, here: int) -> FloatArray:
        reached = reachable(self._dag, out_edges)
        descendants = np.setdiff1d(reached, ancestors, assume_unique=True)
        # What it reaches is at least one level above it.
        climbs = np.clip(self._levels[descendants] - here, 1, None)
        return self._rows.solve(0, descendants, self._scores(climbs))

    def _scores(self, climbs: AnyArray) -> Float64Array:
        return np.asarray(self._table[np.minimum(climbs, len(self._table) - 1)])


class LearnedRows:
    """Solve :func:`~atpgraph.factorization.fit_panels` for single vectors, all others fixed.

    The fit draws pairs at random; here all are summed: every path of the new node, and every other
    node with the weight with which it would be drawn. The sum is convex in one vector.
    """

    def __init__(
        self, vectors: tuple[FloatArray, FloatArray], paths: Paths, margin: float, penalty: float
    ) -> None:
        self._vectors = [x.astype(np.float32, copy=False) for x in vectors]
        self._margin, self._ridge = margin, max(penalty, _LEAST_RIDGE)
        # Paths that each node draws in a round, and each of its paths' share of them.
        ahead = paths.sides[0]
        self._drawn = np.minimum(ahead.sizes, Descent.draws).astype(np.float64)
        self._share = self._drawn / np.maximum(ahead.sizes, 1)
        self._popularity = ahead.popularity
        self._uniform = 1.0 / max(int(np.count_nonzero(ahead.popularity)), 1)

    def solve(self, side: int, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return the source vector (side 0) of a node with these descendants and their scores
        f(Δ), or the target vector (side 1) of a node with these ancestors.

        Minimizes Σ_columns w (⟨x, t⟩ − f)² + Σ_others o max(⟨x, t⟩ + margin, 0)² + λ‖x‖².
        """
        vectors = self._vectors[1 - side]
        if side == 0:
            weights = np.ones(len(columns))
            others = _NEGATIVES * len(columns) * (self._uniform + self._popularity)
        else:
            weights = self._share[columns]
            popularity = weights.sum() / max(self._drawn.sum(), 1.0)
            others = _NEGATIVES * (self._uniform + popularity) * self._drawn
        k = vectors.shape[1]
        x, constant = np.zeros(k), k - 1 - side
        if k >= 3:  # the component that faces the biases is 1
            x[constant] = 1.0
        if k >= 3 and not len(columns):
            # A node without any path scores none, like the fitted ones.
            highest = max(float(vectors[:, constant].max(initial=0.0)), 0.0)
            x[k - 2 + side] = -self._margin - highest
            return x.astype(np.float32)
        listed = vectors[columns].astype(np.float64)
        others[columns] = 0.0
        ridge = self._ridge * max(float(weights.sum()), 1.0)
        gram = (weights[:, None] * listed).T @ listed + ridge * np.eye(k)
        right = listed.T @ (weights * values)

        def loss(x: Float64Array) -> tuple[float, Float64Array]:
            excess = np.maximum(vectors @ x.astype(np.float32) + self._margin, 0)
            pushed = others * excess.astype(np.float64)
            slope = gram @ x - right + pushed.astype(np.float32) @ vectors
            return float(x @ gram @ x - 2 * right @ x + pushed @ excess), 2 * slope

        fixed = [(1.0, 1.0) if k >= 3 and c == constant else (None, None) for c in range(k)]
        found = minimize(loss, x, jac=True, method="L-BFGS-B", bounds=fixed)
        return np.asarray(found.x, dtype=np.float32)


class NnlsRows:
    """Solve :func:`~atpgraph.factorization.factorize` for single vectors, all others fixed.

    Examples
    --------
    >>> targets = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> rows = NnlsRows((targets, targets), zero_weight=0.0, penalty=0.0)
    >>> rows.solve(0, np.array([0, 1]), np.array([3.0, 4.0])).round(6).tolist()
    [3.0, 2.0]
    """

    def __init__(
        self, vectors: tuple[FloatArray, FloatArray], zero_weight: float, penalty: float
    ) -> None:
        self._vectors, self._zero_weight, self._penalty = vectors, zero_weight, penalty

    @cached_property
    def _grams(self) -> list[Float64Array]:
        return [wide.T @ wide for wide in (x.astype(np.float64) for x in self._vectors)]

    def solve(self, side: int, columns: IntArray, values: Float64Array) -> FloatArray:
        """Return a vector, as :meth:`LearnedRows.solve` does.

        Minimizes xᵀHx − 2 bᵀx over x ≥ 0 as non-negative least squares with the root of H.
        """
        vectors = self._vectors[1 - side]
        k = vectors.shape[1]
        if not len(columns):
            return np.zeros(k, dtype=vectors.dtype)
        listed = vectors[columns].astype(np.float64)
        matrix = (1.0 - self._zero_weight) * (listed.T @ listed)
        matrix += self._zero_weight * self._grams[1 - side]
        ridge = self._penalty * len(columns) + 1e-10 * max(float(np.trace(matrix)), 1e-300)
        root = np.linalg.cholesky(matrix + ridge * np.eye(k)).T
        right = scipy.linalg.solve_triangular(root, listed.T @ values, trans="T")
        return np.asarray(nnls(root, right)[0], dtype=vectors.dtype)


# Checked on generated graphs, see benchmarks/notes/defaults.md.
ROUNDS = 3  # the last one with hard negatives
# A round draws for all nodes, which costs more than letting a few of them learn several times.
DESCENT = Descent(passes=3, averaged=0.7, hard=256, hard_rounds=0.34)


class Grown(NamedTuple):
    """A model with new edges."""

    graph: DiGraph  # the old nodes come first
    removed: Int64Array
    paths: Paths
    table: Float64Array  # f(Δ) up to the new highest level
    vectors: list[FloatArray]


def grown(model: Any, edges: Any, nodes: Iterable[Hashable] = ()) -> Grown:
    """Add edges and nodes to the graph of a model; learn the vectors of the nodes they affect.

    The vectors of new nodes are learned first, on their own: among many others they would learn
    little in a few rounds. Then follow all nodes whose paths, or their target scores, have changed.
    """
    old: DiGraph = model.graph_
    more = _as_graph(edges, nodes)
    if isinstance(edges, (str, os.PathLike)):
        more = more.named_as_in(old)
    found = grow(old, model.removed_, model.levels_, more)
    dag = found.dag
    paths = collect_paths(dag, levels(dag), model.n_jobs)
    table, highest = model.kernel_table_, int(paths.levels.max(initial=1))
    if highest > len(table) and model.kernel is None:  # a function that no model file can store
        table = np.pad(table if len(table) > 1 else [0.0, 1.0], (0, highest), "edge")[:highest]
    elif highest > len(table):
        table = kernel_table(model.kernel, highest)
    new = np.arange(old.n_nodes, found.graph.n_nodes)
    # Where the level changed, so did the scores of the paths, even if there are no new ones.
    moved = np.append(np.flatnonzero(paths.levels[: old.n_nodes] != model.levels_), new)
    sources, targets = _opening(old, model.dag_, found)
    above = np.union1d(reachable(dag.reverse(), sources), moved)
    below = np.union1d(reachable(dag, targets), moved)
    vectors = [model.source_, model.target_]
    if len(above) or len(below):
        options = Options(
            n_components=model.source_.shape[1], regularization=model.settings_.regularization,
            max_iter=ROUNDS, n_jobs=model.n_jobs, random_state=model.random_state,
        )  # fmt: skip
        losses = model.objective_
        # A node whose paths fit as well as those of the first model did has few new ones.
        descent = replace(DESCENT, fits=losses[-1] if len(losses) else 0.0)
        start = Start(vectors[0], vectors[1], above, below, float(losses.sum()), float(model.zero_))
        fit = fit_panels(paths, table, options, descent=descent, start=start)
        vectors = [fit.source, fit.target]
        if model.zero_:
            fit.source[:, -2] -= np.float32(model.zero_)
    return Grown(found.graph, found.removed, paths, table, vectors)


def _opening(graph: DiGraph, dag: DiGraph, grown: GrownGraph) -> tuple[Int64Array, Int64Array]:
    """Return the ends of the new edges that join nodes without an earlier path between them."""
    edges = np.setdiff1d(grown.new_edges, grown.removed, assume_unique=True)
    sources = grown.graph.sources[edges].astype(np.int64)
    targets = grown.graph.targets[edges].astype(np.int64)
    known = (sources < graph.n_nodes) & (targets < graph.n_nodes)
    joined = np.zeros(len(edges), dtype=np.bool_)
    without_index = Reachability(dag, index=False)
    joined[known] = without_index.reaches_codes(sources[known], targets[known])
    return sources[~joined], targets[~joined]


def _as_graph(edges: Any, nodes: Iterable[Hashable]) -> DiGraph:
    alone = DiGraph.from_edges([], nodes=dict.fromkeys(nodes))
    if isinstance(edges, (list, tuple)) and not edges:
        return alone
    return as_graph(edges).merged(alone)
