"""Strongly connected components, without recursion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, ByteArray, Int32Array, Int64Array, IntArray
from atpgraph.util.jit import kernel
from atpgraph.util.prefetch import FAR, NEAR, prefetch

LARGE = 2**18  # nodes from which it pays to look for a large component first


@kernel
def giant_first(
    n: int, indptr: Any, targets: Any, component: Any, low: Any, stack: Any, path: Any, edge: Any
) -> int:
    """Write the component of each of `n` nodes into `component`; return how many there are.

    The component of one node comes first, then what it reaches, then the rest. A depth-first search
    waits for memory at every step; here most nodes of a graph with one large component are met in a
    queue, whose needs are known ahead, or row by row.
    """
    state = reach_and_return(n, indptr, targets, stack, path)
    for v in range(n):
        low[v] = -1 if state[v] == 1 else n
    zero: Any = np.int64(0)  # a literal 0 would have tarjan compiled for literals as well
    count = tarjan(zero, n, indptr, targets, component, low, stack, path, edge)
    found = 0
    for v in range(n):
        if state[v] > 1:
            component[v] = count
            found = 1
        elif state[v] == 0:
            low[v] = -1
    return tarjan(count + found, n, indptr, targets, component, low, stack, path, edge)


@kernel
def reach_and_return(n: int, indptr: Any, targets: Any, queue: Any, before: Any) -> ByteArray:
    """For each node: 0 if a node with many edges both ways does not reach it, 1 if it does, 3 if it
    reaches that node as well.

    Who reaches a node is found without edges turned round, in sweeps over the rows: few for a
    random graph, as many as nodes for some. Where they find too little, all nodes get 0.
    """
    state = np.zeros(n, dtype=np.uint8)
    for v in range(n):
        queue[v] = 0
    for e in range(indptr[n]):
        queue[targets[e]] += 1
    hub, most = 0, -1
    for v in range(n):
        ways = min(queue[v], indptr[v + 1] - indptr[v])
        if ways > most:
            hub, most = v, ways
    state[hub] = 1
    queue[0] = hub
    done, end = 0, 1
    while done < end:
        if done + FAR < end:
            prefetch(indptr, queue[done + FAR])
            prefetch(targets, indptr[queue[done + NEAR]])
        u = queue[done]
        done += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = targets[e]
            before[v] = u
            queue[end] = v  # and it stays there if it is new
            end += state[v] == 0
            state[v] = 1
    left = 0
    for v in range(n):
        queue[left] = v
        left += state[v] == 1
    state[hub] = 3
    work, last = 0, left + 1
    while left < last and work <= n + 8 * (end - left):
        work += left
        last, left = left, 0
        for i in range(last):
            u = queue[i]
            found = state[u]
            for e in range(indptr[u], indptr[u + 1]):
                found |= state[targets[e]] & 2
            if found > state[u]:
                v = u
                while state[v] == 1:  # and so do those before it, all reached from the hub
                    state[v] = 3
                    v = before[v]
            queue[left] = u
            left += found == 1
    if left < last:
        for v in range(n):
            state[v] = 0
    return state


@kernel
def tarjan(
    count: int, n: int,
    indptr: Any, targets: Any, component: Any, low: Any, stack: Any, path: Any, edge: Any,
) -> int:  # fmt: skip
    """Number the components of the nodes whose `low` is −1 from `count` on; return the next number.

    The others have `n` there, and are as good as gone.

    A large graph waits for memory, and an edge looks at one number only: ``low`` of its target is
    −1 before that is seen, `n` once its component is known, else the lowest number, in the order
    in which nodes are seen, that it is known to reach.
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
    """Number of the strongly connected component of every node.

    Components are numbered in reverse topological order.

    Examples
    --------
    >>> graph = DiGraph.from_edges([(0, 1), (1, 0), (1, 2)])
    >>> strongly_connected_components(graph).tolist()
    [1, 1, 0]
    """
    return _components(graph, plain=True)


def _components(graph: DiGraph, *, plain: bool) -> Int32Array:
    """The components; if not `plain`, quickly for a large graph, and in another order."""
    n = graph.n_nodes
    component, low, stack, path = (np.empty(n + 1, dtype=np.int32) for _ in range(4))
    indptr = graph.indptr.astype(np.int32 if graph.n_edges < 2**31 else np.int64)
    arrays = n, indptr, graph.targets, component, low, stack, path, np.empty_like(indptr)
    if plain or n < LARGE:
        low[:] = -1
        tarjan(0, *arrays)
    else:
        giant_first(*arrays)
    return component[:n]


def cyclic_edges(graph: DiGraph) -> BoolArray:
    """True for the edges that lie on a cycle: both ends in one component (self-loops too)."""
    inside = np.empty(graph.n_edges, dtype=np.bool_)
    _mark_inside(graph.indptr, graph.targets, _components(graph, plain=False), inside)
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
