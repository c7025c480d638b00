"""Byte kernels of the edge-list reader: fields, ids and weights, without Python per line."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph.util.jit import kernel

OK, FEW_FIELDS, OPEN_QUOTE, AFTER_QUOTE, EMPTY_ID = range(5)

WORD, SIMPLE, LONG, NOT_FINITE = range(4)

_TAB, _LF, _CR, _SPACE, _QUOTE = 9, 10, 13, 32, 34

_OTHER, _BLANK, _DELIMITER, _END = range(4)


@kernel
def scan(
    data: Any,
    position: Any,
    line: Any,
    last: Any,
    classes: Any,
    delimited: Any,
    quotes: Any,
    comment: Any,
    columns: Any,
    ids: Any,
    lengths: Any,
    extras: Any,
    lines: Any,
) -> Any:
    """Find the wanted fields of every record, and read the ids that are integers.

    Parameters
    ----------
    data : uint8 array
        A piece of the file that begins with a record and ends with the end of a line, and a line
        feed more, which every loop can rely on. Doubled quotes inside wanted fields are undone in
        place.
    position, line : int
        Where to start, and the number of that line.
    last : bool
        Whether the file ends here; else a quoted field may go on, and its record is left.
    classes : uint8 array of 256
        What a byte does, see :func:`byte_classes`.
    delimited : bool
        Whether a delimiter separates the fields; else blanks do.
    quotes : bool
        Whether a field that begins with a double quote runs to the next single one.
    comment : bool array of 256
        Bytes that make a line a comment when they come first.
    columns : int64 array of 4
        Which fields are source, target, weight and type; −1 for no weight or type.
    ids : int64 array of shape (rows, 2)
        Output: source and target, as the integer or as the first byte of a text.
    lengths : int32 array of shape (rows, 2)
        Output: −1 for an integer, else the bytes of the text.
    extras : int32 array of shape (rows, 2), or (rows, 4) with types
        Output: first byte and end of the weight, then of the type; −1 where there is none.
    lines : int64 array of rows
        Output: line number of every record.

    Returns
    -------
    rows, problem, line, fields, position : int
        Number of records; what is wrong with which line, if anything, else the number of the next
        line; where the first record begins that was left.
    """
    end_of_data = len(data) - 1
    # Without a delimiter a blank ends a field, else it may stand inside one.
    stop = _DELIMITER if delimited else _BLANK
    usual = columns[0] == 0 and columns[1] == 1
    n_wanted = 4 if columns[3] >= 0 else 3
    doubled = np.zeros(4, dtype=np.bool_)
    spans = np.empty((4, 2), dtype=np.int64)
    row = 0
    p = position
    while p < end_of_data:
        begin = p
        first_line = line
        while data[p] == _SPACE or data[p] == _TAB:
            p += 1
        if comment[data[p]]:
            while classes[data[p]] != _END:
                p += 1
        elif classes[data[p]] != _END:
            p = begin
            for wanted in range(n_wanted):
                spans[wanted, 0] = -1
                spans[wanted, 1] = -1
            column = 0
            more = True
            if usual:
                # Two plain integers are most of what there is to read: no field need be looked at
                # twice.
                middle, source = plain_integer(data, p, end_of_data)
                if middle > 0 and classes[data[middle]] == stop:
                    after, target = plain_integer(data, middle + 1, end_of_data)
                    if after > 0 and classes[data[after]] >= stop:
                        ids[row, 0], ids[row, 1] = source, target
                        lengths[row, 0], lengths[row, 1] = -1, -1
                        column = 2
                        p = after
                        while classes[data[p]] == _BLANK:
                            p += 1
                        more = classes[data[p]] != _END
                        if classes[data[p]] == _DELIMITER:
                            p += 1
            read = column == 2
            while more:
                while classes[data[p]] == _BLANK:
                    p += 1
                start = p
                twice = False
                if quotes and data[p] == _QUOTE:
                    opened = line
                    p += 1
                    start = p
                    closed = False
                    while p < end_of_data:
                        c = data[p]
                        if c == _QUOTE:
                            if data[p + 1] != _QUOTE:
                                closed = True
                                break
                            twice = True
                            p += 1
                        elif c == _LF or (c == _CR and data[p + 1] != _LF):
                            line += 1
                        p += 1
                    if not closed:
                        if not last:
                            return row, OK, first_line, column, begin
                        return row, OPEN_QUOTE, opened, column, begin
                    end = p
                    p += 1
                    if classes[data[p]] < stop:
                        while classes[data[p]] == _BLANK:
                            p += 1
                        if classes[data[p]] < _DELIMITER:
                            return row, AFTER_QUOTE, line, column, begin
                    is_empty = False
                else:
                    while classes[data[p]] < stop:
                        p += 1
                    end = p
                    while end > start and classes[data[end - 1]] == _BLANK:
                        end -= 1
                    is_empty = start == end
                if not is_empty:
                    for wanted in range(n_wanted):
                        if columns[wanted] == column:
                            spans[wanted, 0] = start
                            spans[wanted, 1] = end
                            doubled[wanted] = twice
                column += 1
                while classes[data[p]] == _BLANK:
                    p += 1
                if classes[data[p]] == _END:
                    break
                if classes[data[p]] == _DELIMITER:
                    p += 1
            if column <= max(columns[0], columns[1]):
                return row, FEW_FIELDS, first_line, column, begin
            for wanted in range(n_wanted):
                # Only now, because a record that is left must be as it was.
                if spans[wanted, 0] >= 0 and doubled[wanted]:
                    spans[wanted, 1] = undouble(data, spans[wanted, 0], spans[wanted, 1])
            if not read:
                if min(spans[0, 0], spans[1, 0]) < 0:
                    return row, EMPTY_ID, first_line, column, begin
                for side in range(2):
                    start, end = spans[side, 0], spans[side, 1]
                    after, value = plain_integer(data, start, end)
                    if after == end and after > 0:
                        ids[row, side] = value
                        lengths[row, side] = -1
                    else:
                        ids[row, side] = start
                        lengths[row, side] = end - start
            extras[row, 0], extras[row, 1] = spans[2, 0], spans[2, 1]
            if n_wanted == 4:
                extras[row, 2], extras[row, 3] = spans[3, 0], spans[3, 1]
            lines[row] = first_line
            row += 1
        if data[p] == _CR and data[p + 1] == _LF:
            p += 1
        p += 1
        line += 1
    return row, OK, line, 0, p


@kernel
def plain_integer(data: Any, start: Any, end: Any) -> Any:
    """Where an integer written the usual way ends (no +, no leading zero, 64 bits), and its value.

    −1 if there is none. Only the usual way, because "007" and "7" are different ids: with this rule
    equal numbers are equal bytes and the other way round.
    """
    p = start
    negative = p < end and data[p] == 45
    if negative:
        p += 1
    first = p
    total = np.uint64(0)
    while p < end and p - first < 19 and 48 <= data[p] <= 57:
        total = total * np.uint64(10) + np.uint64(data[p] - 48)
        p += 1
    digits = p - first
    ok = digits > 0 and not (p < end and 48 <= data[p] <= 57)
    ok = ok and not (data[first] == 48 and (digits > 1 or negative))
    if ok and total > np.uint64(9223372036854775807):
        ok = negative and total == np.uint64(9223372036854775808)
    if not ok:
        return -1, np.int64(0)
    value = np.int64(total)  # 2⁶³ wraps to the least integer, its own negative
    return p, -value if negative else value


@kernel
def undouble(data: Any, start: Any, end: Any) -> Any:
    """Undo doubled quotes in place; the new end."""
    to = start
    p = start
    while p < end:
        data[to] = data[p]
        to += 1
        p += 2 if data[p] == _QUOTE else 1
    return to


@kernel
def parse_numbers(data: Any, spans: Any, values: Any, kinds: Any) -> Any:
    """Decimal numbers of the weight column.

    A number of at most 15 digits and a power of ten up to 22 is one exact product or quotient,
    hence correctly rounded (SIMPLE); longer ones are left to the caller (LONG). NaN and infinity
    are NOT_FINITE, anything else is a WORD.
    """
    for row in range(len(values)):
        p = spans[row, 0]
        end = spans[row, 1]
        negative = False
        if p < end and (data[p] == 43 or data[p] == 45):
            negative = data[p] == 45
            p += 1
        first = p
        mantissa = 0
        significant = 0
        digits = 0
        exponent = 0
        while p < end and (48 <= data[p] <= 57):
            digits += 1
            if significant > 0 or data[p] != 48:
                significant += 1
            if significant <= 15:
                mantissa = mantissa * 10 + (data[p] - 48)
            p += 1
        if p < end and data[p] == 46:
            p += 1
            while p < end and (48 <= data[p] <= 57):
                digits += 1
                if significant > 0 or data[p] != 48:
                    significant += 1
                if significant <= 15:
                    mantissa = mantissa * 10 + (data[p] - 48)
                    exponent -= 1
                p += 1
        ok = digits > 0
        if ok and p < end and (data[p] == 101 or data[p] == 69):
            p += 1
            down = False
            if p < end and (data[p] == 43 or data[p] == 45):
                down = data[p] == 45
                p += 1
            power = 0
            ok = p < end
            while p < end and (48 <= data[p] <= 57):
                if power < 100_000:
                    power = power * 10 + (data[p] - 48)
                p += 1
            exponent += -power if down else power
        ok = ok and p == end
        if not ok:
            kinds[row] = NOT_FINITE if _is_not_finite(data, first, end) else WORD
        elif significant > 15 or exponent < -22 or exponent > 22:
            kinds[row] = LONG
        else:
            scale = 1.0
            for _ in range(abs(exponent)):
                scale *= 10.0
            value = mantissa / scale if exponent < 0 else mantissa * scale
            values[row] = -value if negative else value
            kinds[row] = SIMPLE


@kernel
def _is_not_finite(data: Any, start: Any, end: Any) -> Any:
    """Whether the bytes spell nan, inf or infinity, in any case."""
    length = end - start
    if length != 3 and length != 8:
        return False
    a = data[start] | 32
    b = data[start + 1] | 32
    c = data[start + 2] | 32
    if length == 3:
        nan = a == 110 and b == 97 and c == 110
        return nan or (a == 105 and b == 110 and c == 102)
    spelled = a == 105 and b == 110 and c == 102
    spelled = spelled and (data[start + 3] | 32) == 105 and (data[start + 4] | 32) == 110
    spelled = spelled and (data[start + 5] | 32) == 105 and (data[start + 6] | 32) == 116
    return spelled and (data[start + 7] | 32) == 121


def byte_classes(delimiter: str) -> Any:
    """What each byte does: part of a field, blank, delimiter, or end of the line."""
    classes = np.full(256, _OTHER, dtype=np.uint8)
    classes[[_SPACE, _TAB]] = _BLANK
    classes[[_LF, _CR]] = _END
    if delimiter != " ":
        classes[ord(delimiter)] = _DELIMITER
    return classes


def comment_mask(comments: str) -> Any:
    """The table of first bytes that make a line a comment."""
    mask = np.zeros(256, dtype=np.bool_)
    mask[list(comments.encode())] = True
    return mask
