"""Read attributes of nodes, and the times of nodes and edges."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.factor import singular_factors, stored
from atpgraph.util.arrays import BoolArray, Float32Array, Float64Array, Int64Array, IntArray
from atpgraph.util.random import generator

Times = Float64Array | dict[Any, float]
COMPONENTS = 16
NEWEST = 0.2  # of the edges: the sources that choose after the rest teach what is next


def attribute_vectors(
    attributes: Any, graph: DiGraph, *, n_components: int = COMPONENTS, random_state: int = 0
) -> Float32Array:
    """Return the principal components of the attributes, one row for each node of the graph.

    Parameters
    ----------
    attributes : object
        - an array or SciPy sparse matrix with a row for each node, in the order of
          ``graph.labels``;
        - a mapping from labels to texts, numbers or rows of numbers, or a pandas series whose index
          has labels;
        - a pandas or polars table: the first column holds the labels, or the index if it is a
          pandas table whose index names nodes; the others are attributes;
        - a sequence of texts, one for each node, in the order of the graph.

        Text becomes TF-IDF. A node that is not mentioned has no attributes: all zero.
    """
    matrix = sp.csr_array(_matrix(attributes, graph))
    if not matrix.shape[1]:
        raise InputError("The attributes have no column.")
    k, size = min(n_components, *matrix.shape), max(matrix.shape)
    matrix.resize((size, size))
    source, target = singular_factors(stored(matrix), k, generator(random_state), tolerance=1e-3)
    # U √Σ √Σ = U Σ: inner products are those of the rows; √Σ is the norm of a column of V √Σ.
    scale = np.linalg.norm(target, axis=0)
    return np.asarray(source[: graph.n_nodes] * scale, dtype=np.float32)


def _matrix(attributes: Any, graph: DiGraph) -> Any:
    """Return rows of unit length (text, sparse) or standardized columns (numbers)."""
    nodes: IntArray = np.arange(graph.n_nodes)
    attributes = _by_index(attributes)
    if hasattr(attributes, "columns") and hasattr(attributes, "to_numpy"):
        attributes = _of_table(attributes, graph)
    if isinstance(attributes, Mapping):
        nodes, attributes = _by_code(attributes, graph)
        if not len(nodes):
            raise InputError(
                "No label of the attributes is a node of the graph; check that labels are of the "
                "same kind, text or numbers."
            )
        if len({np.size(row) for row in attributes}) > 1:
            raise InputError("The rows of attributes have different lengths.")
    sparse, texts = sp.issparse(attributes), _are_texts(attributes)
    if not sparse and not texts:
        try:
            attributes = np.asarray(attributes, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "Attributes must be numbers or texts: a matrix, a table, a mapping from labels, or "
                "one text for each node."
            ) from None
        attributes = attributes[:, None] if attributes.ndim == 1 else attributes
        if attributes.ndim != 2:
            raise InputError(f"Attributes of shape {attributes.shape}; give a row for each node.")
    rows = len(attributes) if texts else attributes.shape[0]
    if rows != len(nodes):
        raise InputError(
            f"{rows:,} rows of attributes for {graph.n_nodes:,} nodes; give one for each, in the "
            "order of the graph, or a mapping from labels."
        )
    if texts:
        known = dict(zip(nodes.tolist(), attributes, strict=True))
        return _tfidf([known.get(code, "") for code in range(graph.n_nodes)])
    if not np.isfinite(attributes.data if sparse else attributes).all():
        raise InputError(
            "The attributes hold a number that is not finite; fill in missing values, or leave "
            "nodes out of a mapping."
        )
    if sparse:
        given = sp.csr_array(attributes).astype(np.float64)
        norm = np.sqrt(np.asarray(given.multiply(given).sum(axis=1)).reshape(-1))
        return sp.diags_array(1.0 / np.where(norm > 0, norm, 1.0)) @ given
    spread = attributes.std(axis=0)
    scaled = np.zeros((graph.n_nodes, attributes.shape[1]))
    scaled[nodes] = (attributes - attributes.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled / np.sqrt(attributes.shape[1])


def _by_code(values: Mapping[Any, Any], graph: DiGraph) -> tuple[Int64Array, list[Any]]:
    """Return the nodes of a mapping from labels, and their values; other labels are ignored."""
    codes = graph.codes_or_minus_one(list(values))
    known = [value for value, code in zip(values.values(), codes, strict=True) if code >= 0]
    return codes[codes >= 0].astype(np.int64), known


def _are_texts(attributes: Any) -> bool:
    listed = isinstance(attributes, Sequence) or getattr(attributes, "ndim", 0) == 1
    listed = listed and len(attributes) > 0
    return listed and all(isinstance(each, str) for each in attributes)


def _of_table(table: Any, graph: DiGraph) -> Mapping[Any, Any]:
    def are_nodes(labels: list[Any]) -> bool:
        return bool((graph.codes_or_minus_one(labels) >= 0).mean() > 0.5)

    names, index = list(table.columns), getattr(table, "index", None)
    labels = table[names[0]].to_numpy().tolist()
    # The rows of a frame without an index of its own are numbered, and so are many nodes: a first
    # column of different integers that name nodes comes before such numbers.
    numbered = type(index).__name__ == "RangeIndex" and len(names) > 1
    numbered = numbered and all(isinstance(x, int) for x in labels) and are_nodes(labels)
    named = numbered and len(set(labels)) == len(labels)
    if index is not None and not named and are_nodes(list(index)):
        labels = list(index)
    else:
        del names[0]
    if not names:
        raise InputError("The table of attributes has labels only; add a column of attributes.")
    columns = [table[name].to_numpy() for name in names]
    rows: list[Any] = list(zip(*columns, strict=True))
    if any(column.dtype.kind not in "biuf" for column in columns):
        rows = [" ".join(str(x) for x in row if not _is_missing(x)) for row in rows]
    return dict(zip(labels, rows, strict=True))


def _is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN or pandas' NA."""
    return value is None or str(value) in ("nan", "<NA>", "NaT")


def _tfidf(texts: list[str]) -> Any:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise MissingDependencyError("scikit-learn", "links", "Text as an attribute") from None
    try:
        return TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    except ValueError:
        raise InputError("The text attributes contain no words.") from None


def read_attributes(
    path: str | os.PathLike[str], graph: DiGraph
) -> dict[object, str] | dict[object, list[float]]:
    """Read attributes by label: rows of numbers if all fields are, else texts.

    Fields are separated by tabs if the first line has one, else by commas. A first line whose label
    is not a node of the graph is a header. Nodes that are not in the graph are ignored.
    """
    rows = _rows(path, "attributes")
    names = {str(label): label for label in graph.labels.tolist()}
    known = [(names[row[0].strip()], row[1:]) for row in rows if row[0].strip() in names]
    if not known:
        raise InputError(
            f"{path} names no node of the graph; the first field of a line is a label."
        )
    for number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise InputError(f"{path}, row {number}: {row[0]!r} has no attributes.")
    try:
        # A missing number is NaN, which is refused later, instead of a reason to read texts.
        numbers = {label: [float(x.strip() or "nan") for x in fields] for label, fields in known}
    except ValueError:
        return {label: " ".join(fields) for label, fields in known}
    if len({len(fields) for fields in numbers.values()}) > 1:
        raise InputError(f"{path}: the rows have different numbers of fields.")
    return numbers


def time_values(times: Any, graph: DiGraph) -> tuple[Float64Array, bool]:
    """Return a number for each node, or for each edge, NaN if unknown, and whether for edges.

    Times are a mapping from labels, or from pairs of labels, to numbers; a pandas series with such
    an index; or an array in the order of the nodes or of the edges. An array that could be either
    is taken as times of nodes.
    """
    times = _by_index(times)
    of_edges = np.size(times) != graph.n_nodes
    if isinstance(times, Mapping):
        at, values = _by_code(times, graph)
        of_edges = not len(at) and all(isinstance(key, tuple) and len(key) == 2 for key in times)
        if of_edges and times:
            u, v = (graph.codes_or_minus_one(side) for side in zip(*times, strict=True))
            places = graph.find_edges(u, v).tolist()
            known = {at: x for at, x in zip(places, times.values(), strict=True) if at >= 0}
            at, values = np.array(list(known), dtype=np.int64), list(known.values())
        times = np.full(graph.n_edges if of_edges else graph.n_nodes, None)
        times[at] = values
    try:
        given = np.asarray(times, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise InputError("times must be numbers, one for each node or for each edge.") from None
    if len(given) not in (graph.n_nodes, graph.n_edges):
        raise InputError(
            f"{len(given):,} times for {graph.n_nodes:,} nodes and {graph.n_edges:,} edges; "
            "give one for each node, or one for each edge."
        )
    return given, of_edges


def edge_times(values: Float64Array, graph: DiGraph) -> Times:
    """Return times of the edges, as a mapping where an array could be times of nodes."""
    if graph.n_edges != graph.n_nodes:
        return values
    return dict(zip(graph.edges(), values.tolist(), strict=True))


def _by_index(values: Any) -> Any:
    """Return a pandas series with an index of its own as a mapping; all else stays as it is."""
    is_series = hasattr(values, "to_dict") and not hasattr(values, "columns")
    return values.to_dict() if is_series and type(values.index).__name__ != "RangeIndex" else values


def read_times(path: str | os.PathLike[str], graph: DiGraph) -> Times:
    """Read times of nodes (label, time) or of edges (source, target, time).

    Fields are separated by tabs, commas or spaces. Lines about nodes or edges that are not in the
    graph are ignored; nodes or edges without a line get NaN. See :func:`time_values`.
    """
    rows = _rows(path, "times", spaces=True)
    width = len(rows[-1])
    if width not in (2, 3):
        raise InputError(
            f"{path} has {width} fields in a line; give a label and a time, or both ends of an "
            "edge and a time."
        )
    codes = {str(label): code for code, label in enumerate(graph.labels.tolist())}
    places: dict[tuple[int, ...], float] = {}
    for number, row in enumerate(rows, 1):
        ends = tuple(codes.get(field.strip(), -1) for field in row[: width - 1])
        if len(row) == width and min(ends) >= 0:
            try:
                places[ends] = float(row[-1])
            except ValueError:
                why = f"{path}, row {number}: the time {row[-1]!r} is not a number."
                raise InputError(why) from None
    if not places:
        raise InputError(f"{path} names no {'node' if width == 2 else 'edge'} of the graph.")
    where = np.array(list(places))
    at = where[:, 0] if width == 2 else graph.find_edges(where[:, 0], where[:, 1])
    times = np.full(graph.n_nodes if width == 2 else graph.n_edges, np.nan)
    times[at[at >= 0]] = np.array(list(places.values()))[at >= 0]
    return times if width == 2 else edge_times(times, graph)


def _rows(path: str | os.PathLike[str], what: str, spaces: bool = False) -> list[list[str]]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give a file of {what}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise InputError(f"{path} is empty; give a file of {what}.")
    if spaces and "\t" not in lines[0] and "," not in lines[0]:
        return [line.split() for line in lines]
    return list(csv.reader(lines, delimiter="\t" if "\t" in lines[0] else ","))


@dataclass(frozen=True, eq=False)
class Clock:
    """Times, expressed as the share of older edges.

    ``edge`` says when the edges of ``graph`` arrive, ``start`` when nodes appear, ``now`` when they
    choose targets. The graph must be the whole graph, so that edges hidden later keep their times.
    """

    graph: DiGraph
    edge: Float64Array
    start: Float64Array
    now: Float64Array

    @classmethod
    def of(cls, times: Any, graph: DiGraph) -> Clock:
        """Read times as :func:`time_values` takes them.

        The time of an edge is that of its source if nodes have times. If edges have, a node begins
        with its first edge, and its latest out-edge is the time at which it chooses targets.
        """
        given, of_edges = time_values(times, graph)
        if not np.isfinite(given).any():
            raise InputError("No time is a finite number.")
        known = np.where(np.isfinite(given), given, np.nan)
        edge, start, now = known if of_edges else known[graph.sources], known, known
        if of_edges:
            start, now = np.full(graph.n_nodes, np.inf), np.full(graph.n_nodes, -np.inf)
            for side in (graph.sources, graph.targets):
                np.fmin.at(start, side, edge)
            np.fmax.at(now, graph.sources, edge)
        seen = np.sort(edge[np.isfinite(edge)])
        if not len(seen):
            seen = np.sort(known[np.isfinite(known)])

        def share(x: Float64Array, unknown: float) -> Float64Array:
            return np.where(np.isfinite(x), np.searchsorted(seen, x) / len(seen), unknown)

        # Unknown edges are old, unknown nodes as old as any, and they choose at the end.
        return cls(graph, share(edge, 0.0), share(start, 0.0), share(now, 1.0))

    @property
    def is_new(self) -> BoolArray:
        """Whether each node chooses targets after most edges were made."""
        return self.now > 1.0 - NEWEST

    def arrivals(self, graph: DiGraph) -> Float64Array:
        """Return the arrival times of the edges of a subgraph."""
        return self.edge[self.graph.find_edges(graph.sources, graph.targets)]

    def grown(self, graph: DiGraph) -> Clock:
        """Return the times of a larger graph: nodes and edges that are new are the newest."""
        # New nodes choose after the new edges, which come after all others (whose shares are less).
        edge = np.full(graph.n_edges, 1.0 - 0.5 / max(graph.n_edges, 1))
        node = np.ones(graph.n_nodes - len(self.start))
        edge[graph.find_edges(self.graph.sources, self.graph.targets)] = self.edge
        return Clock(graph, edge, np.append(self.start, node), np.append(self.now, node))


def link_counts(graph: DiGraph, clock: Clock | None) -> Callable[[int, float], Int64Array]:
    """Return a function of a source and a horizon that counts the recent links of every node.

    The horizon is a share of all edges, and ends when the source chooses. Without times all links
    count.
    """
    if clock is None:
        return lambda source, horizon: graph.in_degree
    arrivals = clock.arrivals(graph)
    order = np.argsort(arrivals, kind="stable")
    targets, arrivals = graph.targets[order], arrivals[order]

    def counts(source: int, horizon: float) -> Int64Array:
        until = clock.now[source]
        low = np.searchsorted(arrivals, until - horizon) if horizon < 1 else 0
        return np.bincount(targets[low : np.searchsorted(arrivals, until)], minlength=graph.n_nodes)

    return counts
