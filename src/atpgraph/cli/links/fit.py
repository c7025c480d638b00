"""``atp links fit``: learn a link predictor from a graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from atpgraph.cli._reading import Reading, reads_graph
from atpgraph.cli.console import Json, Quiet, Seed, session, table, typed_command


@reads_graph
def fit(
    graph: Annotated[Path, typer.Argument(help="Edge list, .gz or not, - for standard input.")],
    reading: Reading,
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the predictor (.npz).")],
    attributes: Annotated[
        Path | None,
        typer.Option(
            help="What is known of the nodes, a line each: label, then text or numbers, separated "
            "by tabs or commas.",
            show_default=False,
        ),
    ] = None,
    times: Annotated[
        Path | None,
        typer.Option(
            help="When nodes appeared (label, time) or edges were made (source, target, time), a "
            "line each.",
            show_default=False,
        ),
    ] = None,
    evidence: Annotated[
        str, typer.Option(help="Kinds of evidence, separated by commas, 'default' or 'all'.")
    ] = "default",
    dim: Annotated[int, typer.Option(min=1, help="Length of ATP's vectors.")] = 32,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads.", show_default="all cores")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write an HTML report into this folder."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn which links a graph should have, and save the predictor."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.linkpred.evidence.attributes import read_attributes, read_times
        from atpgraph.linkpred.predictor import LinkPredictor
        from atpgraph.util.files import check_writable
        from atpgraph.util.memory import peak_megabytes

        check_writable(output)
        model = LinkPredictor(
            evidence,
            n_components=dim,
            n_jobs=threads,
            random_state=seed,
        )
        started = time.perf_counter()
        read = reading.read(graph)
        known = None if attributes is None else read_attributes(attributes, read)
        when = None if times is None else read_times(times, read)
        model.fit(read, known, times=when)
        seconds = time.perf_counter() - started
        model.save(output)
        payload: dict[str, Any] = {
            "nodes": read.n_nodes,
            "edges": read.n_edges,
            "evidence": model.evidence_.kinds,
            "validation": model.validation_,
            "seconds": round(seconds, 3),
            "peak_memory_mb": round(peak_megabytes(), 1),
            "output": output,
        }
        if report is not None:
            from atpgraph.report.pages.links import write_report

            payload["report"] = write_report(model, report, typed_command(), name=graph.name)
            out.note(f"report written to {payload['report']}")
        told = model.validation_
        names = {
            "link": "any edge hidden",
            "connected": "its ends still connected",
            "direction": "against its reverse",
            "order": "against pairs joined the other way",
        }
        judged = [[name, told[key]["auc"], told[key]["error"]] for key, name in names.items()]
        ranks = [[row["rank"], row["stated"], row["right"]] for row in told["hits"]["ranks"]]
        out.result(
            payload,
            f"{graph}: {read.n_nodes:,} nodes, {read.n_edges:,} edges; evidence: "
            f"{', '.join(model.evidence_.kinds)}",
            table(["on hidden edges", "AUC", "calibration error"], judged),
            table(["suggestion at rank", "stated hit rate", "observed"], ranks),
            f"{seconds:.1f} s, peak memory {peak_megabytes():,.0f} MB",
            f"{output}: written; next: atp links recommend {output} NODE",
        )
