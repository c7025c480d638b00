"""Byte kernels of the edge-list reader: fields, labels and numbers, without Python per line."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph._jit import kernel

OK, FEW_FIELDS, OPEN_QUOTE, AFTER_QUOTE, EMPTY_ID = range(5)

WORD, SIMPLE, LONG, NOT_FINITE = range(4)

_TAB, _LF, _CR, _SPACE, _QUOTE = 9, 10, 13, 32, 34

_OTHER, _BLANK, _DELIMITER, _END = range(4)


@kernel
def scan(
    data: Any,
    position: Any,
    line: Any,
    classes: Any,
    delimited: Any,
    quotes: Any,
    comment: Any,
    columns: Any,
    fields: Any,
    lines: Any,
) -> Any:
    """Find the wanted fields of every record.

    Parameters
    ----------
    data : uint8 array
        The file, ending with a line feed, which every loop can rely on. Doubled quotes inside
        quoted fields are undone in place.
    position, line : int
        Where to start, and the number of that line.
    classes : uint8 array of 256
        What a byte does, see :func:`byte_classes`.
    delimited : bool
        Whether a delimiter separates the fields; else blanks do.
    quotes : bool
        Whether a field that begins with a double quote runs to the next single one.
    comment : bool array of 256
        Bytes that make a line a comment when they come first.
    columns : int64 array of 3
        Which fields are source, target and weight; −1 for no weight.
    fields : int64 array of shape (rows, 3, 2)
        Output: first byte and end of the wanted fields; −1 where there is no weight.
    lines : int64 array of rows
        Output: line number of every record.

    Returns
    -------
    rows, problem, line, fields : int
        Number of records, and what is wrong with which line, if anything.
    """
    n = len(data)
    # Without a delimiter a blank ends a field, else it may stand inside one.
    stop = _DELIMITER if delimited else _BLANK
    row = 0
    p = position
    while p < n:
        begin = p
        while data[p] == _SPACE or data[p] == _TAB:
            p += 1
        if comment[data[p]]:
            while classes[data[p]] != _END:
                p += 1
        elif classes[data[p]] != _END:
            p = begin
            lines[row] = line
            for wanted in range(3):
                fields[row, wanted, 0] = -1
            column = 0
            while True:
                while classes[data[p]] == _BLANK:
                    p += 1
                start = p
                if quotes and data[p] == _QUOTE:
                    opened = line
                    p += 1
                    start = p
                    end = p
                    while p < n:
                        c = data[p]
                        if c == _QUOTE:
                            p += 1
                            if data[p] != _QUOTE:
                                break
                        elif c == _LF or (c == _CR and data[p + 1] != _LF):
                            line += 1
                        data[end] = c
                        end += 1
                        p += 1
                    if p == n:
                        return row, OPEN_QUOTE, opened, column
                    if classes[data[p]] < stop:
                        while classes[data[p]] == _BLANK:
                            p += 1
                        if classes[data[p]] < _DELIMITER:
                            return row, AFTER_QUOTE, line, column
                    is_empty = False
                else:
                    while classes[data[p]] < stop:
                        p += 1
                    end = p
                    while end > start and classes[data[end - 1]] == _BLANK:
                        end -= 1
                    is_empty = start == end
                if not is_empty:
                    for wanted in range(3):
                        if columns[wanted] == column:
                            fields[row, wanted, 0] = start
                            fields[row, wanted, 1] = end
                column += 1
                while classes[data[p]] == _BLANK:
                    p += 1
                if classes[data[p]] == _END:
                    break
                if classes[data[p]] == _DELIMITER:
                    p += 1
            if column <= max(columns[0], columns[1]):
                return row, FEW_FIELDS, lines[row], column
            if min(fields[row, 0, 0], fields[row, 1, 0]) < 0:
                return row, EMPTY_ID, lines[row], column
            row += 1
        if data[p] == _CR and data[p + 1] == _LF:
            p += 1
        p += 1
        line += 1
    return row, OK, 0, 0


@kernel
def number_labels(
    data: Any, fields: Any, codes: Any, spans: Any, hashes: Any, table: Any, row: Any, known: Any
) -> Any:
    """Number the distinct ids by first appearance, source before target.

    Open addressing; equal hashes are settled byte by byte. Stops where the table is half full, to
    be called again with larger arrays.

    Parameters
    ----------
    data : uint8 array
    fields : int64 array of shape (rows, 3, 2)
    codes : int64 array of shape (rows, 2)
        Output: node indices.
    spans : int64 array of shape (size / 2, 2)
        Output: first byte and end of every distinct id.
    hashes : uint64 array of size / 2
        Output: hash of every distinct id.
    table : int64 array, its size a power of two
        Numbers of the ids by hash; −1 where free.
    row, known : int
        Where to begin, and how many ids are known.

    Returns
    -------
    row, known : int
        How far it got.
    """
    mask = np.uint64(len(table) - 1)
    one = np.uint64(1)
    while row < len(codes) and known + 2 <= len(spans):
        for side in range(2):
            start = fields[row, side, 0]
            end = fields[row, side, 1]
            h = np.uint64(14695981039346656037)
            for p in range(start, end):
                h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
            h ^= h >> np.uint64(32)
            slot = h & mask
            while True:
                entry = table[slot]
                if entry < 0:
                    break
                shift = spans[entry, 0] - start
                if hashes[entry] == h and spans[entry, 1] - shift == end:
                    p = start
                    while p < end and data[p] == data[p + shift]:
                        p += 1
                    if p == end:
                        break
                slot = (slot + one) & mask
            if entry < 0:
                entry = known
                table[slot] = known
                hashes[known] = h
                spans[known, 0] = start
                spans[known, 1] = end
                known += 1
            codes[row, side] = entry
        row += 1
    return row, known


@kernel
def refill(hashes: Any, known: Any, table: Any) -> Any:
    """Put the known ids into a fresh table."""
    mask = np.uint64(len(table) - 1)
    one = np.uint64(1)
    for number in range(known):
        slot = hashes[number] & mask
        while table[slot] >= 0:
            slot = (slot + one) & mask
        table[slot] = number


@kernel
def parse_integers(data: Any, spans: Any, values: Any, plain: Any) -> Any:
    """Integers written the one usual way (no +, no leading zero, within 64 bits).

    Only those, because "007" and "7" are different ids: with this rule equal numbers are equal
    bytes and the other way round.
    """
    for i in range(len(spans)):
        p = spans[i, 0]
        end = spans[i, 1]
        negative = p < end and data[p] == 45
        if negative:
            p += 1
        digits = end - p
        ok = 0 < digits <= 19 and not (data[p] == 48 and (digits > 1 or negative))
        total = np.uint64(0)
        while ok and p < end:
            ok = 48 <= data[p] <= 57
            total = total * np.uint64(10) + np.uint64(data[p] - 48)
            p += 1
        if ok and total > np.uint64(9223372036854775807):
            ok = negative and total == np.uint64(9223372036854775808)
        plain[i] = ok
        if ok:
            value = np.int64(total)  # 2⁶³ wraps to the least integer, its own negative
            values[i] = -value if negative else value


@kernel
def parse_numbers(data: Any, fields: Any, values: Any, kinds: Any) -> Any:
    """Decimal numbers of the weight column.

    A number of at most 15 digits and a power of ten up to 22 is one exact product or quotient,
    hence correctly rounded (SIMPLE); longer ones are left to the caller (LONG). NaN and infinity
    are NOT_FINITE, anything else is a WORD.
    """
    for row in range(len(values)):
        p = fields[row, 2, 0]
        end = fields[row, 2, 1]
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
