"""Errors meant for the person who typed the command: one sentence, with what to do."""

from __future__ import annotations


class AtpError(Exception):
    """Anything atpgraph refuses to do, said in one sentence.

    The command line prints the sentence and exits with :attr:`exit_code`; no traceback.
    """

    exit_code = 1


class InputError(AtpError, ValueError):
    """The input cannot be used: a bad file, an unknown node, a value out of range."""

    exit_code = 2


class MissingDependencyError(AtpError, ImportError):
    """An optional library is needed and not installed."""

    exit_code = 2

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: pip install 'atpgraph[{extra}]'."
        )


class BudgetError(AtpError, MemoryError):
    """The work would not fit the memory budget; refused before it starts."""

    exit_code = 3
