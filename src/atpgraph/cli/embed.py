"""``atp embed``: vectors for the nodes of a graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atpgraph.cli._choices import KERNELS, METHODS, PURPOSES, completer
from atpgraph.cli._facts import fidelity_lines, model_facts
from atpgraph.cli._reading import Reading, reads_graph
from atpgraph.cli.console import Json, Quiet, Seed, Session, session, table, typed_command

if TYPE_CHECKING:
    from atpgraph.embedding import ATP
    from atpgraph.graph.digraph import DiGraph


@reads_graph
def embed(
    graph: Annotated[Path, typer.Argument(help="Edge list, .gz or not.", show_default=False)],
    reading: Reading,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Model file to write (.npz).", show_default=False),
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Say what it would take, and stop.", show_default=False),
    ] = False,
    dim: Annotated[int, typer.Option(min=1, help="Length of the vectors.")] = 128,
    purpose: Annotated[
        str,
        typer.Option(
            "--purpose",
            "-p",
            help="reachability preserves the paths of the graph; paper is the paper's method.",
            autocompletion=completer(PURPOSES),
        ),
    ] = "reachability",
    kernel: Annotated[
        str,
        typer.Option(help="log, harmonic, linear or constant.", autocompletion=completer(KERNELS)),
    ] = "log",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="How to break cycles; auto: sift, springs on large graphs.",
            autocompletion=completer(METHODS),
        ),
    ] = "auto",
    zero_weight: Annotated[
        str,
        typer.Option(help="For the paper's method: weight of unreachable pairs, 0 to 1 or auto."),
    ] = "0",
    regularization: Annotated[
        float | None, typer.Option(help="Penalty on long vectors.", show_default="by purpose")
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="Rounds or iterations.", show_default="by size")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory for reading, such as 4GB.", show_default="half of free memory"),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads.", show_default="all cores")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Save checkpoints to this folder; rerun a killed command to resume from them.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask cluster: address, scheduler file, or local:N; with --work.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Write an HTML report into this folder."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Embed a graph and save the model."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.cycles import METHODS
        from atpgraph.embedding import ATP
        from atpgraph.embedding.settings import checked
        from atpgraph.errors import InputError
        from atpgraph.util.files import check_writable
        from atpgraph.util.jit import on_compilation
        from atpgraph.util.memory import peak_megabytes

        if output is not None:
            check_writable(output)
        elif not estimate:
            raise InputError("Say where the model goes: --output FILE; or --estimate.")
        model = ATP(
            dim, purpose=purpose, kernel=kernel, method=method, n_jobs=threads, random_state=seed,
            zero_weight=_weight(zero_weight),
        )  # fmt: skip
        chosen = [("regularization", regularization), ("max_iter", max_iter)]
        model.set_params(**{name: value for name, value in chosen if value is not None})
        checked(model.get_params())
        if method != "auto":
            METHODS[method]
        with on_compilation(lambda: None) as compiling:
            started = time.perf_counter()
            read = reading.read(graph, memory)
            seconds = {"read": time.perf_counter() - started}
            if output is None or estimate:
                _tell_estimate(out, graph, model, read)
                return
            if scheduler is None:
                model.fit(read, work=work)
            else:
                from atpgraph.embedding.spread import connected

                with connected(scheduler) as client:
                    model.fit(read, work=work, client=client)
        started = time.perf_counter()
        model.save(output)
        seconds |= model.timings_ | {"save": time.perf_counter() - started}
        seconds["total"] = sum(seconds.values())
        payload = model_facts(model) | {
            "seconds": {stage: round(value, 4) for stage, value in seconds.items()},
            "compile_seconds": round(compiling.seconds, 4),
            "peak_memory_mb": round(peak_megabytes(), 1),
        }
        if report is not None:
            from atpgraph.report.pages.embedding import write_report

            payload["report"] = write_report(
                model, report, typed_command(), name=graph.name, seconds=seconds,
                memory_mb=peak_megabytes(),
            )  # fmt: skip
            out.note(f"report written to {payload['report']}")
        compiled = f"; {compiling.seconds:.1f} s of the time were compiling, once per installation"
        out.result(
            payload,
            f"{graph}: {read.n_nodes:,} nodes, {read.n_edges:,} edges; "
            f"{len(model.removed_):,} removed by {model.method_}, {payload['levels']:,} levels, "
            f"{model.n_reachable_pairs_:,} reachable pairs",
            *fidelity_lines(model),
            table(["stage", "seconds"], [[name, value] for name, value in seconds.items()]),
            f"peak memory {peak_megabytes():,.0f} MB"
            + (compiled if compiling.seconds > 0.1 else ""),
            f"{output}: written; next: atp neighbors {output} NODE",
        )


def _weight(text: str) -> Any:
    from atpgraph.errors import InputError

    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise InputError(
            f"--zero-weight is {text!r}; give a number from 0 to 1, or auto."
        ) from None


def _tell_estimate(out: Session, path: Path, model: ATP, graph: DiGraph) -> None:
    from atpgraph.embedding.estimate import estimate
    from atpgraph.util.memory import human_bytes

    found = estimate(graph, **model.get_params())
    out.result(
        found.to_dict(),
        f"{path}: {found.nodes:,} nodes, {found.edges:,} edges, {found.core_edges:,} of them on "
        f"cycles; about {found.pairs:,.0f} reachable pairs",
        f"needs about {human_bytes(found.memory)} of memory ({human_bytes(found.available)} are "
        f"free) and {found.seconds:,.0f} seconds",
    )
