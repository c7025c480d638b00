"""Read edges from text: pieces that end with a line, scanned by threads ahead of their turn."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph import _scan
from atpgraph.graph._dialect import (
    OPTIONS,
    PROBE,
    ColumnOptions,
    Columns,
    TextOptions,
    ambiguous,
    are_words,
    choose_columns,
    first_record,
    line_end,
    split_record,
)
from atpgraph.graph._numbering import EdgeCollector
from atpgraph.graph._source import Source
from atpgraph.util.arrays import ByteArray, Float64Array, Int32Array
from atpgraph.util.threads import Workers, result_of

log = logging.getLogger(__name__)
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
BLOCK = 1 << 22  # bytes read at a time
LEAST_BLOCK = 1 << 16
_AT_ONCE = 256  # blocks that the budget has to have room for
_LONGEST = 1 << 26  # bytes of a record; positions in a piece are 32 bits
_LONG_LINE = f"a line of more than {_LONGEST >> 20} MiB; give one edge per line"
_BYTES_PER_BYTE = 6  # what a byte of a piece takes while it is scanned, at a dozen bytes a line
_WEIGHT = "weight=, --weight"
_TABULAR = (",", ";", "\t")  # delimiters of tables, which often have a header


class _Piece(NamedTuple):
    """What the scan found in a piece of the text; see :func:`_scan.scan`.

    `kinds` and `values` are the weights, empty if there is no column of them.
    """

    data: bytearray
    spans: Int32Array
    kinds: ByteArray
    values: Float64Array
    problem: int
    where: int
    fields: int
    position: int

    @property
    def array(self) -> ByteArray:
        """The bytes."""
        return np.frombuffer(self.data, dtype=np.uint8)


class TextReader:
    """One text on its way to a graph."""

    def __init__(
        self,
        source: Source,
        edges: EdgeCollector,
        options: ColumnOptions,
        text: TextOptions,
        remedy: str = OPTIONS,
    ) -> None:
        self.path, self.source, self.edges = source.path, source, edges
        self.options, self.remedy = options, remedy
        self.block = max(LEAST_BLOCK, min(BLOCK, edges.budget // _AT_ONCE))
        self.blocks = source.blocks(self.block)
        self.text, self.start, record = self._beginning(text.comments)
        self.delimiter, self.names = split_record(record, text.delimiter, text.quotes)
        header = text.header
        if header is None and options.source is not None:
            # Chosen by number, the columns alone need not tell; a word above a number does.
            _, second = first_record(self.text, line_end(self.text, self.start), text.comments)
            fields = split_record(second, self.delimiter, text.quotes)[1]
            above = zip(self.names, fields, strict=False)
            header = any(name and are_words([name]) > are_words([x]) for name, x in above) or None
        self.header, self.columns = self._choose(header)
        if self.header:
            self.start = line_end(self.text, self.start)
        self.layout = _scan.Layout.of(self.delimiter, text.quotes, text.comments, self.columns[:4])
        # What the first row has for a weight, what the others have, the first that are no numbers.
        self.first_kind = _scan.WORD
        self.words = self.numbers = 0
        self.bad: list[tuple[int, int, str | None]] = []

    def _choose(self, header: bool | None) -> tuple[bool | None, Columns]:
        """Return whether there is a header, where that is known yet, and the columns to read."""
        names, options = self.names, self.options
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
        if not header:
            columns = choose_columns([""] * len(names), options)
        elif not columns.sure:
            raise ambiguous(str(self.path), names, self.remedy)
        self.weight_sure = columns.weight >= 0
        # The third of columns without names is a weight if it holds numbers. It is looked at even
        # if weights are to be ignored: words make it a column that could as well be an edge's.
        after = columns.target + 1
        free = columns.weight < 0 and columns.source + 1 == columns.target and columns.type != after
        if free and columns.source == 0 and options.source is None:
            columns = columns._replace(weight=after)
        if options.weight is True and columns.weight < 0:
            raise self._no_weights()
        return header, columns

    def _beginning(self, comments: str) -> tuple[bytearray, int, bytes]:
        """Return the text to the end of the first record or later, its start, and its bytes."""
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
                    raise self._not_text(text, text.index(b"\0"))
            bom = len(_BOM) if text.startswith(_BOM) else 0
            start, record = first_record(text, bom, comments)
            if len(record) == PROBE and line_end(text, start) < len(text):
                break
            if len(text) - start > _LONGEST:
                raise self._error(1 + _line_ends(text, start), _LONG_LINE)
        if not more and not text.strip():
            raise InputError(f"{self.path} is empty; give a file with one edge per line.")
        if text.startswith(_UTF16):
            raise InputError(f"{self.path} is UTF-16 text; save it as UTF-8.")
        where = _bad_byte(text if not more else text[: text.rfind(b"\n") + 1])
        if where >= 0:
            raise self._not_text(text, where)
        if not record:
            raise InputError(
                f"{self.path} has no edges"
                + (", only comments" if text[bom:].strip() else "")
                + "; give a file with one edge per line."
            )
        return text, start, record

    def collect(self) -> None:
        """Read all edges, then decide whether the first row is a header."""
        done = line = 0
        ends = [0, 1, 2, 3] + [6, 7] * (self.columns.type >= 0)
        for piece in self._pieces():
            self._note_weights(piece, line)
            if len(piece.spans):
                # Once a weight is missing there are none in the end, or an error.
                keep = len(piece.kinds) and self.words == 0 and self.options.weight is not False
                if self.columns.type >= 0 and (piece.spans[:, 6] < 0).any():
                    without = piece.spans[(piece.spans[:, 6] < 0).argmax(), 0]
                    at = line + 1 + _line_ends(piece.data, without)
                    raise self._error(at, "the edge has no type; add one")
                self.edges.add(piece.array, piece.spans[:, ends], piece.values if keep else None)
                if not keep:
                    self.edges.weights.clear()
            if piece.problem != _scan.OK:
                raise self._problem(piece, line)
            line += _line_ends(piece.data, piece.position)
            done += piece.position
            share = min(done / self.source.size, 1.0) if self.source.size else 1.0
            self.edges.check(4 * _BYTES_PER_BYTE * self.block, share)
        if not self.edges.n_rows:
            raise InputError(f"{self.path} has a header and no edges; add one edge per line.")
        if self.header is None and self._first_row_is_header():
            self.header = True
            self.edges.drop_first()
            self.first_kind = _scan.NUMBER
            self.bad = [problem for problem in self.bad if problem[0] > 0]
        elif self.first_kind == _scan.WORD:
            self.words += 1
        else:
            self.numbers += 1
        self._decide_about_weights()
        if self.header is None:  # only once nothing else is ambiguous
            self._note_odd_first_row()

    def _pieces(self) -> Iterator[_Piece]:
        """Yield the scanned pieces in order.

        A line feed ends a record wherever there is no quote before it in the piece. Where there is
        one, only the scan knows whether the last record is whole, so the next piece has to wait.
        """
        buffer, position = self.text, self.start
        del self.text
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
                        raise InputError(f"{self.path} has {_LONG_LINE}.")
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
        rows, *found = 0, _scan.NOT_TEXT, bad, 0, position
        if bad < 0:
            rows, *found = _scan.scan(array, position, last, self.layout, spans)
        spans = spans[:rows]
        kinds = np.zeros(rows if weighted else 0, dtype=np.uint8)
        values = np.zeros(len(kinds))
        if weighted and (spans[:, 4] >= 0).any():
            _scan.parse_numbers(array, spans[:, 4:6], values, kinds)
            for row in np.flatnonzero(kinds == _scan.ODD).tolist():
                kinds[row], values[row] = _number(piece[spans[row, 4] : spans[row, 5]])
        return _Piece(piece, spans, kinds, values, *found)

    def _note_weights(self, piece: _Piece, line: int) -> None:
        """Count words and numbers, the first row apart, and remember the first that is bad."""
        if not len(piece.kinds):
            return
        row = self.edges.n_rows
        words = piece.kinds == _scan.WORD
        later = words[1:] if row == 0 else words
        count = int(np.count_nonzero(later))
        self.words += count
        self.numbers += len(later) - count
        if row == 0:
            self.first_kind = int(piece.kinds[0])
        wrong = np.flatnonzero(piece.kinds != _scan.NUMBER)[: 2 - len(self.bad)]
        for at in wrong.tolist():
            start, end = piece.spans[at, 4:6].tolist()
            text = None if start < 0 else piece.data[start:end].decode()
            number = line + 1 + _line_ends(piece.data, int(piece.spans[at, 0]))
            self.bad.append((row + at, number, text))

    def _first_row_is_header(self) -> bool:
        """Return whether only the first row has words for ids, or a word for a weight."""
        edges = self.edges
        first = edges.pieces[0][0].tolist()
        if edges.n_rows < 2 or not are_words([edges.numbering.text(code) for code in first]):
            return False
        is_text = ~edges.numbering.integers()[1]
        later = np.zeros(2, dtype=np.bool_)  # whether a source, or a target, is text after it
        for number, piece in enumerate(edges.pieces):
            later |= is_text[piece[number == 0 :]].any(axis=0)
        weighted = self.columns.weight >= 0 and self.first_kind == _scan.WORD and self.words == 0
        # Numbers after two columns of text are weights; after numbers they may be anything.
        found = not later.any() or weighted
        if found and not (self.columns.sure or later.all()):
            raise ambiguous(str(self.path), self.names, self.remedy)
        return found

    def _note_odd_first_row(self) -> None:
        """Warn if the first row, read as an edge, has words that no other row of the table has."""
        edges = self.edges
        first = edges.pieces[0][0].tolist()
        names = [edges.numbering.text(code) for code in first]
        if self.delimiter not in _TABULAR or edges.n_rows < 2 or not are_words(names):
            return
        uses = 0
        for piece in edges.pieces:
            uses += int(np.count_nonzero((piece == first[0]) | (piece == first[1])))
            if uses > 2:
                return
        log.warning(
            "%s: the first line, %s, is read as an edge; if it names the columns, use header=True "
            "or --header.", self.path, self.delimiter.join(names),
        )  # fmt: skip

    def _decide_about_weights(self) -> None:
        columns = self.columns
        if columns.weight < 0:
            return
        if not self.weight_sure and not self.numbers:
            self.edges.weights.clear()
            # Words in a third column: if the ids are words as well, any two could be the edge.
            attributes = self.names[2:3] and self.names[2].startswith("{")  # NetworkX writes them
            if not (columns.sure or attributes or self.edges.labels().dtype == np.int64):
                raise ambiguous(str(self.path), self.names, self.remedy)
            if self.options.weight is True:
                raise self._no_weights()
        elif self.bad and self.options.weight is not False:
            _, line, text = self.bad[0]
            problem = "no weight, unlike other lines"
            if text is not None:
                shown = repr(text if len(text) <= 40 else text[:39] + "…")
                problem = f"the weight {shown} is not a finite number"
            remedy = "correct it, or ignore weights (weight=False, --no-weight)"
            raise self._error(line, f"{problem}; {remedy}")

    def _problem(self, piece: _Piece, before: int) -> InputError:
        if piece.problem == _scan.NOT_TEXT:
            return self._not_text(piece.data, piece.where, before)
        line = before + 1 + _line_ends(piece.data, piece.where)
        if piece.problem == _scan.FEW_FIELDS:
            separator = {" ": "blanks", "\t": "tabs"}.get(self.delimiter, repr(self.delimiter))
            has = "one field" if piece.fields == 1 else f"{piece.fields} fields"
            return self._error(
                line,
                f"{has} where an edge needs {self.layout.needed}, separated by {separator}; "
                "correct the line or name the delimiter (delimiter=, --delimiter)",
            )
        problem = {
            _scan.OPEN_QUOTE: "a quoted field is never closed; close it, or double the quotes "
            "inside it",
            _scan.AFTER_QUOTE: "text follows a closing quote; double the quotes inside a field",
            _scan.EMPTY_ID: "the id of a node is empty; name both ends of the edge",
        }[piece.problem]
        return self._error(line, problem)

    def _not_text(self, text: bytearray, where: int, before: int = 0) -> InputError:
        return InputError(
            f"{self.path}, line {before + 1 + _line_ends(text, where)}: not UTF-8 text "
            f"(byte 0x{text[where]:02x}); give a text file with one edge per line."
        )

    def _no_weights(self) -> InputError:
        return InputError(f"{self.path} has no column of weights; name one ({_WEIGHT}).")

    def _error(self, line: int, problem: str) -> InputError:
        return InputError(f"{self.path}, line {line}: {problem}.")


def _last_line(buffer: bytearray) -> int:
    """Return where the last whole line ends; 0 if there is none."""
    end = buffer.rfind(b"\n") + 1
    # A return at the very end may be half of an end of line.
    return end or buffer.rfind(b"\r", 0, len(buffer) - 1) + 1


def _number(text: bytearray) -> tuple[int, float]:
    """Return what kind of weight a text is, and its value."""
    try:
        value = float(text)
    except ValueError:
        return _scan.WORD, 0.0
    return (_scan.NUMBER if np.isfinite(value) else _scan.NOT_FINITE), value


def _bad_byte(text: bytearray) -> int:
    """Return where a NUL or the first byte is that is not UTF-8; −1 if all is text."""
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
