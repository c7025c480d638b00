"""Store graphs in archives: convert to arrays and back, and check the arrays."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import MAX_TYPES, DiGraph, object_array
from atpgraph.util.archive import (
    Field,
    as_bytes,
    as_text,
    check_pointers,
    parse_json,
    pointers,
    text,
    unique_names,
)
from atpgraph.util.arrays import AnyArray, UInt64Array

# n nodes, m edges; the labels are in the one or the other.
GRAPH_FIELDS = {
    "indptr": pointers("n", "m"),
    "targets": Field("i", ("m",), low=0, high="n"),
    "weights": Field("f", ("m",), optional=True),
    "edge_types": Field("u", ("m",), optional=True),
    "type_names_json": text(optional=True),
    "labels": Field("i", ("n",), unique=True, optional=True),
    "labels_json": text(optional=True),
}


def graph_arrays(graph: DiGraph) -> dict[str, AnyArray]:
    """Return the arrays that hold a graph; :func:`graph_from` reads them.

    Examples
    --------
    >>> arrays = graph_arrays(DiGraph.from_edges([("a", ("b", 1))]))
    >>> sorted(arrays)
    ['indptr', 'labels_json', 'targets']
    >>> list(graph_from(arrays).edges())
    [('a', ('b', 1))]
    """
    arrays: dict[str, AnyArray] = {"indptr": graph.indptr, "targets": graph.targets}
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    if graph.edge_types is not None:
        arrays["edge_types"] = graph.edge_types
        names = json.dumps(graph.type_names, ensure_ascii=False)
        arrays["type_names_json"] = as_bytes(names)
    if graph.labels.dtype == np.int64:
        arrays["labels"] = graph.labels
    else:
        labels = [_plain(label) for label in graph.labels.tolist()]
        arrays["labels_json"] = as_bytes(json.dumps(labels, ensure_ascii=False))
    return arrays


def graph_from(arrays: Mapping[str, AnyArray]) -> DiGraph:
    """Return the graph in arrays that agree with `GRAPH_FIELDS`, or raise a ``ValueError``."""
    indptr, targets = arrays["indptr"], arrays["targets"]
    check_pointers(indptr, len(targets))
    if "labels" in arrays:
        labels = arrays["labels"].astype(np.int64)
    else:
        decoded = [_unplain(label) for label in parse_json(as_text(arrays["labels_json"]))]
        unique_names(decoded)
        labels = object_array(decoded)
    if len(labels) != len(indptr) - 1:
        raise ValueError("its labels do not fit its nodes")
    # Sorted by source and target, each edge once: what every algorithm relies on.
    keys = np.repeat(np.arange(len(labels)), np.diff(indptr)) * max(len(labels), 1) + targets
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("its edges are not in order")
    return DiGraph(
        indptr.astype(np.int64), targets.astype(np.int32), labels, arrays.get("weights"),
        *_types_from(arrays),
    )  # fmt: skip


def _types_from(arrays: Mapping[str, AnyArray]) -> tuple[UInt64Array | None, tuple[str, ...]]:
    if ("edge_types" in arrays) != ("type_names_json" in arrays):
        raise ValueError("its edges have types without names, or the other way round")
    if "edge_types" not in arrays:
        return None, ()
    names = parse_json(as_text(arrays["type_names_json"]))
    unique_names(names)
    bits = arrays["edge_types"].astype(np.uint64)
    if len(names) > MAX_TYPES or int(bits.max(initial=0)) >= 1 << len(names):
        raise ValueError("its types of edges do not fit their names")
    return bits, tuple(map(str, names))


def _plain(label: Any) -> Any:
    """Return a label as JSON; a tuple as an object, so that it comes back as a tuple."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or isinstance(label, (str, int)):
        return label
    if isinstance(label, float) and math.isfinite(label):
        return label
    if isinstance(label, tuple):
        return {"tuple": [_plain(part) for part in label]}
    raise InputError(
        f"The label {label!r} is a {type(label).__name__}, which a file cannot hold; "
        "use text, numbers or tuples of them as labels."
    )


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_unplain(part) for part in value["tuple"])
    return value
