"""``atp cycles`` and ``atp levels``: make a graph acyclic, and order its nodes."""

from __future__ import annotations

import csv
import gzip
import io
import os
import time
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import atpgraph
from atpgraph.cli import options as opts
from atpgraph.cli.console import Session, named, sized, sizes, table
from atpgraph.cli.options import Reading, opt, output
from atpgraph.errors import InputError
from atpgraph.util.files import atomic_path, check_writable
from atpgraph.util.progress import stage

if TYPE_CHECKING:
    from atpgraph.cycles import CycleBreak, Reason
    from atpgraph.util.arrays import IntArray

_SHOWN = 10  # removed edges with their cycles
_NAMES = 8  # nodes of a cycle


def cycles(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    method: opts.Method = "auto",
    every: bool = opt("Compare all methods.", "--all"),
    truth: Path | None = opt("Edge list of the edges that should be removed, for scoring."),
    weights: bool = opt(
        "Use weights as costs of removal, as --weight does if the method takes costs."
    ),
    keep: Path | None = opt("Edge list of edges that must stay."),
    reverse: bool = opt("Reverse the edges instead of removing them."),
    time_limit: float = opt(
        "Seconds after which the method minimum stops without a proof.", default=10.0, min=0
    ),
    output: Path | None = output("Write the acyclic graph to this file."),
    removed: Path | None = opt("Write the removed edges and their scores to this file."),
    memory: opts.Memory = None,
    report: opts.Report = None,
    seed: opts.Seed = 0,
) -> None:
    """Find the edges that close cycles, and remove them."""
    from atpgraph.cycles import METHODS
    from atpgraph.cycles import agony as agony_of
    from atpgraph.cycles.breaking import edge_indices

    if every and (output or removed):
        raise InputError("--all compares methods; to write a file, name one with --method instead.")
    places = [os.path.realpath(check_writable(path)) for path in (output, removed) if path]
    if len(set(places)) < len(places):
        raise InputError(f"--output and --removed are both {output}; name two files.")
    read = reading.read(graph, memory)
    if reading.weight is not None:
        weights |= every or method == "auto" or METHODS[method].weighted
    right = None if truth is None else edge_indices(read, truth, truth)
    options: dict[str, Any] = {
        "weights": "weight" if weights else None,
        "keep": None if keep is None else edge_indices(read, keep, keep),
        "time_limit": time_limit,
        "reverse": reverse,
        "random_state": seed,
    }
    names = [method]
    if every:
        names = [name for name in METHODS if METHODS[name].weighted or not weights]
    rows: dict[str, Any] = {}
    for name in names:
        found, row = _timed(read, name, options, right)
        rows[found.method] = row
    if output is not None:
        atpgraph.write_edgelist(found.dag, output)
    if removed is not None:
        atpgraph.write_edgelist(found.removed_graph, removed)
    # Where a cheap method was chosen because of the size, the flow would cost far more than it.
    costly = method == "auto" and found.method == "springs" and not every
    agony = None if costly else agony_of(read).value
    counts = sizes(read) | {"self_loops": read.n_self_loops}
    payload: dict[str, Any] = {"graph": counts, "agony": agony, "methods": rows}
    loops = f", {read.n_self_loops:,} self-loops" if read.n_self_loops else ""
    least = "" if agony is None else f", agony {agony:,}"
    columns = ["method", "removed"]
    columns += ["weight"] * weights + ["lower_bound"] * ("minimum" in rows)
    columns += ["precision", "recall", "f1"] if right is not None else []
    compared = [{"method": name, **row} for name, row in rows.items()]
    shown: list[Any] = [table([*columns, "seconds"], compared)]
    if not every:
        payload["removed_edges"], edges = _removed_edges(found, reverse, every=out.json)
        shown = shown + edges if edges else ["there are no cycles: nothing has to be removed"]
    if removed is not None:
        shown.append(f"{removed}: written")
    if output is not None:
        shown.append(f"{output}: written; next: atp embed {output} -o MODEL.npz")
    out.result(payload, sized(graph, read) + loops + least, *shown, report=report)


def _removed_edges(
    found: CycleBreak, reverse: bool, every: bool
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the removed edges with their reasons, for ``--json`` and as lines and a table."""
    reasons = found.reasons(None if every else _SHOWN)
    edges = [
        {"source": u, "target": v, "confidence": confidence, "cycle": cycle}
        for (u, v), confidence, cycle in reasons
    ]
    if not reasons:
        return edges, []
    shown: list[Any] = ["reversed edges:" if reverse else "removed edges, most certain first:"]
    shown.append(table(["edge", "confidence", "cycle that it closes"], map(_row, reasons)))
    if more := len(found.removed) - len(reasons):
        shown.append(f"{more:,} more; --json lists all, --removed FILE writes them")
    return edges, shown


def _row(reason: Reason) -> list[Any]:
    """Return the table row of a removed edge; a long cycle is shortened to its ends."""
    (u, v), confidence, cycle = reason
    names = [*map(str, cycle), *map(str, cycle[:1])]
    if len(names) > _NAMES:
        names = [*names[: _NAMES - 2], f"… {len(names) - _NAMES + 1} more …", names[-1]]
    return [f"{u} → {v}", confidence if isfinite(confidence) else "self-loop", " → ".join(names)]


def _timed(
    graph: atpgraph.DiGraph, method: str, options: dict[str, Any], truth: IntArray | None
) -> tuple[CycleBreak, dict[str, Any]]:
    """Run a method; return its result and its table row, with the time without compilation."""
    from atpgraph.util.jit import on_compilation

    with stage(f"breaking cycles by {method}"), on_compilation() as compiling:
        started = time.perf_counter()
        result = atpgraph.break_cycles(graph, method, **options)
        seconds = time.perf_counter() - started - compiling.seconds
    match = None if truth is None else result.agreement(truth)
    return result, {
        "removed": len(result.removed),
        "weight": result.weight,
        "lower_bound": result.lower_bound,
        "proved": result.proved,
        "precision": match and match.precision,
        "recall": match and match.recall,
        "f1": match and match.f1,
        "seconds": round(seconds, 4),
    }


def levels(
    out: Session,
    graph: opts.Graph,
    reading: Reading,
    output: Path | None = output(
        "Write a line with node and level for each node (.tsv, .csv, or these with .gz)."
    ),
    method: opts.Method = "auto",
    seed: opts.Seed = 0,
) -> None:
    """Find the level of each node: 1 + the longest path into it, after breaking cycles."""
    import numpy as np

    if output is not None:
        check_writable(output)
    read = reading.read(graph)
    with stage(f"breaking cycles by {method}"):
        result = atpgraph.break_cycles(read, method, random_state=seed)
    level, gone = atpgraph.levels(result.dag), len(result.removed)
    width = np.bincount(level, minlength=1)[1:]
    widest = int(width.argmax()) + 1 if len(width) else 0
    if output is not None:
        _write_levels(output, read.labels.tolist(), level.tolist())
    payload: dict[str, Any] = {
        **sizes(read),
        "removed": gone,
        "levels": len(width),
        "widest_level": widest,
        "widest_size": int(width.max(initial=0)),
        "sizes": width,
    }
    if out.json:
        pairs = zip(read.labels.tolist(), level.tolist(), strict=True)
        payload["node_levels"] = [{"node": node, "level": at} for node, at in pairs]
    rows: list[Any] = list(enumerate(width, start=1))
    if len(rows) > 24:
        rows[12:-12] = [("…", None)]
    out.result(
        payload,
        f"{named(graph)}: {len(width):,} levels, the widest is level {widest} with "
        f"{payload['widest_size']:,} of {read.n_nodes:,} nodes "
        f"({gone:,} edge{'s' * (gone != 1)} removed by {result.method})",
        table(["level", "nodes"], rows),
        *([] if output is None else [f"{output}: written"]),
    )


def _write_levels(path: Path, names: list[Any], levels: list[int]) -> None:
    from atpgraph.embedding.files import no_formula

    comma, zipped = "\t", path.suffix == ".gz"
    if path.name.removesuffix(".gz").endswith(".csv"):
        names, comma = list(map(no_formula, names)), ","
    # With "\n" for the ends of lines, the writer does not quote a "\r" by itself.
    returns = any("\r" in str(name) for name in names)
    quoting: Any = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=comma, lineterminator="\n", quoting=quoting)
    writer.writerow(["node", "level"])
    writer.writerows(zip(names, levels, strict=True))
    raw = text.getvalue().encode()
    with atomic_path(path) as temporary:
        temporary.write_bytes(gzip.compress(raw, mtime=0) if zipped else raw)
