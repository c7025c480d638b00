"""``atp datasets``: public graphs by name."""

from __future__ import annotations

from typing import Annotated

import typer

from atpgraph.cli.commands import Commands
from atpgraph.cli.console import Json, Quiet, session, table

app = Commands(
    invoke_without_command=True,
    help="Public graphs: list them, download them, find their files.",
)

Name = Annotated[str, typer.Argument(help="Name of the dataset, as 'atp datasets list' shows it.")]


@app.callback()
def _default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_()


@app.command("list")
def list_(json: Json = False, quiet: Quiet = False) -> None:
    """List the datasets, and which are on this machine."""
    with session(json=json, quiet=quiet) as out:
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
                "licence": d.licence,
                "edges_sha256": d.edges_sha256 or None,
            }
            for d in DATASETS.values()
        ]
        rows = [
            (e["name"], e["nodes"], e["edges"], e["available"], e["description"]) for e in entries
        ]
        out.result(
            {"datasets": entries},
            table(["name", "nodes", "edges", "here", "what"], rows),
        )


@app.command("fetch")
def fetch(name: Name, json: Json = False, quiet: Quiet = False) -> None:
    """Download a dataset unless it is on this machine, and print the path of its file."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph import datasets

        file = datasets.fetch(name)
        out.result({"name": datasets.find(name).name, "path": file}, str(file))


@app.command("path")
def path(name: Name, json: Json = False, quiet: Quiet = False) -> None:
    """Print the path of a dataset that is on this machine."""
    with session(json=json, quiet=quiet) as out:
        from atpgraph import datasets

        file = datasets.path(name)
        out.result({"name": datasets.find(name).name, "path": file}, str(file))
