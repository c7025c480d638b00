"""Compute what new edges change in a fitted graph, and learn the vectors that they affect."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from atpgraph.closure import Paths, collect_paths, kernel_table
from atpgraph.closure.reachability import Reachability
from atpgraph.cycles.growing import GrownGraph, grow
from atpgraph.factorization import Descent, Factorization, fit_panels
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import reachable
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import Float64Array, Int64Array

# Checked on generated graphs, see benchmarks/notes/defaults.md.
NEW_ROUNDS, ROUNDS = 1, 3  # over the paths of new nodes, then over all paths that changed
# A round draws for all nodes, which costs more than letting a few of them learn several times.
DESCENT = Descent(passes=4, averaged=0.7, settled=40.0)


class Growth(NamedTuple):
    """What new edges change in a graph."""

    graph: DiGraph  # the old nodes come first
    removed: Int64Array
    paths: Paths
    new: Int64Array  # the new nodes
    changed: tuple[Int64Array, Int64Array]  # nodes with more descendants, more ancestors; new ones


def grown(model: Any, edges: Any, nodes: Iterable[Hashable] = ()) -> Growth:
    """Add edges and nodes to the graph of a model, whose cycles are broken."""
    old: DiGraph = model.graph_
    found = grow(old, model.removed_, model.levels_, _as_graph(edges, nodes))
    dag = found.dag
    sources, targets = _opening(old, model.dag_, found)
    new = np.arange(old.n_nodes, found.graph.n_nodes)
    changed = reachable(dag.reverse(), sources), reachable(dag, targets)
    paths = collect_paths(dag, levels(dag), model.n_jobs)
    # Where the level changed, so did the scores of the paths, even if there are no new ones.
    moved = np.flatnonzero(paths.levels[: old.n_nodes] != model.levels_)
    above, below = (np.union1d(each, np.append(moved, new)) for each in changed)
    return Growth(found.graph, found.removed, paths, new, (above, below))


def learn_changes(model: Any, growth: Growth, table: Float64Array) -> Factorization:
    """Learn the vectors of new nodes, then of all nodes whose paths changed, in a few rounds.

    New nodes come first, on their own: as some among many they would learn little in so few rounds.
    """
    k = model.source_.shape[1]
    blank = np.zeros((len(growth.new), k), dtype=np.float32)
    start = np.concatenate([model.source_, blank]), np.concatenate([model.target_, blank])
    if model.zero_:
        start[0][:, -2] += np.float32(model.zero_)
    fit = Factorization(*start, np.zeros(0), 0, True, model.margin_)
    for nodes, rounds in (((growth.new, growth.new), NEW_ROUNDS), (growth.changed, ROUNDS)):
        if any(map(len, nodes)):
            fit = fit_panels(
                growth.paths, table, start=(fit.source, fit.target), rows=nodes, n_components=k,
                descent=DESCENT, max_iter=rounds, regularization=model.settings_.regularization,
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
