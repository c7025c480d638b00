"""How an edge list is laid out: separator, header, and which columns hold the edge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from atpgraph.errors import InputError

# Bytes of the first record that are looked at; a longer first line is not an edge list.
PROBE = 1 << 16

_NAMES = (
    ("source", "target"),
    ("src", "dst"),
    ("src", "dest"),
    ("from", "to"),
    ("fromnodeid", "tonodeid"),
    ("source_id", "target_id"),
    ("from_id", "to_id"),
)


class Columns(NamedTuple):
    """Positions of the columns, −1 for no weight; `named` is true if they were found by name."""

    source: int
    target: int
    weight: int
    named: bool


def choose_columns(names: Sequence[str]) -> Columns:
    """Find source, target and weight by their names; else the first two columns.

    Examples
    --------
    >>> choose_columns(["id", "From", "To", "Weight"])
    Columns(source=1, target=2, weight=3, named=True)
    >>> choose_columns(["citing", "cited"])
    Columns(source=0, target=1, weight=-1, named=False)
    """
    lowered = [name.strip().lower() for name in names]
    weight = lowered.index("weight") if "weight" in lowered else -1
    for source, target in _NAMES:
        if source in lowered and target in lowered:
            return Columns(lowered.index(source), lowered.index(target), weight, True)
    return Columns(0, 1, weight if weight > 1 else -1, False)


def are_words(ids: Sequence[str]) -> bool:
    """Whether none of the ids is a number, so that they may be names of columns.

    Examples
    --------
    >>> are_words(["citing", "cited"]), are_words(["007", "x"])
    (True, False)
    """
    for text in ids:
        try:
            float(text)
        except ValueError:
            continue
        return False
    return True


def check_delimiter(delimiter: str | None) -> None:
    """Refuse what cannot separate fields."""
    if delimiter is not None and (
        len(delimiter) != 1
        or not delimiter.isascii()
        or delimiter.isalnum()
        or delimiter in '"\r\n\0+-.'
    ):
        raise InputError(
            f"The delimiter {delimiter!r} is not usable; give one ASCII character such as ',' "
            "or '\\t', or ' ' for any run of spaces and tabs."
        )


def first_record(data: bytes | bytearray, start: int, comments: str) -> tuple[int, bytes]:
    """Where the first record begins, and its bytes; comments and blank lines are skipped."""
    marks = comments.encode()
    n = len(data)
    while start < n:
        end = line_end(data, start)
        text = data[start : min(end, start + PROBE)].lstrip(b" \t")
        if text and text[0] not in marks:
            return start, bytes(data[start : start + PROBE])
        start = end + 1
    return n, b""


def line_end(data: bytes | bytearray, start: int) -> int:
    """Where the line that begins at `start` ends."""
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end
    before = data.find(b"\r", start, end)
    return end if before < 0 else before


def split_record(record: bytes, delimiter: str | None, quotes: bool) -> tuple[str, list[str]]:
    """The delimiter (found, if not given) and the fields of the first record.

    A tab outside quotes separates; else the more frequent of comma and semicolon; else blanks.
    """
    text = record.decode("utf-8", errors="replace")
    line = re.split("[\r\n]", text, maxsplit=1)[0]
    if delimiter is None:
        bare = _outside_quotes(text) if quotes else line
        commas, semicolons = bare.count(","), bare.count(";")
        if "\t" in bare.strip(" \t"):
            delimiter = "\t"
        elif commas or semicolons:
            delimiter = "," if commas >= semicolons else ";"
        else:
            delimiter = " "
    fields = line.split() if delimiter == " " else line.split(delimiter)
    return delimiter, [field.strip().strip('"') for field in fields]


def _outside_quotes(text: str) -> str:
    """The first record without what is inside its quoted fields."""
    kept = []
    quoted = False
    field_start = True
    for c in text:
        if quoted:
            quoted = c != '"'  # a doubled quote closes and opens again
            field_start = not quoted
        elif c == '"' and field_start:
            quoted = True
            kept.append(c)  # stands for the field
        elif c in "\r\n":
            break
        else:
            kept.append(c)
            field_start = c in "\t,; "
    return "".join(kept)
