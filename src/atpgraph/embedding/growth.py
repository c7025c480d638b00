"""Compute what new edges change in a fitted graph, and learn the vectors that they affect."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.closure import Paths, kernel_table
from atpgraph.closure.reachability import Reachability
from atpgraph.cycles.growing import GrownGraph, grow
from atpgraph.factorization import Factorization, fit_panels
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.hierarchy import levels as levels_of
from atpgraph.util.arrays import Float64Array, Int32Array, Int64Array, IntArray

# Checked on generated graphs, see benchmarks/notes/defaults.md.
NEW_ROUNDS, ROUNDS = 4, 3  # over the paths of new nodes, then over all paths that changed


@dataclass(frozen=True, eq=False)
class Growth:
    """What new edges change in a graph.

    Attributes
    ----------
    graph, removed, dag, levels
        As after a fit, with the old nodes first.
    new : int64 array
        The new nodes.
    sources, targets : int64 arrays
        Nodes that have more descendants, and more ancestors, than before; new ones included.
    """

    graph: DiGraph
    removed: Int64Array
    dag: DiGraph
    levels: Int32Array
    new: Int64Array
    sources: Int64Array
    targets: Int64Array

    @classmethod
    def of(
        cls,
        graph: DiGraph,
        removed: IntArray,
        levels: Int32Array,
        edges: Any,
        nodes: Iterable[Hashable] = (),
    ) -> Growth:
        """Add edges and nodes to a graph whose cycles are broken."""
        grown = grow(graph, removed, levels, _as_graph(edges, nodes))
        dag = grown.dag
        sources, targets = _opening(graph, graph.without_edges(removed), grown)
        new = np.arange(graph.n_nodes, grown.graph.n_nodes)
        return cls(
            grown.graph,
            grown.removed,
            dag,
            levels_of(dag),
            new,
            np.union1d(reachable(dag.reverse(), sources), new),
            np.union1d(reachable(dag, targets), new),
        )


def learn_changes(model: Any, growth: Growth, paths: Paths, table: Float64Array) -> Factorization:
    """Learn the vectors of new nodes, then of all nodes whose paths changed, in a few rounds.

    New nodes come first, on their own: as some among many they would learn little in so few rounds.
    """
    k = model.source_.shape[1]
    blank = np.zeros((len(growth.new), k), dtype=np.float32)
    start = np.concatenate([model.source_, blank]), np.concatenate([model.target_, blank])
    fit = Factorization(*start, np.zeros(0), 0, True, model.margin_)
    for nodes, rounds in (
        ((growth.new, growth.new), NEW_ROUNDS),
        ((growth.sources, growth.targets), ROUNDS),
    ):
        if any(map(len, nodes)):
            fit = fit_panels(
                *paths.sides, growth.levels, table, start=(fit.source, fit.target), rows=nodes,
                n_components=k, max_iter=rounds, regularization=model.settings_.regularization,
                n_jobs=model.n_jobs, random_state=model.random_state,
            )  # fmt: skip
    return fit


def longer_table(table: Float64Array, kernel: Any, n_levels: int) -> Float64Array:
    """Return the kernel's values up to a new highest level.

    A kernel that the model file could not store (None) continues with its last value.
    """
    if n_levels <= len(table):
        return table
    if kernel is None:
        last = table[-1:] if len(table) > 1 else np.ones(1)
        return np.concatenate([table, np.repeat(last, n_levels - len(table))])
    return kernel_table(kernel, n_levels)


def _opening(graph: DiGraph, dag: DiGraph, grown: GrownGraph) -> tuple[Int64Array, Int64Array]:
    """Return the ends of the new edges that open paths, where there was none before."""
    edges = np.setdiff1d(grown.new_edges, grown.removed, assume_unique=True)
    sources = grown.graph.sources[edges].astype(np.int64)
    targets = grown.graph.targets[edges].astype(np.int64)
    known = (sources < graph.n_nodes) & (targets < graph.n_nodes)
    joined = np.zeros(len(edges), dtype=np.bool_)
    joined[known] = Reachability(dag, index=False).reaches(
        graph.labels[sources[known]], graph.labels[targets[known]]
    )
    return sources[~joined], targets[~joined]


def _as_graph(edges: Any, nodes: Iterable[Hashable]) -> DiGraph:
    listed = list(nodes)
    if isinstance(edges, (list, tuple)) and not edges:
        return DiGraph.from_edges([], nodes=listed)
    more = as_graph(edges)
    known = set(more.labels.tolist())
    fresh = [label for label in dict.fromkeys(listed) if label not in known]
    if not fresh:
        return more
    labels = [*more.labels.tolist(), *fresh]
    return DiGraph.from_edges(list(more.edges()), weights=more.weights, nodes=labels)
