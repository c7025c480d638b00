"""Peak memory of a block of code, as the operating system counts it."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class PeakMemory:
    """Filled in when the block of :func:`peak_memory` ends."""

    bytes: int | None = None


@contextlib.contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Measure how far the resident memory rises above where it stood when the block began.

    Native memory counts too (BLAS, compiled kernels), which Python's own tracing would miss. On
    Linux the kernel's high-water mark is reset first. On other systems the mark cannot be reset,
    so the figure is the growth of the mark of the whole process: 0 if an earlier step rose higher.
    Where the system tells nothing, ``bytes`` stays None.

    Examples
    --------
    >>> with peak_memory() as peak:
    ...     block = bytearray(50_000_000)
    >>> peak.bytes is None or peak.bytes < 1_000_000_000
    True
    """
    peak = PeakMemory()
    _return_free_memory()
    resettable = _reset_mark()
    before = _resident() if resettable else _mark()
    try:
        yield peak
    finally:
        after = _mark()
        if before is not None and after is not None:
            peak.bytes = max(after - before, 0)


def _return_free_memory() -> None:
    """Ask the C library to hand back what earlier work freed, which would hide new use."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _reset_mark() -> bool:
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def _resident() -> int | None:
    return _status_field("VmRSS")


def _mark() -> int | None:
    found = _status_field("VmHWM")
    if found is not None:
        return found
    try:
        import resource
    except ImportError:  # Windows
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def _status_field(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return None
