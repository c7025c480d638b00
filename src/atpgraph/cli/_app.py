"""The list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from atpgraph._version import __version__
from atpgraph.cli import (
    break_cycles,
    datasets,
    embed,
    hierarchy,
    linkpred,
    model,
    plot,
    reach,
    serve,
    tune,
)
from atpgraph.cli._commands import Commands
from atpgraph.cli.cqa.app import app as cqa
from atpgraph.cli.generate.app import app as generate
from atpgraph.cli.links.app import app as links
from atpgraph.cli.service.app import app as service

app = Commands(
    name="atp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 a bug, 2 bad input or usage, 3 too large for the memory budget, "
    "130 interrupted, 141 the reader of the output went away.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"atp {__version__}")
        raise typer.Exit


@app.callback()
def _atp(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Embed directed graphs so that direction and reachability survive."""


# One line per command, in the order in which the help lists them:
# app.command("name")(module.function), or app.add_typer(module.app, name="name") for subcommands.
app.command("break-cycles")(break_cycles.break_cycles)
app.command("reach")(reach.reach)
app.command("embed")(embed.embed)
app.command("tune")(tune.tune)
app.command("predict")(model.predict)
app.command("neighbors")(model.neighbors)
app.command("info")(model.info)
app.command("export")(model.export)
app.command("hierarchy")(hierarchy.hierarchy)
app.command("plot")(plot.plot)
app.add_typer(links, name="links")
app.command("linkpred")(linkpred.linkpred)
app.add_typer(cqa, name="cqa")
app.command("serve")(serve.serve)
app.add_typer(service, name="service")
app.add_typer(datasets.app, name="datasets")
app.add_typer(generate, name="generate")
