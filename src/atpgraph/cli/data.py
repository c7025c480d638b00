"""``atp data``: public graphs by name, your own imports, and random graphs."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import atpgraph
from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Session, sized, sizes, table
from atpgraph.cli.options import Reading, Seed, arg, opt, output
from atpgraph.errors import InputError
from atpgraph.util.files import check_writable

app = Commands(
    help="Get graphs: download public ones, write your Python's imports, or generate random ones."
)
generate = Commands(help="Generate random graphs, or a simulated community.")

Name = Annotated[str, arg("Name of the dataset, as 'atp data list' shows it.")]
Nodes = Annotated[int, opt("Number of nodes.", "--nodes", "-n", min=0)]
Edges = Annotated[int, opt("Number of edges.", "--edges", "-m", min=0)]
Output = Annotated[Path, output("Edge list to write (.txt, .tsv, .csv, also .gz).")]


@app.command("list")
def list_(out: Session) -> None:
    """List the datasets and show which are on this machine."""
    from atpgraph.datasets import DATASETS, available

    here = set(available())
    entries = [
        {name: value or None for name, value in asdict(dataset).items()}
        | {"available": dataset.name in here}
        for dataset in DATASETS.values()
    ]
    keys = {"name": "name", "nodes": "nodes", "edges": "edges", "here": "available"}
    out.result({"datasets": entries}, table(keys | {"description": "description"}, entries))


def _located(out: Session, name: str, locate: str) -> None:
    from atpgraph import datasets

    file = getattr(datasets, locate)(name)
    out.result({"name": datasets.find(name).name, "path": file}, str(file))


@app.command()
def fetch(out: Session, name: Name) -> None:
    """Download a dataset unless it is on this machine, and print the path of its file."""
    _located(out, name, "fetch")


@app.command()
def path(out: Session, name: Name) -> None:
    """Print the path of a dataset that is on this machine."""
    _located(out, name, "path")


@app.command()
def imports(
    out: Session,
    output: Output,
    packages: bool = opt("Write the requirements of installed packages instead."),
) -> None:
    """Write the imports in your Python's standard library, or between your installed packages."""
    from atpgraph import datasets

    graph = datasets.installed_packages() if packages else datasets.python_imports()
    atpgraph.write_edgelist(graph, output)
    out.result(sizes(graph) | {"output": output}, _sized(output, graph), f"next: atp {output}")


def _add(name: str, function: str, summary: str, n_nodes: int, n_edges: int) -> None:
    """Add a command for a random graph that is described by its size alone."""

    @generate.command(name, help=summary)
    def make(
        out: Session, output: Output, nodes: Nodes = n_nodes, edges: Edges = n_edges, seed: Seed = 0
    ) -> None:
        graph = getattr(atpgraph, function)(nodes, edges, seed)
        payload = _saved(name, graph, output, seed)
        out.result(payload | {"seconds": out.seconds}, _sized(output, graph))


_add("dag", "random_dag", "Generate a random DAG: edges follow a hidden order.", 1500, 15_000)


@generate.command("cycles")
def cycles(
    out: Session,
    output: Output,
    reading: Reading,
    nodes: Nodes = 1500,
    edges: Edges = 15_000,
    planted: int = opt("Edges that close cycles.", "--planted", "-k", default=500, min=0),
    max_length: int | None = opt("Close only paths of at most this many edges.", min=1),
    dag: Path | None = opt("Plant the edges in this DAG instead of a random one."),
    truth: Path | None = opt("Write the planted edges to this file."),
    seed: Seed = 0,
) -> None:
    """Generate a DAG with planted edges, each of which closes a cycle."""
    import numpy as np

    from atpgraph.util.random import generator

    places = [os.path.realpath(check_writable(path)) for path in (output, truth) if path]
    if len(set(places)) < len(places):
        raise InputError(f"--output and --truth are both {output}; name two files.")
    rng = generator(seed)
    base = atpgraph.random_dag(nodes, edges, rng) if dag is None else reading.read(dag)
    graph, added = atpgraph.plant_cycles(base, planted, max_length, rng)
    payload = _saved("cycles", graph, output, seed) | {"planted": len(added)}
    lines = [f"{_sized(output, graph)}, {len(added):,} of them planted"]
    if truth is not None:
        atpgraph.write_edgelist(np.stack(graph.edge_labels(added), axis=1), truth)
        payload["truth"] = truth
        lines.append(f"{truth}: the planted edges")
    out.result(payload | {"seconds": out.seconds}, *lines)


_add("gnm", "gnm", "Generate a uniformly random graph without self-loops.", 1500, 15_000)
_add("citation", "citation_dag", "Generate a shallow DAG, like a citation network.", 10_000, 20_000)
app.add_typer(generate, name="generate")


def _sized(output: Path, graph: atpgraph.DiGraph) -> str:
    return sized(output, graph, "standard output")


def _saved(model: str, graph: atpgraph.DiGraph, output: Path, seed: int) -> dict[str, Any]:
    """Write a generated graph, and return the facts about it for ``--json``."""
    atpgraph.write_edgelist(graph, output)
    return {"model": model, **sizes(graph), "output": output, "seed": seed}
