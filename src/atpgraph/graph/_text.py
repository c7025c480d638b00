"""Read edges from text, in pieces of whole lines that threads scan in advance."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import chain
from typing import NamedTuple

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph import _scan
from atpgraph.graph._dialect import (
    PROBE,
    ColumnOptions,
    Columns,
    TextOptions,
    ambiguous,
    are_words,
    choose_columns,
    find_delimiter,
    first_record,
    is_integer,
    sample_rows,
)
from atpgraph.graph._numbering import EdgeCollector, EdgeRows
from atpgraph.graph._source import Source
from atpgraph.util.arrays import Float64Array, Int32Array
from atpgraph.util.threads import Workers, result_of

log = logging.getLogger(__name__)
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
BLOCK = 1 << 22  # bytes read at a time
LEAST_BLOCK = 1 << 16
_AT_ONCE = 256  # blocks that the budget has to have room for
_LONGEST = 1 << 26  # bytes of a record; positions in a piece are 32 bits
_TOO_LONG = f"a line of more than {_LONGEST >> 20} MiB; give one edge per line"
_BYTES_PER_BYTE = 6  # what a byte of a piece takes while it is scanned, at a dozen bytes a line
_WEIGHT = "weight=, --weight"
_TABULAR = (",", ";", "\t")  # delimiters of tables, which often have a header


class _Piece(NamedTuple):
    """The edges in a piece of the text, up to the first problem.

    `problem` and `where` are empty and 0 without one; `position` is the beginning of the first
    record left for the next piece.
    """

    data: bytearray
    spans: Int32Array
    weights: Float64Array | None
    problem: str
    where: int
    position: int


class TextReader:
    """Read a text into a graph.

    The columns, and whether the first row names them, are decided from a sample, the first 64 KiB;
    the rest of the text must agree.
    """

    def __init__(
        self, source: Source, budget: int, options: ColumnOptions, text: TextOptions
    ) -> None:
        self.path, self.source, self.edges = source.path, source, EdgeCollector(source.path, budget)
        self.options = options
        self.block = max(LEAST_BLOCK, min(BLOCK, budget // _AT_ONCE))
        self.blocks = source.blocks(self.block)
        beginning, self.start = self._beginning(text.comments)
        sample = bytes(beginning[self.start : self.start + PROBE]).decode(errors="replace")
        self.delimiter = text.delimiter or find_delimiter(sample, text.quotes)
        rows, end = sample_rows(sample, self.delimiter, text.quotes, text.comments)
        if len(beginning) > self.start + PROBE and len(rows) > 1:
            rows.pop()  # it may be cut off
        self.names = rows[0]
        self.has_header, self.columns = self._choose(rows, text.header)
        self.is_guess = text.header is None
        if self.has_header:
            self.start += len(sample[:end].encode())
        self.layout = _scan.Layout.of(self.delimiter, text.quotes, text.comments, self.columns[:4])
        self.blocks = chain([bytes(beginning)], self.blocks)

    def _choose(self, rows: list[list[str]], header: bool | None) -> tuple[bool, Columns]:
        """Return whether there is a header, and the columns to read."""
        (names, *later), options = rows, self.options
        if options.names:
            if header is False:
                raise InputError(
                    f"{self.path} has no header to find {options.names[0]!r} in; give the numbers "
                    "of columns, counted from 1."
                )
            header = True
        columns = choose_columns(names, options)
        if header is None and (columns.named or (columns.weight >= 0 and options.weight is None)):
            header = True
        if header is None and options.source is not None and later:
            # Chosen by number, the columns alone need not tell; a word above a number does.
            above = zip(names, later[0], strict=False)
            header = any(name and are_words([name]) > are_words([x]) for name, x in above) or None
        if not header:
            columns = choose_columns([""] * len(names), options)
        elif not columns.sure:
            raise ambiguous(str(self.path), names, options)
        # The third of columns without names is a weight if it holds numbers. It is looked at even
        # if weights are to be ignored: words make it a column that could as well be an edge's.
        third = columns.weight < 0 and columns[:2] == (0, 1) and columns.type != 2
        third = third and options.source is None
        weight = 2 if third else columns.weight
        if header is None:
            header = self._is_header(rows, columns, weight)
        body = rows[header:]
        if third and not any(_is_number(row, weight) for row in body):
            weight = -1
            # Words in a third column: if the ids are words as well, any two could be the edge.
            attributes = names[2:3] and names[2].startswith("{")  # NetworkX writes them
            plain = all(is_integer(x) for row in body for x in row[:2])
            if len(names) > 2 and not (columns.sure or attributes or plain):
                raise ambiguous(str(self.path), names, options)
        if options.weight is True and weight < 0:
            raise InputError(f"{self.path} has no column of weights; name one ({_WEIGHT}).")
        return header, columns._replace(weight=-1 if options.weight is False else weight)

    def _is_header(self, rows: list[list[str]], columns: Columns, weight: int) -> bool:
        """Return whether only the first row has words as ids, or a word as its weight."""
        names, *later = rows
        if not later or not are_words([*names, "", ""][at] for at in columns[:2]):
            return False
        is_text = [
            any(at >= len(row) or not is_integer(row[at]) for row in later) for at in columns[:2]
        ]
        # Numbers after two columns of text are weights; after numbers they may be anything.
        weighted = 0 <= weight < len(names) and not _is_number(names, weight)
        found = not any(is_text) or (weighted and all(_is_number(row, weight) for row in later))
        if found and not (columns.sure or all(is_text)):
            raise ambiguous(str(self.path), names, self.options)
        return found

    def _beginning(self, comments: str) -> tuple[bytearray, int]:
        """Return the text of the sample, or more of it, and where its records start."""
        text = bytearray()
        more = True
        while more:
            wanted = 2 * len(text)
            while more and len(text) <= wanted:
                self.edges.check(2 * len(text))
                block = next(self.blocks, b"")
                more = bool(block)
                text += block
                if b"\0" in block and not text.startswith(_UTF16):
                    # No need to look for the end of the first line: /dev/zero has none.
                    where = text.index(b"\0")
                    raise self._error(0, text, where, _not_text(text, where))
            bom = len(_BOM) if text.startswith(_BOM) else 0
            start = first_record(text, bom, comments)
            if len(text) - start > PROBE:
                break
        if not more and not text.strip():
            raise InputError(f"{self.path} is empty; give a file with one edge per line.")
        if text.startswith(_UTF16):
            raise InputError(f"{self.path} is UTF-16 text; save it as UTF-8.")
        where = _bad_byte(text if not more else text[: text.rfind(b"\n") + 1])
        if where >= 0:
            raise self._error(0, text, where, _not_text(text, where))
        if start == len(text):
            raise InputError(
                f"{self.path} has no edges"
                + (", only comments" if text[bom:].strip() else "")
                + "; give a file with one edge per line."
            )
        return text, start

    def rows(self) -> EdgeRows:
        """Read all edges."""
        done = line = 0
        ends = [0, 1, 2, 3] + [6, 7] * (self.columns.type >= 0)
        for piece in self._pieces():
            if piece.problem:
                raise self._error(line, piece.data, piece.where, piece.problem)
            if len(piece.spans):
                data = np.frombuffer(piece.data, dtype=np.uint8)
                self.edges.add(data, piece.spans[:, ends], piece.weights)
            line += _line_ends(piece.data, piece.position)
            done += piece.position
            share = min(done / self.source.size, 1.0) if self.source.size else 1.0
            self.edges.check(4 * _BYTES_PER_BYTE * self.block, share)
        if not self.edges.n_rows:
            raise InputError(f"{self.path} has a header and no edges; add one edge per line.")
        first = [*self.names, "", ""]
        words = are_words(first[at] for at in self.columns[:2])
        if self.is_guess and not self.has_header and words and self.delimiter in _TABULAR:
            # The first row has the first two ids. Does another have one of them?
            uses = sum(int(np.count_nonzero(codes <= 1)) for codes in self.edges.pieces)
            if uses == 2 and self.edges.n_rows > 1:
                log.warning(
                    "%s: the first line, %s, is read as an edge; if it names the columns, use "
                    "header=True or --header.", self.path, self.delimiter.join(self.names),
                )  # fmt: skip
        return self.edges.rows()

    def _pieces(self) -> Iterator[_Piece]:
        """Yield the scanned pieces in order.

        A line feed ends a record if there is no quote before it in the piece. Otherwise only the
        scan can tell whether the last record is complete, so the next piece has to wait.
        """
        buffer, position = bytearray(), self.start
        waiting: deque[Future[_Piece]] = deque()
        last, wanted = False, 0
        with Workers() as pool:
            while not last:
                block = next(self.blocks, b"")
                last = not block
                buffer += block
                cut = len(buffer) if last else _last_line(buffer)
                if not last and (cut <= position or len(buffer) < wanted):
                    self.edges.check(2 * _BYTES_PER_BYTE * len(buffer))
                    if len(buffer) > _LONGEST:
                        yield from map(result_of, waiting)
                        spans = np.empty((0, 4), dtype=np.int32)
                        yield _Piece(buffer, spans, None, _TOO_LONG, position, position)
                    wanted = max(wanted, 2 * len(buffer))
                    continue
                piece, buffer, wanted = buffer[:cut], buffer[cut:], 0
                if self.layout.quotes and piece.find(b'"', position) >= 0:
                    while waiting:
                        yield result_of(waiting.popleft())
                    found = self._scanned(piece, position, last)
                    yield found
                    buffer[:0] = piece[found.position : cut]
                    # A record of many pieces is scanned from its start each time: twice as much.
                    if found.position == position and not last:
                        wanted = 2 * len(buffer)
                elif last and not waiting:
                    yield self._scanned(piece, position, last)
                else:
                    waiting.append(pool.submit(self._scanned, piece, position, last))
                position = 0
                while len(waiting) > (0 if last else pool.threads):
                    yield result_of(waiting.popleft())

    def _scanned(self, piece: bytearray, position: int, last: bool) -> _Piece:
        """Scan one piece from `position` on; `last` says that the text ends with it."""
        bad = _bad_byte(piece)
        most = piece.count(b"\n", position) + piece.count(b"\r", position) + 1
        piece += b"\n"  # what the kernel relies on
        array = np.frombuffer(piece, dtype=np.uint8)
        weighted, width = self.columns.weight >= 0, 4
        if weighted or self.columns.type >= 0:
            width = 6 if self.columns.type < 0 else 8
        spans = np.empty((most, width), dtype=np.int32)
        if bad >= 0:
            return _Piece(piece, spans[:0], None, _not_text(piece, bad), bad, position)
        rows, code, where, fields, position = _scan.scan(array, position, last, self.layout, spans)
        spans, values, problem = spans[:rows], None, self._problem(code, fields)
        if weighted:
            values, plain = np.zeros(rows), np.zeros(rows, dtype=np.bool_)
            _scan.parse_numbers(array, spans[:, 4:6], values, plain)
            for row in np.flatnonzero(~plain).tolist():
                start, end = spans[row, 4:6].tolist()
                values[row] = _number(piece[start:end])
                if not np.isfinite(values[row]):
                    problem, where = (
                        _odd_weight(piece[start:end] if start >= 0 else b""),
                        spans[row, 0],
                    )
                    break
        if self.columns.type >= 0 and (spans[:, 6] < 0).any():
            problem = "the edge has no type; add one"
            where = spans[(spans[:, 6] < 0).argmax(), 0]
        return _Piece(piece, spans, values, problem, int(where), position)

    def _problem(self, code: int, fields: int) -> str:
        """Return the message for a problem that the scan found, "" for none."""
        if code == _scan.OK:
            return ""
        if code == _scan.FEW_FIELDS:
            separator = {" ": "blanks", "\t": "tabs"}.get(self.delimiter, repr(self.delimiter))
            has = "one field" if fields == 1 else f"{fields} fields"
            return (
                f"{has} where an edge needs {self.layout.needed}, separated by {separator}; "
                "correct the line or name the delimiter (delimiter=, --delimiter)"
            )
        return {
            _scan.OPEN_QUOTE: "a quoted field is never closed; close it, or double the quotes "
            "inside it",
            _scan.AFTER_QUOTE: "text follows a closing quote; double the quotes inside a field",
            _scan.EMPTY_ID: "the id of a node is empty; name both ends of the edge",
        }[code]

    def _error(self, before: int, data: bytearray, where: int, problem: str) -> InputError:
        """Return the error for a place in data that follows `before` earlier lines."""
        return InputError(f"{self.path}, line {before + 1 + _line_ends(data, where)}: {problem}.")


def _odd_weight(text: bytes | bytearray) -> str:
    problem = "no weight, unlike other lines"
    if text:
        shown = text.decode()
        shown = repr(shown if len(shown) <= 40 else shown[:39] + "…")
        problem = f"the weight {shown} is not a finite number"
    return f"{problem}; correct it, or ignore weights (weight=False, --no-weight)"


def _not_text(text: bytearray, where: int) -> str:
    remedy = "save it as UTF-8" if text[where] else "give a text file with one edge per line"
    return f"not UTF-8 text (byte 0x{text[where]:02x}); {remedy}"


def _last_line(buffer: bytearray) -> int:
    """Return where the last whole line ends; 0 if there is none."""
    end = buffer.rfind(b"\n") + 1
    # A return at the very end may be half of an end of line.
    return end or buffer.rfind(b"\r", 0, len(buffer) - 1) + 1


def _number(text: bytes | bytearray | str) -> float:
    """Return the number that a text represents, or NaN."""
    try:
        return float(text) if "_" not in str(text) else np.nan
    except ValueError:
        return np.nan


def _is_number(row: list[str], at: int) -> bool:
    """Return whether a row has a number in a column, NaN and infinity included."""
    return at < len(row) and not are_words([row[at]])


def _bad_byte(text: bytearray) -> int:
    """Return the position of the first byte that is NUL or not UTF-8; −1 if there is none."""
    where = text.find(b"\0")
    if where < 0 and not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            where = error.start
    return where


def _line_ends(text: bytearray, stop: int) -> int:
    """Count the ends of lines before a position: LF, CR and CRLF."""
    ends = int(np.count_nonzero(np.frombuffer(text, np.uint8, stop) == ord("\n")))
    if b"\r" in text:
        ends += text.count(b"\r", 0, stop) - text.count(b"\r\n", 0, stop)
    return ends
