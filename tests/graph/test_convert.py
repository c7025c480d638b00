"""Every kind of object that holds a graph."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rustworkx as rx
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import atpgraph
from atpgraph import DiGraph, InputError, as_graph, to_networkx

EDGES = [("a", "b"), ("b", "c"), ("c", "c"), ("a", "b")]


def parts(graph: DiGraph):
    weights = None if graph.weights is None else graph.weights.tolist()
    return graph.labels.tolist(), sorted(graph.edges()), weights


def test_graph_itself_and_pairs(tmp_path):
    graph = DiGraph.from_edges(EDGES)
    assert as_graph(graph) is graph
    assert parts(as_graph(EDGES)) == parts(graph)
    assert parts(as_graph(iter(EDGES))) == parts(graph)
    assert parts(as_graph(np.array(EDGES))) == parts(graph)
    assert as_graph(np.array([[5, 7], [7, 5]])).labels.tolist() == [5, 7]
    path = tmp_path / "edges.txt"
    path.write_text("a b\nb c\nc c\na b\n")
    assert parts(as_graph(path)) == parts(graph)
    assert parts(as_graph(str(path))) == parts(graph)


def test_triples_carry_weights():
    assert parts(as_graph([("a", "b", 2), ("b", "c", 0.5), ("a", "b", 1)])) == (
        ["a", "b", "c"], [("a", "b"), ("b", "c")], [3.0, 0.5],
    )  # fmt: skip
    assert parts(as_graph(iter([(1, 2, 3)]))) == ([1, 2], [(1, 2)], [3.0])
    assert parts(as_graph({(1, 2): 3})) == ([1, 2], [(1, 2)], [3.0])
    assert parts(as_graph([(1, 2, 3)], weight=False)) == ([1, 2], [(1, 2)], None)
    with pytest.raises(InputError, match="add up to more"):
        as_graph([(1, 2, 1e308), (1, 2, 1e308)])


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_matrix, sp.csc_array, sp.lil_array])
def test_scipy(kind):
    dense = np.array([[0, 2, 0], [0, 0, 1], [3, 0, 0]])
    assert parts(as_graph(kind(dense))) == ([0, 1, 2], [(0, 1), (1, 2), (2, 0)], [2, 1, 3])
    assert as_graph(kind(dense > 0)).weights is None
    with pytest.raises(InputError, match="square"):
        as_graph(kind(np.ones((2, 3))))
    assert as_graph(kind(dense), weight=False).weights is None
    with pytest.raises(InputError, match="twice"):
        DiGraph.from_scipy(kind(dense), labels=["a", "b", "a"])


def frames(columns: dict):
    return [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]


@pytest.mark.parametrize("at", range(3))
def test_tables(at):
    text = {"source": ["a", "b"], "target": ["b", "c"]}
    assert parts(as_graph(frames(text)[at])) == (["a", "b", "c"], [("a", "b"), ("b", "c")], None)
    ids = {"citing": [30, 10], "cited": [10, 20]}
    result = as_graph(frames(ids)[at])
    assert result.labels.tolist() == [30, 10, 20]
    assert result.labels.dtype == np.int64
    named = {"Weight": [1, 5], "when": [0, 0], "To": [2, 3], "From": [1, 2]}
    assert parts(as_graph(frames(named)[at])) == ([1, 2, 3], [(1, 2), (2, 3)], [1, 5])
    weighted = {"src": [1, 1], "dst": [2, 2], "weight": [0.5, 1.5]}
    assert parts(as_graph(frames(weighted)[at])) == ([1, 2], [(1, 2)], [2.0])


def relations(columns: dict):
    """The same table from every library that has Arrow streams."""
    relation = duckdb.from_arrow(pa.table(columns))
    return [
        *frames(columns),
        pl.DataFrame(columns).lazy(),
        relation,
        pa.table(columns).to_reader(),
        pa.RecordBatch.from_pydict(columns),
        Stream(pa.table(columns)),
    ]


class Stream:
    """What a driver hands out: nothing but a stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("at", range(8))
def test_columns_of_any_table(at):
    columns = {
        "when": [2020, 2021, 2021],
        "pkg": ["a", "b", "a"],
        "needs": ["b", "é", "b"],
        "cost": [1, 2, 4],
        "kind": ["is_a", "part_of", "has"],
    }
    graph = as_graph(
        relations(columns)[at], source="pkg", target="needs", weight="cost", type="kind"
    )
    assert parts(graph) == (["a", "b", "é"], [("a", "b"), ("b", "é")], [5.0, 2.0])
    assert sorted(graph.keep_edges(graph.has_type("has")).edges()) == [("a", "b")]
    assert parts(as_graph(relations(columns)[at], source=2, target=3, weight=False))[2] is None
    integers = as_graph(relations({"citing": [30, 10], "cited": [10, 20]})[at])
    assert integers.labels.tolist() == [30, 10, 20]
    assert integers.labels.dtype == np.int64
    mixed = as_graph(relations({"user": [7, 8], "item": ["7", "x"]})[at])
    assert mixed.labels.tolist() == [7, "7", 8, "x"]
    with pytest.raises(InputError, match=r"'when', 'pkg', .*--source and --target"):
        as_graph(relations(columns)[at])
    with pytest.raises(InputError, match=r"Row 1 of the table has nothing in 'b'"):
        as_graph(relations({"a": ["x", "y"], "b": ["z", ""]})[at])


def test_columns_that_databases_make():
    relation = duckdb.sql("select i::hugeint as a, (i + 1)::double as b from range(3) t(i)")
    assert parts(as_graph(relation)) == ([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3)], None)
    with pytest.raises(InputError, match="not all are 64-bit integers"):
        as_graph(duckdb.sql("select 1.5::double as a, 2 as b"))
    with pytest.raises(InputError, match="node ids are integers or text"):
        as_graph(duckdb.sql("select date '2020-01-01' as a, 2 as b"))
    with pytest.raises(InputError, match="is not a table"):
        as_graph(pl.Series([1, 2]))


def test_pandas_frames_that_arrow_cannot_hold():
    frame = pd.DataFrame({"a": [("x", 1), "y"], "b": ["y", ("x", 1)], "weight": [1, 2]})
    expected = ([("x", 1), "y"], {(("x", 1), "y"), ("y", ("x", 1))}, [1.0, 2.0])
    graph = as_graph(frame, type=None)
    assert (graph.labels.tolist(), set(graph.edges()), graph.weights.tolist()) == expected
    kept = pd.DataFrame({"a": [1, 2, 3], "b": [2, 3, 4]})[1:]  # an index that is not 0, 1, …
    assert sorted(as_graph(kept).edges()) == [(2, 3), (3, 4)]


def test_options_for_what_has_no_columns():
    for thing, options in (
        ([(1, 2)], {"source": "a", "target": "b"}),
        (nx.DiGraph([(1, 2)]), {"source": "a", "target": "b"}),
        ([(1, 2)], {"weight": "cost"}),
        (pd.DataFrame({"a": [1], "b": [2]}), {"delimiter": ","}),
    ):
        with pytest.raises(InputError, match=r"columns|text files"):
            as_graph(thing, **options)


def test_attributes_of_graphs():
    attributes = [{"cost": 2, "kind": "x"}, {"cost": 3, "kind": "y"}]
    pairs = [("a", "b"), ("b", "c")]
    first = nx.DiGraph([(*pair, each) for pair, each in zip(pairs, attributes, strict=True)])
    second = igraph.Graph(
        [(0, 1), (1, 2)],
        directed=True,
        vertex_attrs={"name": ["a", "b", "c"]},
        edge_attrs={"cost": [2, 3], "kind": ["x", "y"]},
    )
    third = rx.PyDiGraph()
    third.add_nodes_from(["a", "b", "c"])
    third.add_edges_from([(0, 1, attributes[0]), (1, 2, attributes[1])])
    for graph in (first, second, third):
        read = as_graph(graph, weight="cost", type="kind")
        assert parts(read) == (["a", "b", "c"], pairs, [2.0, 3.0])
        assert list(read.keep_edges(read.has_type("y")).edges()) == [("b", "c")]
        assert as_graph(graph).weights is None
        with pytest.raises(InputError, match="No edge has the attribute 'price'"):
            as_graph(graph, weight="price")
        with pytest.raises(InputError, match="Edge 0 has no attribute 'price'"):
            as_graph(graph, type="price")


def test_rustworkx():
    graph = rx.PyDiGraph()
    graph.add_nodes_from(["a", "b", "c", "d"])
    graph.add_edges_from([(0, 1, 2.5), (1, 2, 1.5), (0, 1, 1.0)])
    assert parts(as_graph(graph)) == (["a", "b", "c", "d"], [("a", "b"), ("b", "c")], [3.5, 1.5])
    assert as_graph(graph, weight=False).weights is None
    graph.remove_node(0)
    assert parts(as_graph(graph)) == (["b", "c", "d"], [("b", "c")], [1.5])
    graph.add_edge(1, 3, None)
    assert parts(as_graph(graph))[1:] == ([("b", "c"), ("b", "d")], [1.5, 1.0])
    plain = rx.PyDiGraph()
    plain.add_nodes_from([{"name": "a"}, {"name": "b"}])
    plain.add_edges_from_no_data([(1, 0)])
    assert parts(as_graph(plain)) == ([0, 1], [(1, 0)], None)
    with pytest.raises(InputError, match="not a directed graph"):
        as_graph(rx.PyGraph())


@pytest.mark.parametrize("at", range(3))
def test_bad_tables(at):
    for columns, message in (
        ({"source": ["a"]}, "one column"),
        ({"source": ["a", None], "target": ["b", "c"]}, "Row 1 .*'source'"),
        ({"source": [1, 2], "target": [3, None]}, "Row 1 .*'target'"),
        ({"source": [1], "target": [2], "weight": ["heavy"]}, "not numbers"),
        ({"source": [1], "target": [2], "weight": [float("nan")]}, "finite|no 'weight'"),
        ({"weight": [1], "node": [2]}, "weight"),
    ):
        with pytest.raises(InputError, match=message):
            as_graph(frames(columns)[at])


def test_other_objects_of_table_libraries():
    nullable = pd.DataFrame({"source": pd.array([1, None], dtype="Int64"), "target": [1, 2]})
    with pytest.raises(InputError, match="Row 1"):
        as_graph(nullable)
    with pytest.raises(InputError, match="not a table"):
        as_graph(pd.Series([1, 2]))
    with pytest.raises(InputError, match="not a table"):
        as_graph(pa.array([1, 2]))
    categories = pd.DataFrame({"source": ["x", "y"], "target": ["y", "x"]}, dtype="category")
    assert as_graph(categories).labels.tolist() == ["x", "y"]


def test_networkx():
    graph = nx.DiGraph([("a", "b"), ("b", "b")])
    graph.add_node("alone")
    assert parts(as_graph(graph)) == (["a", "b", "alone"], [("a", "b"), ("b", "b")], None)
    graph.add_weighted_edges_from([("a", "b", 2), ("b", "b", 3)])
    assert parts(as_graph(graph))[2] == [2.0, 3.0]
    graph.add_edge("b", "a")
    assert dict(zip(as_graph(graph).edges(), as_graph(graph).weights.tolist(), strict=True)) == {
        ("a", "b"): 2.0, ("b", "a"): 1.0, ("b", "b"): 3.0
    }  # fmt: skip
    assert as_graph(graph, weight=False).weights is None
    several = nx.MultiDiGraph([(1, 2, {"weight": 2}), (1, 2, {"weight": 3})])
    assert parts(as_graph(several)) == ([1, 2], [(1, 2)], [5.0])
    assert as_graph(nx.DiGraph()).n_nodes == 0
    tuples = nx.DiGraph([((0, 1), (1, 1))])
    assert as_graph(tuples).labels.tolist() == [(0, 1), (1, 1)]
    for undirected in (nx.Graph([(1, 2)]), nx.MultiGraph([(1, 2)])):
        with pytest.raises(InputError, match=r"undirected.*to_directed"):
            as_graph(undirected)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 3))))
def test_to_networkx_and_back(rows):
    graph = DiGraph.from_edges([row[:2] for row in rows], weights=[row[2] for row in rows])
    assert parts(as_graph(to_networkx(graph)))[:2] == parts(graph)[:2]
    plain = DiGraph.from_edges([row[:2] for row in rows], nodes=range(9))
    assert parts(as_graph(to_networkx(plain))) == parts(plain)


def test_networkx_attributes_on_a_round_trip():
    given = nx.DiGraph(name="votes")
    given.add_node("a", color="red")
    given.add_node("alone", color="blue")
    given.add_edge("a", "b", since=2019, weight=2)
    given.add_edge("b", "a", since=2024, weight=5)
    back = to_networkx(as_graph(given), like=given)
    assert back.graph == given.graph
    assert list(back.nodes(data=True)) == list(given.nodes(data=True))
    assert sorted(back.edges(data=True)) == sorted(given.edges(data=True))
    fewer = to_networkx(atpgraph.break_cycles(given).dag, like=given)
    assert fewer.number_of_edges() == 1
    assert all(given.edges[u, v] == data for u, v, data in fewer.edges(data=True))
    several = nx.MultiDiGraph([(1, 2, {"weight": 2, "by": "x"}), (1, 2, {"weight": 3, "by": "y"})])
    merged = to_networkx(as_graph(several), like=several)
    assert list(merged.edges(data=True)) == [(1, 2, {"weight": 5.0, "by": "x"})]
    more = DiGraph.from_edges([("a", "b"), ("b", "new")])
    assert to_networkx(more, like=given).edges["b", "new"] == {}
    with pytest.raises(InputError, match="like is a list"):
        to_networkx(more, like=[])


def test_igraph():
    graph = igraph.Graph([(0, 1), (1, 2), (0, 1)], n=4, directed=True)
    assert parts(as_graph(graph)) == ([0, 1, 2, 3], [(0, 1), (1, 2)], None)
    graph.vs["name"] = ["a", "b", "c", "d"]
    graph.es["weight"] = [1, 2, 3]
    assert parts(as_graph(graph)) == (["a", "b", "c", "d"], [("a", "b"), ("b", "c")], [4.0, 2.0])
    graph.vs["name"] = ["a", "b", "b", "d"]
    with pytest.raises(InputError, match="twice"):
        as_graph(graph)
    with pytest.raises(InputError, match=r"undirected.*as_directed"):
        as_graph(igraph.Graph([(0, 1)]))


def test_edge_index():
    index = np.array([[4, 0, 4], [0, 2, 2]])
    assert parts(as_graph(index)) == ([0, 1, 2, 3, 4], [(0, 2), (4, 0), (4, 2)], None)
    assert as_graph(np.empty((2, 0), dtype=np.int64)).n_nodes == 0
    # Two rows of two are pairs, as every other array of shape (m, 2).
    assert sorted(as_graph(np.array([[5, 6], [7, 8]])).edges()) == [(5, 6), (7, 8)]


def test_what_is_no_graph():
    for thing, message in (
        (3, "int is not a graph"),
        (None, "NoneType is not a graph"),
        ([(1, 2, 3, 4)], "pair"),
        (["ab", "bc"], r"Edge 0 is 'ab'; an edge is a pair"),
        (["abc", "bcd"], r"Edge 0 is 'abc'; an edge is a pair"),
        ([1, 2], "Edge 0 is 1; an edge is a pair"),
        ([], "list of edges is empty"),
        (iter([]), "list of edges is empty"),
        ([("a", None)], "labeled None"),
        ([(1.0, float("nan"))], "labeled nan"),
        ([("a", pd.NA)], "labeled <NA>"),
        ([("a", "b", 1), ("b", "c")], "Edge 1 is .* edge 0 has a weight"),
        ([("a", "b"), ("b", "c", 1)], "Edge 1 .* pair"),
        ([("a", "b", "heavy")], "not all numbers"),
        ([("a", "b", float("inf"))], "finite"),
        (np.ones((3, 3), dtype=int), "shape"),
        (np.ones((2, 3)), "whole numbers"),
        (np.array([[0, 1, -2], [1, 2, 0]]), "from 0"),
        (np.array([[0, 1, 10**12], [1, 2, 0]]), "1,000,000,000,001 nodes; at most"),
        (sp.coo_array([1, 0, 1]), "square"),
    ):
        with pytest.raises(InputError, match=message):
            as_graph(thing)


def test_no_library_is_imported_for_pairs():
    code = (
        "import sys, atpgraph; atpgraph.as_graph([(1, 2)]); "
        "names = 'networkx igraph pandas polars pyarrow'.split(); "
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_imported():
    for name in atpgraph.__all__:
        assert getattr(atpgraph, name) is not None
    assert set(atpgraph.__all__) <= set(dir(atpgraph))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = atpgraph.nonsense
