"""``atp reach``: exact paths of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._nodes import asked_pairs, known_labels
from atpgraph.cli._reading import Reading, reads_graph
from atpgraph.cli.console import Json, Quiet, Session, session, table

if TYPE_CHECKING:
    from atpgraph.closure.reachability import Reachability


@reads_graph
def reach(
    graph: Annotated[
        Path,
        typer.Argument(
            help="Edge list, .gz or not, - for standard input; or what --output wrote.",
            show_default=False,
        ),
    ],
    reading: Reading,
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Pairs of nodes: U V [U V …].", show_default=False)
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="File of pairs, one per line.", show_default=False)
    ] = None,
    descendants: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE",
            help="List what this node reaches; repeat it for several.",
            show_default=False,
        ),
    ] = None,
    ancestors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE",
            help="List what reaches this node; repeat it for several.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="Only say how many descendants or ancestors.")
    ] = False,
    path: Annotated[
        bool, typer.Option("--path", help="Show a shortest path for every pair.")
    ] = False,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Follow only edges of these types, separated by commas."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write graph and index to this file (.npz)."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory budget of an index such as 4GB.", show_default="half of what is free"
        ),
    ] = None,
    index: Annotated[
        str,
        typer.Option(
            help="Kind of index: forest (fastest answers), labels (64 bytes a node) or auto.",
            metavar="KIND",
        ),
    ] = "auto",
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what an index would take.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Does a path lead from U to V? Exact, cycles or not.

    A node reaches itself; it is not listed among its own descendants and ancestors. With --pairs,
    pairs with a node that the graph does not have are marked as such.
    """
    with session(json=json, quiet=quiet) as out:
        from atpgraph.closure.reachability import FORMAT, Reachability
        from atpgraph.errors import InputError
        from atpgraph.util.archive import archive_format
        from atpgraph.util.files import check_writable
        from atpgraph.util.memory import budget_bytes

        if index not in ("auto", "forest", "labels"):
            raise InputError(f"--index is {index}; choose auto, forest or labels.")
        asked = [bool(nodes), pairs is not None, bool(descendants), bool(ancestors)]
        if sum([*asked, estimate]) > 1 or not (any(asked) or output or estimate):
            raise InputError(
                "Ask for one thing: pairs of nodes, a file of them with --pairs, --descendants "
                "NODE, --ancestors NODE or --estimate."
            )
        if path and not (nodes or pairs):
            raise InputError("--path goes with pairs of nodes.")
        if count and not (descendants or ancestors):
            raise InputError("--count goes with --descendants or --ancestors.")
        if output is not None:
            check_writable(output)
        budget = budget_bytes(memory)
        if archive_format(graph) == FORMAT:
            reading.check_unused(graph)
            reach = Reachability.load(graph)
        else:
            kind: Any = None if index == "auto" or estimate else index
            reach = Reachability(reading.read(graph, budget), index=kind, memory=budget)
        if types is not None:
            reach = reach.only(types.split(","))
        if estimate:
            _tell_estimate(out, reach, budget)
            return
        if output is not None:
            reach.save(output)
            if any(asked):
                out.note(f"{output}: written")
        if nodes or pairs is not None:
            _pairs(out, reach, *asked_pairs(reach.graph, nodes, pairs), path)
        elif descendants:
            _listed(out, reach, "descendants", descendants, count)
        elif ancestors:
            _listed(out, reach, "ancestors", ancestors, count)
        else:
            payload = {
                "nodes": reach.graph.n_nodes,
                "edges": reach.graph.n_edges,
                "index": reach.index,
                "output": output,
            }
            out.result(payload, f"{output}: written; next: atp reach {output} U V")


def _tell_estimate(out: Session, reach: Reachability, budget: int) -> None:
    from atpgraph.closure import estimate_closure
    from atpgraph.util.memory import human_bytes

    graph, forest = reach.graph, estimate_closure(reach.condensation)
    kind = reach.suitable_index()
    payload = {
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "components": reach.condensation.n_nodes,
        "memory": forest.bytes_peak,
        "seconds": round(forest.seconds, 4),
        "budget": budget,
        "fits": forest.bytes_peak <= budget,
        "index": kind,
    }
    out.result(
        payload,
        f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges; {payload['components']:,} components",
        f"a closure forest takes about {human_bytes(forest.bytes_peak)} and "
        f"{forest.seconds:,.1f} s; the budget is {human_bytes(budget)}",
        f"labels take {human_bytes(64 * reach.condensation.n_nodes)}; the index will be: {kind}",
    )


def _pairs(
    out: Session, reach: Reachability, sources: list[Any], targets: list[Any], path: bool
) -> None:
    import numpy as np

    graph = reach.graph
    known = np.array([graph.codes_or_minus_one(side) >= 0 for side in (sources, targets)])
    both = np.flatnonzero(known.all(axis=0)).tolist()
    answers: list[bool | None] = [None] * len(sources)
    found = reach.reaches([sources[at] for at in both], [targets[at] for at in both])
    for at, answer in zip(both, np.asarray(found).tolist(), strict=True):
        answers[at] = answer
    rows: list[dict[str, Any]] = []
    for at, (u, v) in enumerate(zip(sources, targets, strict=True)):
        row: dict[str, Any] = {"source": u, "target": v, "path": answers[at]}
        row["unknown"] = [
            label for label, here in zip((u, v), known[:, at], strict=True) if not here
        ]
        if path:
            row["nodes"] = reach.path(u, v) if answers[at] else None
        rows.append(row)
    missing = len(rows) - len(both)
    if missing:
        out.note(f"{missing:,} of {len(rows):,} pairs name a node that the graph does not have")
    columns = ["source", "target", "path"] + ["nodes"] * path
    shown = [
        [str(row["source"]), str(row["target"]), _answer(row["path"])]
        + ([" → ".join(map(str, row["nodes"] or []))] if path else [])
        for row in rows
    ]
    out.result({"pairs": rows}, table(columns, shown))


def _answer(path: bool | None) -> str:
    return "unknown node" if path is None else "yes" if path else "no"


def _listed(out: Session, reach: Reachability, kind: str, nodes: list[str], count: bool) -> None:
    labels = known_labels(reach.graph, nodes)
    found = getattr(reach, kind)(labels)
    asked = {"node": labels[0]} if len(labels) == 1 else {"union_of": labels}
    payload: dict[str, Any] = {**asked, "direction": kind, "count": len(found)}
    if count:
        out.result(payload, f"{len(found):,}")
    else:
        names = found.tolist()
        out.result(payload | {"nodes": names}, *map(str, names))
