"""``atp generate dag`` and its like: random graphs as edge lists."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atpgraph.cli._reading import Reading, reads_graph
from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Json, Quiet, Seed, Session, session

if TYPE_CHECKING:
    from atpgraph.graph.digraph import DiGraph
    from atpgraph.util.arrays import Int64Array

app = Commands(no_args_is_help=True, help="Generate random graphs, or a simulated community.")

Nodes = Annotated[int, typer.Option("--nodes", "-n", min=0, help="Number of nodes.")]
Edges = Annotated[int, typer.Option("--edges", "-m", min=0, help="Number of edges.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="Edge list to write (.txt, .tsv, .csv, also .gz).")
]


def _add(name: str, summary: str, n_nodes: int, n_edges: int) -> None:
    """A command for a model that takes nothing but its size."""

    @app.command(name, help=summary)
    def generate(
        output: Output,
        nodes: Nodes = n_nodes,
        edges: Edges = n_edges,
        seed: Seed = 0,
        json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        with session(json=json, quiet=quiet) as out:
            from atpgraph.graph import generators

            make = {
                "dag": generators.random_dag,
                "gnm": generators.gnm,
                "citation": generators.citation_dag,
            }[name]
            started = time.perf_counter()
            _save(out, name, make(nodes, edges, seed), output, seed, started)


_add("dag", "A random DAG: distinct edges that agree with a hidden order.", 1500, 15_000)


@app.command("cycles")
@reads_graph
def cycles(
    output: Output,
    reading: Reading,
    nodes: Nodes = 1500,
    edges: Edges = 15_000,
    planted: Annotated[
        int, typer.Option("--planted", "-k", min=0, help="Number of edges that close cycles.")
    ] = 500,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=1, help="Close only paths of at most this many edges.", show_default=False
        ),
    ] = None,
    dag: Annotated[
        Path | None,
        typer.Option(help="Plant them into this DAG, not into a random one.", show_default=False),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="Write the planted edges to this file.", show_default=False)
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A DAG with planted edges, each of which closes a cycle."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.errors import InputError
        from atpgraph.graph.generators import plant_cycles, random_dag
        from atpgraph.util.random import generator

        if truth is not None and os.path.realpath(truth) == os.path.realpath(output):
            raise InputError(f"--output and --truth are both {output}; name two files.")
        started = time.perf_counter()
        rng = generator(seed)
        base = random_dag(nodes, edges, rng) if dag is None else reading.read(dag)
        graph, extra = plant_cycles(base, planted, max_length, rng)
        _save(out, "cycles", graph, output, seed, started, extra, truth)


_add("gnm", "A uniformly random directed graph without self-loops, with cycles.", 1500, 15_000)
_add("citation", "A shallow DAG shaped like a citation network.", 10_000, 20_000)


def _save(
    out: Session,
    model: str,
    graph: DiGraph,
    output: Path,
    seed: int,
    started: float,
    planted: Int64Array | None = None,
    truth: Path | None = None,
) -> None:
    """Write the files and report them."""
    import numpy as np

    from atpgraph.graph.edgelist import write_edgelist

    write_edgelist(graph, output)
    payload = {
        "model": model,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "output": output,
        "seed": seed,
    }
    lines = [f"{output}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges"]
    if planted is not None:
        payload["planted"] = len(planted)
        lines[0] += f", {len(planted):,} of them planted"
        if truth is not None:
            write_edgelist(np.stack(graph.edge_labels(planted), axis=1), truth)
            payload["truth"] = truth
            lines.append(f"{truth}: the planted edges")
    payload["seconds"] = round(time.perf_counter() - started, 3)
    out.result(payload, *lines)
