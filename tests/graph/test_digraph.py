from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.errors import InputError
from atpgraph.graph import DiGraph, gnm, random_dag
from atpgraph.graph.archive import graph_arrays, graph_from
from tests.strategies import digraphs

labels = st.one_of(st.integers(-3, 3), st.text(max_size=2), st.tuples(st.integers(0, 2)))


@given(st.lists(st.tuples(labels, labels)))
def test_any_hashable_label_comes_back_in_order(edges: list) -> None:
    graph = DiGraph.from_edges(edges)
    assert graph.labels.tolist() == list(dict.fromkeys(end for edge in edges for end in edge))
    assert set(graph.edges()) == set(edges)
    assert graph.n_edges == len(set(edges))
    assert graph.n_self_loops == sum(u == v for u, v in set(edges))


def test_labels_are_looked_up_alike_in_lists_and_arrays() -> None:
    graph = DiGraph.from_edges([(30, 10), (10, 20)])
    asked = [20, 30, 5, 99, 10]
    for labels in (asked, np.array(asked), np.array(asked, dtype=np.int32)):
        assert graph.codes_or_minus_one(labels).tolist() == [2, 0, -1, -1, 1]
    assert DiGraph.from_edges([]).codes_or_minus_one(np.array([1])).tolist() == [-1]
    assert graph.code(20) == 2
    for wrong in (5, [20]):
        with pytest.raises(InputError, match=r"no node 5|not hashable"):
            graph.code(wrong)
    assert [side.tolist() for side in graph.pair_codes([30, 10], 20)] == [[0, 1], [2, 2]]
    with pytest.raises(InputError, match="2 sources and 3 targets"):
        graph.pair_codes([30, 10], [10, 20, 30])


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan])
def test_what_stands_for_no_label_is_refused(missing: object) -> None:
    for edges, nodes in (([("a", missing)], None), ([("a", "b")], ["b", missing])):
        with pytest.raises(InputError, match="labeled"):
            DiGraph.from_edges(edges, nodes=nodes)


@given(digraphs())
def test_reverse_turns_every_edge_round(graph: DiGraph) -> None:
    weighted = replace(graph, weights=np.arange(1.0, graph.n_edges + 1))
    edges = zip(graph.sources.tolist(), graph.targets.tolist(), weighted.weights, strict=True)
    expected = sorted((v, u, weight) for u, v, weight in edges)
    back = weighted.reverse()
    found = zip(back.sources.tolist(), back.targets.tolist(), back.weights, strict=True)
    assert list(found) == expected
    assert graph.reverse().weights is None
    assert graph.reverse().targets.tolist() == back.targets.tolist()
    assert graph.in_degree.tolist() == back.out_degree.tolist()


def test_weights_of_parallel_edges_add_up_and_are_carried_through() -> None:
    graph = DiGraph.from_edges([(1, 2), (2, 3), (1, 2)], weights=[1.0, 2.0, 3.0])
    assert graph.weights is not None
    assert graph.weights.tolist() == [4.0, 2.0]
    assert graph.keep_edges([False, True]).weights.tolist() == [2.0]
    assert graph.reverse().weights.tolist() == [4.0, 2.0]


def test_listed_nodes_come_first_edges_or_not() -> None:
    graph = DiGraph.from_edges([("b", "a")], nodes=["z", "a"])
    assert graph.labels.tolist() == ["z", "a", "b"]
    with pytest.raises(InputError, match="twice"):
        DiGraph.from_edges([], nodes=["a", "a"])


def test_numpy_edges_keep_labels_and_types() -> None:
    graph = DiGraph.from_edges(np.array([[10, 7], [7, 10]], dtype=np.uint8))
    assert graph.labels.dtype == np.int64
    assert graph.labels.tolist() == [10, 7]
    text = DiGraph.from_edges(np.array([["b", "a"]]))
    assert list(text.edges()) == [("b", "a")]
    assert type(text.labels[0]) is str


def test_codes_and_edges_are_found_or_named() -> None:
    graph = DiGraph.from_edges([("a", "b"), ("b", "c")])
    assert graph.codes(["c", "a"]).tolist() == [2, 0]
    assert graph.codes("b").tolist() == [1]
    assert graph.find_edges([0, 1, 2], [1, 2, 0]).tolist() == [0, 1, -1]
    with pytest.raises(InputError, match="no node 'x'"):
        graph.codes(["a", "x"])


def test_scipy_matrices() -> None:
    matrix = sp.csr_array(np.array([[0, 2.0], [0, 1.0]]))
    graph = DiGraph.from_scipy(matrix)
    assert (graph.n_edges, graph.n_self_loops) == (2, 1)
    assert (graph.to_scipy() != matrix).nnz == 0
    assert DiGraph.from_scipy(matrix.astype(bool)).weights is None
    with pytest.raises(InputError, match="square"):
        DiGraph.from_scipy(sp.csr_array((2, 3)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"edges": [(1, 2, 3)]}, "pair of labels"),
        ({"edges": np.zeros((2, 3), dtype=int)}, "shape"),
        ({"edges": [(1, 2)], "weights": [np.nan]}, "finite"),
        ({"edges": [(1, 2)], "weights": [1.0, 2.0]}, "2 weights"),
        ({"edges": [([], 2)]}, "hashable"),
    ],
)
def test_bad_edges_get_a_sentence(arguments: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        DiGraph.from_edges(**arguments)


def test_empty_graph() -> None:
    graph = DiGraph.from_edges([])
    assert (graph.n_nodes, graph.n_edges, graph.n_self_loops) == (0, 0, 0)
    assert graph.reverse().n_edges == 0
    assert graph.to_scipy().shape == (0, 0)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from("xyz")), max_size=30)
)
def test_types_equal_their_slow_twin(rows):
    graph = DiGraph.from_edges([row[:2] for row in rows], types=[row[2] for row in rows])
    archived = graph_from(graph_arrays(graph))
    back = graph.reverse().reverse()
    for name in {row[2] for row in rows}:
        expected = sorted({row[:2] for row in rows if row[2] == name})
        for typed in (graph, archived, back):
            assert sorted(typed.keep_edges(typed.has_type(name)).edges()) == expected
        turned = graph.reverse()
        assert sorted(turned.keep_edges(turned.has_type([name])).edges()) == sorted(
            (v, u) for u, v in expected
        )
    kept = graph.keep_edges(graph.has_type(graph.type_names[:2]))
    assert sorted(kept.edges()) == sorted(
        {row[:2] for row in rows if row[2] in graph.type_names[:2]}
    )
    assert kept.type_names == graph.type_names
    more = graph.with_edges([(7, 8)])
    assert sorted(more.keep_edges(more.has_type(graph.type_names)).edges()) == sorted(graph.edges())


def test_types_that_cannot_be():
    with pytest.raises(InputError, match="1 edges but 2 types"):
        DiGraph.from_edges([(1, 2)], types=["a", "b"])
    with pytest.raises(InputError, match="the type None; types are text"):
        DiGraph.from_edges([(1, 2)], types=[None])
    with pytest.raises(InputError, match="65 types of edges; at most 64"):
        DiGraph.from_edges([(i, i + 1) for i in range(65)], types=map(str, range(65)))
    with pytest.raises(InputError, match="no type of edge 'isa': did you mean 'is_a'"):
        DiGraph.from_edges([(1, 2)], types=["is_a"]).has_type("isa")
    with pytest.raises(InputError, match="have no types"):
        DiGraph.from_edges([(1, 2)]).has_type("is_a")


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(-9, 9)), max_size=40))
def test_parallel_edges_become_one(edges):
    u, v, weights = (list(column) for column in zip(*edges, strict=True)) if edges else ([], [], [])
    graph = DiGraph.from_codes(u, v, 7, weights)
    total: dict = {}
    for source, target, weight in edges:
        total[source, target] = total.get((source, target), 0.0) + weight
    assert list(graph.edges()) == sorted(total)
    assert graph.weights is not None
    assert graph.weights.tolist() == pytest.approx([total[edge] for edge in sorted(total)])


def test_numbers_of_numpy_and_labels_of_any_kind_make_graphs() -> None:
    assert DiGraph.from_codes([0], [1], np.int64(2)).labels.tolist() == [0, 1]
    assert gnm(np.int64(10), np.int32(20), 0).n_edges == 20
    assert random_dag(np.int32(100_000), 5, 0).n_nodes == 100_000
    for names in (["a", "b"], [("a", 1), ("b", 2)]):
        assert DiGraph.from_codes([0], [1], names).labels.tolist() == names
    assert DiGraph.from_codes([0], [1], np.array([5, 6], dtype=np.int32)).labels.dtype == np.int64
    with pytest.raises(InputError, match="must be a whole number"):
        gnm(10.0, 20, 0)


def test_columns_of_arrow_are_labels() -> None:
    pa = pytest.importorskip("pyarrow")
    graph = DiGraph.from_edges([("a", "b"), ("b", "c")])
    for column in (pa.array(["a", "c"]), pa.chunked_array([["a"], ["c"]])):
        assert graph.codes(column).tolist() == [0, 2]


@pytest.mark.parametrize("pair", [{"a", "b"}, frozenset({"a", "b"}), {"a": 1, "b": 2}])
def test_a_pair_without_an_order_is_no_edge(pair: object) -> None:
    with pytest.raises(InputError, match="an edge is a pair of labels"):
        DiGraph.from_edges([pair])
