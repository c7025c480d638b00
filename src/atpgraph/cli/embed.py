"""``atp embed`` and ``atp tune``: vectors for the nodes of a graph, and their best length."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import atpgraph
from atpgraph.cli import options as opts
from atpgraph.cli.console import Session, sized, table
from atpgraph.cli.info import fidelity_lines, model_facts
from atpgraph.cli.options import Reading, opt, output, value, values
from atpgraph.errors import InputError
from atpgraph.util.files import check_writable
from atpgraph.util.memory import human_bytes, peak_megabytes

_SHOWN = (
    "components", "penalty", "auc", "edges", "closure", "f1", "precision_targets",
    "precision_sources", "average_precision", "seconds",
)  # fmt: skip
_NEAR = 0.002  # of AUC that a shorter vector may cost


def embed(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    output: Path | None = output("Model file to write (.npz)."),
    estimate: bool = opt("Only estimate the memory and time of a fit."),
    dim: opts.Dim = 128,
    purpose: opts.Purpose = "reachability",
    kernel: opts.Kernel = "log",
    method: opts.Method = "auto",
    zero_weight: str = opt(
        "With --purpose paper: weight of unreachable pairs, 0 to 1 or auto.", default="0"
    ),
    regularization: float | None = opt(
        "Penalty on long vectors.", show_default="depends on the purpose"
    ),
    max_iter: int | None = opt(
        "Number of rounds or iterations.", show_default="depends on the size"
    ),
    memory: opts.Memory = None,
    threads: opts.Threads = None,
    work: Path | None = opt(
        "Save checkpoints here; rerun a killed command to resume.", metavar="DIR"
    ),
    scheduler: str | None = opt(
        "Dask cluster: address, scheduler file, or local:N; with --work.", metavar="ADDRESS"
    ),
    report: opts.Report = None,
    seed: opts.Seed = 0,
) -> None:
    """Embed a graph and save the model."""
    from atpgraph.cycles import METHODS
    from atpgraph.embedding.settings import checked
    from atpgraph.embedding.spread import connected
    from atpgraph.util.jit import on_compilation

    if output is not None:
        check_writable(output)
    elif not estimate:
        raise InputError("Name the model file: --output FILE; or --estimate.")
    model = atpgraph.ATP(
        dim, purpose=purpose, kernel=kernel, method=method, n_jobs=threads, random_state=seed,
        zero_weight=value("--zero-weight", zero_weight, _penalty, "numbers from 0 to 1, or auto"),
        regularization="auto" if regularization is None else regularization,
        max_iter="auto" if max_iter is None else max_iter,
    )  # fmt: skip
    checked(model.get_params())
    if method != "auto":
        METHODS[method]
    with on_compilation() as compiling:
        started = time.perf_counter()
        read = reading.read(graph, memory)
        seconds = {"read": time.perf_counter() - started}
        if output is None or estimate:
            _tell_estimate(out, graph, model, read)
            return
        with connected(scheduler) if scheduler else contextlib.nullcontext() as client:
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
    compiled = f"; {compiling.seconds:.1f} s of the time were compiling, once per installation"
    out.result(
        payload,
        f"{sized(graph, read)}; {len(model.removed_):,} removed by {model.method_}, "
        f"{payload['levels']:,} levels, {model.n_reachable_pairs_:,} reachable pairs",
        *fidelity_lines(model),
        table(["stage", "seconds"], seconds.items()),
        f"peak memory {peak_megabytes():,.0f} MB" + (compiled if compiling.seconds > 0.1 else ""),
        f"{output}: written; next: atp model top {output} NODE",
        report=report,
    )


def _tell_estimate(out: Session, path: Path, model: atpgraph.ATP, graph: atpgraph.DiGraph) -> None:
    need = atpgraph.estimate(graph, **model.get_params())
    out.result(
        need.to_dict(),
        f"{sized(path, graph)}, {need.core_edges:,} of them on cycles; about {need.pairs:,.0f} "
        "reachable pairs",
        f"needs about {human_bytes(need.memory)} of memory ({human_bytes(need.available)} are "
        f"free) and {need.seconds:,.0f} seconds",
    )


def tune(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    purpose: opts.Purpose = "reachability",
    dims: str = opt("Lengths of the vectors to try, separated by commas.", default="16,32,64,128"),
    penalties: str = opt(
        "Penalties to try, separated by commas; auto depends on the purpose.",
        default="auto,0.01,0.1",
    ),
    protocol: str = opt(
        "With --purpose paper: protocol of 'atp links compare' that holds out edges.",
        default="paper",
    ),
    method: opts.Method = "auto",
    memory: opts.Memory = None,
    threads: opts.Threads = None,
    seed: opts.Seed = 0,
) -> None:
    """Choose the length of the vectors and the penalty for a graph."""
    from atpgraph.embedding.settings import checked

    lengths = opts.dimensions("--dims", dims)
    weights = values("--penalties", penalties, _penalty, "auto and numbers from 0")
    checked(atpgraph.ATP(purpose=purpose).get_params())
    train = reading.read(graph, memory)
    judge: Callable[[atpgraph.ATP], dict[str, Any]] = _by_fidelity
    if purpose != "reachability":
        train, judge = _by_links(train, protocol, seed)
    dag = atpgraph.break_cycles(train, method, random_state=seed).dag  # once for all
    trials = []
    for length, weight in product(lengths, weights):
        model = atpgraph.ATP(
            length, purpose=purpose, regularization=weight, n_jobs=threads,
            random_state=seed, zero_weight=0.0 if purpose == "reachability" else "auto",
        ).fit(dag)  # fmt: skip
        seconds = round(model.timings_["factorization"], 4)
        tried = {"components": length, "penalty": weight, "seconds": seconds}
        trials.append(tried | judge(model))
    # The shortest vectors among the best; where nothing can be asked, the first.
    most = max((trial["auc"] for trial in trials if trial["auc"] is not None), default=0.0)
    near = [trial for trial in trials if (trial["auc"] or 0.0) >= most - _NEAR]
    best = min(near, key=lambda trial: (trial["components"], -(trial["auc"] or 0.0)))
    columns = [name for name in _SHOWN if name in trials[0]]
    rows = [["*" if trial is best else "", *(trial[name] for name in columns)] for trial in trials]
    typed = ["atp", "embed", str(graph), *reading.typed(), "-o", "model.npz", "-p", purpose]
    typed += ["--dim", str(best["components"])]
    if method != "auto":
        typed += ["--method", method]
    if purpose == "paper":
        typed += ["--zero-weight", "auto"]
    if best["penalty"] != "auto":
        typed += ["--regularization", f"{best['penalty']:g}"]
    out.result(
        {"purpose": purpose, "trials": trials, "best": best},
        table(["", *(name.replace("_", " ") for name in columns)], rows),
        f"* is the shortest within {_NEAR} of the best AUC; next: {shlex.join(typed)}",
    )


def _by_fidelity(model: atpgraph.ATP) -> dict[str, Any]:
    return {} if model.fidelity_ is None else dict(model.fidelity_.to_dict())


def _by_links(
    read: atpgraph.DiGraph, protocol: str, seed: int
) -> tuple[atpgraph.DiGraph, Callable[[atpgraph.ATP], dict[str, Any]]]:
    """Hold out edges; return the remaining graph, and a function that scores a model on them."""
    from atpgraph.embedding.ranking import pair_scores
    from atpgraph.evaluation.metrics import auc, average_precision
    from atpgraph.linkpred.protocols import PairTest
    from atpgraph.linkpred.protocols.splits import make_split

    split = make_split(read, protocols=[protocol], random_state=seed)
    test = split.tests.get(protocol)
    if not isinstance(test, PairTest):
        why = split.unavailable.get(protocol, "it does not compare pairs")
        raise InputError(f"Cannot evaluate by the protocol {protocol!r}: {why}.")

    def judge(model: atpgraph.ATP) -> dict[str, Any]:
        good, bad = (
            pair_scores(model.source_, model.target_, pairs.sources, pairs.targets)
            for pairs in (test.positives, test.negatives)
        )
        return {"auc": auc(good, bad), "average_precision": average_precision(good, bad)}

    return split.train, judge


def _penalty(text: str) -> Any:
    if text != "auto" and not 0.0 <= float(text) < float("inf"):
        raise ValueError
    return text if text == "auto" else float(text)
