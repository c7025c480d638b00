"""Strongly connected components, without recursion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph._jit import kernel
from atpgraph._typing import BoolArray, Int32Array, Int64Array, IntArray
from atpgraph.graph.digraph import DiGraph


@kernel
def tarjan(
    n: int, indptr: Any, targets: Any, component: Any, low: Any, stack: Any, path: Any, edge: Any
) -> int:
    """Write the component of each of `n` nodes into `component`; return how many there are.

    Components are numbered in reverse topological order: an edge between two of them goes from
    the higher number to the lower. The other arrays are scratch of at least `n` entries.
    """
    for v in range(n):
        component[v] = -1
        low[v] = -1
    count = 0
    clock = 0
    top = 0
    for root in range(n):
        if low[root] >= 0:
            continue
        depth = 0
        path[0] = root
        edge[root] = indptr[root]
        low[root] = clock
        clock += 1
        while depth >= 0:
            v = path[depth]
            e = edge[v]
            # component[v]: −1 a root so far, −2 not a root (an older open node is reachable).
            end = indptr[v + 1]
            opened = False
            while e < end:
                w = targets[e]
                if low[w] < 0:
                    edge[v] = e  # looked at again afterwards, to take over low[w]
                    depth += 1
                    path[depth] = w
                    edge[w] = indptr[w]
                    low[w] = clock
                    clock += 1
                    opened = True
                    break
                if component[w] < 0 and low[w] < low[v]:
                    low[v] = low[w]
                    component[v] = -2
                e += 1
            if opened:
                continue
            depth -= 1
            if component[v] == -2:
                stack[top] = v
                top += 1
            else:
                while top > 0 and low[stack[top - 1]] >= low[v]:
                    top -= 1
                    component[stack[top]] = count
                component[v] = count
                count += 1
    return count


def strongly_connected_components(graph: DiGraph) -> Int32Array:
    """Number of the strongly connected component of every node.

    Components are numbered in reverse topological order.

    Examples
    --------
    >>> graph = DiGraph.from_edges([(0, 1), (1, 0), (1, 2)])
    >>> strongly_connected_components(graph).tolist()
    [1, 1, 0]
    """
    n = graph.n_nodes
    component, low, stack, path = (np.empty(n, dtype=np.int32) for _ in range(4))
    edge = np.empty(n, dtype=np.int64)
    tarjan(n, graph.indptr, graph.targets, component, low, stack, path, edge)
    return component


def cyclic_edges(graph: DiGraph) -> BoolArray:
    """True for the edges that lie on a cycle: both ends in one component (self-loops too)."""
    inside = np.empty(graph.n_edges, dtype=np.bool_)
    component = strongly_connected_components(graph)
    _mark_inside(graph.indptr, graph.targets, component, inside)
    return inside


@kernel
def _mark_inside(indptr: Any, targets: Any, component: Any, inside: Any) -> None:
    for u in range(len(component)):
        for e in range(indptr[u], indptr[u + 1]):
            inside[e] = component[targets[e]] == component[u]


@dataclass(frozen=True, eq=False)
class CyclicCore:
    """What lies on cycles, self-loops apart.

    Attributes
    ----------
    edges, nodes : integer arrays
        Their indices in the whole graph, ascending.
    graph : DiGraph
        The same as a graph: node i of it is ``nodes[i]``, edge e is ``edges[e]``.
    """

    edges: IntArray
    nodes: Int64Array
    graph: DiGraph


def cyclic_core(graph: DiGraph) -> CyclicCore:
    """The edges on cycles, and their ends.

    Examples
    --------
    >>> core = cyclic_core(DiGraph.from_edges([(7, 8), (8, 7), (8, 9), (9, 9)]))
    >>> core.edges.tolist(), core.nodes.tolist(), core.graph
    ([0, 1], [0, 1], DiGraph(nodes=2, edges=2, self_loops=0))
    """
    inside = cyclic_edges(graph)
    degree = np.zeros(graph.n_nodes, dtype=np.int64)
    _leave_out_loops(graph.indptr, graph.targets, inside, degree)
    edges = np.flatnonzero(inside)
    if graph.n_edges < 2**31:
        edges = edges.astype(np.int32)
    del inside
    # On a cycle every node has an edge out; a new numbering in the old order keeps rows sorted.
    nodes = np.flatnonzero(degree)
    number = np.zeros(graph.n_nodes, dtype=np.int32)
    number[nodes] = np.arange(len(nodes), dtype=np.int32)
    indptr = np.zeros(len(nodes) + 1, dtype=np.int64)
    np.cumsum(degree[nodes], out=indptr[1:])
    return CyclicCore(edges, nodes, DiGraph(indptr, number[graph.targets[edges]], nodes))


@kernel
def _leave_out_loops(indptr: Any, targets: Any, inside: Any, degree: Any) -> None:
    """Take self-loops out of the edges marked, and count those of every node."""
    for u in range(len(degree)):
        for e in range(indptr[u], indptr[u + 1]):
            if targets[e] == u:
                inside[e] = False
            elif inside[e]:
                degree[u] += 1


def condense(graph: DiGraph) -> tuple[Int32Array, DiGraph]:
    """The component of every node, and the acyclic graph of the components.

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
