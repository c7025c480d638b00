"""Convert anything that holds a directed graph to a :class:`DiGraph`, and back.

A library is imported only if the object comes from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph._dialect import Column, ColumnOptions
from atpgraph.graph._numbering import EdgeRows
from atpgraph.graph._tables import choose_table_columns, stream_rows
from atpgraph.graph.digraph import (
    DiGraph,
    check_labels,
    factorize,
    object_array,
    pair_array,
    weight_array,
)
from atpgraph.graph.edgelist import read_edgelist
from atpgraph.util.arrays import AnyArray, Float64Array
from atpgraph.util.memory import budget_bytes


def as_graph(
    obj: Any,
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | bool | None = None,
    type: Column | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    memory: str | float | None = None,
) -> DiGraph:
    """Convert any object with a directed graph to a :class:`DiGraph`.

    Parameters
    ----------
    obj : object
        - a DiGraph: returned as it is;
        - a path, as text or ``Path``: read with :func:`read_edgelist`, Parquet too;
        - an array of shape (m, 2), or an iterable of pairs (u, v) or triples (u, v, weight);
        - a mapping from pairs (u, v) to weights;
        - a square SciPy sparse matrix or array: entry (i, j) is the edge i → j;
        - a table: a pandas or polars frame, lazy or not, a pyarrow table, a DuckDB relation, the
          result of an ADBC query, or anything else with an Arrow stream (``__arrow_c_stream__``);
        - a NetworkX DiGraph or MultiDiGraph;
        - a directed igraph graph, with the vertex attribute ``name`` as labels if there is one;
        - a rustworkx PyDiGraph; the data of the nodes are the labels if they are distinct texts or
          integers, else the indices are;
        - a PyTorch Geometric ``Data``, its ``edge_index``, or any integer array of shape (2, m)
          with m ≠ 2: sources above targets. The nodes are 0, 1, … in this order, so that row i of
          an embedding belongs to node i.
    source, target : str or int, optional
        Columns of the edges of a file or table: names, or numbers counted from 1. Without them,
        columns called source/target, src/dst, from/to or subject/object, else the only two besides
        the weight.
    weight : str, int or bool, optional
        Column of the weights, by default the one called weight; of a graph, the edge attribute.
        As in NetworkX, edges without the attribute weigh 1 if others have it. False ignores
        weights.
    type : str or int, optional
        Column, or edge attribute, of the types of the edges (:attr:`DiGraph.edge_types`).
    delimiter, header
        How to read a text file, see :func:`read_edgelist`.
    memory : str or number of bytes, optional
        Budget for reading, by default half of the free memory.

    Examples
    --------
    >>> as_graph([(1, 2), (2, 3)])
    DiGraph(nodes=3, edges=2, self_loops=0)
    >>> as_graph(np.array([[0, 0, 3], [3, 1, 1]])).labels.tolist()
    [0, 1, 2, 3]
    """
    if isinstance(obj, (str, os.PathLike)):
        return read_edgelist(
            obj, source=source, target=target, weight=weight, type=type, delimiter=delimiter,
            header=header, memory=memory,
        )  # fmt: skip
    if delimiter is not None or header is not None:
        raise InputError(f"delimiter and header are for text files, not for {_a(obj)}.")
    options = ColumnOptions(source, target, weight, type)
    options.check()
    if _is_table(obj):
        return _table_rows(obj, options, memory).graph()
    if source is not None:
        raise InputError(f"source and target name columns of a table; {_a(obj)} has none.")
    libraries = _libraries(obj)
    if "networkx" in libraries:
        return _from_networkx(obj, options)
    if "igraph" in libraries:
        return _from_igraph(obj, options)
    if "rustworkx" in libraries:
        return _from_rustworkx(obj, options)
    if weight or type is not None:
        raise InputError(f"weight and type name columns or attributes; {_a(obj)} has none.")
    if weight is False:
        return replace(as_graph(obj), weights=None)
    if isinstance(obj, DiGraph):
        return obj
    if sp.issparse(obj):
        return DiGraph.from_scipy(obj)
    if "torch_geometric" in libraries and getattr(obj, "edge_index", None) is not None:
        return _from_edge_index(_tensor(obj.edge_index), obj.num_nodes)
    if "torch" in libraries:
        tensor = _tensor(obj)
        # PyTorch Geometric puts sources above targets, so a 2 × 2 tensor is read that way.
        turned = tensor.ndim == 2 and len(tensor) != 2 and tensor.shape[1] == 2
        return DiGraph.from_edges(tensor) if turned else _from_edge_index(tensor)
    if isinstance(obj, np.ndarray) and obj.ndim == 2 and len(obj) == 2 != obj.shape[1]:
        return _from_edge_index(obj)
    if isinstance(obj, np.ndarray):
        return DiGraph.from_edges(obj)
    if isinstance(obj, Mapping) and obj:
        return DiGraph.from_edges(list(obj), weights=list(obj.values()))
    if hasattr(obj, "__iter__"):
        return _from_list(list(obj))
    raise InputError(
        f"An object of type {obj.__class__.__name__} is not a graph; give a file, pairs of labels, "
        "a sparse matrix, a table, an edge index, or a NetworkX, igraph or rustworkx graph."
    )


def _a(obj: Any) -> str:
    return f"a {obj.__class__.__name__}"


def _libraries(obj: Any) -> set[str]:
    """Return the packages that the classes of an object come from."""
    return {base.__module__.partition(".")[0] for base in obj.__class__.__mro__}


def to_networkx(graph: DiGraph, *, like: Any = None) -> Any:
    """Return the graph as a ``networkx.DiGraph``: the same labels, ``weight`` if there are weights.

    Parameters
    ----------
    graph : DiGraph
    like : networkx.DiGraph or MultiDiGraph, optional
        The graph that this one was made from: its nodes, its edges and the graph itself get their
        attributes back. Of parallel edges the first counts, but weights are added up.

    Examples
    --------
    >>> import networkx
    >>> given = networkx.DiGraph([("a", "b", {"since": 2019}), ("b", "c", {"since": 2024})])
    >>> to_networkx(as_graph(given), like=given).edges["b", "c"]
    {'since': 2024}
    """
    try:
        import networkx
    except ImportError:
        raise MissingDependencyError("networkx", "networkx", "Conversion to NetworkX") from None
    result = networkx.DiGraph()
    result.add_nodes_from(graph.labels.tolist())
    if like is not None:
        if "networkx" not in _libraries(like) or not hasattr(like, "nodes"):
            raise InputError(f"like is a {type(like).__name__}; give a NetworkX graph.")
        result.graph.update(like.graph)
        result.add_nodes_from(
            (node, data) for node, data in like.nodes(data=True) if node in result
        )
        attributes: dict[tuple[Any, Any], Any] = {}
        for source, target, data in like.edges(data=True):
            attributes.setdefault((source, target), data)
        edges = ((*edge, attributes.get(edge, {})) for edge in graph.edges())
        result.add_edges_from(edges)
    if graph.weights is None:
        result.add_edges_from(graph.edges())
    else:
        sources, targets = graph.edge_labels()
        result.add_weighted_edges_from(
            zip(sources.tolist(), targets.tolist(), graph.weights.tolist(), strict=True)
        )
    return result


def _from_list(edges: list[Any]) -> DiGraph:
    """Convert a list of pairs, or of triples with weights."""
    if not edges:
        raise InputError(
            "The list of edges is empty; give at least one edge, or DiGraph.from_edges([], "
            "nodes=…) for nodes without any."
        )
    first = edges[0]
    if isinstance(first, (str, bytes)) or not hasattr(first, "__len__") or len(first) != 3:
        return DiGraph.from_edges(edges)
    for position, edge in enumerate(edges):
        if isinstance(edge, (str, bytes)) or not hasattr(edge, "__len__") or len(edge) != 3:
            raise InputError(
                f"Edge {position} is {edge!r}, and edge 0 has a weight; give all of them one, as "
                "(u, v, weight), or none."
            )
    weights = weight_array([weight for _, _, weight in edges])
    return DiGraph.from_edges([(source, target) for source, target, _ in edges], weights=weights)


def _check_directed(graph: Any, library: str, wanted: str, way: str) -> None:
    if not hasattr(graph, "is_directed"):
        kind = type(graph).__name__
        raise InputError(f"{library} {kind} is not a graph; give a {wanted}.")
    if not graph.is_directed():
        raise InputError(
            f"{library} graph is undirected; give a directed one (graph.{way}() makes every edge "
            "two)."
        )


def _from_networkx(graph: Any, options: ColumnOptions) -> DiGraph:
    _check_directed(graph, "The NetworkX", "DiGraph", "to_directed")
    edges = list(graph.edges(data=True))
    pairs = [(u, v) for u, v, _ in edges]
    weights, types = _edge_values([data for _, _, data in edges], options)
    return DiGraph.from_edges(pairs, weights=weights, types=types, nodes=graph.nodes())


def _from_igraph(graph: Any, options: ColumnOptions) -> DiGraph:
    _check_directed(graph, "The igraph", "Graph", "as_directed")
    labels: Any = graph.vcount()
    if "name" in graph.vs.attributes():
        labels = DiGraph.from_edges([], nodes=graph.vs["name"]).labels
    pairs = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weights, types = _edge_values([edge.attributes() for edge in graph.es], options)
    return DiGraph.from_codes(pairs[:, 0], pairs[:, 1], labels, weights, types)


def _from_rustworkx(graph: Any, options: ColumnOptions) -> DiGraph:
    if not hasattr(graph, "weighted_edge_list") or not hasattr(graph, "in_degree"):
        raise InputError(
            f"A rustworkx {type(graph).__name__} is not a directed graph; give a PyDiGraph "
            "(graph.to_directed() makes every edge of a PyGraph two)."
        )
    indices, data = list(graph.node_indices()), list(graph.nodes())
    labels = indices
    if all(isinstance(label, (str, int)) for label in data) and len(set(data)) == len(data):
        labels = data
    name = dict(zip(indices, labels, strict=True))
    edges = list(graph.weighted_edge_list())
    weights, types = _edge_values([value for _, _, value in edges], options)
    return DiGraph.from_edges(
        [(name[u], name[v]) for u, v, _ in edges], weights=weights, types=types, nodes=labels
    )


def _edge_values(data: list[Any], options: ColumnOptions) -> tuple[Float64Array | None, Any]:
    """Return the weights and the types of edges from their attributes, None where there are none.

    An edge without a weight weighs 1 if others have one; all edges have a type, or none. In
    rustworkx an edge may be a number, its weight, instead of a dictionary.
    """
    name = "weight" if options.weight in (None, True) else options.weight
    weights = [
        each.get(name) if hasattr(each, "get") else None if isinstance(each, str) else each
        for each in data
    ]
    types = [each.get(options.type) if hasattr(each, "get") else None for each in data]
    has_weights = options.weight is not False and any(value is not None for value in weights)
    if data and options.weight and not has_weights:
        raise InputError(f"No edge has the attribute {name!r}; name one that edges have.")
    if data and options.type is not None and None in types:
        at = types.index(None)
        raise InputError(f"Edge {at} has no attribute {options.type!r}; give all edges one.")
    filled = [1.0 if value is None else value for value in weights]
    return (
        weight_array(filled) if has_weights else None,
        types if data and options.type is not None else None,
    )


def _tensor(obj: Any) -> AnyArray:
    return np.asarray(obj.detach().cpu().numpy())


def _from_edge_index(index: AnyArray, nodes: int | None = None) -> DiGraph:
    """Convert an edge index: nodes 0 … n − 1 in this order, with or without edges."""
    if index.ndim != 2 or len(index) != 2 or index.dtype.kind not in "iu":
        raise InputError(
            f"An edge index holds whole numbers in the shape (2, m); this one has {index.dtype} in "
            f"the shape {index.shape}."
        )
    if index.size and int(index.min()) < 0:
        raise InputError(f"An edge index numbers nodes from 0; this one has {int(index.min())}.")
    known = int(index.max()) + 1 if index.size else 0
    return DiGraph.from_codes(index[0], index[1], known if nodes is None else int(nodes))


def table_columns(obj: Any) -> tuple[AnyArray, AnyArray] | None:
    """Return sources and targets of a table, row by row; None if `obj` is not a table."""
    return _table_rows(obj, ColumnOptions(weight=False), None).pairs() if _is_table(obj) else None


def _is_table(obj: Any) -> bool:
    names = ("__arrow_c_stream__", "__arrow_c_array__", "collect_schema", "iloc")
    return any(hasattr(obj, name) for name in names)


def _table_rows(table: Any, options: ColumnOptions, memory: str | float | None) -> EdgeRows:
    """Return the edges of a table."""
    if hasattr(table, "collect_schema") and not hasattr(table, "__arrow_c_stream__"):
        table = table.collect()  # a lazy frame of polars
    if hasattr(table, "iloc"):
        table = table.reset_index(drop=True)  # the index would be one more column
    try:
        return stream_rows(table, budget_bytes(memory), options)
    except (MissingDependencyError, TypeError, ValueError) as error:
        if isinstance(error, InputError) or not hasattr(table, "iloc"):
            raise
    # pyarrow is not installed, or cannot hold the labels of a pandas frame, which may be anything.
    columns = choose_table_columns("The table", [str(name) for name in table.columns], options)
    sides: list[Any] = [None if at < 0 else table.iloc[:, at].tolist() for at in columns[:4]]
    weights = None if sides[2] is None else weight_array(sides[2])
    ends, labels = factorize(pair_array(zip(sides[0], sides[1], strict=True)).reshape(-1))
    check_labels(labels)
    rows = EdgeRows(ends.astype(np.int32).reshape(-1, 2), labels, weights)
    if sides[3] is None:
        return rows
    types, names = factorize(object_array(sides[3]))
    return rows._replace(types=types, type_names=names.tolist())
