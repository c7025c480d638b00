"""``atp plot``: pictures of a graph or a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from atpgraph.cli.console import Session
from atpgraph.cli.options import KINDS, Method, Reading, Seed, arg, opt


def plot(
    out: Session,
    file: Annotated[Path, arg("Edge list, or model of 'atp embed'.", metavar="GRAPH|MODEL")],
    reading: Reading,
    output: Annotated[Path, opt("Picture to write (.png or .svg).", "--output", "-o")],
    kind: Annotated[
        str | None,
        opt(
            "hierarchy or levels; map or objective of a model.",
            "--kind",
            "-k",
            choices=KINDS,
            show_default="hierarchy if small, else map of a model, levels of a graph",
        ),
    ] = None,
    method: Method = "auto",
    seed: Seed = 0,
) -> None:
    """Draw a graph or a model: its hierarchy, vectors, levels or objective."""
    from atpgraph.embedding import ATP
    from atpgraph.embedding.model_file import is_archive
    from atpgraph.plot import plot as draw
    from atpgraph.plot import save
    from atpgraph.plot.figures import check_output
    from atpgraph.plot.hierarchy import MAX_EDGES, MAX_NODES
    from atpgraph.util.progress import stage
    from atpgraph.util.registry import unknown_name

    check_output(output)
    if kind is not None and kind not in KINDS:
        raise unknown_name("kind of picture", kind, KINDS)
    if is_archive(file):
        reading.check_unused(file)
    read: Any = ATP.load(file) if is_archive(file) else reading.read(file)
    is_model = isinstance(read, ATP)
    graph = read.graph_ if is_model else read
    if kind is None:
        small = graph.n_nodes <= MAX_NODES and graph.n_edges <= MAX_EDGES
        kind = "hierarchy" if small else ("map" if is_model else "levels")
    with stage(f"drawing: {kind}"):
        save(draw(read, kind, method=method, random_state=seed), output)
    payload = {"kind": kind, "file": output, "nodes": graph.n_nodes, "edges": graph.n_edges}
    possible = KINDS if is_model else ("hierarchy", "levels")
    others = ", ".join(other for other in possible if other != kind)
    out.result(payload, f"{output}: {kind} written; other kinds: {others}")
