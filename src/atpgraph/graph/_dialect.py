"""How an edge list is laid out: separator, header, and which columns hold the edge."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import NamedTuple

from atpgraph.errors import InputError
from atpgraph.util.checks import unknown_name

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
    ("subject", "object"),
)

Column = str | int  # a name, or a number counted from 1


class ColumnOptions(NamedTuple):
    """The columns that the user asks for; None where the table is to decide.

    `weight` is False to ignore weights and True to insist on them.
    """

    source: Column | None = None
    target: Column | None = None
    weight: Column | bool | None = None
    type: Column | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are asked for by name."""
        return [column for column in self if isinstance(column, str)]

    def check(self) -> None:
        """Raise an InputError for options that no table can fulfil."""
        if (self.source is None) != (self.target is None):
            raise InputError(f"Name both columns of the edges, {OPTIONS}.")
        for name, column in zip(self._fields, self, strict=True):
            if column is None or isinstance(column, str) or (name == "weight" and column is False):
                continue
            if not isinstance(column, int) or column < 1:
                raise InputError(
                    f"{name} is {column!r}; give the name of a column, or its number from 1 on."
                )


class TextOptions(NamedTuple):
    """How the user says that a text is laid out; None where its first lines decide."""

    delimiter: str | None = None
    header: bool | None = None
    comments: str = "#%"
    quotes: bool = True

    def check(self) -> None:
        """Raise an InputError for options that no text can fulfil."""
        check_delimiter(self.delimiter)
        if not self.comments.isascii():
            raise InputError(f"Comments begin with an ASCII character, not with {self.comments!r}.")


OPTIONS = "with source and target (--source and --target), by name or by number"
ANY = ColumnOptions()


class Columns(NamedTuple):
    """Positions of the columns, −1 for no weight or no type.

    `named` is true if source and target were found by name, `sure` if nothing else in the table
    could be an edge.
    """

    source: int
    target: int
    weight: int = -1
    type: int = -1
    named: bool = False
    sure: bool = True


def choose_columns(names: Sequence[str], options: ColumnOptions = ANY) -> Columns:
    """Find source, target, weight and type: as asked for, else by name, else the only two.

    Examples
    --------
    >>> choose_columns(["id", "From", "To", "Weight"])[:3]
    (1, 2, 3)
    >>> choose_columns(["citing", "weight", "cited"])[:3]
    (0, 2, 1)
    >>> choose_columns(["when", "pkg", "needs"]).sure
    False
    >>> choose_columns(["when", "pkg", "needs"], ColumnOptions("pkg", 3))[:3]
    (1, 2, -1)
    """
    lowered = [name.strip().lower() for name in names]
    called_weight = lowered.index("weight") if "weight" in lowered else -1
    weight = _place(names, options.weight)
    if weight < 0 and options.weight is not False:
        weight = called_weight
    kind = _place(names, options.type)
    if options.source is not None:
        found = Columns(_place(names, options.source), _place(names, options.target), weight, kind)
        if len({found.source, found.target, found.weight, found.type} - {-1}) < sum(
            place >= 0 for place in found[:4]
        ):
            raise InputError("Two of source, target, weight and type are the same column.")
        return found._replace(named=bool(options.names))
    for source, target in _NAMES:
        if source in lowered and target in lowered:
            return Columns(lowered.index(source), lowered.index(target), weight, kind, True)
    others = [at for at in range(len(names)) if at not in (called_weight, weight, kind)]
    if len(others) < 2:
        return Columns(0, 1, sure=called_weight < 0)
    return Columns(others[0], others[1], weight, kind, sure=len(others) == 2)


def _place(names: Sequence[str], column: Column | bool | None) -> int:
    """Return the position of a column, −1 if none is asked for."""
    if column is None or isinstance(column, bool):
        return -1
    if isinstance(column, int):
        if column > len(names):
            raise InputError(f"There is no column {column}; there are {len(names)}.")
        return column - 1
    if column not in names:
        raise unknown_name("column", column, names)
    return list(names).index(column)


def ambiguous(what: str, names: Sequence[str], remedy: str = OPTIONS) -> InputError:
    """Return the error for a table whose columns do not say which of them are the edges."""
    shown = ", ".join(repr(name[:40]) for name in names[:6]) + ", …" * (len(names) > 6)
    return InputError(
        f"{what} has the columns {shown}, and nothing says which two are the edges; name them "
        f"{remedy}."
    )


def are_words(ids: Sequence[str]) -> bool:
    """Return whether none of the ids is a number, so that they may be names of columns.

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
    """Return where the first record begins, and its bytes; comments and blank lines are skipped."""
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
    """Return where the line that begins at `start` ends."""
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end
    before = data.find(b"\r", start, end)
    return end if before < 0 else before


def split_record(record: bytes, delimiter: str | None, quotes: bool) -> tuple[str, list[str]]:
    """Return the delimiter (found, if not given) and the fields of the first record.

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
    if not quotes:
        fields = line.split() if delimiter == " " else line.split(delimiter)
    else:
        blank = delimiter == " "
        text = line.replace("\t", " ").strip() if blank and '"' not in line else text
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
        fields = next(rows, [])
    fields = [field.strip() for field in fields]
    while len(fields) > 2 and not fields[-1]:
        fields.pop()
    return delimiter, fields


def _outside_quotes(text: str) -> str:
    """Return the first record without what is inside its quoted fields."""
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
