"""Detect the layout of an edge list: separator, header, and the columns that hold the edges."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from atpgraph.errors import InputError
from atpgraph.util.checks import unknown_name

# Bytes from which it is decided how a text is laid out.
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

OPTIONS = "with source and target (--source and --target), by name or by number"
Column = str | int  # a name, or a number counted from 1


class ColumnOptions(NamedTuple):
    """The columns that the user named; None for those to detect.

    `weight` is False to ignore weights and True to insist on them.
    """

    source: Column | None = None
    target: Column | None = None
    weight: Column | bool | None = None
    type: Column | None = None
    remedy: str = OPTIONS  # how to name the edges, for errors

    @property
    def names(self) -> list[str]:
        """The columns that the user requested by name."""
        return [column for column in self[:4] if isinstance(column, str)]

    def check(self) -> None:
        """Raise an InputError for options that no table can satisfy."""
        if (self.source is None) != (self.target is None):
            raise InputError(f"Name both columns of the edges, {OPTIONS}.")
        for name, column in zip(self._fields[:4], self[:4], strict=True):
            if column is None or isinstance(column, str) or (name == "weight" and column is False):
                continue
            if not isinstance(column, int) or column < 1:
                raise InputError(
                    f"{name} is {column!r}; give the name of a column, or its number from 1 on."
                )


class TextOptions(NamedTuple):
    """The layout of a text as given by the user; None for what has to be detected."""

    delimiter: str | None = None
    header: bool | None = None
    comments: str = "#%"
    quotes: bool = True

    def check(self) -> None:
        """Raise an InputError for options that no text can satisfy."""
        check_delimiter(self.delimiter)
        if not self.comments.isascii():
            raise InputError(f"Comments begin with an ASCII character, not with {self.comments!r}.")


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
    """Find source, target, weight and type: as requested, else by name, else the only two columns.

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
    """Return the position of a column, −1 if none is requested."""
    if column is None or isinstance(column, bool):
        return -1
    if isinstance(column, int):
        if column > len(names):
            raise InputError(f"There is no column {column}; there are {len(names)}.")
        return column - 1
    if column not in names:
        raise unknown_name("column", column, names)
    return list(names).index(column)


def ambiguous(what: str, names: Sequence[str], options: ColumnOptions) -> InputError:
    """Return the error for a table whose column names do not show which two are the edges."""
    shown = ", ".join(repr(name[:40]) for name in names[:6]) + ", …" * (len(names) > 6)
    return InputError(
        f"{what} has the columns {shown}, and nothing says which two are the edges; name them "
        f"{options.remedy}."
    )


def are_words(ids: Iterable[str]) -> bool:
    """Return whether none of the ids is a number, so that they may be column names.

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
    """Raise an InputError for a delimiter that cannot separate fields."""
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


def is_integer(text: str) -> bool:
    """Return whether a text is an integer of 64 bits, written the usual way.

    Examples
    --------
    >>> [is_integer(text) for text in ("7", "-7", "07", "-0", "7.0", str(2**63))]
    [True, True, False, False, False, False]
    """
    usual = re.fullmatch("0|-?[1-9][0-9]{0,18}", text)
    return usual is not None and -(2**63) <= int(text) < 2**63


def first_record(data: bytes | bytearray, start: int, comments: str) -> int:
    """Return where the first record begins; comments and blank lines are skipped."""
    marks = comments.encode()
    while start < len(data):
        ends = [at for at in (data.find(b"\n", start), data.find(b"\r", start)) if at >= 0]
        end = min(ends, default=len(data))
        text = data[start : min(end, start + PROBE)].lstrip(b" \t")
        if text and text[0] not in marks:
            return start
        start = end + 1
    return len(data)


def find_delimiter(sample: str, quotes: bool) -> str:
    """Return the delimiter that the first record suggests.

    A tab outside quotes separates; else the more frequent of comma and semicolon; else blanks.
    """
    # A quoted field may hold anything, line ends too; a doubled quote does not end it.
    bare = re.sub('(^|(?<=[\t,; ]))"([^"]|"")*("|$)', '"', sample) if quotes else sample
    bare = re.split("[\r\n]", bare, maxsplit=1)[0]
    if "\t" in bare.strip(" \t"):
        return "\t"
    commas, semicolons = bare.count(","), bare.count(";")
    return ("," if commas >= semicolons else ";") if commas or semicolons else " "


def sample_rows(
    sample: str, delimiter: str, quotes: bool, comments: str
) -> tuple[list[list[str]], int]:
    """Return the fields of the records in a sample of the text, and where the first one ends.

    Examples
    --------
    >>> sample_rows('from,"to"\\n# note\\n1 , 2\\n', ",", True, "#")
    ([['from', 'to'], ['1', '2']], 10)
    """
    lines = io.StringIO(sample, newline="")
    begins = True  # whether the next line begins a record, and is not part of a quoted field

    def wanted() -> Iterator[str]:
        nonlocal begins
        for line in lines:
            text = line.strip(" \t\r\n")
            if not begins:
                yield line
            elif text and text[0] not in comments:
                begins = False
                yield (
                    text.replace("\t", " ") + "\n" if delimiter == " " and '"' not in text else line
                )

    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    rows: list[list[str]] = []
    end = 0
    for row in csv.reader(wanted(), delimiter=delimiter, skipinitialspace=True, quoting=quoting):
        begins = True
        end = end or lines.tell()
        fields = [field.strip() for field in row]
        while len(fields) > 2 and not fields[-1]:
            fields.pop()
        rows.append(fields)
    return rows, end
