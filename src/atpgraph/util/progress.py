"""Progress of long work, separate from how it is shown.

Library code opens a :func:`stage` and advances it. It is shown where :func:`report_to` installed a
reporter, as the command line does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol


class Reporter(Protocol):
    """Shows stages, each by the number that its start returned."""

    def start(self, name: str, total: float | None) -> int: ...
    def advance(self, stage: int, amount: float) -> None: ...
    def finish(self, stage: int) -> None: ...


_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


class Stage:
    """Handle of one running stage."""

    def __init__(self, reporter: Reporter | None, number: int) -> None:
        self._reporter = reporter
        self._number = number

    def advance(self, amount: float = 1.0) -> None:
        """Advance the stage by `amount`."""
        if self._reporter is not None:
            self._reporter.advance(self._number, amount)


@contextlib.contextmanager
def stage(name: str, total: float | None = None) -> Iterator[Stage]:
    """Run a block as a stage called `name`, of `total` steps if they are known.

    Examples
    --------
    >>> with stage("counting", total=3) as step:
    ...     for _ in range(3):
    ...         step.advance()
    """
    reporter = _reporter.get()
    if reporter is None:
        yield Stage(None, 0)
        return
    number = None
    try:
        number = reporter.start(name, total)
        yield Stage(reporter, number)
    finally:
        if number is not None:
            reporter.finish(number)


@contextlib.contextmanager
def report_to(reporter: Reporter) -> Iterator[None]:
    """Show the stages of the block through `reporter`."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)
