"""PageRank against NetworkX."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given

from atpgraph.cycles import pagerank
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from tests.strategies import digraphs


@given(digraphs())
def test_pagerank_equals_networkx(graph: DiGraph) -> None:
    other = nx.DiGraph(list(graph.edges()))
    other.add_nodes_from(range(graph.n_nodes))
    expected = nx.pagerank(other, tol=1e-12, max_iter=1000)
    assert pagerank(graph) == pytest.approx([expected[v] for v in range(graph.n_nodes)], abs=1e-8)


def test_bad_parameters_get_a_sentence() -> None:
    graph = DiGraph.from_edges([(0, 1)])
    with pytest.raises(InputError, match="damping"):
        pagerank(graph, damping=1.0)
