"""Memory: what the user allows, what the machine has free, and what a block of code took."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from atpgraph.errors import InputError
from atpgraph.util.checks import real_number

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_ENOUGH = 2**62  # a budget that no machine has
_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def budget_bytes(memory: str | float | None) -> int:
    """The number of bytes meant by `memory`; None is half of what is free now.

    Examples
    --------
    >>> budget_bytes("4GB"), budget_bytes("1.5 MiB"), budget_bytes(1000)
    (4000000000, 1572864, 1000)
    """
    if memory is None:
        return available_bytes() // 2
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", memory.lower())
        if match is None:
            raise InputError(f"Cannot read the memory budget {memory!r}; write '4GB' or '512MiB'.")
        unit = match[2] or ""
        amount = float(match[1]) * (_UNITS | _BINARY_UNITS)[unit]
    else:
        amount = real_number("The memory budget", memory)
    if amount < 1:
        raise InputError(f"The memory budget is {memory!r}; it must be at least one byte.")
    return int(min(amount, _ENOUGH))


def available_bytes() -> int:
    """Memory that can be taken without swapping, within the limits of the container."""
    free = _meminfo_available()
    for limit_file, used_file in _CGROUP_FILES:
        limit, used = _number_in(limit_file), _number_in(used_file)
        if limit is not None and used is not None:
            free = min(free, max(limit - used, 0))
    return free


def peak_megabytes() -> float:
    """Most memory this process has held at a time, in MB; 0 where the system does not tell."""
    return (_high_water_mark() or 0) / 1e6


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
    before = _status_field("VmRSS") if resettable else _high_water_mark()
    try:
        yield peak
    finally:
        after = _high_water_mark()
        if before is not None and after is not None:
            peak.bytes = max(after - before, 0)


def human_bytes(amount: float) -> str:
    """`amount` in the unit that reads best.

    Examples
    --------
    >>> human_bytes(2_340_000_000)
    '2.3 GB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def _meminfo_available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 4 * 2**30


def _number_in(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such controller, or "max"
        return None


def _return_free_memory() -> None:
    """Ask the C library to hand back what earlier work freed, which would hide new use."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _reset_mark() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _high_water_mark() -> int | None:
    """Most resident bytes so far."""
    # Not getrusage on Linux: its maximum is handed down from the process that started this one.
    mark = _status_field("VmHWM")
    if mark is not None:
        return mark
    try:
        import resource
    except ImportError:  # not a POSIX system
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def _status_field(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None
