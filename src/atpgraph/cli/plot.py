"""``atp plot``: pictures of a graph or a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import atpgraph
from atpgraph.cli.console import Session, sizes
from atpgraph.cli.options import KINDS, Method, Reading, Seed, arg, opt, output
from atpgraph.util.progress import stage


def plot(
    out: Session,
    file: Annotated[
        Path, arg("Edge list, or model that 'atp embed' wrote.", metavar="GRAPH|MODEL")
    ],
    reading: Reading,
    output: Path = output("Image file to write (.png or .svg)."),
    kind: str | None = opt(
        "hierarchy or levels; for a model also map or objective.",
        "--kind",
        "-k",
        choices=KINDS,
        show_default="hierarchy if small, else map of a model, levels of a graph",
    ),
    method: Method = "auto",
    seed: Seed = 0,
) -> None:
    """Draw a graph or a model: its hierarchy, vectors, levels or objective."""
    from atpgraph import plot
    from atpgraph.util.archive import archive_format

    plot.check_output(output)
    if kind is not None:
        plot.KINDS[kind]
    is_model = archive_format(file) is not None
    if is_model:
        reading.check_unused(file)
    read: Any = atpgraph.ATP.load(file) if is_model else reading.read(file)
    graph = read.graph_ if is_model else read
    if kind is None:
        small = graph.n_nodes <= plot.MAX_NODES and graph.n_edges <= plot.MAX_EDGES
        kind = "hierarchy" if small else ("map" if is_model else "levels")
    with stage(f"drawing: {kind}"):
        plot.save(plot.plot(read, kind, method=method, random_state=seed), output)
    payload = {"kind": kind, "file": output, **sizes(graph)}
    possible = KINDS if is_model else ("hierarchy", "levels")
    others = ", ".join(other for other in possible if other != kind)
    out.result(payload, f"{output}: {kind} written; other kinds: {others}")
