"""Attributes of nodes from a file: a line for each node, its label first."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph


def read_attributes(
    path: str | os.PathLike[str], graph: DiGraph
) -> dict[object, str] | dict[object, list[float]]:
    """Attributes by label: rows of numbers if all fields are, else texts.

    Fields are separated by tabs if the first line has one, else by commas. A first line whose label
    is no node of the graph is a header. Nodes that the graph does not have are left out.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; give a file of attributes.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {file}: {error}.") from None
    lines = text.splitlines()
    tab = "\t" in (lines[0] if lines else "")
    rows = [row for row in csv.reader(lines, delimiter="\t" if tab else ",") if row]
    names = {str(label): label for label in graph.labels.tolist()}
    known = [(names[row[0].strip()], row[1:]) for row in rows if row[0].strip() in names]
    if not known:
        raise InputError(
            f"{file} names no node of the graph; the first field of a line is a label."
        )
    for number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise InputError(f"{file}, row {number}: {row[0]!r} has no attributes.")
    try:
        numbers = {label: [float(field) for field in fields] for label, fields in known}
    except ValueError:
        return {label: " ".join(fields) for label, fields in known}
    if len({len(fields) for fields in numbers.values()}) > 1:
        raise InputError(f"{file}: the rows have different numbers of fields.")
    return numbers
