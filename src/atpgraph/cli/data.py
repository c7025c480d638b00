"""``atp data``: public graphs by name, and random ones."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, table
from atpgraph.cli.options import Reading, Seed, arg, opt

if TYPE_CHECKING:
    from atpgraph.graph.digraph import DiGraph
    from atpgraph.util.arrays import Int64Array

app = Commands(help="Get graphs: list and download public ones, or generate random ones.")
generate = Commands(help="Generate random graphs, or a simulated community.")

Name = Annotated[str, arg("Name of the dataset, as 'atp data list' shows it.")]
Nodes = Annotated[int, opt("Number of nodes.", "--nodes", "-n", min=0)]
Edges = Annotated[int, opt("Number of edges.", "--edges", "-m", min=0)]
Output = Annotated[Path, opt("Edge list to write (.txt, .tsv, .csv, also .gz).", "--output", "-o")]


@app.command("list")
def list_(out: Session) -> None:
    """List the datasets, and which are on this machine."""
    from atpgraph.datasets import DATASETS, available

    here = set(available())
    entries = [
        {
            "name": d.name,
            "nodes": d.nodes,
            "edges": d.edges,
            "available": d.name in here,
            "description": d.description,
            "url": d.url or None,
            "license": d.license,
            "edges_sha256": d.edges_sha256 or None,
        }
        for d in DATASETS.values()
    ]
    keys = ("name", "nodes", "edges", "available", "description")
    rows = [[entry[key] for key in keys] for entry in entries]
    out.result(
        {"datasets": entries}, table(["name", "nodes", "edges", "here", "description"], rows)
    )


@app.command()
def fetch(out: Session, name: Name) -> None:
    """Download a dataset unless it is on this machine, and print the path of its file."""
    from atpgraph import datasets

    file = datasets.fetch(name)
    out.result({"name": datasets.find(name).name, "path": file}, str(file))


@app.command()
def path(out: Session, name: Name) -> None:
    """Print the path of a dataset that is on this machine."""
    from atpgraph import datasets

    file = datasets.path(name)
    out.result({"name": datasets.find(name).name, "path": file}, str(file))


def _add(name: str, function: str, summary: str, n_nodes: int, n_edges: int) -> None:
    """Add a command for a random graph that is described by its size alone."""

    @generate.command(name, help=summary)
    def make(
        out: Session,
        output: Output,
        nodes: Nodes = n_nodes,
        edges: Edges = n_edges,
        seed: Seed = 0,
    ) -> None:
        from atpgraph.graph import generators

        started = time.perf_counter()
        graph = getattr(generators, function)(nodes, edges, seed)
        _save(out, name, graph, output, seed, started)


_add("dag", "random_dag", "A random DAG: distinct edges that follow a hidden order.", 1500, 15_000)


@generate.command("cycles")
def cycles(
    out: Session,
    output: Output,
    reading: Reading,
    nodes: Nodes = 1500,
    edges: Edges = 15_000,
    planted: Annotated[
        int, opt("Number of edges that close cycles.", "--planted", "-k", min=0)
    ] = 500,
    max_length: Annotated[
        int | None, opt("Close only paths of at most this many edges.", min=1)
    ] = None,
    dag: Annotated[Path | None, opt("Plant them into this DAG, not into a random one.")] = None,
    truth: Annotated[Path | None, opt("Write the planted edges to this file.")] = None,
    seed: Seed = 0,
) -> None:
    """A DAG with planted edges, each of which closes a cycle."""
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


_add("gnm", "gnm", "A uniformly random graph with cycles, without self-loops.", 1500, 15_000)
_add("citation", "citation_dag", "A shallow DAG, like a citation network.", 10_000, 20_000)
app.add_typer(generate, name="generate")


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
    sizes = {"nodes": graph.n_nodes, "edges": graph.n_edges}
    payload = {"model": model, **sizes, "output": output, "seed": seed}
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
