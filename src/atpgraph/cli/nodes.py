"""Labels of nodes as they are typed and as a graph has them, and rows of answers about pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atpgraph.cli.console import Session
    from atpgraph.graph.digraph import DiGraph


def same_labels(graph: DiGraph, names: Iterable[Any]) -> list[Any]:
    """Return labels as the graph has them: 7 may be a number there and text here, or vice versa.

    What the graph does not have stays as it is.
    """
    given = list(names)
    known = (graph.codes_or_minus_one(given) >= 0).tolist()
    return [
        name if here else _other_form(graph, name) for name, here in zip(given, known, strict=True)
    ]


def known_labels(graph: DiGraph, names: Iterable[Any]) -> list[Any]:
    """Return :func:`same_labels`, all of which the graph must have."""
    from atpgraph.errors import InputError

    labels = same_labels(graph, names)
    unknown = (graph.codes_or_minus_one(labels) < 0).tolist()
    if any(unknown):
        label = labels[unknown.index(True)]
        if graph.labels.dtype.kind == "i" and not isinstance(_whole(label), int):
            raise InputError(f"The graph has no node {label!r}; its nodes are integers.")
        raise graph.unknown(label)
    return labels


def asked_pairs(
    graph: DiGraph, nodes: list[str] | None, file: Path | None
) -> tuple[list[Any], list[Any]]:
    """Return the sources and targets that are asked about, typed in turn or in a file."""
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


def answer_pairs(
    out: Session,
    graph: DiGraph,
    pairs: tuple[list[Any], list[Any]],
    names: Sequence[str],
    ask: Callable[[list[Any], list[Any]], Sequence[Any]],
) -> list[dict[str, Any]]:
    """Return a row for each pair, with null answers where the graph does not have a node.

    `ask` takes sources and targets and returns one array of answers for each of `names`.
    """
    import numpy as np

    sources, targets = pairs
    known = np.array([graph.codes_or_minus_one(side) >= 0 for side in pairs])
    both = np.flatnonzero(known.all(axis=0)).tolist()
    rows: list[dict[str, Any]] = [
        {
            "source": u,
            "target": v,
            **dict.fromkeys(names),
            "unknown": [
                label for label, here in zip((u, v), known[:, at], strict=True) if not here
            ],
        }
        for at, (u, v) in enumerate(zip(sources, targets, strict=True))
    ]
    if both:
        answers = ask([sources[at] for at in both], [targets[at] for at in both])
        for name, values in zip(names, answers, strict=True):
            plain = values.tolist() if hasattr(values, "tolist") else values
            for at, value in zip(both, plain, strict=True):
                rows[at][name] = value
    if missing := len(rows) - len(both):
        out.note(f"{missing:,} of {len(rows):,} pairs name a node that the graph does not have")
    return rows


def _other_form(graph: DiGraph, name: Any) -> Any:
    number, text = _whole(name), str(name)
    return text if graph.codes_or_minus_one([text])[0] >= 0 else number


def _whole(name: Any) -> Any:
    digits = str(name).removeprefix("-")
    return int(name) if digits.isascii() and digits.isdigit() else name
