"""Anything that holds a directed graph, as a :class:`DiGraph`, and back.

No library is imported here unless the object handed over comes from it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph._dialect import Columns, choose_columns
from atpgraph.graph.digraph import DiGraph, is_missing
from atpgraph.graph.edgelist import read_edgelist
from atpgraph.util.arrays import AnyArray, BoolArray, Float64Array


def as_graph(obj: Any, *, memory: str | float | None = None) -> DiGraph:
    """Turn whatever holds a directed graph into a :class:`DiGraph`.

    Parameters
    ----------
    obj : object
        - a DiGraph: returned as it is;
        - a path, as text or ``Path``: read with :func:`read_edgelist`, Parquet too;
        - an array of shape (m, 2), or an iterable of pairs (u, v) or triples (u, v, weight);
        - a square SciPy sparse matrix or array: entry (i, j) is the edge i → j;
        - a pandas, polars or pyarrow table: the columns source and target (or src/dst, from/to),
          else the first two; a column named weight gives the weights;
        - a NetworkX DiGraph or MultiDiGraph; the edge attribute ``weight`` counts if all have it;
        - a directed igraph graph, with the vertex attribute ``name`` as labels if there is one;
        - a PyTorch Geometric ``Data``, its ``edge_index``, or any integer array of shape (2, m)
          with m ≠ 2: sources above targets. The nodes are 0, 1, … in this order, so that row i of
          an embedding belongs to node i.
    memory : str or number of bytes, optional
        Budget of reading a file, by default half of what is free.

    Examples
    --------
    >>> as_graph([(1, 2), (2, 3)])
    DiGraph(nodes=3, edges=2, self_loops=0)
    >>> as_graph(np.array([[0, 0, 3], [3, 1, 1]])).labels.tolist()
    [0, 1, 2, 3]
    """
    if isinstance(obj, DiGraph):
        return obj
    if isinstance(obj, (str, os.PathLike)):
        return read_edgelist(obj, memory=memory)
    if sp.issparse(obj):
        return DiGraph.from_scipy(obj)
    libraries = _libraries(obj)
    if "networkx" in libraries:
        return _from_networkx(obj)
    if "igraph" in libraries:
        return _from_igraph(obj)
    if libraries & {"pandas", "polars", "pyarrow"}:
        return _from_table(obj)
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
    if hasattr(obj, "__iter__"):
        return _from_list(list(obj))
    raise InputError(
        f"A {type(obj).__name__} is not a graph; give a file, pairs of labels, a sparse matrix, "
        "a table, an edge index, or a NetworkX or igraph graph."
    )


def _libraries(obj: Any) -> set[str]:
    """The packages that the classes of an object come from."""
    return {base.__module__.partition(".")[0] for base in type(obj).__mro__}


def to_networkx(graph: DiGraph, *, like: Any = None) -> Any:
    """The graph as a ``networkx.DiGraph``: the same labels, ``weight`` if there are weights.

    Parameters
    ----------
    graph : DiGraph
    like : networkx.DiGraph or MultiDiGraph, optional
        Where the graph came from: nodes and edges that it has get their attributes back, and the
        graph its own. Of parallel edges the first counts, except for the weight, which is the sum.

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
            raise InputError(f"like is a {type(like).__name__}; give the NetworkX graph.")
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
    """Pairs, or triples with weights; all alike."""
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
    weights = _weight_array([weight for _, _, weight in edges])
    return DiGraph.from_edges([(source, target) for source, target, _ in edges], weights=weights)


def _from_networkx(graph: Any) -> DiGraph:
    if not hasattr(graph, "is_directed"):
        raise InputError(f"A NetworkX {type(graph).__name__} is not a graph; give a DiGraph.")
    if not graph.is_directed():
        raise InputError(
            "The NetworkX graph is undirected; give a DiGraph (graph.to_directed() makes every "
            "edge two)."
        )
    edges = list(graph.edges(data="weight"))
    weights = None
    if edges and all(weight is not None for _, _, weight in edges):
        weights = _weight_array([weight for _, _, weight in edges])
    pairs = [(source, target) for source, target, _ in edges]
    return DiGraph.from_edges(pairs, weights=weights, nodes=graph.nodes())


def _from_igraph(graph: Any) -> DiGraph:
    if not hasattr(graph, "is_directed"):
        raise InputError(f"An igraph {type(graph).__name__} is not a graph; give a Graph.")
    if not graph.is_directed():
        raise InputError(
            "The igraph graph is undirected; give a directed one (graph.as_directed() makes every "
            "edge two)."
        )
    labels: Any = graph.vcount()
    if "name" in graph.vs.attributes():
        names = graph.vs["name"]
        labels = DiGraph.from_edges([], nodes=names).labels
    pairs = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weights = None
    if "weight" in graph.es.attributes():
        given = graph.es["weight"]
        if given and all(weight is not None for weight in given):
            weights = _weight_array(given)
    return DiGraph.from_codes(pairs[:, 0], pairs[:, 1], labels, weights)


def _tensor(obj: Any) -> AnyArray:
    return np.asarray(obj.detach().cpu().numpy())


def _from_edge_index(index: AnyArray, nodes: int | None = None) -> DiGraph:
    """Nodes 0 … n − 1 in this order, with or without edges."""
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
    """Sources and targets of a pandas, polars or pyarrow table, row by row; None for others."""
    if not _libraries(obj) & {"pandas", "polars", "pyarrow"}:
        return None
    return _read_table(obj)[:2]


def _from_table(table: Any) -> DiGraph:
    source, target, weights = _read_table(table)
    if source.dtype.kind in "iu" and target.dtype.kind in "iu":
        return DiGraph.from_edges(np.stack([source, target], axis=1), weights=weights)
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    return DiGraph.from_edges(pairs, weights=weights)


def _read_table(
    table: Any,
) -> tuple[AnyArray, AnyArray, Float64Array | None]:
    """Sources, targets and weights."""
    if hasattr(table, "collect"):
        raise InputError("The polars frame is lazy; call .collect() on it first.")
    names = getattr(table, "column_names", None)  # pyarrow
    if names is None:
        names = getattr(table, "columns", None)
    if names is None:
        raise InputError(
            f"A {type(table).__module__.partition('.')[0]} {type(table).__name__} is not a table; "
            "give one with a column of sources and one of targets."
        )
    names = list(names)
    if len(names) < 2:
        raise InputError(
            f"The table has {len(names)} column{'s' * (len(names) != 1)}; give one of sources and "
            "one of targets."
        )
    columns = choose_columns([str(name) for name in names])
    if not columns.named and "weight" in names[:2]:
        raise InputError(
            "The column weight stands where a node is expected; name the columns source and target."
        )
    source, target = (_column(table, names, at) for at in columns[:2])
    for at, values in ((columns.source, source), (columns.target, target)):
        missing = _missing(values)
        if missing.any():
            raise InputError(
                f"Row {int(missing.argmax())} of the table has no {names[at]!r}; drop such rows."
            )
    return source, target, _table_weights(table, names, columns)


def _table_weights(table: Any, names: list[Any], columns: Columns) -> Float64Array | None:
    if columns.weight < 0:
        return None
    return _weight_array(_column(table, names, columns.weight))


def _column(table: Any, names: list[Any], at: int) -> AnyArray:
    """A column as an array; positions, because names may occur twice."""
    if hasattr(table, "iloc"):
        return np.asarray(table.iloc[:, at].to_numpy())
    column = table.column(at) if hasattr(table, "column_names") else table[names[at]]
    return np.asarray(column.to_numpy())


def _missing(values: AnyArray) -> BoolArray:
    if values.dtype.kind == "f":
        return np.asarray(values != values)
    if values.dtype != object:
        return np.zeros(len(values), dtype=bool)
    return np.fromiter((is_missing(value) for value in values), bool, len(values))


def _weight_array(values: Any) -> Float64Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"The weights are not all numbers: {error}.") from None
