"""``atp reach``: exact paths of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import atpgraph
from atpgraph.cli import options as opts
from atpgraph.cli.console import Session, sized, sizes, table
from atpgraph.cli.nodes import answer_pairs, known_labels
from atpgraph.cli.options import Reading, arg, opt, output
from atpgraph.errors import InputError
from atpgraph.util.files import check_writable
from atpgraph.util.memory import budget_bytes, human_bytes

_PATH = {None: "unknown node", True: "yes", False: "no"}
_Nodes = list[str] | None


def reach(
    out: Session,
    graph: Annotated[
        Path, arg("Edge list (- reads standard input), model, or index that --output wrote.")
    ],
    reading: Reading,
    nodes: opts.Pairs = None,
    pairs: opts.PairsFile = None,
    descendants: _Nodes = opt("List the nodes that this node reaches.", metavar="NODE"),
    ancestors: _Nodes = opt("List the nodes that reach this node.", metavar="NODE"),
    count: bool = opt("Print only the number of descendants or ancestors."),
    path: bool = opt("Show a shortest path for every pair."),
    types: str | None = opt(
        "Follow only edges of these types, separated by commas.", metavar="NAMES"
    ),
    output: Path | None = output("Write graph and index to this file (.npz)."),
    memory: opts.Memory = None,
    index: Literal["auto", "forest", "labels"] = opt(
        "Kind of index: forest (fastest answers) or labels (64 bytes per node).", default="auto"
    ),
    estimate: bool = opt("Only estimate the memory and time of an index."),
) -> None:
    """Find out exactly whether there is a path from U to V, with or without cycles.

    A node reaches itself, but is not listed among its own descendants or ancestors.

    Repeat --descendants or --ancestors for the union over several nodes.
    """
    asked = [bool(nodes), pairs is not None, bool(descendants), bool(ancestors)]
    if sum([*asked, estimate]) > 1 or not (any(asked) or output or estimate):
        raise InputError(
            "Ask for one thing: pairs of nodes, a file of them with --pairs, --descendants "
            "NODE, --ancestors NODE or --estimate."
        )
    if str(graph) == str(pairs) == "-":
        raise InputError("Only one of graph and pairs can come from standard input.")
    if path and not (nodes or pairs):
        raise InputError("--path goes with pairs of nodes.")
    if count and not (descendants or ancestors):
        raise InputError("--count goes with --descendants or --ancestors.")
    if output is not None:
        check_writable(output)
    budget = budget_bytes(memory)
    reach = _opened(graph, reading, None if index == "auto" or estimate else index, budget)
    if types is not None:
        reach = reach.only(opts.names(types))
    if estimate:
        _tell_estimate(out, graph, reach, budget)
        return
    if output is not None:
        reach.save(output)
        if any(asked):
            out.note(f"{output}: written")
    if nodes or pairs is not None:
        rows = answer_pairs(out, reach.graph, nodes, pairs, {"path": reach.reaches})
        _tell_paths(out, reach, rows, path)
    elif descendants:
        _tell_nodes(out, reach, "descendants", descendants, count)
    elif ancestors:
        _tell_nodes(out, reach, "ancestors", ancestors, count)
    else:
        payload = sizes(reach.graph) | {"index": reach.index, "output": output}
        out.result(payload, f"{output}: written; next: atp reach {output} U V")


def _opened(path: Path, reading: Reading, index: Any, budget: int) -> atpgraph.Reachability:
    """Return the paths of an edge list, or of the graph in a file that a command wrote."""
    from atpgraph.util.archive import archive_format

    kind = archive_format(path)
    if kind in ("atpgraph-reachability", "atpgraph-model"):
        reading.check_unused(path)
    if kind == "atpgraph-reachability":
        return atpgraph.Reachability.load(path)
    model = kind == "atpgraph-model"
    graph = atpgraph.ATP.load(path).graph_ if model else reading.read(path, budget)
    return atpgraph.Reachability(graph, index=index, memory=budget)


def _tell_paths(
    out: Session, reach: atpgraph.Reachability, rows: list[dict[str, Any]], path: bool
) -> None:
    columns = ["source", "target", "path"]
    if path:
        columns.append("nodes")
        for row in rows:
            row["nodes"] = reach.path(row["source"], row["target"]) if row["path"] else None
    shown = [
        row | {"path": _PATH[row["path"]], "nodes": " → ".join(map(str, row.get("nodes") or []))}
        for row in rows
    ]
    out.result({"pairs": rows}, table(columns, shown))


def _tell_nodes(
    out: Session, reach: atpgraph.Reachability, direction: str, nodes: list[str], count: bool
) -> None:
    labels = known_labels(reach.graph, nodes)
    members = getattr(reach, direction)(labels).tolist()
    asked = {"node": labels[0]} if len(labels) == 1 else {"union_of": labels}
    payload = {**asked, "direction": direction, "count": len(members)}
    if count:
        out.result(payload, f"{len(members):,}")
    else:
        out.result(payload | {"nodes": members}, *map(str, members))


def _tell_estimate(out: Session, path: Path, reach: atpgraph.Reachability, budget: int) -> None:
    from atpgraph.closure import estimate_closure

    graph, forest = reach.graph, estimate_closure(reach.condensation)
    payload = {
        **sizes(graph),
        "components": reach.condensation.n_nodes,
        "memory": forest.bytes_peak,
        "seconds": round(forest.seconds, 4),
        "budget": budget,
        "fits": forest.bytes_peak <= budget,
        "index": reach.suitable_index(),
    }
    out.result(
        payload,
        f"{sized(path, graph)}; {payload['components']:,} components",
        f"a closure forest takes about {human_bytes(forest.bytes_peak)} and "
        f"{forest.seconds:,.1f} s; the budget is {human_bytes(budget)}",
        f"labels take {human_bytes(64 * reach.condensation.n_nodes)}; "
        f"the index will be: {payload['index']}",
    )
