"""Show stages: a bar on a terminal, plain lines elsewhere.

A bar hides the cursor, so its end must not depend on how the work ends: the outermost context,
:class:`Shown`, closes it, and Ctrl-C waits while it is being started or stopped. After that nothing
is shown any more: a thread that Ctrl-C left behind may still begin a stage.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atpgraph.util.interrupts import undisturbed
from atpgraph.util.progress import report_to
from atpgraph.util.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress


def say(text: str) -> None:
    """Print a line to standard error; if nobody can read it there, the work goes on."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(visible(text, keep="\n"), file=sys.stderr, flush=True)


@dataclass
class _Running:
    name: str
    total: float | None
    started: float
    spoken: float
    done: float = 0.0


class LogReporter:
    """Print stages as lines, for files and pipes: a start, the share done now and then, an end."""

    pause = 10.0  # seconds between two lines

    def __init__(self) -> None:
        self.stages: list[_Running] = []
        self._closed = False

    def start(self, name: str, total: float | None) -> int:
        now = time.perf_counter()
        self.stages.append(_Running(name, total, now, now))
        self.announce(f"atp: {name} …")
        return len(self.stages) - 1

    def advance(self, stage: int, amount: float) -> None:
        running, now = self.stages[stage], time.perf_counter()
        running.done += amount
        if running.total and now - running.spoken >= self.pause:
            running.spoken = now
            self.announce(f"atp: {running.name}: {running.done / running.total:.0%}")

    def finish(self, stage: int) -> None:
        running = self.stages[stage]
        seconds = time.perf_counter() - running.started
        if seconds >= 1:
            self.announce(f"atp: {running.name}: {seconds:.1f} s")

    def announce(self, text: str) -> None:
        if not self._closed:
            say(text)

    def close(self) -> None:
        self._closed = True


class BarReporter:
    """Show stages as bars on a terminal; they disappear when the work is done."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(file=sys.stderr)
        self._progress: Progress | None = None
        self._lock, self._closed = threading.RLock(), False

    def start(self, name: str, total: float | None) -> int:
        with undisturbed(), self._lock:
            if self._closed:
                return 0
            if self._progress is None:
                self._progress = self._display()
                self._progress.start()
            return self._progress.add_task(visible(name), total=total)

    def advance(self, stage: int, amount: float) -> None:
        from rich.progress import TaskID

        if (progress := self._progress) is not None:
            progress.advance(TaskID(stage), amount)

    def finish(self, stage: int) -> None:
        from rich.progress import TaskID

        with undisturbed(), self._lock:
            if self._progress is not None and len(self._progress.task_ids) > 1:
                self._progress.remove_task(TaskID(stage))
            else:
                # Stopped with its last bar on the screen: before 14.3, Rich leaves an empty line
                # where it stops a display that shows nothing.
                self._stop()

    def announce(self, text: str) -> None:
        self.console.print(text)

    def close(self) -> None:
        with undisturbed(), self._lock:
            self._closed = True
            self._stop()

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _display(self) -> Progress:
        from rich import progress

        return progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.TimeElapsedColumn(),
            console=self.console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )


class Shown:
    """Show the stages of a block on standard error, and announce a compilation of kernels."""

    def __init__(self) -> None:
        self._reporter = BarReporter() if sys.stderr.isatty() else LogReporter()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> None:
        from atpgraph.util.jit import compilation_note, on_compilation

        announce = self._reporter.announce
        self._stack.callback(self.close)
        self._stack.enter_context(on_compilation(lambda: announce(f"atp: {compilation_note()} …")))
        self._stack.enter_context(report_to(self._reporter))

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def close(self) -> None:
        """Take the display off the screen; done by leaving the block, harmless after that."""
        self._reporter.close()
