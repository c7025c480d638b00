"""``atp break-cycles``: make a graph acyclic, and compare ways to do it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._choices import METHODS, completer
from atpgraph.cli._console import Json, Quiet, Seed, session, table, typed_command

if TYPE_CHECKING:
    from atpgraph.graph.digraph import DiGraph, IntArray


def break_cycles(
    graph: Annotated[Path, typer.Argument(help="Edge list, .gz or not.", show_default=False)],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="dfs, mfas, eades, pagerank, sa-g, sa-f, sa-b, sa-voting, ts-g, ts-f, ts-b, "
            "ts-voting, h-voting or bayes.",
            autocompletion=completer(METHODS),
        ),
    ] = "h-voting",
    every: Annotated[bool, typer.Option("--all", help="Run every method.")] = False,
    truth: Annotated[
        Path | None,
        typer.Option(help="Edge list of the edges that should go, to score the methods by."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the acyclic graph to this file.")
    ] = None,
    removed: Annotated[
        Path | None, typer.Option(help="Write the removed edges and their scores to this file.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write an HTML report into this folder."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove edges until the graph has no cycles."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph._files import check_writable
        from atpgraph._jit import on_compilation
        from atpgraph._progress import stage
        from atpgraph.cycles import METHODS as EVERY
        from atpgraph.cycles import CycleBreaker
        from atpgraph.errors import InputError
        from atpgraph.graph.edgelist import read_edgelist, write_edgelist

        if every and (output or removed):
            raise InputError(
                "--all compares methods; to write a file, name one with --method instead."
            )
        if output is not None and removed is not None and output.resolve() == removed.resolve():
            raise InputError(f"--output and --removed are both {output}; name two files.")
        for path in (output, removed):
            if path is not None:
                check_writable(path)
        read = read_edgelist(graph)
        right = None if truth is None else _edges_of(read, truth)
        methods: dict[str, dict[str, Any]] = {}
        results = []
        breaker = CycleBreaker(read, seed)
        for name in EVERY if every else [method]:
            with stage(f"breaking cycles by {name}"), on_compilation(lambda: None) as compiling:
                # A breaker of its own for each, so that the seconds are those of that method alone,
                # and without those of compiling on a first run.
                started = time.perf_counter()
                result = CycleBreaker(read, seed).run(name)
                seconds = time.perf_counter() - started - compiling.seconds
            results.append(result)
            found = None if right is None else result.agreement(right)
            methods[name] = {
                "removed": len(result.removed),
                "precision": found and found.precision,
                "recall": found and found.recall,
                "f1": found and found.f1,
                "seconds": round(seconds, 4),
            }
        if output is not None:
            write_edgelist(result.dag, output)
        if removed is not None:
            _write_removed(result, removed)
        counts = {
            "nodes": read.n_nodes,
            "edges": read.n_edges,
            "self_loops": read.n_self_loops,
        }
        payload = {"graph": counts, "agony": breaker.agony, "methods": methods}
        if report is not None:
            from atpgraph.cycles.report import write_report

            payload["report"] = write_report(
                results, report, typed_command(), name=graph.name, agony=breaker.agony,
                seconds=[row["seconds"] for row in methods.values()], truth=right,
            )  # fmt: skip
            out.note(f"report written to {payload['report']}")
        columns = ["removed", "precision", "recall", "f1", "seconds"]
        if right is None:
            columns = ["removed", "seconds"]
        rows = [[name, *(row[column] for column in columns)] for name, row in methods.items()]
        loops = f", {read.n_self_loops:,} self-loops" if read.n_self_loops else ""
        lines: list[Any] = [
            f"{graph}: {read.n_nodes:,} nodes, {read.n_edges:,} edges{loops}, "
            f"agony {breaker.agony:,}",
            table(["method", *columns], rows),
        ]
        if removed is not None:
            lines.append(f"{removed}: written")
        if output is not None:
            lines.append(f"{output}: written; next: atp embed {output} -o MODEL.npz")
        out.result(payload, *lines)


def _edges_of(graph: DiGraph, truth: Path) -> IntArray:
    """Edge numbers of the edges listed in a file; all of them must be there."""
    from atpgraph.errors import InputError
    from atpgraph.graph.edgelist import read_edgelist

    sources, targets = read_edgelist(truth).edge_labels()
    edges = graph.find_edges(graph.codes_or_minus_one(sources), graph.codes_or_minus_one(targets))
    if len(edges) and edges.min() < 0:
        at = int(edges.argmin())
        raise InputError(
            f"{truth} lists the edge {sources[at]} → {targets[at]}, which is not in the graph; "
            "give the truth that belongs to this graph."
        )
    return edges


def _write_removed(result: Any, path: Path) -> None:
    """The removed edges with their scores as a third column; a self-loop has the largest."""
    import numpy as np

    from atpgraph.graph.digraph import DiGraph
    from atpgraph.graph.edgelist import write_edgelist

    scores = result.scores
    finite = scores[np.isfinite(scores)]
    worst = float(finite.max()) + 1.0 if len(finite) else 1.0
    kept = np.zeros(result.graph.n_edges, dtype=bool)
    kept[result.removed] = True
    gone = result.graph.keep_edges(kept)
    weights = np.where(np.isfinite(scores), scores, worst)
    write_edgelist(DiGraph(gone.indptr, gone.targets, gone.labels, weights), path)
