"""Peeling, search and condensation against NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import DiGraph, InputError
from atpgraph.graph.convert import to_networkx
from atpgraph.graph.scc import condense
from atpgraph.graph.traversal import peel, reachable
from tests.dags import dags
from tests.strategies import digraphs


@given(dags())
def test_peeling_is_topological_and_levels_are_longest_paths(dag: DiGraph) -> None:
    order, level = peel(dag)
    place = np.empty(dag.n_nodes, dtype=np.int64)
    place[order] = np.arange(dag.n_nodes)
    assert sorted(order.tolist()) == list(range(dag.n_nodes))
    assert np.all(place[dag.sources] < place[dag.targets])
    twin = to_networkx(dag)
    longest = dict.fromkeys(twin, 1)
    for u in nx.topological_sort(twin):
        for v in twin.successors(u):
            longest[v] = max(longest[v], longest[u] + 1)
    assert level.tolist() == [longest[label] for label in dag.labels.tolist()]


def test_a_cycle_cannot_be_peeled() -> None:
    with pytest.raises(InputError, match="node 'b' is on one or reachable from one"):
        peel(DiGraph.from_edges([("a", "b"), ("b", "c"), ("c", "b")]))


@given(digraphs(), st.data())
def test_reachable_is_the_union_of_descendants(graph: DiGraph, data: st.DataObject) -> None:
    n = graph.n_nodes
    start = data.draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else []
    within = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    twin = nx.DiGraph()
    twin.add_nodes_from(range(n))
    twin.add_edges_from(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    everything = set(start).union(*(nx.descendants(twin, u) for u in start))
    assert reachable(graph, np.array(start, dtype=np.int64)).tolist() == sorted(everything)
    inside = twin.subgraph(np.flatnonzero(within).tolist())
    kept = [u for u in start if within[u]]
    limited = set(kept).union(*(nx.descendants(inside, u) for u in kept))
    found = reachable(graph, np.array(start, dtype=np.int64), within=within)
    assert found.tolist() == sorted(limited)


@given(digraphs())
def test_condensation_is_acyclic_and_loses_no_path(graph: DiGraph) -> None:
    component, dag = condense(graph)
    assert np.all(dag.sources > dag.targets)
    edges = set(zip(dag.sources.tolist(), dag.targets.tolist(), strict=True))
    a, b = component[graph.sources].tolist(), component[graph.targets].tolist()
    assert edges == {(x, y) for x, y in zip(a, b, strict=True) if x != y}
