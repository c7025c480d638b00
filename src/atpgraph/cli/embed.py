"""``atp embed``: vectors for the nodes of a graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from atpgraph.cli import options as opts
from atpgraph.cli.console import Session, table, typed_command
from atpgraph.cli.info import fidelity_lines, model_facts
from atpgraph.cli.options import KERNELS, Reading, opt

if TYPE_CHECKING:
    from atpgraph.embedding import ATP
    from atpgraph.graph.digraph import DiGraph


def embed(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    output: Annotated[Path | None, opt("Model file to write (.npz).", "--output", "-o")] = None,
    estimate: Annotated[bool, opt("Only estimate memory and time.", "--estimate")] = False,
    dim: Annotated[int, opt("Length of the vectors.", min=1)] = 128,
    purpose: opts.Purpose = "reachability",
    kernel: Annotated[str, opt("log, harmonic, linear or constant.", choices=KERNELS)] = "log",
    method: opts.Method = "auto",
    zero_weight: Annotated[
        str, opt("For the paper's method: weight of unreachable pairs, 0 to 1 or auto.")
    ] = "0",
    regularization: Annotated[
        float | None, opt("Penalty on long vectors.", show_default="by purpose")
    ] = None,
    max_iter: Annotated[int | None, opt("Rounds or iterations.", show_default="by size")] = None,
    memory: opts.Memory = None,
    threads: opts.Threads = None,
    work: Annotated[
        Path | None,
        opt(
            "Save checkpoints to this folder; rerun a killed command to resume from them.",
            metavar="DIR",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        opt("Dask cluster: address, scheduler file, or local:N; with --work.", metavar="ADDRESS"),
    ] = None,
    report: opts.Report = None,
    seed: opts.Seed = 0,
) -> None:
    """Embed a graph and save the model."""
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
        f"peak memory {peak_megabytes():,.0f} MB" + (compiled if compiling.seconds > 0.1 else ""),
        f"{output}: written; next: atp model top {output} NODE",
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

    need = estimate(graph, **model.get_params())
    out.result(
        need.to_dict(),
        f"{path}: {need.nodes:,} nodes, {need.edges:,} edges, {need.core_edges:,} of them on "
        f"cycles; about {need.pairs:,.0f} reachable pairs",
        f"needs about {human_bytes(need.memory)} of memory ({human_bytes(need.available)} are "
        f"free) and {need.seconds:,.0f} seconds",
    )
