"""Compiled kernels: one decorator, a cache that works everywhere, a notice of a first compilation.

Every kernel releases the GIL and is cached on disk. Compilation happens when a kernel is first
called with given types, once per installation; :func:`on_compilation` lets the command line say so.

The cache holds machine code, so it lies where only its owner can write: in ``NUMBA_CACHE_DIR`` if
that is set, else beside the source, else in the user's cache folder, else in a folder of the user's
own among the temporary files. A cache that cannot be read or written costs time, not the result.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching, event

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` with Numba: cached, without the GIL, no parallel backend."""
    return _compiled(function)


def fast_kernel(function: F) -> F:
    """As :func:`kernel`, with floating-point sums free to be reordered into vector code."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def inlined_kernel(function: F) -> F:
    """As :func:`fast_kernel`, for a part of other kernels that is compiled inside each of them.

    Compiled on its own as well, such a part exists in two versions whose sums differ in the last
    digit, and whether code comes from the compiler or from the cache would decide which one runs.
    """
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"}, inline="always")


def _compiled(function: F, **options: Any) -> F:
    decorate = numba.njit(nogil=True, no_cfunc_wrapper=True, error_model="numpy", **options)
    compiled: Any = decorate(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        cache = _cache_of(function)
        if cache is not None:
            compiled._cache = cache  # as njit(cache=True) does, with a cache of Numba's own kind
    result: F = compiled
    return result


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's cache, for which a damaged file or a full disk is no more than a missing file."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # half a file can raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(Exception):
            super().save_overload(sig, data)


_choosing = threading.Lock()
_private: Path | None = None  # the folder among the temporary files, once one is needed
_note = "compiling kernels, once per installation"


def _cache_of(function: Callable[..., Any]) -> _Cache | None:
    """Where the machine code of `function` is kept; None if no folder will do."""
    with _choosing:
        given = numba.config.CACHE_DIR
        with contextlib.suppress(RuntimeError, OSError):  # none that Numba knows can be written
            cache = _Cache(function)
            folder = Path(cache.cache_path)
            source = Path(function.__code__.co_filename)
            if folder.parent in (source.parent, Path(given)) or _is_ours(folder):
                return cache
        try:
            # For this kernel only: where other packages keep theirs is not ours to say.
            numba.config.CACHE_DIR = os.fspath(_private_folder())
            return _Cache(function)
        except (RuntimeError, OSError):
            _say_kept_nowhere()
            return None
        finally:
            numba.config.CACHE_DIR = given


def _is_ours(folder: Path) -> bool:
    """Whether nobody but this user and root can put files into a folder, or move it away."""
    if not hasattr(os, "geteuid"):
        return True
    for place in (folder, *folder.parents[:-1]):
        status = place.stat()
        open_to_all = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if open_to_all or status.st_uid not in (0, os.geteuid()):
            return False
    return True


def _private_folder() -> Path:
    """A folder that only this user can read or write, the same in every run if possible.

    Somebody else may have made one of that name before, with machine code of theirs in it: then
    its owner or its mode gives it away.
    """
    global _private, _note
    if _private is None:
        _private = Path(tempfile.gettempdir()) / f"atpgraph-{getattr(os, 'geteuid', int)()}"
        with contextlib.suppress(FileExistsError):
            _private.mkdir(mode=0o700)
        status = _private.lstat()
        private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
        if private and _is_ours(_private):
            _note = f"compiling kernels; kept in {_private}, as no better place can be written"
        else:
            _private = Path(tempfile.mkdtemp(prefix="atpgraph-"))
            atexit.register(shutil.rmtree, _private, ignore_errors=True)
            _say_kept_nowhere()
    return _private


def _say_kept_nowhere() -> None:
    global _note
    _note = (
        "compiling kernels, for this run only: no folder to keep them in can be written "
        "(set NUMBA_CACHE_DIR to one)"
    )


def compilation_note() -> str:
    """What to tell a person who has to wait for a compilation."""
    return _note


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
