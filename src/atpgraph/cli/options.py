"""Options that several commands share, and how they read a graph."""

from __future__ import annotations

import datetime
import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer
from typer.models import OptionInfo

from atpgraph.errors import InputError

if TYPE_CHECKING:
    from atpgraph.graph.digraph import DiGraph

T = TypeVar("T")

# Names that the shell completes, kept here so that completion loads no numerics; a test compares
# them with the library's.
METHODS = (
    "dfs", "mfas", "eades", "pagerank", "sa-g", "sa-f", "sa-b", "sa-voting", "ts-g", "ts-f", "ts-b",
    "ts-voting", "h-voting", "springs", "bayes", "sift",
    "minimum", "auto",
)  # fmt: skip
KERNELS = ("log", "harmonic", "linear", "constant")
PURPOSES = ("reachability", "paper")
KINDS = ("hierarchy", "map", "levels", "objective")
FORMATS = ("word2vec", "csv", "parquet", "npy")

# What the help shows for an option that takes a value.
TAKES = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH", datetime.datetime: "TIME"}


def opt(
    help: str, *names: str, default: Any = ..., choices: tuple[str, ...] = (), **settings: Any
) -> Any:
    """Return a Typer option with this help; the shell completes its `choices`.

    Options that several commands share have it in their type, other options as their default. In
    the second case and without a `default`, the option is None if its type allows that, False if it
    is a flag, and required otherwise.
    """
    if choices:
        settings.setdefault("metavar", "NAME")
        settings["autocompletion"] = lambda incomplete: [
            name for name in choices if name.startswith(incomplete)
        ]
    return typer.Option(default, *names, help=help, **settings)


def arg(help: str, **settings: Any) -> Any:
    """Return a Typer argument with this help."""
    return typer.Argument(help=help, show_default=False, **settings)


def output(help: str) -> Any:
    """Return the option ``--output`` with this help."""
    return opt(help, "--output", "-o")


def names(text: str) -> list[str]:
    """Return the names in a comma-separated text."""
    return [name.strip() for name in text.split(",") if name.strip()]


def value(name: str, text: str, convert: Callable[[str], T], takes: str) -> T:
    """Return the value of an option; an InputError says what the option takes."""
    try:
        return convert(text)
    except ValueError:
        raise InputError(f"{name} got {text!r}; it takes {takes}.") from None


def values(name: str, text: str, convert: Callable[[str], T], takes: str) -> list[T]:
    """Return the values of an option that takes several, separated by commas.

    Examples
    --------
    >>> values("--dims", "8, 16", int, "whole numbers")
    [8, 16]
    """
    return [value(name, part.strip(), convert, takes) for part in text.split(",")]


def dimensions(name: str, text: str) -> list[int]:
    """Return the lengths of vectors, separated by commas, without repetitions."""

    def dimension(part: str) -> int:
        if not 1 <= int(part) <= 65_536:
            raise ValueError
        return int(part)

    typed = values(name, text, dimension, "whole numbers from 1 to 65,536")
    return list(dict.fromkeys(typed))


Graph = Annotated[Path, arg("Edge list: text, .gz, .zst or .parquet; - reads standard input.")]
Pairs = Annotated[list[str] | None, arg("Pairs of nodes: U V [U V …].")]
PairsFile = Annotated[
    Path | None,
    opt("File with a pair per line; - reads standard input. Unknown nodes are marked.", "--pairs"),
]
Method = Annotated[
    str,
    opt(
        f"How to break cycles: {', '.join(METHODS[:-1])}; auto is sift up to 300,000 edges on "
        "cycles, then springs.",
        "--method", "-m", choices=METHODS,
    ),
]  # fmt: skip
Kernel = Annotated[str, opt("log, harmonic, linear or constant.", choices=KERNELS)]
Purpose = Annotated[
    str,
    opt(
        "reachability: preserve the paths of the graph; paper: the paper's method.",
        "--purpose", "-p", choices=PURPOSES,
    ),
]  # fmt: skip
Dim = Annotated[int, opt("Length of the vectors.", min=1)]
Memory = Annotated[
    str | None,
    opt("Memory budget, such as 4GB.", metavar="SIZE", show_default="half of the free memory"),
]
Threads = Annotated[int | None, opt("Number of threads.", min=1, show_default="all cores")]
Report = Annotated[Path | None, opt("Write an HTML report to this folder.", metavar="DIR")]
Top = Annotated[int, opt("Maximum number of results.", min=1)]
Seed = Annotated[int, opt("Random seed; the same seed gives the same result.", min=0)]
Json = Annotated[bool, opt("Print one JSON object instead of text.", "--json")]
Quiet = Annotated[bool, opt("Print no progress or notes.", "--quiet", "-q")]

_column = functools.partial(opt, show_default=False, rich_help_panel="How to read the graph")


@dataclass(frozen=True)
class Reading:
    """The typed options that say how to read a graph."""

    source: Annotated[
        str | None, _column("Column with the sources: a name, or a number from 1.")
    ] = None
    target: Annotated[str | None, _column("Column with the targets.")] = None
    weight: Annotated[
        str | None, _column("Column with the weights; by default the one named weight.")
    ] = None
    no_weight: Annotated[bool, _column("Ignore weights.")] = False
    type: Annotated[str | None, _column("Column with the types of edges, such as is_a.")] = None
    delimiter: Annotated[str | None, _column("Column separator: one character, or tab.")] = None
    header: Annotated[
        bool | None, _column("Whether the first line names the columns.", "--header/--no-header")
    ] = None

    def typed(self) -> list[str]:
        """Return the options as typed on the command line, without those left at their default."""
        words = ["--no-header"] if self.header is False else []
        for name, value in vars(self).items():
            option = "--" + name.replace("_", "-")
            if isinstance(value, str):
                words += [option, value]
            elif value:
                words.append(option)
        return words

    def read(self, path: Path | str, memory: str | float | None = None) -> DiGraph:
        """Return the graph in a file."""
        from atpgraph.graph.edgelist import read_edgelist
        from atpgraph.util.archive import archive_format

        if self.no_weight and self.weight is not None:
            raise InputError("--weight and --no-weight exclude each other; choose one.")
        if (kind := archive_format(path)) is not None:
            remedy = f"'atp info {path}' says what it is" if kind else "save it as CSV or Parquet"
            raise InputError(f"{path} is not an edge list; {remedy}.")
        return read_edgelist(
            path,
            source=_number_or_name(self.source),
            target=_number_or_name(self.target),
            weight=False if self.no_weight else _number_or_name(self.weight),
            type=_number_or_name(self.type),
            delimiter="\t" if self.delimiter in ("tab", "\\t") else self.delimiter,
            header=self.header,
            memory=memory,
        )

    def check_unused(self, path: Path) -> None:
        """Raise an InputError if there are options for a file that is not an edge list."""
        if self != Reading():
            raise InputError(
                f"{path} is not an edge list; leave out the options for columns and lines."
            )


def _number_or_name(typed: str | None) -> str | int | None:
    """Return a column as an int if it looks like one, else as its name."""
    return int(typed) if typed is not None and typed.isascii() and typed.isdigit() else typed


def _common(json: Json = False, quiet: Quiet = False) -> None:
    """Declare the options of every command."""


def with_session(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with ``--json`` and ``--quiet``, which run it in a session.

    The session is its parameter ``out``. A parameter that is a dataclass, such as
    :class:`Reading`, stands for the options in its fields, which are listed after the command's
    own. A flag has no ``--no-`` form.
    """
    signature = inspect.signature(command, eval_str=True)
    own = dict(signature.parameters)
    if own.pop("out", None) is None:
        return command
    groups = {
        name: own.pop(name).annotation
        for name, each in signature.parameters.items()
        if is_dataclass(each.annotation)
    }
    fields = {name: _parameters(kind) for name, kind in groups.items()}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        from atpgraph.cli.console import session

        for name, kind in groups.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields[name]})
        with session(json=given.pop("json"), quiet=given.pop("quiet")) as out:
            command(out, **given)

    parameters = [*own.values(), *chain(*fields.values()), *_parameters(_common)]
    for each in parameters:
        _complete(each)
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    # Lines of a paragraph are joined, so that the help fits any width.
    run.__doc__ = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.__doc__ or ""))
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _complete(parameter: inspect.Parameter) -> None:
    """Complete an option from its name and type; see :func:`opt`."""
    kind, info = parameter.annotation, parameter.default
    if not (alone := isinstance(info, OptionInfo)):
        kind, info = get_args(kind)
    if not isinstance(info, OptionInfo):
        return
    kinds = get_args(kind) or (kind,)
    if alone and info.default is ...:
        info.default = False if kind is bool else None if type(None) in kinds else ...
    if kind is bool and not info.param_decls:  # or it would have a form with --no-
        info.param_decls = ("--" + parameter.name.replace("_", "-"),)
    info.metavar = info.metavar or TAKES.get(kinds[0])


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())
