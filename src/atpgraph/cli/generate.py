"""``atp generate``: random graphs as edge lists."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atpgraph.cli._console import Json, Quiet, Seed, Session, session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from atpgraph.graph.digraph import DiGraph

app = typer.Typer(no_args_is_help=True, help="Generate random directed graphs.")

Nodes = Annotated[int, typer.Option("--nodes", "-n", min=0, help="Number of nodes.")]
Edges = Annotated[int, typer.Option("--edges", "-m", min=0, help="Number of edges.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="Edge list to write (.txt, .tsv, .csv, also .gz).")
]


@app.command("dag")
def dag(
    output: Output,
    nodes: Nodes = 1500,
    edges: Edges = 15_000,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A random DAG: distinct edges that agree with a hidden order."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.graph.generators import random_dag

        started = time.perf_counter()
        _save(out, "dag", random_dag(nodes, edges, seed), output, seed, started)


@app.command("cycles")
def cycles(
    output: Output,
    nodes: Nodes = 1500,
    edges: Edges = 15_000,
    planted: Annotated[
        int, typer.Option("--planted", "-k", min=0, help="Number of edges that close cycles.")
    ] = 500,
    max_length: Annotated[
        int | None,
        typer.Option(min=1, help="Close only paths of at most so many edges.", show_default=False),
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
        from atpgraph._random import generator
        from atpgraph.errors import InputError
        from atpgraph.graph.edgelist import read_edgelist
        from atpgraph.graph.generators import plant_cycles, random_dag

        if truth is not None and truth.resolve() == output.resolve():
            raise InputError(f"--output and --truth are both {output}; name two files.")
        started = time.perf_counter()
        rng = generator(seed)
        base = random_dag(nodes, edges, rng) if dag is None else read_edgelist(dag)
        graph, extra = plant_cycles(base, planted, max_length, rng)
        _save(out, "cycles", graph, output, seed, started, extra, truth)


@app.command("gnm")
def gnm(
    output: Output,
    nodes: Nodes = 1500,
    edges: Edges = 15_000,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A uniformly random directed graph without self-loops, with cycles."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.graph import generators

        started = time.perf_counter()
        _save(out, "gnm", generators.gnm(nodes, edges, seed), output, seed, started)


@app.command("citation")
def citation(
    output: Output,
    nodes: Nodes = 10_000,
    edges: Edges = 20_000,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A shallow DAG shaped like a citation network."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph.graph.generators import citation_dag

        started = time.perf_counter()
        _save(out, "citation", citation_dag(nodes, edges, seed), output, seed, started)


def _save(
    out: Session,
    model: str,
    graph: DiGraph,
    output: Path,
    seed: int,
    started: float,
    planted: npt.NDArray[np.int64] | None = None,
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
