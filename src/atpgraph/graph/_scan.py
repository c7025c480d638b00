"""Byte kernels of the edge-list reader: fields, labels and numbers, without Python per line."""

from __future__ import annotations

from typing import Any

import numpy as np

from atpgraph._jit import kernel

OK, FEW_FIELDS, OPEN_QUOTE, AFTER_QUOTE, EMPTY_ID = range(5)

WORD, SIMPLE, LONG, NOT_FINITE = range(4)

_TAB, _LF, _CR, _SPACE, _QUOTE = 9, 10, 13, 32, 34


@kernel
def scan(
    data: Any,
    position: Any,
    line: Any,
    delimiter: Any,
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
        The file. Doubled quotes inside quoted fields are undone in place.
    position, line : int
        Where to start, and the number of that line.
    delimiter : int
        A byte, or 0 for runs of spaces and tabs.
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
    blank_tab = delimiter != _TAB
    row = 0
    p = position
    while p < n:
        begin = p
        while p < n and (data[p] == _SPACE or data[p] == _TAB):
            p += 1
        if p == n:
            break
        if comment[data[p]]:
            while p < n and data[p] != _LF and data[p] != _CR:
                p += 1
        elif data[p] != _LF and data[p] != _CR:
            p = begin
            lines[row] = line
            fields[row, 2, 0] = -1
            fields[row, 2, 1] = -1
            column = 0
            while True:
                while p < n and (data[p] == _SPACE or (blank_tab and data[p] == _TAB)):
                    p += 1
                if quotes and p < n and data[p] == _QUOTE:
                    opened = line
                    p += 1
                    start = p
                    end = p
                    closed = False
                    while p < n:
                        c = data[p]
                        if c == _QUOTE:
                            p += 1
                            if p == n or data[p] != _QUOTE:
                                closed = True
                                break
                        elif c == _LF or (c == _CR and (p + 1 == n or data[p + 1] != _LF)):
                            line += 1
                        data[end] = c
                        end += 1
                        p += 1
                    if not closed:
                        return row, OPEN_QUOTE, opened, column
                    after = p
                    while p < n and (data[p] == _SPACE or (blank_tab and data[p] == _TAB)):
                        p += 1
                    if p < n and data[p] != _LF and data[p] != _CR:
                        if delimiter == 0:
                            if p == after:
                                return row, AFTER_QUOTE, line, column
                        elif data[p] != delimiter:
                            return row, AFTER_QUOTE, line, column
                    is_empty = False
                else:
                    start = p
                    if delimiter == 0:
                        while p < n and not (
                            data[p] == _SPACE or data[p] == _TAB or data[p] == _LF or data[p] == _CR
                        ):
                            p += 1
                        end = p
                    else:
                        while p < n and not (
                            data[p] == delimiter or data[p] == _LF or data[p] == _CR
                        ):
                            p += 1
                        end = p
                        while end > start and (
                            data[end - 1] == _SPACE or (blank_tab and data[end - 1] == _TAB)
                        ):
                            end -= 1
                    is_empty = start == end
                for wanted in range(3):
                    if columns[wanted] == column:
                        if not is_empty:
                            fields[row, wanted, 0] = start
                            fields[row, wanted, 1] = end
                        elif wanted < 2:
                            fields[row, wanted, 0] = -1
                column += 1
                if delimiter == 0:
                    while p < n and (data[p] == _SPACE or data[p] == _TAB):
                        p += 1
                    if p == n or data[p] == _LF or data[p] == _CR:
                        break
                elif p < n and data[p] == delimiter:
                    p += 1
                else:
                    break
            if column <= columns[0] or column <= columns[1]:
                return row, FEW_FIELDS, lines[row], column
            if fields[row, 0, 0] < 0 or fields[row, 1, 0] < 0:
                return row, EMPTY_ID, lines[row], column
            row += 1
        if p < n:
            if data[p] == _CR and p + 1 < n and data[p + 1] == _LF:
                p += 1
            p += 1
            line += 1
    return row, OK, 0, 0


@kernel
def number_labels(data: Any, fields: Any, codes: Any) -> Any:
    """Number the distinct ids by first appearance, source before target.

    Open addressing over a table that doubles; equal hashes are settled byte by byte.

    Parameters
    ----------
    data : uint8 array
    fields : int64 array of shape (rows, 3, 2)
    codes : int64 array of shape (rows, 2)
        Output: node numbers.

    Returns
    -------
    spans : int64 array of shape (labels, 2)
        First byte and end of every distinct id.
    """
    size = 1 << 12
    table = np.full(size, -1, dtype=np.int64)
    spans = np.empty((size // 2, 2), dtype=np.int64)
    hashes = np.empty(size // 2, dtype=np.uint64)
    known = 0
    for row in range(len(codes)):
        for side in range(2):
            start = fields[row, side, 0]
            end = fields[row, side, 1]
            h = np.uint64(14695981039346656037)
            for p in range(start, end):
                h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
            h ^= h >> np.uint64(32)
            slot = np.int64(h & np.uint64(size - 1))
            found = -1
            while table[slot] >= 0:
                other = table[slot]
                if hashes[other] == h and spans[other, 1] - spans[other, 0] == end - start:
                    shift = spans[other, 0] - start
                    same = True
                    for p in range(start, end):
                        if data[p] != data[p + shift]:
                            same = False
                            break
                    if same:
                        found = other
                        break
                slot = (slot + 1) & (size - 1)
            if found < 0:
                if known == size // 2:
                    size *= 2
                    table = np.full(size, -1, dtype=np.int64)
                    for other in range(known):
                        slot = np.int64(hashes[other] & np.uint64(size - 1))
                        while table[slot] >= 0:
                            slot = (slot + 1) & (size - 1)
                        table[slot] = other
                    more_spans = np.empty((size // 2, 2), dtype=np.int64)
                    more_spans[:known] = spans
                    spans = more_spans
                    more_hashes = np.empty(size // 2, dtype=np.uint64)
                    more_hashes[:known] = hashes
                    hashes = more_hashes
                    slot = np.int64(h & np.uint64(size - 1))
                    while table[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                table[slot] = known
                hashes[known] = h
                spans[known, 0] = start
                spans[known, 1] = end
                found = known
                known += 1
            codes[row, side] = found
    return spans[:known].copy()


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


def comment_mask(comments: str) -> Any:
    """The table of first bytes that make a line a comment."""
    mask = np.zeros(256, dtype=np.bool_)
    mask[list(comments.encode())] = True
    return mask
