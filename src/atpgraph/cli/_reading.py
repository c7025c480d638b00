"""The options of every command that reads a graph, and the reading."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from atpgraph.graph.digraph import DiGraph

_PANEL = "How to read the graph"


def _option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, show_default=False, rich_help_panel=_PANEL)


@dataclass(frozen=True)
class Reading:
    """How to read a graph, as typed."""

    source: Annotated[
        str | None,
        _option("--source", help="Column of the sources: name, or number from 1 on."),
    ] = None
    target: Annotated[str | None, _option("--target", help="Column of the targets.")] = None
    weight: Annotated[
        str | None,
        _option("--weight", help="Column of the weights, by default the one so called"),
    ] = None
    no_weight: Annotated[bool, _option("--no-weight", help="Ignore weights.")] = False
    type: Annotated[
        str | None, _option("--type", help="Column of the types of the edges, such as is_a.")
    ] = None
    delimiter: Annotated[
        str | None,
        _option("--delimiter", help="What separates columns: one character, or tab."),
    ] = None
    header: Annotated[
        bool | None,
        _option("--header/--no-header", help="Whether the first line names the columns."),
    ] = None

    def read(self, path: Path | str, memory: str | float | None = None) -> DiGraph:
        """Return the graph in a file."""
        from atpgraph.errors import InputError
        from atpgraph.graph.edgelist import read_edgelist

        if self.no_weight and self.weight is not None:
            raise InputError("--weight and --no-weight exclude each other; choose one.")
        return read_edgelist(
            path,
            source=_column(self.source),
            target=_column(self.target),
            weight=False if self.no_weight else _column(self.weight),
            type=_column(self.type),
            delimiter="\t" if self.delimiter in ("tab", "\\t") else self.delimiter,
            header=self.header,
            memory=memory,
        )

    def check_unused(self, path: Path) -> None:
        """Raise an InputError if there are options for a file that is not an edge list."""
        from atpgraph.errors import InputError

        if self != Reading():
            raise InputError(
                f"{path} is not an edge list; leave out the options for columns and lines."
            )


def _column(typed: str | None) -> str | int | None:
    """Return a number as a number; a column whose name is a number has one as well."""
    return int(typed) if typed is not None and typed.isascii() and typed.isdigit() else typed


def reads_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`Reading`, in place of its parameter ``reading``."""
    signature = inspect.signature(command, eval_str=True)
    kinds = get_type_hints(Reading, include_extras=True)
    options = {
        name: each.replace(annotation=kinds[name])
        for name, each in inspect.signature(Reading).parameters.items()
    }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        reading = Reading(**{name: given.pop(name) for name in options})
        command(**given, reading=reading)

    own = [each for name, each in signature.parameters.items() if name != "reading"]
    # After the command's own options, before --json and --quiet.
    common = [each for each in own if each.name in ("json", "quiet")]
    first = [each for each in own if each.name not in ("json", "quiet")]
    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in [*first, *options.values(), *common]
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
