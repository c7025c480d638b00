"""Measure memory: the budget, the free memory, and the peak of a block of code.

psutil would not help much: it knows neither the limit of a container nor the peak of a block.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from atpgraph.errors import InputError
from atpgraph.util.checks import real_number

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_ENOUGH = 2**62  # a budget that no machine has
_CGROUPS = (  # of versions 2 and 1: limit and use of a container
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def budget_bytes(memory: str | float | None) -> int:
    """Return the number of bytes that `memory` means; None is half of the memory that is free now.

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
        amount = float(match[1]) * _UNITS[match[2] or ""]
    else:
        amount = real_number("The memory budget", memory)
    if amount < 1:
        raise InputError(f"The memory budget is {memory!r}; it must be at least one byte.")
    return int(min(amount, _ENOUGH))


def available_bytes() -> int:
    """Return the memory that is free without swapping, within the limits of the container."""
    free = _field("/proc/meminfo", "MemAvailable")
    if free is None:
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (AttributeError, ValueError, OSError):  # not a POSIX system
            free = 4 * 2**30
    for files in _CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # no such controller, or no limit: "max"
            limit, used = (int(Path(file).read_text(encoding="ascii")) for file in files)
            free = min(free, max(limit - used, 0))
    return free


def peak_megabytes() -> float:
    """Return the peak memory of this process in MB; 0 if the system does not report it."""
    return (_high_water_mark() or 0) / 1e6


@contextlib.contextmanager
def peak_memory() -> Iterator[SimpleNamespace]:
    """Measure how far the resident memory rises above its size at the start of the block.

    The object yielded gets ``bytes`` when the block ends.

    Native memory counts too (BLAS, compiled kernels). On Linux the kernel's high-water mark is
    reset first. Elsewhere the figure is the growth of the mark of the whole process: 0 if an
    earlier step rose higher. If the system reports neither, ``bytes`` stays None.

    Examples
    --------
    >>> with peak_memory() as peak:
    ...     block = bytearray(50_000_000)
    >>> peak.bytes is None or peak.bytes < 1_000_000_000
    True
    """
    peak = SimpleNamespace(bytes=None)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # what earlier work freed would hide new use
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _field("/proc/self/status", "VmRSS")
    except OSError:
        before = _high_water_mark()
    try:
        yield peak
    finally:
        after = _high_water_mark()
        if before is not None and after is not None:
            peak.bytes = max(after - before, 0)


def human_bytes(amount: float) -> str:
    """Return `amount` as text, in a suitable unit.

    Examples
    --------
    >>> human_bytes(2_340_000_000)
    '2.3 GB'
    """
    if amount < 1000:
        return f"{amount:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 1000:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:,.1f} TB"


def _high_water_mark() -> int | None:
    """Return the largest number of resident bytes so far."""
    # Not getrusage on Linux: its maximum is handed down from the process that started this one.
    mark = _field("/proc/self/status", "VmHWM")
    if mark is not None:
        return mark
    try:
        import resource
    except ImportError:  # not a POSIX system
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def _field(file: str, name: str) -> int | None:
    """Return the bytes of a field of a file under ``/proc``, which counts in kilobytes."""
    try:
        text = Path(file).read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)
    return None if found is None else int(found[1]) * 1024
