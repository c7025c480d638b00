"""How many threads, and running tasks on them."""

from __future__ import annotations

import os

from atpgraph.errors import InputError


def thread_count(n_jobs: int | None) -> int:
    """Threads meant by `n_jobs`: None or −1 is all cores this process may use.

    Examples
    --------
    >>> thread_count(3), thread_count(-1) >= 1
    (3, True)
    """
    if n_jobs is None or n_jobs == -1:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if n_jobs < 1:
        raise InputError(f"n_jobs is {n_jobs}; give a number of threads, or −1 for all cores.")
    return n_jobs
