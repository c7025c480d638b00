"""Attributes and times of nodes or edges from a file: a line for each, labels first."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import Float64Array


def read_attributes(
    path: str | os.PathLike[str], graph: DiGraph
) -> dict[object, str] | dict[object, list[float]]:
    """Read attributes by label: rows of numbers if all fields are, else texts.

    Fields are separated by tabs if the first line has one, else by commas. A first line whose label
    is no node of the graph is a header. Nodes that the graph does not have are left out.
    """
    rows = _rows(path, "attributes")
    names = {str(label): label for label in graph.labels.tolist()}
    known = [(names[row[0].strip()], row[1:]) for row in rows if row[0].strip() in names]
    if not known:
        raise InputError(
            f"{path} names no node of the graph; the first field of a line is a label."
        )
    for number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise InputError(f"{path}, row {number}: {row[0]!r} has no attributes.")
    try:
        numbers = {label: [float(field) for field in fields] for label, fields in known}
    except ValueError:
        return {label: " ".join(fields) for label, fields in known}
    if len({len(fields) for fields in numbers.values()}) > 1:
        raise InputError(f"{path}: the rows have different numbers of fields.")
    return numbers


def read_times(path: str | os.PathLike[str], graph: DiGraph) -> Float64Array:
    """Read times of nodes (label, time) or of edges (source, target, time).

    Fields are separated by tabs, commas or spaces. Lines about nodes or edges that the graph does
    not have are left out; what no line mentions gets NaN.
    """
    rows = _rows(path, "times", spaces=True)
    width = len(rows[-1])
    if width not in (2, 3):
        raise InputError(
            f"{path} has {width} fields in a line; give a label and a time, or both ends of an "
            "edge and a time."
        )
    codes = {str(label): code for code, label in enumerate(graph.labels.tolist())}
    found: list[tuple[list[int], float]] = []
    for number, row in enumerate(rows, 1):
        ends = [codes.get(field.strip(), -1) for field in row[: width - 1]]
        if len(row) != width or min(ends) < 0:
            continue
        try:
            found.append((ends, float(row[-1])))
        except ValueError:
            raise InputError(f"{path}, row {number}: the time {row[-1]!r} is no number.") from None
    if not found:
        raise InputError(f"{path} names no {'node' if width == 2 else 'edge'} of the graph.")
    where = np.array([ends for ends, _ in found])
    at = where[:, 0] if width == 2 else graph.find_edges(where[:, 0], where[:, 1])
    times = np.full(graph.n_nodes if width == 2 else graph.n_edges, np.nan)
    times[at[at >= 0]] = np.array([time for _, time in found])[at >= 0]
    return times


def _rows(path: str | os.PathLike[str], what: str, spaces: bool = False) -> list[list[str]]:
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; give a file of {what}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {file}: {error}.") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise InputError(f"{file} is empty; give a file of {what}.")
    if spaces and "\t" not in lines[0] and "," not in lines[0]:
        return [line.split() for line in lines]
    return list(csv.reader(lines, delimiter="\t" if "\t" in lines[0] else ","))
