"""Generated graphs are what their names say."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph import (
    DiGraph,
    InputError,
    citation_dag,
    gnm,
    noisy_hierarchy,
    plant_cycles,
    random_dag,
)
from atpgraph.graph import generators


def as_networkx(graph: DiGraph) -> nx.DiGraph:
    result = nx.DiGraph()
    result.add_nodes_from(graph.labels.tolist())
    result.add_edges_from(graph.edges())
    return result


sizes = st.integers(0, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n * (n - 1) // 2))
)


@given(sizes, st.integers(0, 99))
def test_random_dag_has_the_size_and_no_cycle(size, seed):
    graph = random_dag(*size, random_state=seed)
    assert (graph.n_nodes, graph.n_edges) == size
    assert nx.is_directed_acyclic_graph(as_networkx(graph))
    assert graph.labels.tolist() == list(range(size[0]))


@given(sizes, st.integers(0, 99))
def test_gnm_has_the_size_and_no_loop(size, seed):
    graph = gnm(size[0], 2 * size[1], random_state=seed)
    assert (graph.n_nodes, graph.n_edges, graph.n_self_loops) == (size[0], 2 * size[1], 0)


def test_random_graphs_are_uniform():
    # 4 nodes: 2 of 6 pairs up to a hidden order; 2 of 12 ordered pairs.
    rng = np.random.default_rng(0)
    edges = Counter(edge for _ in range(3000) for edge in random_dag(4, 2, rng).edges())
    assert len(edges) == 12
    assert max(edges.values()) < 1.35 * min(edges.values())
    graphs = Counter(tuple(gnm(3, 2, rng).edges()) for _ in range(3000))
    assert len(graphs) == 15
    assert max(graphs.values()) < 1.6 * min(graphs.values())


@settings(deadline=None)
@given(sizes, st.data(), st.integers(0, 99), st.sampled_from([None, 1, 2, 3]))
def test_every_planted_edge_closes_a_path(size, data, seed, max_length):
    dag = random_dag(*size, random_state=seed)
    twin = as_networkx(dag)
    length = dict(nx.all_pairs_shortest_path_length(twin, cutoff=max_length))
    pairs = {(v, u) for u, reached in length.items() for v in reached if u != v}
    k = data.draw(st.integers(0, len(pairs)))
    graph, planted = plant_cycles(dag, k, max_length, random_state=seed)
    extra = set(zip(*(side.tolist() for side in graph.edge_labels(planted)), strict=True))
    assert len(extra) == k
    assert extra <= pairs
    assert set(graph.edges()) == set(dag.edges()) | extra
    with pytest.raises(InputError, match="Cannot plant"):
        plant_cycles(dag, len(pairs) + 1, max_length, random_state=seed)


def test_pairs_too_many_to_count_are_drawn_alike(monkeypatch):
    dag = random_dag(60, 240, random_state=1)
    reach = {u: nx.descendants(as_networkx(dag), u) for u in range(60)}
    monkeypatch.setattr(generators, "_COUNTING_BUDGET", 10)
    for max_length in (None, 2):
        graph, planted = plant_cycles(dag, 100, max_length, random_state=2)
        assert len(planted) == 100
        for v, u in zip(*(side.tolist() for side in graph.edge_labels(planted)), strict=True):
            assert v in reach[u]


def test_a_sample_with_too_few_pairs_is_extended(monkeypatch):
    monkeypatch.setattr(generators, "_COUNTING_BUDGET", -1)
    star = DiGraph.from_edges([(0, leaf) for leaf in range(1, 41)], nodes=range(100))
    for seed in range(20):  # some samples hold the one source that counts, most do not
        assert len(plant_cycles(star, 30, random_state=seed).planted) == 30
        with pytest.raises(InputError, match="only 40 pairs"):
            plant_cycles(star, 41, random_state=seed)


def test_weights_of_a_dag_are_kept():
    dag = DiGraph.from_edges([("a", "b"), ("b", "c")], weights=[2.5, 3.0])
    graph, planted = plant_cycles(dag, 3, random_state=0)
    assert graph.weights is not None
    assert graph.weights[planted].tolist() == [1.0, 1.0, 1.0]
    assert sorted(graph.weights.tolist()) == [1.0, 1.0, 1.0, 2.5, 3.0]


def test_citation_dag_is_shallow_and_skewed():
    graph = citation_dag(20_000, 40_000, random_state=0)
    assert (graph.n_nodes, graph.n_edges) == (20_000, 40_000)
    twin = as_networkx(graph)
    assert nx.is_directed_acyclic_graph(twin)
    assert nx.dag_longest_path_length(twin) < 30
    assert max(len(nx.descendants(twin, u)) for u in range(0, 20_000, 100)) < 200
    assert graph.in_degree.max() > 20


@given(st.integers(0, 40), st.data())
@settings(deadline=None)
def test_citation_dag_up_to_its_limit(n, data):
    m = data.draw(st.integers(0, n * (n - 1) // 8))
    graph = citation_dag(n, m, random_state=0)
    assert (graph.n_nodes, graph.n_edges) == (n, m)
    assert nx.is_directed_acyclic_graph(as_networkx(graph))


def test_same_seed_same_graph():
    for make in (random_dag, gnm, citation_dag):
        one, same, other = (make(50, 100, random_state=seed) for seed in (1, 1, 2))
        assert list(one.edges()) == list(same.edges())
        assert list(one.edges()) != list(other.edges())
    one, same = (noisy_hierarchy(50, 100, 9, random_state=3) for _ in range(2))
    assert one.planted.tolist() == same.planted.tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda: random_dag(3, 4),
        lambda: random_dag(-1, 0),
        lambda: gnm(3, 7),
        lambda: gnm(3, -1),
        lambda: citation_dag(5, 3),
        lambda: plant_cycles(random_dag(3, 3, 0), -1),
        lambda: plant_cycles(random_dag(3, 3, 0), 1, max_length=0),
        lambda: plant_cycles(DiGraph.from_edges([(1, 2), (2, 1)]), 1),
        lambda: plant_cycles(DiGraph.from_edges([(1, 1)]), 1),
        lambda: random_dag(2**31, 1),
    ],
)
def test_impossible_requests(call):
    with pytest.raises(InputError):
        call()
