"""Byte kernels of the edge-list reader: fields and numbers, without Python per line."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atpgraph.util.arrays import BoolArray, ByteArray, Int64Array
from atpgraph.util.jit import kernel

OK, FEW_FIELDS, OPEN_QUOTE, AFTER_QUOTE, EMPTY_ID = range(5)

_TAB, _LF, _CR, _SPACE, _QUOTE = 9, 10, 13, 32, 34

_OTHER, _BLANK, _DELIMITER, _END = range(4)


class Layout(NamedTuple):
    """How to read the lines."""

    classes: ByteArray  # of each byte: part of a field, blank, delimiter, or end of the line
    stop: int  # the lowest class that ends a field: without a delimiter a blank does
    comment: BoolArray  # bytes that make a line a comment when they come first
    quotes: bool  # whether a field that begins with a double quote runs to the next single one
    slots: Int64Array  # of each field up to the last wanted one: its place among the spans, or −1
    needed: int  # the least number of fields that have both ends of an edge

    @classmethod
    def of(cls, delimiter: str, quotes: bool, comments: str, columns: Any) -> Layout:
        """Return the layout; `columns` are those of source, target, weight and type."""
        classes = np.full(256, _OTHER, dtype=np.uint8)
        classes[[_SPACE, _TAB]] = _BLANK
        classes[[_LF, _CR]] = _END
        if delimiter != " ":
            classes[ord(delimiter)] = _DELIMITER
        comment = np.zeros(256, dtype=np.bool_)
        comment[list(comments.encode())] = True
        slots = np.full(max(columns) + 1, -1, dtype=np.int64)
        for slot, column in enumerate(columns):
            if column >= 0:
                slots[column] = slot
        stop = _BLANK if delimiter == " " else _DELIMITER
        return cls(classes, stop, comment, quotes, slots, max(columns[:2]) + 1)


@kernel
def scan(data: Any, position: Any, last: Any, layout: Any, spans: Any) -> Any:
    """Find the wanted fields of every record.

    `data` is a piece of the file that begins with a record and ends with the end of a line, plus
    one more line feed, on which every loop can rely. Doubled quotes inside wanted fields are undone
    in place. Unless the file ends here (`last`), a record whose quoted field is still open is left.
    Row by row, `spans` gets the first byte and the end of source, target, weight and type, −1 where
    there is none. Returns the number of rows, a problem if there is one, its position, the fields
    of that record, and the beginning of the first record that was left.
    """
    classes, slots, stop = layout.classes, layout.slots, layout.stop
    end_of_data = len(data) - 1
    row, p = 0, position
    while p < end_of_data:
        begin = p
        while data[p] == _SPACE or data[p] == _TAB:
            p += 1
        if layout.comment[data[p]]:
            while classes[data[p]] != _END:
                p += 1
        elif classes[data[p]] != _END:
            p = begin
            for k in range(spans.shape[1]):
                spans[row, k] = -1
            column, doubled = 0, False
            while True:
                while classes[data[p]] == _BLANK:
                    p += 1
                start = p
                quoted = layout.quotes and data[p] == _QUOTE
                if quoted:
                    start = p = p + 1
                    while p < end_of_data and (data[p] != _QUOTE or data[p + 1] == _QUOTE):
                        doubled |= data[p] == _QUOTE
                        p += 2 if data[p] == _QUOTE else 1
                    end = p
                    if p >= end_of_data:
                        return row, OPEN_QUOTE if last else OK, start - 1, column, begin
                    p += 1
                    if classes[data[p]] < stop:
                        while classes[data[p]] == _BLANK:
                            p += 1
                        if classes[data[p]] < _DELIMITER:
                            return row, AFTER_QUOTE, p, column, begin
                else:
                    while classes[data[p]] < stop:
                        p += 1
                    end = p
                    while end > start and classes[data[end - 1]] == _BLANK:
                        end -= 1
                if column < len(slots) and slots[column] >= 0 and (quoted or end > start):
                    spans[row, 2 * slots[column]] = start
                    spans[row, 2 * slots[column] + 1] = end
                column += 1
                while classes[data[p]] == _BLANK:
                    p += 1
                if classes[data[p]] == _END:
                    break
                if classes[data[p]] == _DELIMITER:
                    p += 1
            if column < layout.needed:
                return row, FEW_FIELDS, begin, column, begin
            if min(spans[row, 0], spans[row, 2]) < 0:
                return row, EMPTY_ID, begin, column, begin
            if doubled:  # only now, because a record that is left must be as it was
                for k in range(0, spans.shape[1], 2):
                    if spans[row, k] > 0 and data[spans[row, k] - 1] == _QUOTE:
                        spans[row, k + 1] = undouble(data, spans[row, k], spans[row, k + 1])
            row += 1
        if data[p] == _CR and data[p + 1] == _LF:
            p += 1
        p += 1
    return row, OK, p, 0, p


@kernel
def undouble(data: Any, start: Any, end: Any) -> Any:
    """Undo doubled quotes in place, pad with blanks, and return the new end."""
    to = p = start
    while p < end:
        data[to] = data[p]
        to += 1
        p += 2 if data[p] == _QUOTE else 1
    data[to:end] = _SPACE
    return to


@kernel
def parse_numbers(data: Any, spans: Any, values: Any, plain: Any) -> None:
    """Read decimal numbers of at most 15 digits; `plain` marks the texts that have this form.

    Each is a single exact quotient, and so correctly rounded.
    """
    for row in range(len(values)):
        p, end = spans[row, 0], spans[row, 1]
        negative = p < end and data[p] == 45
        if p < end and (data[p] == 43 or data[p] == 45):
            p += 1
        digits, decimals, mantissa, point = 0, 0, 0, False
        while p < end and digits < 16:
            if 48 <= data[p] <= 57:
                mantissa = mantissa * 10 + (data[p] - 48)
                digits += 1
                decimals += point
            elif data[p] == 46 and not point:
                point = True
            else:
                break
            p += 1
        plain[row] = p == end and 0 < digits < 16
        if plain[row]:
            scale = 1.0
            for _ in range(decimals):
                scale *= 10.0
            values[row] = -(mantissa / scale) if negative else mantissa / scale
