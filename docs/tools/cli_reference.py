"""The CLI reference as Markdown, read off the commands.

    python docs/tools/cli_reference.py > cli.md

``mkdocs build`` calls :func:`render`, so the page cannot fall behind the code.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer.main

INTRODUCTION = """\
# Command line

This page is made from the commands themselves; `atp COMMAND --help` prints the same.

Every command takes `--json` (one JSON object instead of text) and `--quiet` (no progress, no
notes). What `--json` prints has [a page of its own](json.md); exit codes, colors and completion are
in [In a terminal](terminal.md).
"""


def command_tree() -> Any:
    """The commands; of their attributes only those that all supported versions of Typer have."""
    from atpgraph.cli._app import app

    return typer.main.get_command(app)


def walk(command: Any, path: str = "atp") -> Iterator[tuple[str, Any]]:
    """Every command below `command`, groups before their members."""
    yield path, command
    for name, member in getattr(command, "commands", {}).items():
        if not member.hidden:
            yield from walk(member, f"{path} {name}")


def render() -> str:
    """The whole page."""
    below = [(path, command) for path, command in walk(command_tree()) if path != "atp"]
    return "\n".join([INTRODUCTION, *(section(path, command) for path, command in below)])


def section(path: str, command: Any) -> str:
    """One command: what it does, how it is called, its arguments and options."""
    lines = [f"{'#' * (1 + path.count(' '))} `{path}`", ""]
    lines += [inspect.cleandoc(command.help or "").replace("\f", ""), ""]
    if getattr(command, "commands", None):
        return "\n".join(lines)
    shown = [item for item in command.params if item.name != "help" and not item.hidden]
    needed = [called(item) for item in shown if item.required or is_argument(item)]
    lines += ["```text", " ".join([path, *needed, "[OPTIONS]"]), "```", ""]
    lines += ["| parameter | meaning | default |", "|---|---|---|", *map(row, shown), ""]
    return "\n".join(lines)


def is_argument(item: Any) -> bool:
    """Whether a parameter is told by its place, not by a name."""
    return bool(item.param_type_name == "argument")


def called(item: Any) -> str:
    """A parameter as it stands in the line that shows the usage."""
    if not is_argument(item):
        return f"{item.opts[0]} {item.name.upper()}"
    name = item.metavar or item.name.upper()
    name += "..." * (item.nargs != 1)
    return name if item.required else f"[{name}]"


def row(item: Any) -> str:
    """A parameter in the table of its command."""
    if is_argument(item):
        name = f"`{called(item)}`"
    else:
        name = ", ".join(f"`{flag}`" for flag in [*item.opts, *item.secondary_opts])
    text = item.help or ""
    if isinstance(item.default, Enum):
        text += f" One of {', '.join(str(choice.value) for choice in type(item.default))}."
    return f"| {name} | {cell(text)} | {cell(default(item))} |"


def default(item: Any) -> str:
    """The default of a parameter, as the help shows it."""
    if isinstance(item.show_default, str):
        return item.show_default
    if item.required:
        return "*required*"
    value = item.default.value if isinstance(item.default, Enum) else item.default
    return "" if value is None or value is False or value == "" else f"`{value}`"


def cell(text: str) -> str:
    """Text that fits a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    print(render())
