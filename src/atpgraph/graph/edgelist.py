"""Edge lists: one edge per line of text, plain or compressed, or a Parquet table."""

from __future__ import annotations

import gzip
import os
import re
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.graph._dialect import (
    Column,
    ColumnOptions,
    TextOptions,
    are_words,
    check_delimiter,
    choose_columns,
    is_integer,
)
from atpgraph.graph._numbering import EdgeRows
from atpgraph.graph._source import Source, shown_name
from atpgraph.graph._tables import parquet_rows
from atpgraph.graph._text import TextReader
from atpgraph.graph.digraph import DiGraph, factorize, object_array, pair_array
from atpgraph.util.arrays import AnyArray, Float64Array
from atpgraph.util.files import atomic_path
from atpgraph.util.memory import budget_bytes
from atpgraph.util.progress import stage

__all__ = ["read_edgelist", "write_edgelist"]

_PAIRS = "source and target in the first line"
_CHUNK = 1 << 20
_SPECIAL_IN_TABS = re.compile('^$|^[ #%\ufeff]|[ \n]$|["\r\n\t]')
_SPECIAL = re.compile('^$|^[ #%\ufeff]|[ \n]$|["\r\n\t,;]')


def read_edgelist(
    path: str | os.PathLike[str],
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | bool | None = None,
    type: Column | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    comments: str = "#%",
    quotes: bool = True,
    memory: str | float | None = None,
    weights: Literal["auto"] | bool | None = None,
) -> DiGraph:
    """Read a directed graph from a text file with one edge per line, or from a Parquet table.

    SNAP files, TSV and CSV are recognized, plain, gzipped or Zstandard (which needs the extra
    ``zstd``), in UTF-8; Parquet needs the extra ``parquet``. Parallel edges are merged and their
    weights added up, self-loops are kept. Nodes are numbered in the order of appearance. A text is
    read in pieces and need not fit in memory; of a table, only the columns used are read.

    Without `source` and `target`, columns called source/target, src/dst, from/to or subject/object
    are the edges; else the only two columns besides the weight; else, in a text file without names,
    the first two if the third holds numbers. Anything else is ambiguous and raises an error.

    Ids are int64 if every id is an integer written the usual way, else all of them are text; ids
    with a leading zero or a plus are text, because "007" is not "7".

    Parameters
    ----------
    path : path
        File to read, ``"-"`` for standard input; its format is detected from the content.
    source, target : str or int, optional
        Columns of the edges: names, or numbers counted from 1.
    weight : str, int or bool, optional
        Column of the weights. Without it, the column called weight, or the third one of a text
        file if it holds numbers. False ignores weights, True insists on them.
    type : str or int, optional
        Column of the types of the edges, see :attr:`DiGraph.edge_types`.
    delimiter : str, optional
        One character; ``" "`` means any run of spaces and tabs. Without it the first line
        decides: a tab, else the more frequent of comma and semicolon, else blanks.
    header : bool, optional
        Whether the first line names columns. By default, it does if a column is chosen by name, if
        it has names such as source/target, or if its ids are words and it is the only one of the
        lines in the first 64 KiB whose ids are not integers or whose third field is not a number.
    comments : str
        Characters that make a line a comment when one of them comes first; ``""`` for none.
    quotes : bool
        Whether a field that begins with a double quote ends at the next one, as in CSV.
    memory : str or number of bytes, optional
        Budget of reading, such as "4GB", by default half of the free memory. About 16 bytes for an
        edge of a text (40 with a weight), 64 for one of a table, and 70 for a node.
    weights : "auto", True or False
        Deprecated: use `weight`.

    Returns
    -------
    DiGraph

    Raises
    ------
    InputError
        In one sentence, with file and line, if the file cannot be read as an edge list.
    BudgetError
        If reading it would take more memory than allowed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("when,by,for,n\\n2020,ann,bob,2\\n2021,bob,carl,1\\n2022,ann,bob,3\\n")
    >>> graph = read_edgelist(path, source="by", target="for", weight="n")
    >>> list(graph.edges()), graph.weights.tolist()
    ([('ann', 'bob'), ('bob', 'carl')], [5.0, 1.0])
    """
    if weights is not None:
        warnings.warn(
            "weights is now weight; the old name will be removed in 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )
        weight = None if weights == "auto" else weights
    options = ColumnOptions(source, target, weight, type)
    options.check()
    text = TextOptions(delimiter, header, comments, quotes)
    text.check()
    with stage(f"reading {shown_name(path).name}"):
        return _rows(path, options, text, memory).graph()


def read_pairs(
    path: str | os.PathLike[str], *, memory: str | float | None = None
) -> tuple[AnyArray, AnyArray]:
    """Read pairs of labels in the order of the file, repeats included.

    The file is read as by :func:`read_edgelist`, without weights.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "pairs.txt"
    >>> _ = path.write_text("b a\\na b\\nb a\\n")
    >>> [side.tolist() for side in read_pairs(path)]
    [['b', 'a', 'b'], ['a', 'b', 'a']]
    """
    options = ColumnOptions(weight=False, remedy=_PAIRS)
    return _rows(path, options, TextOptions(), memory).pairs()


def _rows(
    path: str | os.PathLike[str],
    options: ColumnOptions,
    text: TextOptions,
    memory: str | float | None,
) -> EdgeRows:
    """Return the edges of a file, whatever its format."""
    with closing(Source(path)) as file:
        budget = budget_bytes(memory)
        if file.is_parquet:
            return parquet_rows(file.path, budget, options)
        return TextReader(file, budget, options, text).rows()


def write_edgelist(
    edges: DiGraph | npt.ArrayLike | Iterable[tuple[Hashable, Hashable]],
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
) -> None:
    """Write edges as text, one per line, with the weights if the graph has any.

    The file appears whole or not at all. :func:`read_edgelist` gives the edges back, except that
    labels become text, or integers where all of them look like integers. Nodes without edges are
    not written.

    Parameters
    ----------
    edges : DiGraph, array of shape (m, 2) or iterable of pairs
        Pairs are written in their order, a graph in the order of its edges.
    path : path
        A name ending in ``.gz`` is compressed.
    delimiter : str, optional
        Comma for ``.csv``, tab for anything else.
    header : bool, optional
        Whether to write the names of the columns. By default, they are written to ``.csv`` and
        ``.tsv`` files, and wherever the first edge would be mistaken for a header.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "edges.csv"
    >>> write_edgelist([("ann", "bob"), ("bob", "carl")], path)
    >>> path.read_text()
    'source,target\\nann,bob\\nbob,carl\\n'
    """
    target = Path(path)
    suffixes = [suffix for suffix in target.suffixes[-2:] if suffix != ".gz"]
    kind = suffixes[-1].lower() if suffixes else ""
    check_delimiter(delimiter)
    delimiter = delimiter or ("," if kind == ".csv" else "\t")
    if isinstance(edges, DiGraph):
        codes: AnyArray = np.stack([edges.sources, edges.targets], axis=1)
        labels, weights = edges.labels, edges.weights
    else:
        numbers, labels = factorize(np.ascontiguousarray(pair_array(edges)).reshape(-1))
        codes, weights = numbers.reshape(-1, 2), None
    texts = _texts(labels)
    if header is None:
        header = kind in (".csv", ".tsv") or (labels.dtype == object and _mistakable(texts, codes))
    names = ["source", "target"] if weights is None else ["source", "target", "weight"]
    if labels.dtype == object:
        cells = [_quoted(text, delimiter) for text in texts]
    else:
        cells = list(map(str.encode, texts))
    # Separators are attached to the few labels, so that an edge is one addition of two objects.
    left = object_array([cell + delimiter.encode() for cell in cells])
    right = object_array(
        [cell + (b"\n" if weights is None else delimiter.encode()) for cell in cells]
    )
    with stage(f"writing {target.name}"), atomic_path(target) as temporary:
        try:
            with open(temporary, "wb") as raw:
                # No name and no time inside, so that the same graph gives the same bytes.
                zipped = gzip.GzipFile("", "wb", 6, raw, 0) if target.suffix == ".gz" else None
                out: Any = zipped or raw
                if header:
                    out.write(delimiter.join(names).encode() + b"\n")
                for start in range(0, len(codes), _CHUNK):
                    part = codes[start : start + _CHUNK]
                    lines = left[part[:, 0]] + right[part[:, 1]]
                    if weights is not None:
                        lines = lines + _numbers(weights[start : start + _CHUNK])
                    out.write(b"".join(lines.tolist()))
                if zipped is not None:
                    zipped.close()
        except OSError as error:
            raise InputError(f"Cannot write {target}: {error.strerror}.") from error


def _texts(labels: AnyArray) -> list[str]:
    texts = list(map(str, labels.tolist()))
    if len(set(texts)) < len(texts):
        twice = Counter(texts).most_common(1)[0][0]
        raise InputError(f"Two nodes are both written as {twice!r}; rename one of them.")
    return texts


def _quoted(text: str, delimiter: str) -> bytes:
    """Return the label as the reader needs it: quoted if it could be misread."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise InputError(f"The label {text!r} is not valid Unicode; rename the node.") from None
    if b"\0" in raw:
        raise InputError(f"The label {text!r} holds a NUL character; rename the node.")
    # Commas and semicolons would mislead the search for the delimiter, were it not a tab.
    special = _SPECIAL_IN_TABS if delimiter == "\t" else _SPECIAL
    if special.search(text) or delimiter in text:
        return b'"' + raw.replace(b'"', b'""') + b'"'
    return raw


def _mistakable(texts: list[str], codes: AnyArray) -> bool:
    """Return whether a reader would take the first edge for a header."""
    if not len(codes):
        return False
    first = [texts[code] for code in codes[0]]
    if choose_columns(first).named:
        return True
    if len(codes) == 1 or not are_words(first):
        return False
    plain = np.array([is_integer(text) for text in texts], dtype=np.bool_)
    return bool(plain[codes[1:]].all())


def _numbers(weights: Float64Array) -> AnyArray:
    distinct, where = np.unique(weights, return_inverse=True)
    texts = [repr(int(x)) if x.is_integer() else repr(x) for x in distinct.tolist()]
    return object_array([text.encode() + b"\n" for text in texts])[where.reshape(-1)]
