"""``atp reach``: exact paths of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli import options as opts
from atpgraph.cli.console import Session, table
from atpgraph.cli.nodes import answer_pairs, asked_pairs, known_labels
from atpgraph.cli.options import Reading, arg, opt

if TYPE_CHECKING:
    from atpgraph.closure.reachability import Reachability


def reach(
    out: Session,
    graph: Annotated[
        Path, arg("Edge list, .gz or not; - for standard input; a model, or what --output wrote.")
    ],
    reading: Reading,
    nodes: opts.Pairs = None,
    pairs: opts.PairsFile = None,
    descendants: Annotated[
        list[str] | None, opt("List what this node reaches; repeat it for several.", metavar="NODE")
    ] = None,
    ancestors: Annotated[
        list[str] | None, opt("List what reaches this node; repeat it for several.", metavar="NODE")
    ] = None,
    count: Annotated[bool, opt("Only count the descendants or ancestors.", "--count")] = False,
    path: Annotated[bool, opt("Show a shortest path for every pair.", "--path")] = False,
    types: Annotated[
        str | None, opt("Follow only edges of these types, separated by commas.", metavar="NAMES")
    ] = None,
    output: Annotated[
        Path | None, opt("Write graph and index to this file (.npz).", "--output", "-o")
    ] = None,
    memory: opts.Memory = None,
    index: Annotated[
        str,
        opt(
            "Kind of index: forest (fastest answers), labels (64 bytes a node) or auto.",
            metavar="KIND",
        ),
    ] = "auto",
    estimate: Annotated[bool, opt("Only estimate what an index would take.", "--estimate")] = False,
) -> None:
    """Is there a path from U to V? Exact, cycles or not.

    A node reaches itself; it is not listed among its own descendants and ancestors. With --pairs,
    pairs with a node that the graph does not have are marked as such.
    """
    from atpgraph.errors import InputError
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
    reach = _opened(graph, reading, None if index == "auto" or estimate else index, budget)
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
        _pairs(out, reach, asked_pairs(reach.graph, nodes, pairs), path)
    elif descendants or ancestors:
        _listed(out, reach, descendants or ancestors or [], count, forward=bool(descendants))
    else:
        sizes = {"nodes": reach.graph.n_nodes, "edges": reach.graph.n_edges}
        payload = sizes | {"index": reach.index, "output": output}
        out.result(payload, f"{output}: written; next: atp reach {output} U V")


def _opened(path: Path, reading: Reading, index: Any, budget: int) -> Reachability:
    """Return the paths of an edge list, or of the graph in a file that a command wrote."""
    from atpgraph.closure.reachability import FORMAT, Reachability
    from atpgraph.embedding.model_file import FORMAT as MODEL
    from atpgraph.util.archive import archive_format

    kind = archive_format(path)
    if kind in (FORMAT, MODEL):
        reading.check_unused(path)
    if kind == FORMAT:
        return Reachability.load(path)
    if kind == MODEL:
        from atpgraph.embedding import ATP

        return Reachability(ATP.load(path).graph_, index=index, memory=budget)
    return Reachability(reading.read(path, budget), index=index, memory=budget)


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
    out: Session, reach: Reachability, pairs: tuple[list[Any], list[Any]], path: bool
) -> None:
    rows = answer_pairs(out, reach.graph, pairs, ["path"], lambda u, v: [reach.reaches(u, v)])
    columns = ["source", "target", "path"]
    words = {None: "unknown node", True: "yes", False: "no"}
    shown = [[str(row["source"]), str(row["target"]), words[row["path"]]] for row in rows]
    if path:
        columns.append("nodes")
        for row, cells in zip(rows, shown, strict=True):
            row["nodes"] = reach.path(row["source"], row["target"]) if row["path"] else None
            cells.append(" → ".join(map(str, row["nodes"] or [])))
    out.result({"pairs": rows}, table(columns, shown))


def _listed(
    out: Session, reach: Reachability, nodes: list[str], count: bool, *, forward: bool
) -> None:
    labels = known_labels(reach.graph, nodes)
    members = (reach.descendants if forward else reach.ancestors)(labels)
    asked = {"node": labels[0]} if len(labels) == 1 else {"union_of": labels}
    direction = "descendants" if forward else "ancestors"
    payload: dict[str, Any] = {**asked, "direction": direction, "count": len(members)}
    if count:
        out.result(payload, f"{len(members):,}")
    else:
        names = members.tolist()
        out.result(payload | {"nodes": names}, *map(str, names))
