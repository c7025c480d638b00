"""The list of commands, with those that other distributions register."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from atpgraph._version import __version__
from atpgraph.cli import cycles, data, embed, info, links, model, plot, reach
from atpgraph.cli.commands import Commands

app = Commands(
    name="atp",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 a bug, 2 bad input or usage, 3 too large for the memory budget, "
    "130 interrupted, 141 output closed by its reader.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"atp {__version__}")
        raise typer.Exit


_version = typer.Option(
    "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
)


@app.callback()
def _atp(version: Annotated[bool, _version] = False) -> None:
    """Break cycles, find levels and paths, embed nodes and predict links in directed graphs.

    Start with 'atp FILE', which describes a graph or any file that atp wrote.
    """


# Commands of other distributions of this project, listed also where those are not installed.
ELSEWHERE = dict.fromkeys(("qa", "server", "data.generate.community"), "atpgraph-qa")


def _add_registered(groups: dict[str, Commands]) -> None:
    """Add the commands of the entry-point group ``atpgraph.commands``.

    The name of an entry is the command, with a dot between a group and its command; the value is a
    group of commands (a Typer) or the function of one command.
    """
    entries = {entry.name: entry for entry in entry_points(group="atpgraph.commands")}
    for name in [*ELSEWHERE, *sorted(entries.keys() - ELSEWHERE.keys())]:
        inside, _, last = name.rpartition(".")
        settings: dict[str, Any] = {"rich_help_panel": None if inside else "Questions and answers"}
        if name not in entries:
            package = ELSEWHERE[name]
            groups[inside].command(
                last,
                help=f"Part of {package}: pip install {package}.",
                add_help_option=False,
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
                **settings,
            )(_not_installed(name.replace(".", " "), package))
        elif isinstance(command := entries[name].load(), typer.Typer):
            groups[inside].add_typer(command, name=last, **settings)
        else:
            groups[inside].command(last, **settings)(command)


def _not_installed(command: str, package: str) -> Any:
    """Return a command that says which distribution provides it."""

    def say_so() -> None:
        message = f"atp: error: 'atp {command}' is part of {package}: pip install {package}."
        typer.echo(message, err=True)
        raise typer.Exit(2)

    return say_so


# In the order in which the help lists them.
for _panel, _commands in {
    "Graphs": (info.info, cycles.cycles, cycles.levels, reach.reach, plot.plot),
    "Vectors": (embed.embed, embed.tune),
}.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)
app.add_typer(model.app, name="model", rich_help_panel="Vectors")
app.add_typer(links.app, name="links", rich_help_panel="Links")
_add_registered({"": app, "data.generate": data.generate})
app.add_typer(data.app, name="data", rich_help_panel="Data")
