"""Writing edge lists, such that :func:`atpgraph.read_edgelist` gives the same edges back."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.graph._dialect import are_words, check_delimiter, choose_columns
from atpgraph.graph.digraph import DiGraph, factorize, pair_array
from atpgraph.util.arrays import AnyArray, Float64Array
from atpgraph.util.files import atomic_path
from atpgraph.util.progress import stage

_CHUNK = 1 << 20
_SPECIAL_IN_TABS = re.compile('^$|^[ #%\ufeff]|[ \n]$|["\r\n\t]')
_SPECIAL = re.compile('^$|^[ #%\ufeff]|[ \n]$|["\r\n\t,;]')


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
        Whether to name the columns. Without it, they are named in ``.csv`` and ``.tsv`` files,
        and where the first edge would be mistaken for names.

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
    left = _objects([cell + delimiter.encode() for cell in cells])
    right = _objects([cell + (b"\n" if weights is None else delimiter.encode()) for cell in cells])
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
    if labels.dtype == object and len(set(texts)) < len(texts):
        seen: set[str] = set()
        for text in texts:
            if text in seen:
                raise InputError(f"Two nodes are both written as {text!r}; rename one of them.")
            seen.add(text)
    return texts


def _quoted(text: str, delimiter: str) -> bytes:
    """The label as the reader wants it: quoted where anything in it could mean something else."""
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
    """Whether a reader would take the first edge for a header."""
    if not len(codes):
        return False
    first = [texts[code] for code in codes[0]]
    if choose_columns(first).named:
        return True
    if len(codes) == 1 or not are_words(first):
        return False
    plain = np.array([_is_integer(text) for text in texts], dtype=np.bool_)
    return bool(plain[codes[1:]].all())


def _is_integer(text: str) -> bool:
    digits = text[1:] if text.startswith("-") else text
    return digits.isascii() and digits.isdigit()


def _numbers(weights: Float64Array) -> AnyArray:
    distinct, where = np.unique(weights, return_inverse=True)
    texts = [repr(int(x)) if x.is_integer() else repr(x) for x in distinct.tolist()]
    return _objects([text.encode() + b"\n" for text in texts])[where.reshape(-1)]


def _objects(values: list[bytes]) -> AnyArray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
