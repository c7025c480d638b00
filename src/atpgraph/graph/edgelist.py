"""Edge lists as text: one edge per line, plain or gzipped."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from pathlib import Path
from typing import Literal

import numpy as np

from atpgraph._progress import stage
from atpgraph._typing import AnyArray, BoolArray, ByteArray, Float64Array, Int64Array
from atpgraph.errors import InputError
from atpgraph.graph import _scan
from atpgraph.graph._dialect import (
    Columns,
    are_words,
    check_delimiter,
    choose_columns,
    first_record,
    line_end,
    split_record,
)
from atpgraph.graph._write import write_edgelist
from atpgraph.graph.digraph import DiGraph

__all__ = ["read_edgelist", "write_edgelist"]

_BOM = b"\xef\xbb\xbf"


def read_edgelist(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    comments: str = "#%",
    weights: Literal["auto"] | bool = "auto",
    quotes: bool = True,
) -> DiGraph:
    """Read a directed graph from a text file with one edge per line.

    SNAP files, TSV and CSV are recognised, plain or gzipped, in UTF-8. Each line holds a source,
    a target and perhaps a weight; further columns are ignored, parallel edges are merged and
    their weights added up, self-loops are kept. Nodes are numbered in the order of appearance.

    Ids are int64 if every id is an integer written the usual way, else all of them are text; ids
    with a leading zero or a plus are text, because "007" is not "7".

    Parameters
    ----------
    path : path
        File to read, ``"-"`` for standard input; gzip is recognised by its content.
    delimiter : str, optional
        One character; ``" "`` means any run of spaces and tabs. Without it the first line
        decides: a tab, else the more frequent of comma and semicolon, else blanks.
    header : bool, optional
        Whether the first line names columns. Without it, it does if it has names such as
        source/target, src/dst or from/to, or if its ids are words and it is the only line whose
        ids are not integers or whose third field is not a number. Columns named source, target
        (or the like) and weight are found by name, in any order.
    comments : str
        Characters that make a line a comment when one of them comes first; ``""`` for none.
    weights : "auto", True or False
        "auto" takes the column named weight, else the third one: its numbers are weights; if it
        holds no number at all it is ignored; if only some fields are numbers, that is an error.
        True insists on weights, False ignores them.
    quotes : bool
        Whether a field that begins with a double quote ends at the next one, as in CSV.

    Returns
    -------
    DiGraph

    Raises
    ------
    InputError
        In one sentence, with file and line, if the file cannot be read as an edge list.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("from,to,weight\\nann,bob,2\\nbob,carl,1\\nann,bob,3\\n")
    >>> graph = read_edgelist(path)
    >>> list(graph.edges()), graph.weights.tolist()
    ([('ann', 'bob'), ('bob', 'carl')], [5.0, 1.0])
    """
    check_delimiter(delimiter)
    if not comments.isascii():
        raise InputError(f"Comments begin with an ASCII character, not with {comments!r}.")
    with stage(f"reading {_shown_name(path).name}"):
        file, text = _load(path)
        return _Reader(file, text, delimiter, header, comments, weights, quotes).graph()


def read_pairs(path: str | os.PathLike[str]) -> tuple[AnyArray, AnyArray]:
    """Read pairs of labels in the order of the file, repeats included.

    The file is read as by :func:`read_edgelist`; columns after the second are ignored.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pairs.txt"
    >>> _ = path.write_text("b a\\na b\\nb a\\n")
    >>> [side.tolist() for side in read_pairs(path)]
    [['b', 'a', 'b'], ['a', 'b', 'a']]
    """
    codes, labels, _ = _Reader(*_load(path), None, None, "#%", False, True).rows()
    return labels[codes[:, 0]], labels[codes[:, 1]]


class _Reader:
    """One file on its way to a graph."""

    def __init__(
        self,
        path: Path,
        text: bytearray,
        delimiter: str | None,
        header: bool | None,
        comments: str,
        weights: Literal["auto"] | bool,
        quotes: bool,
    ) -> None:
        self.path = path
        text += b"\n"  # what the kernel relies on; one blank line more is none
        self.text = text
        self.weights = weights
        self.quotes = quotes
        self.comments = comments
        bom = len(_BOM) if text.startswith(_BOM) else 0
        self.start, record = first_record(text, bom, comments)
        if not record:
            raise InputError(
                f"{path} has no edges"
                + (", only comments" if text[bom:].strip() else "")
                + "; give a file with one edge per line."
            )
        self.delimiter, names = split_record(record, delimiter, quotes)
        columns = choose_columns(names)
        if header is None and columns.named:
            header = True
        elif not header:
            columns = Columns(0, 1, -1, False)
        self.header = header
        self.weight_named = columns.weight >= 0
        if not self.weight_named and (columns.source, columns.target) == (0, 1):
            columns = columns._replace(weight=2)
        self.columns = columns if weights else columns._replace(weight=-1)
        if weights is True and self.columns.weight < 0:
            raise self._error(None, "has no column of weights")
        if header:
            self.start = line_end(text, self.start)

    def graph(self) -> DiGraph:
        """All edges as a graph."""
        codes, labels, weight = self.rows()
        return DiGraph.from_codes(codes[:, 0], codes[:, 1], labels, weight)

    def rows(self) -> tuple[Int64Array, AnyArray, AnyArray | None]:
        """Scan, number the labels, decide about the header, parse the weights."""
        fields, lines = self._scan()
        data = np.frombuffer(self.text, dtype=np.uint8)
        codes, spans = _number(data, fields)
        numbers, plain = self._integers(spans)
        kinds, values = self._numbers(fields)
        if self.header is None and self._first_row_is_header(spans, plain, codes, kinds):
            fields, lines, kinds, values = fields[1:], lines[1:], kinds[1:], values[1:]
            codes, spans = _number(data, fields)
            numbers, plain = self._integers(spans)
        labels: AnyArray
        if plain.all():
            labels = numbers
        else:
            names = [self._decode(start, end) for start, end in spans.tolist()]
            labels = np.array(names, dtype=object)
        return codes, labels, self._weights(fields, lines, kinds, values)

    def _scan(self) -> tuple[Int64Array, Int64Array]:
        most = self.text.count(b"\n", self.start) + self.text.count(b"\r", self.start) + 1
        fields = np.empty((most, 3, 2), dtype=np.int64)
        lines = np.empty(most, dtype=np.int64)
        rows, problem, line, count = _scan.scan(
            np.frombuffer(self.text, dtype=np.uint8),
            self.start,
            _line_number(self.text, self.start),
            _scan.byte_classes(self.delimiter),
            self.delimiter != " ",
            self.quotes,
            _scan.comment_mask(self.comments),
            np.array(self.columns[:3], dtype=np.int64),
            fields,
            lines,
        )
        separator = {" ": "blanks", "\t": "tabs"}.get(self.delimiter, repr(self.delimiter))
        if problem == _scan.FEW_FIELDS:
            has = "one field" if count == 1 else f"{count} fields"
            needs = max(self.columns.source, self.columns.target) + 1
            raise self._error(
                line,
                f"{has} where an edge needs {needs}, separated by {separator}; "
                "correct the line or pass the delimiter to read_edgelist",
            )
        if problem == _scan.OPEN_QUOTE:
            raise self._error(
                line,
                "a quoted field is never closed; close it or pass quotes=False to read_edgelist",
            )
        if problem == _scan.AFTER_QUOTE:
            raise self._error(
                line,
                "text follows a closing quote; correct it or pass quotes=False to read_edgelist",
            )
        if problem == _scan.EMPTY_ID:
            raise self._error(line, "the id of a node is empty; name both ends of the edge")
        if not rows:
            raise InputError(f"{self.path} has a header and no edges; add one edge per line.")
        return fields[:rows], lines[:rows]

    def _integers(self, spans: Int64Array) -> tuple[Int64Array, BoolArray]:
        values = np.zeros(len(spans), dtype=np.int64)
        plain = np.zeros(len(spans), dtype=np.bool_)
        _scan.parse_integers(np.frombuffer(self.text, dtype=np.uint8), spans, values, plain)
        return values, plain

    def _numbers(self, fields: Int64Array) -> tuple[ByteArray, Float64Array]:
        kinds = np.zeros(len(fields), dtype=np.uint8)
        values = np.zeros(len(fields), dtype=np.float64)
        if self.columns.weight >= 0 and (fields[:, 2, 0] >= 0).any():
            data = np.frombuffer(self.text, dtype=np.uint8)
            _scan.parse_numbers(data, fields, values, kinds)
            for row in np.flatnonzero(kinds == _scan.LONG):
                values[row] = float(self.text[fields[row, 2, 0] : fields[row, 2, 1]])
                if not np.isfinite(values[row]):
                    kinds[row] = _scan.NOT_FINITE
        return kinds, values

    def _first_row_is_header(
        self,
        spans: Int64Array,
        plain: BoolArray,
        codes: Int64Array,
        kinds: ByteArray,
    ) -> bool:
        """Whether the first row has words for ids, and alone has them, or a word for a weight."""
        first = [self._decode(*spans[code]) for code in codes[0]]
        if len(codes) < 2 or not are_words(first):
            return False
        if np.all(plain[codes[1:]]):
            return True
        words = kinds == _scan.WORD
        return bool(words[0] and not words[1:].any())

    def _decode(self, start: int, end: int) -> str:
        return self.text[start:end].decode()

    def _weights(
        self,
        fields: Int64Array,
        lines: Int64Array,
        kinds: ByteArray,
        values: Float64Array,
    ) -> Float64Array | None:
        if self.columns.weight < 0:
            return None
        words = kinds == _scan.WORD
        if self.weights == "auto" and not self.weight_named and words.all():
            return None
        bad = np.flatnonzero(words | (kinds == _scan.NOT_FINITE))
        if len(bad) == 0:
            return values
        start, end = fields[bad[0], 2].tolist()
        remedy = "correct it, or pass weights=False to read_edgelist to ignore the column"
        if start < 0:
            raise self._error(int(lines[bad[0]]), f"no weight, unlike other lines; {remedy}")
        shown = _shown(self._decode(start, end))
        raise self._error(
            int(lines[bad[0]]), f"the weight {shown} is not a finite number; {remedy}"
        )

    def _error(self, line: int | None, problem: str) -> InputError:
        if line is None:
            return InputError(f"{self.path} {problem}; pass weights=False to read_edgelist.")
        return InputError(f"{self.path}, line {line}: {problem}.")


def _number(data: ByteArray, fields: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Node indices of the ids of every row, and where each distinct id is written."""
    codes = np.empty((len(fields), 2), dtype=np.int64)
    spans = np.empty((0, 2), dtype=np.int64)
    hashes = np.empty(0, dtype=np.uint64)
    row = known = 0
    size = 1 << 13
    while row < len(codes):
        # The table doubles (at least) each time, so the work stays linear.
        spans = np.concatenate([spans[:known], np.empty((size // 2 - known, 2), np.int64)])
        hashes = np.concatenate([hashes[:known], np.empty(size // 2 - known, np.uint64)])
        table = np.full(size, -1, dtype=np.int64)
        _scan.refill(hashes, known, table)
        row, known = _scan.number_labels(data, fields, codes, spans, hashes, table, row, known)
        size *= 4
    return codes, spans[:known].copy()


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


def _line_number(text: bytearray, position: int) -> int:
    """The number of the line that holds this byte; LF, CR and CRLF end lines."""
    ends = text.count(b"\n", 0, position) + text.count(b"\r", 0, position)
    return 1 + ends - text.count(b"\r\n", 0, position)


def _shown_name(path: str | os.PathLike[str]) -> Path:
    return Path("standard input" if os.fspath(path) == "-" else path)


def _load(given: str | os.PathLike[str]) -> tuple[Path, bytearray]:
    """The name of a file for messages, and its bytes: unzipped, known to be UTF-8 text."""
    path = _shown_name(given)
    try:
        raw = sys.stdin.buffer.read() if os.fspath(given) == "-" else path.read_bytes()
    except IsADirectoryError:
        raise InputError(f"{path} is a directory; name a file.") from None
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the name.") from None
    except PermissionError:
        if os.path.isdir(path):  # what Windows says about a directory
            raise InputError(f"{path} is a directory; name a file.") from None
        raise InputError(f"{path} may not be read: permission denied.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    if raw.startswith(b"\x1f\x8b"):
        try:
            raw = gzip.decompress(raw)
        except EOFError:
            raise InputError(f"{path} is a truncated gzip file; fetch it again.") from None
        except (gzip.BadGzipFile, zlib.error, OSError) as error:
            raise InputError(f"{path} is a damaged gzip file ({error}); fetch it again.") from None
    elif path.suffix == ".gz" and raw:
        raise InputError(f"{path} is not a gzip file; rename it or compress it.")
    text = bytearray(raw)
    if not text.strip():
        raise InputError(f"{path} is empty; give a file with one edge per line.")
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path} is UTF-16 text; save it as UTF-8.")
    where = text.find(b"\0")
    if where < 0 and not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            where = error.start
    if where >= 0:
        line = _line_number(text, where)
        raise InputError(
            f"{path}, line {line}: not UTF-8 text (byte 0x{text[where]:02x}); "
            "give a text file with one edge per line."
        )
    return path, text
