"""Match typed labels with those of a graph, and answer questions about pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atpgraph.errors import InputError

if TYPE_CHECKING:
    from atpgraph.cli.console import Session
    from atpgraph.graph.digraph import DiGraph


def known_labels(graph: DiGraph, names: Iterable[Any]) -> list[Any]:
    """Return typed labels as the graph has them; an unknown label raises an InputError."""
    labels = graph.same_labels(names)
    unknown = (graph.codes_or_minus_one(labels) < 0).tolist()
    if any(unknown):
        label = labels[unknown.index(True)]
        if graph.labels.dtype.kind == "i" and isinstance(label, str):
            raise InputError(f"The graph has no node {label!r}; its nodes are integers.")
        raise graph.unknown(label)
    return labels


def answer_pairs(
    out: Session,
    graph: DiGraph,
    nodes: list[str] | None,
    file: Path | None,
    ask: Mapping[str, Callable[[list[Any], list[Any]], Any]],
) -> list[dict[str, Any]]:
    """Return a row for each pair of nodes, typed or listed in a file.

    Each function in `ask` takes sources and targets and returns an array of answers. An answer is
    None if the graph lacks one of the nodes.
    """
    import numpy as np

    from atpgraph.graph.edgelist import read_pairs

    if bool(nodes) == (file is not None):
        raise InputError("Name pairs of nodes, or a file of them with --pairs; not both.")
    if file is not None:
        pairs = [graph.same_labels(side) for side in read_pairs(file)]
    else:
        typed = nodes or []
        if len(typed) % 2:
            raise InputError(f"{typed[-1]!r} has no partner; name an even number of nodes.")
        labels = known_labels(graph, typed)
        pairs = [labels[0::2], labels[1::2]]
    known = np.array([graph.codes_or_minus_one(side) >= 0 for side in pairs])
    rows: list[dict[str, Any]] = []
    for u, v, *here in zip(*pairs, *known.tolist(), strict=True):
        unknown = [label for label, known_here in zip((u, v), here, strict=True) if not known_here]
        rows.append({"source": u, "target": v, **dict.fromkeys(ask), "unknown": unknown})
    asked = [row for row in rows if not row["unknown"]]
    for name, function in ask.items() if asked else ():
        answers = function([row["source"] for row in asked], [row["target"] for row in asked])
        for row, answer in zip(asked, np.asarray(answers).tolist(), strict=True):
            row[name] = answer
    if missing := len(rows) - len(asked):
        out.note(f"{missing:,} of {len(rows):,} pairs name a node that the graph does not have")
    return rows
