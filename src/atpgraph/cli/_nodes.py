"""Labels of nodes as they are typed, and as a graph has them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atpgraph.graph.digraph import DiGraph


def same_labels(graph: DiGraph, names: Iterable[Any]) -> list[Any]:
    """Labels as the graph has them: 7 may be a number there and text here, or the other way round.

    What the graph does not have stays as it is.
    """
    given = list(names)
    known = (graph.codes_or_minus_one(given) >= 0).tolist()
    return [
        name if here else _other_form(graph, name) for name, here in zip(given, known, strict=True)
    ]


def known_labels(graph: DiGraph, names: Iterable[Any]) -> list[Any]:
    """:func:`same_labels`, all of which the graph must have."""
    from atpgraph.errors import InputError

    labels = same_labels(graph, names)
    unknown = (graph.codes_or_minus_one(labels) < 0).tolist()
    if any(unknown):
        label = labels[unknown.index(True)]
        integers = graph.labels.dtype.kind == "i" and not isinstance(_whole(label), int)
        told = "; its nodes are integers." if integers else "."
        raise InputError(f"The graph has no node {label!r}{told}")
    return labels


def asked_pairs(
    graph: DiGraph, nodes: list[str] | None, file: Path | None
) -> tuple[list[Any], list[Any]]:
    """The sources and targets that are asked about, typed one after another or in a file."""
    from atpgraph.errors import InputError
    from atpgraph.graph.edgelist import read_pairs

    if bool(nodes) == (file is not None):
        raise InputError("Name pairs of nodes, or a file of them with --pairs; not both.")
    if file is not None:
        sources, targets = read_pairs(file)
        return same_labels(graph, sources), same_labels(graph, targets)
    names = nodes or []
    if len(names) % 2:
        raise InputError(f"{names[-1]!r} has no partner; name an even number of nodes.")
    labels = known_labels(graph, names)
    return labels[0::2], labels[1::2]


def _other_form(graph: DiGraph, name: Any) -> Any:
    number, text = _whole(name), str(name)
    return text if graph.codes_or_minus_one([text])[0] >= 0 else number


def _whole(name: Any) -> Any:
    digits = str(name).removeprefix("-")
    return int(name) if digits.isascii() and digits.isdigit() else name
