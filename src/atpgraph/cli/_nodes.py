"""Labels of nodes as they are typed, and as a graph has them."""

from __future__ import annotations

from collections.abc import Iterable
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


def _other_form(graph: DiGraph, name: Any) -> Any:
    number, text = _whole(name), str(name)
    return text if graph.codes_or_minus_one([text])[0] >= 0 else number


def _whole(name: Any) -> Any:
    digits = str(name).removeprefix("-")
    return int(name) if digits.isascii() and digits.isdigit() else name
