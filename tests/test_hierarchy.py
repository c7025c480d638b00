from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import chain, dags, star


def longest_path_ranks(dag: DiGraph) -> list[int]:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(dag.n_nodes))
    graph.add_edges_from(zip(dag.sources.tolist(), dag.targets.tolist(), strict=True))
    rank = [1] * dag.n_nodes
    for v in nx.topological_sort(graph):
        rank[v] = 1 + max((rank[u] for u in graph.predecessors(v)), default=0)
    return rank


@given(dags())
def test_ranks_are_longest_paths(dag: DiGraph) -> None:
    assert levels(dag).tolist() == longest_path_ranks(dag)


def test_peeling_is_the_same() -> None:
    # Ranks by taking off the nodes without in-edges, round by round.
    dag = DiGraph.from_codes([0, 1, 2, 0, 4], [1, 2, 3, 3, 3], 6)
    assert levels(dag).tolist() == [1, 2, 3, 4, 1, 1]


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 1)]])
def test_a_cycle_is_refused(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(InputError, match=r"node (0|1) "):
        levels(DiGraph.from_edges(edges))


def test_deep_and_wide() -> None:
    assert levels(chain(60_000)).tolist() == list(range(1, 60_001))
    assert levels(star(60_000)).sum() == 60_001
    assert levels(DiGraph.from_codes([], [], 0)).tolist() == []
    assert levels(chain(2)).dtype == np.int32


def test_any_kind_of_graph_will_do() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    assert levels(graph).tolist() == levels([("a", "b"), ("b", "c")]).tolist() == [1, 2, 3]
