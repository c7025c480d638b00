"""Compile kernels with Numba, cache them on disk, and announce a first compilation.

At the end are two instructions that NumPy lacks: a population count and a prefetch.

The cache holds machine code, so it must be a folder that only its owner can write to: in
``NUMBA_CACHE_DIR`` if that is set, else beside the source, else in the user's cache folder, else in
a private folder among the temporary files. A cache that cannot be read or written costs time, not
the result.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import caching, event, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` with Numba: cached, without the GIL, no parallel backend."""
    return _compiled(function)


def fast_kernel(function: F) -> F:
    """Compile as :func:`kernel` does, with sums that may be reordered into vector code."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def inlined_kernel(function: F) -> F:
    """Compile a part of fast kernels inside each of them.

    If such a part were also compiled on its own, its two versions would differ in the last digit,
    and which one runs would depend on whether the code comes from the compiler or from the cache.
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
    """Numba's cache, which treats a damaged file or a full disk like a missing file."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # half a file can raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(Exception):
            super().save_overload(sig, data)


_choosing = threading.Lock()
_note = "compiling kernels, once per installation"


def _cache_of(function: Callable[..., Any]) -> _Cache | None:
    """Return the cache for the machine code of `function`; None if no folder will do."""
    global _note
    with _choosing:
        given = numba.config.CACHE_DIR
        with contextlib.suppress(RuntimeError, OSError):  # no folder that Numba knows is writable
            cache = _Cache(function)
            kept = Path(cache.cache_path)
            source = Path(function.__code__.co_filename)
            if kept.parent in (source.parent, Path(given)) or _is_ours(kept):
                return cache
        folder = Path(tempfile.gettempdir()) / f"atpgraph-{getattr(os, 'geteuid', int)()}"
        try:
            if _is_private(folder):
                # For this kernel only: where other packages keep theirs is not ours to say.
                numba.config.CACHE_DIR = os.fspath(folder)
                cache = _Cache(function)
                _note = f"compiling kernels; kept in {folder}, as no better place can be written"
                return cache
        except (RuntimeError, OSError):
            pass
        finally:
            numba.config.CACHE_DIR = given
        _note = (
            "compiling kernels, for this run only: no folder to keep them in can be written "
            "(set NUMBA_CACHE_DIR to one)"
        )
        return None


def _is_ours(folder: Path) -> bool:
    """Return whether only this user and root can put files into a folder, or move it away."""
    if not hasattr(os, "geteuid"):
        return True
    for place in (folder, *folder.parents[:-1]):
        status = place.stat()
        open_to_all = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        if open_to_all or status.st_uid not in (0, os.geteuid()):
            return False
    return True


def _is_private(folder: Path) -> bool:
    """Make a folder and return whether only this user can use it.

    Another user may have made a folder of that name and put machine code into it; its owner or its
    mode shows that.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077 and _is_ours(folder)


def compilation_note() -> str:
    """Return the message to show while kernels compile."""
    return _note


class Watch(event.TimingListener):  # type: ignore[misc]
    """Measures the time spent compiling."""

    def __init__(self, announce: Callable[[], None] | None) -> None:
        super().__init__()
        self.announce = announce

    def on_start(self, event: Any) -> None:
        if self.announce is not None:
            announce, self.announce = self.announce, None
            announce()
        super().on_start(event)

    @property
    def seconds(self) -> float:
        return float(self.duration) if self.done else 0.0


@contextlib.contextmanager
def on_compilation(announce: Callable[[], None] | None = None) -> Iterator[Watch]:
    """Call `announce` once if anything has to be compiled inside the block.

    The object yielded has ``seconds``: the time spent compiling so far.
    """
    watch = Watch(announce)
    event.register("numba:compile", watch)
    try:
        yield watch
    finally:
        event.unregister("numba:compile", watch)


@kernel
def popcount(x: np.uint64) -> np.uint64:
    """Return the number of ones; LLVM knows this idiom and emits one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


# A search of a large graph waits for memory at every node unless it prefetches the rows of nodes
# further back in its queue: the pointer of a row, then the row, this many places ahead.
FAR, NEAR = 32, 16


def prefetch(array: Any, at: Any) -> None:
    """Prefetch ``array[at]`` of a one-dimensional array; does nothing in plain Python."""


if not numba.config.DISABLE_JIT:

    @intrinsic
    def prefetch(typingctx: Any, array: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
            ask = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
            # 0: to read; 3: keep it in all caches; 1: data, not instructions.
            builder.call(ask, [place, *(ir.Constant(word, k) for k in (0, 3, 1))])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen
