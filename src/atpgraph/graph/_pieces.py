"""Text in pieces that end with a line, scanned by threads ahead of the one that is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph import _scan
from atpgraph.graph._dialect import Columns
from atpgraph.util.arrays import ByteArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.threads import Workers, result_of

NOT_TEXT = -1  # a problem, beside those of the scan
LONGEST = 1 << 26  # bytes of a record; positions in a piece are 32 bits
LONG_LINE = f"a line of more than {LONGEST >> 20} MiB; give one edge per line"
# What a byte of a piece takes while it is scanned, at a dozen bytes a line.
BYTES_PER_BYTE = 6


class Layout(NamedTuple):
    """How the lines are to be read."""

    delimiter: str
    quotes: bool
    comments: str
    columns: Columns


class Piece(NamedTuple):
    """What the scan found in one piece; the arrays are described at :func:`_scan.scan`.

    `kinds` and `values` are the weights, empty if there is no column of them. Lines count from 0 at
    the beginning of the piece. `problem` is what ends the reading, if anything, and `detail`
    what was there instead.
    """

    data: bytearray
    ids: Int64Array
    lengths: Int32Array
    extras: Int32Array
    lines: Int64Array
    kinds: ByteArray
    values: Float64Array
    problem: int
    line: int
    detail: int
    position: int

    @property
    def array(self) -> ByteArray:
        """The bytes."""
        return np.frombuffer(self.data, dtype=np.uint8)

    def weight(self, row: int) -> str | None:
        """The weight of a row as it is written, None where there is none."""
        start, end = self.extras[row, :2].tolist()
        return None if start < 0 else self.data[start:end].decode()


def scanned(
    buffer: bytearray,
    position: int,
    blocks: Iterator[bytes],
    layout: Layout,
    check: Callable[[int], None],
) -> Iterator[Piece]:
    """The pieces of a text in order, a few of them scanned ahead.

    A line feed ends a record wherever there is no quote before it in the piece. Where there is one,
    only the scan knows whether the last record is whole, so the next piece has to wait for it.

    Parameters
    ----------
    buffer : bytearray
        The beginning of the text.
    position : int
        Where in it the first record begins.
    blocks : iterator of bytes
        The rest.
    layout : Layout
    check : callable
        Told how many bytes one piece has, before more are read.
    """
    with Workers() as pool:
        waiting: deque[Future[Piece]] = deque()
        last = False
        wanted = 0
        while not last:
            block = next(blocks, b"")
            last = not block
            buffer += block
            cut = len(buffer) if last else _last_line(buffer)
            if not last and (cut <= position or len(buffer) < wanted):
                wanted = _grown(buffer, wanted, check)
                continue
            piece, buffer = buffer[:cut], buffer[cut:]
            if layout.quotes and piece.find(b'"', position) >= 0:
                while waiting:
                    yield result_of(waiting.popleft())
                found = scan_piece(piece, position, layout, last)
                yield found
                stuck = found.position == position and not last
                buffer[:0] = piece[found.position : cut]
                # A record of many pieces is scanned from its beginning each time: twice as much.
                wanted = 2 * len(buffer) if stuck else 0
            elif last and not waiting:
                yield scan_piece(piece, position, layout, last)
            else:
                waiting.append(pool.submit(scan_piece, piece, position, layout, last))
                wanted = 0
            position = 0
            while len(waiting) > pool.threads:
                yield result_of(waiting.popleft())
        while waiting:
            yield result_of(waiting.popleft())


def _grown(buffer: bytearray, wanted: int, check: Callable[[int], None]) -> int:
    check(len(buffer))
    if len(buffer) > LONGEST:
        raise InputError(f"The file has {LONG_LINE}.")
    return max(wanted, 2 * len(buffer))


def _last_line(buffer: bytearray) -> int:
    """Where the last whole line ends; 0 if there is none."""
    end = buffer.rfind(b"\n") + 1
    # A return at the very end may be half of an end of line.
    return end or buffer.rfind(b"\r", 0, len(buffer) - 1) + 1


def scan_piece(piece: bytearray, position: int, layout: Layout, last: bool) -> Piece:
    """Scan one piece from `position` on; `last` says that the text ends with it."""
    bad = not_text(piece)
    most = piece.count(b"\n", position) + piece.count(b"\r", position) + 1
    piece += b"\n"  # what the kernel relies on
    ids = np.empty((most, 2), dtype=np.int64)
    lengths = np.empty((most, 2), dtype=np.int32)
    extras = np.empty((most, 2 if layout.columns.type < 0 else 4), dtype=np.int32)
    lines = np.empty(most, dtype=np.int64)
    if bad >= 0:
        line = line_number(piece, bad) - 1
        rows, found = 0, (NOT_TEXT, line, piece[bad], position)
    else:
        rows, *rest = _scan.scan(
            np.frombuffer(piece, dtype=np.uint8), position, line_number(piece, position) - 1, last,
            _scan.byte_classes(layout.delimiter), layout.delimiter != " ", layout.quotes,
            _scan.comment_mask(layout.comments), np.array(layout.columns[:4], dtype=np.int64),
            ids, lengths, extras, lines,
        )  # fmt: skip
        found = tuple(rest)
    spans = extras[:rows]
    kinds, values = _numbers(piece, spans[:, :2], layout.columns.weight >= 0)
    return Piece(piece, ids[:rows], lengths[:rows], spans, lines[:rows], kinds, values, *found)


def _numbers(piece: bytearray, spans: Int32Array, wanted: bool) -> tuple[ByteArray, Float64Array]:
    kinds = np.zeros(len(spans) if wanted else 0, dtype=np.uint8)
    values = np.zeros(len(kinds), dtype=np.float64)
    if wanted and (spans[:, 0] >= 0).any():
        _scan.parse_numbers(np.frombuffer(piece, dtype=np.uint8), spans, values, kinds)
        for row in np.flatnonzero(kinds == _scan.LONG):
            values[row] = float(piece[spans[row, 0] : spans[row, 1]])
            if not np.isfinite(values[row]):
                kinds[row] = _scan.NOT_FINITE
    return kinds, values


def not_text(text: bytearray) -> int:
    """Where a NUL or the first byte is that is not UTF-8; −1 if all is text."""
    where = text.find(b"\0")
    if where < 0 and not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            where = error.start
    return where


def line_number(text: bytearray, position: int) -> int:
    """The number of the line that holds this byte; LF, CR and CRLF end lines."""
    ends = text.count(b"\n", 0, position) + text.count(b"\r", 0, position)
    return 1 + ends - text.count(b"\r\n", 0, position)
