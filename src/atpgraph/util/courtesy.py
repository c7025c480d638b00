"""Work that somebody else may interrupt: it asks now and then whether it should wait."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_WAIT: ContextVar[Callable[[], None] | None] = ContextVar("wait", default=None)


@contextlib.contextmanager
def courteous(wait: Callable[[], None]) -> Iterator[None]:
    """Let :func:`breathe` call `wait`, in this thread and until the end of the block."""
    token = _WAIT.set(wait)
    try:
        yield
    finally:
        _WAIT.reset(token)


def breathe() -> None:
    """Wait if whoever started this work wants that; never while holding a lock."""
    wait = _WAIT.get()
    if wait is not None:
        wait()
