"""The kind of Typer that every group of commands is: it refuses numbers that nothing can use."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

LARGEST = 2**63 - 1  # of the whole numbers that arrays hold


class Command(TyperCommand):
    """A command whose numbers are finite and fit into arrays, whatever the option."""

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


class Commands(typer.Typer):
    """A group of commands."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a function as a command, as :meth:`typer.Typer.command` does."""
        return super().command(name, cls=Command, **settings)
