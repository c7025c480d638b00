"""The classes behind every command: one style of errors, old names, and ``atp FILE``."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from atpgraph.cli.options import with_session
from atpgraph.util.progress import say

LARGEST = 2**63 - 1  # the largest integer that arrays hold

# Names of 0.2, which work until 0.4: what was typed, and what it is called now.
OLD_NAMES = {
    "break-cycles": "cycles",
    "hierarchy": "levels",
    "predict": "model score",
    "neighbors": "model top",
    "export": "model export",
    "linkpred": "links compare",
    "links predict": "links score",
    "datasets": "data",
    "generate": "data generate",
    "cqa": "qa",
    "serve": "server run",
    "service token": "server tokens",
    "service": "server",
}


class Command(TyperCommand):
    """A command that rejects numbers that are not finite or do not fit into arrays."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options as shown by the help."""
        return _tidy(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        options: list[Any] = list(self.params)
        for option in options:
            value = ctx.params.get(option.name or "")
            for number in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(number, float) and not math.isfinite(number):
                    raise typer.BadParameter(f"{number} is not a finite number.", ctx, option)
                if isinstance(number, int) and abs(number) > LARGEST:
                    raise typer.BadParameter(f"{number} is too large.", ctx, option)
        return super().invoke(ctx)


class Group(TyperGroup):
    """A group of commands whose errors look like those of the commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options as shown by the help."""
        return _tidy(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Translate old names, or a file in place of a command; without arguments, print help."""
        if ctx.parent is None and args and not ctx.resilient_parsing:
            args = self._file_described(_current_names(args))
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def _file_described(self, args: list[str]) -> list[str]:
        """Return ``info FILE …`` if the first word is a file or looks like one."""
        word = args[0]
        if (word.startswith("-") and word != "-") or word in self.commands:
            return args
        a_file = word == "-" or os.path.exists(word) or set("./\\") & set(word)
        return ["info", *args] if a_file else args

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run a command line; report wrong usage in one sentence, with exit code 2."""
        standalone_mode = settings.pop("standalone_mode", True)
        try:
            code = super().main(*args, **settings | {"standalone_mode": False})
        except typer.Abort:
            code = 130
        except Exception as error:
            if not standalone_mode or not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "atp"
            message = error.format_message().rstrip(".").replace("Value error, ", "")
            message += "" if message.endswith("?") else "."
            say(f"atp: error: {message} See '{path} --help'.")
            code = getattr(error, "exit_code", 2)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


class Commands(typer.Typer):
    """A group of commands, with a decorator to register functions."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=Group, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a function as a command; see :func:`~atpgraph.cli.options.with_session`."""
        register = super().command(name, cls=Command, **settings)
        return lambda function: register(with_session(function))


def _tidy(params: list[Any]) -> list[Any]:
    """Hide the type after flags and arguments, and print arguments in capitals."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar, param.show_default = "", False
        elif param.param_type_name == "argument":
            param.metavar = param.metavar or param.name.upper()
            param.get_usage_pieces = functools.partial(_usage_of, param)
            param.display_type_rich = lambda ctx: None
    return params


def _usage_of(argument: Any, _: Any) -> list[str]:
    """Return how the usage line shows an argument: in brackets if it is optional."""
    name = argument.metavar if argument.required else f"[{argument.metavar}]"
    return [name + "..." * (argument.nargs != 1)]


def _current_names(args: list[str]) -> list[str]:
    """Replace the old name of a command, and print a note unless ``--quiet`` was typed."""
    for count in (2, 1):
        old = " ".join(args[:count])
        if len(args) < count or old not in OLD_NAMES:
            continue
        new, rest = OLD_NAMES[old], args[count:]
        if args == ["datasets"]:
            new = "data list"
        if old == "serve" and "--check" in rest:
            new, rest = "server check", [word for word in rest if word != "--check"]
        if not {"-q", "--quiet"} & set(rest):
            say(f"atp: 'atp {old}' is now 'atp {new}'; the old name will be removed in 0.4")
        return [*new.split(), *rest]
    return args
