"""Strongly connected components, without recursion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph, row_bounds
from atpgraph.util.arrays import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.util.jit import NEAR, kernel, prefetch


@kernel
def tarjan(
    count: int, n: int,
    indptr: Any, targets: Any, component: Any, low: Any, stack: Any, path: Any, edge: Any,
) -> int:  # fmt: skip
    """Number the components of the nodes whose `low` is −1 from `count` on; return the next number.

    On a large graph the time is spent on memory access, so an edge reads one number only: ``low``
    of its target is −1 until that node is seen, `n` once its component is known, and in between the
    lowest number, in the order in which nodes are seen, that the node is known to reach.
    """
    clock = 0
    top = 0
    for root in range(n):
        if low[root] >= 0:
            continue
        depth = 0
        v, e, end = root, indptr[root], indptr[root + 1]
        lowest, is_root = clock, True  # of v: a root so far, it reaches no older open node
        low[v] = clock
        clock += 1
        while True:
            while e < end:
                w = targets[e]
                e += 1
                if low[w] < 0:
                    low[v] = lowest
                    path[depth] = v
                    edge[depth] = e if is_root else -1 - e
                    depth += 1
                    v, e, end = w, indptr[w], indptr[w + 1]
                    lowest, is_root = clock, True
                    low[v] = clock
                    clock += 1
                    for k in range(e, min(end, e + NEAR)):
                        prefetch(low, targets[k])
                        prefetch(indptr, targets[k])
                elif low[w] < lowest:
                    lowest, is_root = low[w], False
            if is_root:
                while top > 0 and low[stack[top - 1]] >= lowest:
                    top -= 1
                    component[stack[top]] = count
                    low[stack[top]] = n
                component[v] = count
                low[v] = n
                count += 1
                reached = n
            else:
                low[v] = lowest
                stack[top] = v
                top += 1
                reached = lowest
            if depth == 0:
                break
            depth -= 1
            v, e = path[depth], edge[depth]
            is_root = e >= 0
            if not is_root:
                e = -1 - e
            end = indptr[v + 1]
            lowest = low[v]
            if reached < lowest:
                lowest, is_root = reached, False
    return count


def strongly_connected_components(graph: DiGraph) -> Int32Array:
    """Return the number of the strongly connected component of every node.

    Components are numbered in reverse topological order.

    Examples
    --------
    >>> graph = DiGraph.from_edges([(0, 1), (1, 0), (1, 2)])
    >>> strongly_connected_components(graph).tolist()
    [1, 1, 0]
    """
    n = graph.n_nodes
    component, low, stack, path = (np.full(n + 1, -1, dtype=np.int32) for _ in range(4))
    indptr = graph.indptr.astype(np.int32 if graph.n_edges < 2**31 else np.int64)
    tarjan(0, n, indptr, graph.targets, component, low, stack, path, np.empty_like(indptr))
    return component[:n]


def cyclic_edges(graph: DiGraph) -> BoolArray:
    """Return a mask of the edges on a cycle: both ends in one component (self-loops included)."""
    component = strongly_connected_components(graph)
    return np.asarray(component[graph.sources] == component[graph.targets])


@dataclass(frozen=True, eq=False)
class CyclicCore:
    """The part of a graph that lies on cycles, without self-loops.

    `edges` and `nodes` are indices in the whole graph, ascending; node i of `graph` is
    ``nodes[i]``, and its edge e is ``edges[e]``.
    """

    edges: IntArray
    nodes: Int64Array
    graph: DiGraph


def cyclic_core(graph: DiGraph) -> CyclicCore:
    """Return the edges on cycles, and their ends.

    Examples
    --------
    >>> core = cyclic_core(DiGraph.from_edges([(7, 8), (8, 7), (8, 9), (9, 9)]))
    >>> core.edges.tolist(), core.nodes.tolist(), core.graph
    ([0, 1], [0, 1], DiGraph(nodes=2, edges=2, self_loops=0))
    """
    inside = cyclic_edges(graph) & (graph.sources != graph.targets)
    edges = np.flatnonzero(inside)
    if graph.n_edges < 2**31:
        edges = edges.astype(np.int32)
    # On a cycle every node has an edge out; a new numbering in the old order keeps rows sorted.
    nodes = np.flatnonzero(np.bincount(graph.sources[inside], minlength=graph.n_nodes))
    number = np.zeros(graph.n_nodes, dtype=np.int32)
    number[nodes] = np.arange(len(nodes), dtype=np.int32)
    bounds = row_bounds(number[graph.sources[edges]], len(nodes))
    return CyclicCore(edges, nodes, DiGraph(bounds, number[graph.targets[edges]], nodes))


def condense(graph: DiGraph) -> tuple[Int32Array, DiGraph]:
    """Return the component of every node, and the acyclic graph of the components.

    Edges of the acyclic graph go from the higher number to the lower.

    Examples
    --------
    >>> component, dag = condense(DiGraph.from_edges([(0, 1), (1, 0), (1, 2)]))
    >>> component.tolist(), list(dag.edges())
    ([1, 1, 0], [(1, 0)])
    """
    component = strongly_connected_components(graph)
    sources, targets = component[graph.sources], component[graph.targets]
    between = sources != targets
    count = int(component.max(initial=-1)) + 1
    return component, DiGraph.from_codes(sources[between], targets[between], count)
