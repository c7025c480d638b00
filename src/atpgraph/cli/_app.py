"""The list of commands, with those that other distributions register."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated, Any

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
    tune,
)
from atpgraph.cli.commands import Commands
from atpgraph.cli.generate.app import app as generate
from atpgraph.cli.links.app import app as links

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


def _not_installed(command: str, package: str) -> Any:
    """Return a command that says which distribution has it."""

    def say_so() -> None:
        typer.echo(
            f"atp: error: 'atp {command}' comes with {package}: pip install {package}.", err=True
        )
        raise typer.Exit(2)

    return say_so


def _add_registered(groups: dict[str, Commands]) -> None:
    """Add the commands of the entry-point group ``atpgraph.commands``.

    An entry is named as the command is typed, with a dot after the name of a group; it leads to a
    group of commands (a Typer) or to the function of one command.
    """
    found = {entry.name: entry for entry in entry_points(group="atpgraph.commands")}
    for name in [*ELSEWHERE, *sorted(found.keys() - ELSEWHERE.keys())]:
        inside, _, last = name.rpartition(".")
        if name in found:
            command = found[name].load()
            if isinstance(command, typer.Typer):
                groups[inside].add_typer(command, name=last)
            else:
                groups[inside].command(last)(command)
        else:
            package = ELSEWHERE[name]
            groups[inside].command(
                last,
                help=f"Comes with {package}: pip install {package}.",
                add_help_option=False,
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
            )(_not_installed(name.replace(".", " "), package))


# Commands of other distributions of this project, in the order in which the help lists them.
ELSEWHERE = dict.fromkeys(("cqa", "serve", "service", "generate.community"), "atpgraph-qa")

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
_add_registered({"": app, "generate": generate})
app.add_typer(datasets.app, name="datasets")
app.add_typer(generate, name="generate")
