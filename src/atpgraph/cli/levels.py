"""``atp levels``: the level of every node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from atpgraph.cli.console import Session, table
from atpgraph.cli.options import Graph, Method, Reading, Seed, opt


def levels(
    out: Session,
    graph: Graph,
    reading: Reading,
    output: Annotated[
        Path | None,
        opt("Write node and level, one line each (.tsv or .csv).", "--output", "-o"),
    ] = None,
    method: Method = "auto",
    seed: Seed = 0,
) -> None:
    """Level of each node once the cycles are broken: 1 + the longest path into it."""
    import csv

    import numpy as np

    from atpgraph.cycles import break_cycles
    from atpgraph.hierarchy import levels
    from atpgraph.util.files import atomic_path, check_writable
    from atpgraph.util.progress import stage
    from atpgraph.util.visible import no_formula

    if output is not None:
        check_writable(output)
    read = reading.read(graph)
    with stage(f"breaking cycles by {method}"):
        result = break_cycles(read, method, random_state=seed)
    level = levels(result.dag)
    width = np.bincount(level)[1:] if len(level) else np.zeros(0, dtype=np.int64)
    widest = int(width.argmax()) + 1 if len(width) else 0
    if output is not None:
        names, comma = read.labels.tolist(), "\t"
        if output.suffix == ".csv":
            names, comma = list(map(no_formula, names)), ","
        # With "\n" for the ends of lines, the writer does not quote a "\r" by itself.
        returns = any("\r" in str(name) for name in names)
        quoting: Any = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
        with (
            atomic_path(output) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file, delimiter=comma, lineterminator="\n", quoting=quoting)
            writer.writerow(["node", "level"])
            writer.writerows(zip(names, level.tolist(), strict=True))
    payload = {
        "nodes": read.n_nodes,
        "edges": read.n_edges,
        "removed": len(result.removed),
        "levels": len(width),
        "widest_level": widest,
        "widest_size": int(width.max(initial=0)),
        "sizes": width,
    }
    rows: list[tuple[object, object]] = [(at, size) for at, size in enumerate(width, start=1)]
    if len(rows) > 24:
        rows[12:-12] = [("…", None)]
    lines: list[Any] = [
        f"{graph}: {len(width):,} levels, the widest is level {widest} with "
        f"{payload['widest_size']:,} of {read.n_nodes:,} nodes "
        f"({len(result.removed):,} edges removed by {result.method})",
        table(["level", "nodes"], rows),
    ]
    out.result(payload, *lines, *([] if output is None else [f"{output}: written"]))
