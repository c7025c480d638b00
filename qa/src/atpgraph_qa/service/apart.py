"""Long work in a copy of this process, so that nobody here waits for it.

A thread would take the interpreter from those who answer questions, a few milliseconds at every
step of theirs. A copy shares the memory until either side changes it, and starts in milliseconds
with everything at hand.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable

_PATIENCE_S = 300.0
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_NICE = 10  # whoever waits for an answer comes first


def run_apart(work: Callable[[], object], patience_s: float = _PATIENCE_S) -> bool:
    """Do some work in a copy of this process; whether it was done.

    False if the copy failed, hung, or cannot be made here: then the caller does it. What the copy
    has in memory is lost. Other threads do not exist in it, so that a lock which one of them held
    stays locked: `work` should only compute and write files.
    """
    if sys.platform != "linux":
        return False  # elsewhere libraries do not survive it
    parent = os.getpid()
    # Threads: see above. For good, since putting filters back would undo what other threads set.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    child = os.fork()
    if not child:
        code = 1
        try:
            _settle_in(parent)
            work()
            code = 0
        finally:
            os._exit(code)  # nothing of the parent's is to be closed, flushed or said here
    return _waited_for(child, patience_s)


def _settle_in(parent: int) -> None:
    """Let go of everything that is the parent's."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for stop in (signal.SIGINT, signal.SIGTERM):  # sent to all of a group; the parent waits for us
        signal.signal(stop, signal.SIG_IGN)
    gc.disable()  # it would touch, and so copy, all memory
    # Connections, the port, and the lock of the one who acts: had we got them, too, they would not
    # be free when the parent ends.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    with contextlib.suppress(OSError):
        os.nice(_NICE)


def _waited_for(child: int, patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.02)
