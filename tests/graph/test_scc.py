from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given

from atpgraph.graph import DiGraph, gnm, scc
from atpgraph.graph.scc import cyclic_core, cyclic_edges, strongly_connected_components
from tests.strategies import digraphs


@given(digraphs(max_nodes=12))
def test_components_equal_networkx(graph: DiGraph) -> None:
    component = strongly_connected_components(graph)
    ours = {frozenset(np.flatnonzero(component == c).tolist()) for c in set(component.tolist())}
    other = nx.DiGraph(list(graph.edges()))
    other.add_nodes_from(range(graph.n_nodes))
    assert ours == {frozenset(nodes) for nodes in nx.strongly_connected_components(other)}
    assert np.all(component[graph.sources] >= component[graph.targets])


def giant_first(graph: DiGraph) -> np.ndarray:
    """The components as a large graph has them found; checked against the plain ones."""
    n = graph.n_nodes
    component, *scratch = np.zeros((4, n + 1), dtype=np.int32)
    indptr = graph.indptr.astype(np.int32)
    count = scc.giant_first(n, indptr, graph.targets, component, *scratch, np.zeros_like(indptr))
    component = component[:n]
    plain = strongly_connected_components(graph)
    assert len({*component.tolist()}) == len({*plain.tolist()}) == count
    assert len({*zip(component.tolist(), plain.tolist(), strict=True)}) == count
    assert np.all(component[graph.sources] >= component[graph.targets])
    return component


def mutual(graph: DiGraph) -> int:
    """How many nodes are found to reach, and be reached by, the node with many edges."""
    queue, before = np.zeros((2, graph.n_nodes + 1), dtype=np.int32)
    indptr = graph.indptr.astype(np.int32)
    state = scc.reach_and_return(graph.n_nodes, indptr, graph.targets, queue, before)
    return int(np.count_nonzero(state == 3))


@given(digraphs(max_nodes=12))
def test_the_largest_first_finds_the_same_components(graph: DiGraph) -> None:
    giant_first(graph)


def test_the_largest_component_is_found_first() -> None:
    graph = gnm(3000, 9000, 0)
    component = giant_first(graph)
    assert mutual(graph) == np.bincount(component).max() > 2000
    # Sweeps would find one node of the chain each: all is left to Tarjan.
    chain = [(i, i + 1) for i in range(1, 100)] + [(100, 0), (1, 101)]
    ways = [(x, i) for x in (0, 101) for i in range(1, 101)]
    near = [pair for y in range(102, 107) for pair in ((0, y), (y, 0))]
    slow = DiGraph.from_codes(*np.array(chain + ways + near).T, 107)
    assert mutual(slow) == 0
    assert np.all(giant_first(slow) == 0)


def test_a_path_of_a_million_nodes_needs_no_recursion() -> None:
    n = 1_000_000
    nodes = np.arange(n)
    ring = DiGraph.from_codes(nodes, (nodes + 1) % n, n)
    assert np.all(strongly_connected_components(ring) == 0)
    assert np.all(cyclic_edges(ring))
    path = ring.keep_edges(ring.sources != n - 1)
    assert len(np.unique(strongly_connected_components(path))) == n


@given(digraphs())
def test_the_core_is_what_lies_on_cycles(graph: DiGraph) -> None:
    component = strongly_connected_components(graph)
    u, v = graph.sources, graph.targets
    edges = np.flatnonzero((component[u] == component[v]) & (u != v))
    core = cyclic_core(graph)
    assert core.edges.tolist() == edges.tolist()
    assert core.nodes.tolist() == sorted({*u[edges].tolist(), *v[edges].tolist()})
    assert core.nodes[core.graph.sources].tolist() == u[edges].tolist()
    assert core.nodes[core.graph.targets].tolist() == v[edges].tolist()
