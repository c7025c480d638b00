"""``atp embed``: vectors for the nodes of a graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from atpgraph.cli._choices import KERNELS, METHODS, PURPOSES, SOLVERS, completer
from atpgraph.cli._console import Json, Quiet, Seed, session, table, typed_command
from atpgraph.cli._facts import model_facts


def embed(
    graph: Annotated[Path, typer.Argument(help="Edge list, .gz or not.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write (.npz).", show_default=False)
    ],
    dim: Annotated[int, typer.Option(min=1, help="Length of the vectors.")] = 64,
    purpose: Annotated[
        str,
        typer.Option(
            "--purpose",
            "-p",
            help="reachability keeps the paths of the graph; links guesses missing edges; paper is "
            "the paper's recipe.",
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
            help="How to break cycles; auto: h-voting, springs on large graphs.",
            autocompletion=completer(METHODS),
        ),
    ] = "auto",
    solver: Annotated[
        str,
        typer.Option(
            help="pairs, nnls, or svd for singular vectors.",
            autocompletion=completer(SOLVERS),
            show_default="by purpose",
        ),
    ] = "auto",
    zero_weight: Annotated[
        float | None,
        typer.Option(
            help="Weight of unreachable pairs, 0 to 1, for nnls.", show_default="by purpose"
        ),
    ] = None,
    regularization: Annotated[
        float | None, typer.Option(help="Penalty on long vectors.", show_default="by purpose")
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="Limit on the iterations.", show_default="by purpose")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory budget such as 4GB.", show_default="half of what is free"),
    ] = None,
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
    """Embed a graph and save the model."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph._files import check_writable
        from atpgraph._jit import on_compilation
        from atpgraph._memory import peak_megabytes
        from atpgraph.embedding import ATP
        from atpgraph.graph.edgelist import read_edgelist

        check_writable(output)
        model = ATP(
            dim, purpose=purpose, kernel=kernel, method=method, solver=solver, memory=memory,
            n_jobs=threads, random_state=seed,
        )  # fmt: skip
        chosen = [
            ("zero_weight", zero_weight),
            ("regularization", regularization),
            ("max_iter", max_iter),
        ]
        model.set_params(**{name: value for name, value in chosen if value is not None})
        with on_compilation(lambda: None) as compiling:
            started = time.perf_counter()
            read = read_edgelist(graph, memory=memory)
            seconds = {"read": time.perf_counter() - started}
            model.fit(read)
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
        judged = model.fidelity_
        if judged is not None and judged.is_poor and model.solver_ != "pairs":  # of those fit warns
            out.note(judged.advice(model.solver_))
        compiled = f"; {compiling.seconds:.1f} s of the time were compiling, once per installation"
        out.result(
            payload,
            f"{graph}: {read.n_nodes:,} nodes, {read.n_edges:,} edges; "
            f"{len(model.removed_):,} removed by {model.method_}, {payload['levels']:,} levels, "
            f"{model.n_reachable_pairs_:,} reachable pairs held as {model.n_extras_:,} extras",
            f"for {purpose}, solver {model.solver_}: {judged}",
            table(["stage", "seconds"], [[name, value] for name, value in seconds.items()]),
            f"peak memory {peak_megabytes():,.0f} MB"
            + (compiled if compiling.seconds > 0.1 else ""),
            f"{output}: written; next: atp neighbors {output} NODE",
        )
