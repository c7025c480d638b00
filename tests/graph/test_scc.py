from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given

from atpgraph.graph import DiGraph
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
