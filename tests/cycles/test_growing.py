"""New edges in a graph whose cycles are broken."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import DiGraph, break_cycles, levels
from atpgraph.cycles.growing import grow

nodes = st.integers(0, 9)
pairs = st.lists(st.tuples(nodes, nodes), min_size=1, max_size=30)


def by_hand(graph: DiGraph) -> nx.DiGraph:
    result = nx.DiGraph(list(graph.edges()))
    result.add_nodes_from(graph.labels.tolist())
    return result


@given(pairs, pairs)
def test_the_grown_graph_is_acyclic_and_keeps_what_it_can(old: list, new: list) -> None:
    broken = break_cycles(old)
    grown = grow(broken.graph, broken.removed, levels(broken.dag), DiGraph.from_edges(new))
    labels = broken.graph.labels.tolist()
    assert grown.graph.labels.tolist()[: len(labels)] == labels
    assert set(grown.graph.edges()) == set(old) | set(new)
    fresh = set(
        zip(*(side.tolist() for side in grown.graph.edge_labels(grown.new_edges)), strict=True)
    )
    assert fresh == set(new) - set(old)
    dag = by_hand(grown.dag)
    assert nx.is_directed_acyclic_graph(dag)
    assert set(broken.dag.edges()) <= set(grown.dag.edges())
    assert not (set(broken.removed_edges) & set(grown.dag.edges()))
    # An edge that goes needs to: with the acyclic graph and the other new edges it closes a cycle.
    everything = by_hand(broken.dag)
    everything.add_nodes_from(grown.graph.labels.tolist())
    everything.add_edges_from(fresh)
    for u, v in fresh - set(grown.dag.edges()):
        assert nx.has_path(everything, v, u)


def test_the_edge_that_goes_down_farthest_goes() -> None:
    chain = DiGraph.from_edges([(1, 2), (2, 3), (3, 4)], nodes=range(6))
    level = levels(chain)
    grown = grow(
        chain, np.array([], dtype=int), level, DiGraph.from_edges([(4, 1), (0, 4), (5, 0)])
    )
    removed = zip(*(side.tolist() for side in grown.graph.edge_labels(grown.removed)), strict=True)
    assert list(removed) == [(4, 1)]


@pytest.mark.parametrize(
    ("edges", "gone"),
    [
        ([(4, "x"), ("x", 1)], {("x", 1)}),
        ([(4, "x"), ("x", "y"), ("y", "z"), ("z", 1)], {("z", 1)}),
        ([(3, "x"), (4, "x"), ("x", 1)], {("x", 1)}),
        ([(4, "x"), ("x", 1), ("x", 2)], {(4, "x")}),  # x stands low: one edge goes, not two
    ],
)
def test_new_nodes_stand_where_their_edges_suggest(edges: list, gone: set) -> None:
    chain = DiGraph.from_edges([(1, 2), (2, 3), (3, 4)])
    none = np.array([], dtype=int)
    grown = grow(chain, none, levels(chain), DiGraph.from_edges(edges))
    assert set(grown.graph.edges()) - set(grown.dag.edges()) == gone


def test_of_equals_one_goes() -> None:
    chain = DiGraph.from_edges([(1, 2)])
    more = DiGraph.from_edges([("x", "y"), ("y", "x")])
    grown = grow(chain, np.array([], dtype=int), levels(chain), more)
    assert len(grown.removed) == 1


def test_weights_are_carried_on() -> None:
    old = DiGraph.from_edges([("a", "b"), ("b", "c")], weights=[2, 3])
    level = np.array([1, 2, 3], dtype=np.int32)
    grown = grow(old, np.array([], dtype=int), level, DiGraph.from_edges([("a", "b"), ("c", "d")]))
    assert grown.graph.weights is not None
    assert dict(zip(grown.graph.edges(), grown.graph.weights.tolist(), strict=True)) == {
        ("a", "b"): 3.0, ("b", "c"): 3.0, ("c", "d"): 1.0,
    }  # fmt: skip
    plain = DiGraph.from_edges([("a", "b")])
    more = DiGraph.from_edges([("b", 3)], weights=[7])
    both = grow(plain, np.array([], dtype=int), np.array([1, 2], dtype=np.int32), more).graph
    assert both.weights is None
    assert both.labels.tolist() == ["a", "b", 3]


@pytest.mark.parametrize("more", [DiGraph.from_edges([], nodes=["x"]), DiGraph.from_edges([])])
def test_nodes_without_edges(more: DiGraph) -> None:
    old = DiGraph.from_edges([("a", "b")])
    grown = grow(old, np.array([], dtype=int), np.array([1, 2], dtype=np.int32), more)
    assert grown.dag.n_edges == 1
    assert grown.graph.n_nodes == 2 + more.n_nodes
