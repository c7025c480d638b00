"""Compiled kernels: one decorator, and a notice when a first run has to compile.

Every kernel is cached on disk and releases the GIL. Compilation happens when a kernel is first
called with given types, once per installation; :func:`on_compilation` lets the command line say so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` with Numba: cached, without the GIL, no parallel backend."""
    compiled: F = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True, error_model="numpy")(
        function
    )
    return compiled


def fast_kernel(function: F) -> F:
    """As :func:`kernel`, with floating-point sums free to be reordered into vector code."""
    compiled: F = numba.njit(
        cache=True,
        nogil=True,
        no_cfunc_wrapper=True,
        error_model="numpy",
        fastmath={"reassoc", "contract", "nsz"},
    )(function)
    return compiled


class _Watch(event.Listener):  # type: ignore[misc]
    def __init__(self, announce: Callable[[], None]) -> None:
        self.announce = announce
        self.announced = False
        self.depth = 0
        self.started = 0.0
        self.seconds = 0.0

    def on_start(self, event: Any) -> None:
        if not self.announced:
            self.announced = True
            self.announce()
        if self.depth == 0:
            self.started = time.perf_counter()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.started


@contextlib.contextmanager
def on_compilation(announce: Callable[[], None]) -> Iterator[_Watch]:
    """Call `announce` once if anything has to be compiled inside the block.

    The object yielded has ``seconds``: the time spent compiling so far.
    """
    watch = _Watch(announce)
    event.register("numba:compile", watch)
    try:
        yield watch
    finally:
        event.unregister("numba:compile", watch)
