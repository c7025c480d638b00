"""``atp cycles``: make a graph acyclic, and compare ways to do it."""

from __future__ import annotations

import os
import time
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli import options as opts
from atpgraph.cli.console import Session, table, typed_command
from atpgraph.cli.options import METHODS, Reading, opt

if TYPE_CHECKING:
    from atpgraph.cycles import CycleBreak, Reason
    from atpgraph.graph.digraph import DiGraph
    from atpgraph.util.arrays import IntArray

_SHOWN = 10  # removed edges with their cycles
_NAMES = 8  # nodes of a cycle


def cycles(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    method: Annotated[
        str,
        opt(
            "dfs, mfas, eades, pagerank, sa-g, sa-f, sa-b, sa-voting, ts-g, ts-f, ts-b, "
            "ts-voting, h-voting, springs, bayes, sift, minimum; auto is sift up to 300,000 edges "
            "on cycles, then springs.",
            "--method",
            "-m",
            choices=METHODS,
        ),
    ] = "auto",
    every: Annotated[bool, opt("Run every method.", "--all")] = False,
    truth: Annotated[
        Path | None, opt("Edge list of the edges that should go, to score the methods by.")
    ] = None,
    weights: Annotated[
        bool, opt("Take the weights of the file as costs of removal.", "--weights")
    ] = False,
    keep: Annotated[Path | None, opt("Edge list of the edges that must stay.")] = None,
    reverse: Annotated[
        bool, opt("Reverse the edges instead of removing them.", "--reverse")
    ] = False,
    time_limit: Annotated[float, opt("Seconds that minimum may spend on its proof.", min=0)] = 10.0,
    output: Annotated[
        Path | None, opt("Write the acyclic graph to this file.", "--output", "-o")
    ] = None,
    removed: Annotated[
        Path | None, opt("Write the removed edges and their scores to this file.")
    ] = None,
    report: opts.Report = None,
    memory: opts.Memory = None,
    seed: opts.Seed = 0,
) -> None:
    """Find the edges that close cycles, and remove them."""
    from atpgraph.cycles import METHODS as EVERY
    from atpgraph.cycles import CycleBreaker
    from atpgraph.errors import InputError
    from atpgraph.graph.edgelist import write_edgelist
    from atpgraph.util.files import check_writable

    if every and (output or removed):
        raise InputError("--all compares methods; to write a file, name one with --method instead.")
    places = [
        os.path.realpath(check_writable(path)) for path in (output, removed) if path is not None
    ]
    if len(set(places)) < len(places):
        raise InputError(f"--output and --removed are both {output}; name two files.")
    read = reading.read(graph, memory)
    right = None if truth is None else _edges_of(read, truth)
    options = {
        "weights": "weight" if weights else None,
        "keep": None if keep is None else _edges_of(read, keep),
        "time_limit": time_limit,
    }
    names = [method]
    if every:
        names = [name for name in EVERY if EVERY[name].weighted or not weights]
    results, rows = _compared(read, names, seed, right, options, reverse)
    if output is not None:
        write_edgelist(results[-1].dag, output)
    if removed is not None:
        write_edgelist(results[-1].removed_graph, removed)
    # Where a cheap method was chosen because of the size, the flow would cost far more than it.
    costly = method == "auto" and results[-1].method == "springs" and not every
    agony = None if costly else CycleBreaker(read, seed).agony
    counts = {"nodes": read.n_nodes, "edges": read.n_edges, "self_loops": read.n_self_loops}
    payload: dict[str, Any] = {"graph": counts, "agony": agony, "methods": rows}
    reasons = [] if every else results[-1].reasons(None if out.json else _SHOWN)
    if not every:
        payload["removed_edges"] = [
            {"source": u, "target": v, "confidence": confidence, "cycle": cycle}
            for (u, v), confidence, cycle in reasons
        ]
    if report is not None:
        from atpgraph.report.pages.cycles import write_report

        payload["report"] = write_report(
            results, report, typed_command(), name=graph.name, agony=agony,
            seconds=[row["seconds"] for row in rows.values()], truth=right,
        )  # fmt: skip
        out.note(f"report written to {payload['report']}")
    columns = ["removed", "weight"] if weights else ["removed"]
    columns += ["lower_bound"] if "minimum" in rows else []
    columns += ["precision", "recall", "f1"] if right is not None else []
    columns.append("seconds")
    least = "" if agony is None else f", agony {agony:,}"
    loops = f", {read.n_self_loops:,} self-loops" if read.n_self_loops else ""
    shown: list[Any] = [
        f"{graph}: {read.n_nodes:,} nodes, {read.n_edges:,} edges{loops}{least}",
        table(
            ["method", *columns],
            [[name, *(row[column] for column in columns)] for name, row in rows.items()],
        ),
    ]
    if reasons:
        more = len(results[-1].removed) - len(reasons)
        shown.append("reversed edges:" if reverse else "removed edges, most certain first:")
        shown.append(table(["edge", "confidence", "cycle that it closes"], map(_row, reasons)))
        if more:
            shown.append(f"{more:,} more; --json lists all, --removed FILE writes them")
    if removed is not None:
        shown.append(f"{removed}: written")
    if output is not None:
        shown.append(f"{output}: written; next: atp embed {output} -o MODEL.npz")
    out.result(payload, *shown)


def _row(reason: Reason) -> list[Any]:
    """Return the row of a removed edge; of a long cycle both ends are shown."""
    (u, v), confidence, cycle = reason
    names = [*map(str, cycle), *map(str, cycle[:1])]
    if len(names) > _NAMES:
        names = [*names[: _NAMES - 2], f"… {len(names) - _NAMES + 1} more …", names[-1]]
    return [f"{u} → {v}", confidence if isfinite(confidence) else "self-loop", " → ".join(names)]


def _compared(
    graph: DiGraph,
    names: list[str],
    seed: int,
    truth: IntArray | None,
    options: dict[str, Any],
    reverse: bool,
) -> tuple[list[CycleBreak], dict[str, dict[str, Any]]]:
    """Return what each method removed, and the row of each in the table."""
    from atpgraph.cycles import CycleBreaker
    from atpgraph.util.jit import on_compilation
    from atpgraph.util.progress import stage

    results, rows = [], {}
    for asked in names:
        with stage(f"breaking cycles by {asked}"), on_compilation(lambda: None) as compiling:
            # A breaker of its own for each, so that the seconds are those of that method alone,
            # and without those of compiling on a first run.
            started = time.perf_counter()
            result = CycleBreaker(graph, seed, **options).run(asked, reverse=reverse)
            seconds = time.perf_counter() - started - compiling.seconds
        match = None if truth is None else result.agreement(truth)
        results.append(result)
        rows[result.method] = {
            "removed": len(result.removed),
            "weight": result.weight,
            "lower_bound": result.lower_bound,
            "proved": result.proved,
            "precision": match and match.precision,
            "recall": match and match.recall,
            "f1": match and match.f1,
            "seconds": round(seconds, 4),
        }
    return results, rows


def _edges_of(graph: DiGraph, listed: Path) -> IntArray:
    """Return the indices of the edges listed in a file; all of them must be there."""
    from atpgraph.errors import InputError
    from atpgraph.graph.edgelist import read_edgelist

    sources, targets = read_edgelist(listed).edge_labels()
    edges = graph.find_edges(graph.codes_or_minus_one(sources), graph.codes_or_minus_one(targets))
    if len(edges) and edges.min() < 0:
        at = int(edges.argmin())
        raise InputError(
            f"{listed} lists the edge {sources[at]} → {targets[at]}, which is not in the graph; "
            "give a file that belongs to this graph."
        )
    return edges
