"""The list of commands, with those that other distributions register."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from atpgraph._version import __version__
from atpgraph.cli import compare, cycles, data, embed, info, levels, links, model, plot, reach, tune
from atpgraph.cli.commands import Commands

app = Commands(
    name="atp",
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
    """Break cycles, find levels and paths, embed and predict links in directed graphs.

    Start with 'atp FILE', which describes any graph or any file that atp wrote.
    """


def _not_installed(command: str, package: str) -> Any:
    """Return a command that says which distribution has it."""

    def say_so() -> None:
        typer.echo(
            f"atp: error: 'atp {command}' comes with {package}: pip install {package}.", err=True
        )
        raise typer.Exit(2)

    return say_so


# Commands of other distributions of this project: package, and panel of the help.
ELSEWHERE = dict.fromkeys(("qa", "server", "data.generate.community"), "atpgraph-qa")
# As an editable install of atpgraph-qa made before 0.3 has them.
_FORMER_ENTRIES = {
    "cqa": "qa",
    "service": "server",
    "generate.community": "data.generate.community",
}
_QUESTIONS = "Questions and answers"


def _add_registered(groups: dict[str, Commands]) -> None:
    """Add the commands of the entry-point group ``atpgraph.commands``.

    An entry is named as the command is typed, with a dot after the name of a group; it leads to a
    group of commands (a Typer) or to the function of one command.
    """
    entries = {
        _FORMER_ENTRIES.get(entry.name, entry.name): entry
        for entry in entry_points(group="atpgraph.commands")
        if entry.name != "serve"
    }
    for name in [*ELSEWHERE, *sorted(entries.keys() - ELSEWHERE.keys())]:
        inside, _, last = name.rpartition(".")
        panel = None if inside else _QUESTIONS
        if name in entries:
            command = entries[name].load()
            if isinstance(command, typer.Typer):
                groups[inside].add_typer(command, name=last, rich_help_panel=panel)
            else:
                groups[inside].command(last)(command)
        else:
            package = ELSEWHERE[name]
            groups[inside].command(
                last,
                help=f"Comes with {package}: pip install {package}.",
                add_help_option=False,
                rich_help_panel=panel,
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
            )(_not_installed(name.replace(".", " "), package))


# In the order in which the help lists them.
_GRAPH, _VECTORS = "Graphs", "Vectors"
app.command("info", rich_help_panel=_GRAPH)(info.info)
app.command("cycles", rich_help_panel=_GRAPH)(cycles.cycles)
app.command("levels", rich_help_panel=_GRAPH)(levels.levels)
app.command("reach", rich_help_panel=_GRAPH)(reach.reach)
app.command("plot", rich_help_panel=_GRAPH)(plot.plot)
app.command("embed", rich_help_panel=_VECTORS)(embed.embed)
app.command("tune", rich_help_panel=_VECTORS)(tune.tune)
app.add_typer(model.app, name="model", rich_help_panel=_VECTORS)
links.app.command("compare")(compare.compare)
app.add_typer(links.app, name="links", rich_help_panel="Links")
_add_registered({"": app, "data.generate": data.generate})
app.add_typer(data.app, name="data", rich_help_panel="Data")
