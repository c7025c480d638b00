"""Evidence of what nodes are: a matrix, a table, texts or a file, compared."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.evidence.base import Evidence, NewNode
from atpgraph.linkpred.factor import singular_factors
from atpgraph.util.arrays import Float32Array, Float64Array, IntArray
from atpgraph.util.random import generator

COMPONENTS = 16


class Attributes(Evidence):
    """How alike the attributes of u and v are, and which of them speak for a link.

    x holds the attributes of a node along their main components (the longest first, scaled so that
    the inner product of two nodes is near their cosine). Terms are the cosine; x_u ∘ x_v, with one
    weight each, which is a bilinear form x_uᵀ diag(w) x_v; and x_v − x_u, which tells the direction
    apart where attributes rise or fall along edges.

    Parameters
    ----------
    vectors : array of shape (nodes, components)

    Examples
    --------
    >>> alike = Attributes(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    >>> alike.pairs(np.array([0, 0]), np.array([1, 2]))[:, 0].tolist()
    [1.0, 0.0]
    """

    def __init__(self, vectors: npt.ArrayLike) -> None:
        self.vectors_: Float32Array = np.asarray(vectors, dtype=np.float32)
        k = self.vectors_.shape[1]
        self._norm = np.maximum(np.linalg.norm(self.vectors_, axis=1), 1e-12)
        forms = ("attributes in common", "attributes apart")
        self.names = ("similarity", *(f"{form}, {at + 1}" for form in forms for at in range(k)))
        self.kinds = ("attributes",) * len(self.names)
        self.term_names = self.names

    def fit(self, graph: DiGraph) -> Self:
        """Check that there is a row for each node."""
        if len(self.vectors_) != graph.n_nodes:
            raise InputError(
                f"{len(self.vectors_):,} rows of attributes for {graph.n_nodes:,} nodes; "
                "give one for each, in the order of the graph."
            )
        return self

    def pairs(self, u: IntArray, v: IntArray) -> Float64Array:
        """Return the cosine, products and differences."""
        a, b = self.vectors_[u], self.vectors_[v]
        product = (a * b).astype(np.float64)
        cosine = product.sum(axis=1) / (self._norm[u] * self._norm[v])
        return np.concatenate([cosine[:, None], product, b - a], axis=1)

    def terms(self, found: Float64Array) -> Float64Array:
        """Return them as they are."""
        return found

    def grown(self, new: NewNode) -> Attributes:
        """Return the evidence with the attributes of the node, zero if they are not given."""
        width = self.vectors_.shape[1]
        row = np.zeros(width, dtype=np.float32)
        if new.attributes is not None:
            row = np.asarray(new.attributes, dtype=np.float32).reshape(-1)
        if len(row) != width:
            raise InputError(f"The attributes of the new node are {len(row)} numbers, not {width}.")
        return Attributes(np.concatenate([self.vectors_, row[None]]))


def attribute_vectors(
    attributes: Any, graph: DiGraph, *, n_components: int = COMPONENTS, random_state: int = 0
) -> Float32Array:
    """Main components of the attributes of all nodes, one row for each node of the graph.

    Parameters
    ----------
    attributes : object
        - an array or SciPy sparse matrix with a row for each node, in the order of
          ``graph.labels``;
        - a mapping from labels to texts, numbers or rows of numbers;
        - a pandas or polars table: the first column holds the labels, or the index if it is a
          pandas table whose index names nodes; the others are attributes;
        - a sequence of texts, one for each node, in the order of the graph.

        Text becomes TF-IDF. A node that is not mentioned has no attributes: all zero.
    """
    matrix = _matrix(attributes, graph)
    if not matrix.shape[1]:
        raise InputError("The attributes have no column.")
    k = min(n_components, *matrix.shape)
    back = sp.csr_array(matrix.T) if sp.issparse(matrix) else matrix.T
    n = max(matrix.shape)

    def padded(x: Float64Array, side: Any, rows: int) -> Float64Array:
        out = np.zeros((n, *x.shape[1:]))
        out[: side.shape[0]] = side @ x[:rows]
        return out

    source, target = singular_factors(
        n, k,
        lambda x: padded(x, matrix, matrix.shape[1]),
        lambda x: padded(x, back, matrix.shape[0]),
        generator(random_state), tolerance=1e-3,
    )  # fmt: skip
    # U √Σ √Σ = U Σ: inner products are those of the rows; √Σ is the norm of a column of V √Σ.
    scale = np.linalg.norm(target, axis=0)
    return np.asarray(source[: matrix.shape[0]] * scale, dtype=np.float32)


def _matrix(attributes: Any, graph: DiGraph) -> Any:
    """Rows of unit length (text) or standardized columns (numbers), one for each node."""
    n = graph.n_nodes
    if hasattr(attributes, "columns") and hasattr(attributes, "to_numpy"):
        attributes = _of_table(attributes, graph)
    if isinstance(attributes, Mapping):
        return _of_mapping(attributes, graph)
    if sp.issparse(attributes):
        given = sp.csr_array(attributes).astype(np.float64)
        _check_rows(given.shape[0], n)
        return _unit_rows(given)
    if isinstance(attributes, Sequence) and attributes and isinstance(attributes[0], str):
        _check_rows(len(attributes), n)
        return _tfidf(list(attributes))
    try:
        dense = np.asarray(attributes, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "Attributes must be numbers or texts: a matrix, a table, a mapping from labels, or one "
            "text for each node."
        ) from None
    dense = dense[:, None] if dense.ndim == 1 else dense
    if dense.ndim != 2:
        raise InputError(f"Attributes of shape {dense.shape}; give a row for each node.")
    _check_rows(len(dense), n)
    return _standardized(dense, np.ones(n, dtype=bool))


def _of_table(table: Any, graph: DiGraph) -> Mapping[Any, Any]:
    names = list(table.columns)
    index = getattr(table, "index", None)
    if index is not None and (graph.codes_or_minus_one(list(index)) >= 0).mean() > 0.5:
        labels = list(index)
    else:
        labels = table[names.pop(0)].to_numpy().tolist()
    if not names:
        raise InputError("The table of attributes has labels only; add a column of attributes.")
    columns = [table[name].to_numpy() for name in names]
    if any(column.dtype.kind not in "biuf" for column in columns):
        texts = [" ".join(str(value) for value in row) for row in zip(*columns, strict=True)]
        return dict(zip(labels, texts, strict=True))
    rows = np.column_stack([column.astype(np.float64) for column in columns])
    return dict(zip(labels, rows, strict=True))


def _of_mapping(given: Mapping[Any, Any], graph: DiGraph) -> Any:
    labels = list(given)
    codes = graph.codes_or_minus_one(labels)
    known = np.flatnonzero(codes >= 0)
    if not len(known):
        raise InputError(
            "No label of the attributes is a node of the graph; check that labels are of the same "
            "kind, text or numbers."
        )
    values = [given[labels[at]] for at in known]
    if all(isinstance(value, str) for value in values):
        texts = [""] * graph.n_nodes
        for code, value in zip(codes[known], values, strict=True):
            texts[code] = value
        return _tfidf(texts)
    rows = [np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in values]
    if len({row.shape for row in rows}) > 1:
        raise InputError("The rows of attributes have different lengths.")
    dense = np.zeros((graph.n_nodes, len(rows[0])))
    dense[codes[known]] = np.stack(rows)
    there = np.zeros(graph.n_nodes, dtype=bool)
    there[codes[known]] = True
    return _standardized(dense, there)


def _check_rows(rows: int, n: int) -> None:
    if rows != n:
        raise InputError(
            f"{rows:,} rows of attributes for {n:,} nodes; give one for each, in the order of the "
            "graph, or a mapping from labels."
        )


def _standardized(dense: Float64Array, there: npt.NDArray[np.bool_]) -> Float64Array:
    if not np.isfinite(dense).all():
        raise InputError("The attributes hold a number that is not finite.")
    centered = dense - dense[there].mean(axis=0)
    spread = dense[there].std(axis=0)
    scaled = centered / np.where(spread > 0, spread, 1.0) / np.sqrt(dense.shape[1])
    scaled[~there] = 0.0
    return np.asarray(scaled)


def _unit_rows(matrix: sp.csr_array) -> sp.csr_array:
    if not np.isfinite(matrix.data).all():
        raise InputError("The attributes hold a number that is not finite.")
    norm = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1))
    return sp.csr_array(sp.diags_array(1.0 / np.where(norm > 0, norm, 1.0)) @ matrix)


def _tfidf(texts: list[str]) -> Any:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise MissingDependencyError("scikit-learn", "links", "Text as an attribute") from None
    try:
        return sp.csr_array(TfidfVectorizer(sublinear_tf=True).fit_transform(texts))
    except ValueError:
        raise InputError("The texts of the attributes hold no word.") from None


def read_attributes(
    path: str | os.PathLike[str], graph: DiGraph
) -> dict[object, str] | dict[object, list[float]]:
    """Read attributes by label: rows of numbers if all fields are, else texts.

    Fields are separated by tabs if the first line has one, else by commas. A first line whose label
    is no node of the graph is a header. Nodes that the graph does not have are left out.
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
        numbers = {label: [float(field) for field in fields] for label, fields in known}
    except ValueError:
        return {label: " ".join(fields) for label, fields in known}
    if len({len(fields) for fields in numbers.values()}) > 1:
        raise InputError(f"{path}: the rows have different numbers of fields.")
    return numbers


def read_times(path: str | os.PathLike[str], graph: DiGraph) -> Float64Array:
    """Read times of nodes (label, time) or of edges (source, target, time).

    Fields are separated by tabs, commas or spaces. Lines about nodes or edges that the graph does
    not have are left out; what no line mentions gets NaN.
    """
    rows = _rows(path, "times", spaces=True)
    width = len(rows[-1])
    if width not in (2, 3):
        raise InputError(
            f"{path} has {width} fields in a line; give a label and a time, or both ends of an "
            "edge and a time."
        )
    codes = {str(label): code for code, label in enumerate(graph.labels.tolist())}
    found: list[tuple[list[int], float]] = []
    for number, row in enumerate(rows, 1):
        ends = [codes.get(field.strip(), -1) for field in row[: width - 1]]
        if len(row) != width or min(ends) < 0:
            continue
        try:
            found.append((ends, float(row[-1])))
        except ValueError:
            raise InputError(f"{path}, row {number}: the time {row[-1]!r} is no number.") from None
    if not found:
        raise InputError(f"{path} names no {'node' if width == 2 else 'edge'} of the graph.")
    where = np.array([ends for ends, _ in found])
    at = where[:, 0] if width == 2 else graph.find_edges(where[:, 0], where[:, 1])
    times = np.full(graph.n_nodes if width == 2 else graph.n_edges, np.nan)
    times[at[at >= 0]] = np.array([time for _, time in found])[at >= 0]
    return times


def _rows(path: str | os.PathLike[str], what: str, spaces: bool = False) -> list[list[str]]:
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; give a file of {what}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {file}: {error}.") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise InputError(f"{file} is empty; give a file of {what}.")
    if spaces and "\t" not in lines[0] and "," not in lines[0]:
        return [line.split() for line in lines]
    return list(csv.reader(lines, delimiter="\t" if "\t" in lines[0] else ","))
