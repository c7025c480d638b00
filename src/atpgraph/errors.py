"""Errors with a one-sentence message for users that says how to fix the problem."""

from __future__ import annotations

import sys
from typing import cast


class AtpError(Exception):
    """Base class of the errors that atpgraph raises, each with a message of one sentence.

    The command line prints the sentence and exits with :attr:`exit_code`; no traceback.
    """

    exit_code = 1


class InputError(AtpError, ValueError):
    """The input cannot be used: a bad file, an unknown node, a value out of range."""

    exit_code = 2


class NotFittedError(InputError, AttributeError):
    """The model is not fitted; the error is also a scikit-learn NotFittedError.

    An ``AttributeError``, so that ``hasattr(model, "labels_")`` says whether a model is fitted.
    """

    def __new__(cls, *args: object) -> NotFittedError:
        # Code that catches scikit-learn's class has imported it; other code does not pay for it.
        other = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
        if other is None or issubclass(cls, other):
            return super().__new__(cls, *args)
        both = type(cls.__name__, (cls, other), {"__module__": cls.__module__})
        return cast(NotFittedError, Exception.__new__(both, *args))


class MissingDependencyError(AtpError, ImportError):
    """An optional library is needed and not installed."""

    exit_code = 2

    def __init__(
        self, package: str, extra: str, purpose: str, distribution: str = "atpgraph"
    ) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: "
            f"pip install '{distribution}[{extra}]'."
        )


class BudgetError(AtpError, MemoryError):
    """The work would exceed the memory budget; raised before it starts."""

    exit_code = 3
