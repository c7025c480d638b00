"""Reporters that show stages to a person: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atpgraph._progress import report_to

if TYPE_CHECKING:
    from rich.progress import Progress


class LogReporter:
    """Stages as lines, for files and pipes: a start, a sign of life now and then, an end."""

    pause = 10.0  # seconds between signs of life

    def __init__(self) -> None:
        self.stages: list[_Running] = []

    def start(self, name: str, total: float | None) -> int:
        now = time.perf_counter()
        self.stages.append(_Running(name, total, now, now))
        say(f"atp: {name} …")
        return len(self.stages) - 1

    def advance(self, stage: int, amount: float) -> None:
        running = self.stages[stage]
        running.done += amount
        now = time.perf_counter()
        if running.total and now - running.spoken >= self.pause:
            running.spoken = now
            say(f"atp: {running.name}: {running.done / running.total:.0%}")

    def finish(self, stage: int) -> None:
        running = self.stages[stage]
        seconds = time.perf_counter() - running.started
        if seconds >= 1:
            say(f"atp: {running.name}: {seconds:.1f} s")


@dataclass
class _Running:
    name: str
    total: float | None
    started: float
    spoken: float
    done: float = 0.0


class BarReporter:
    """Stages as bars on a terminal; they disappear when the work is done."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(file=sys.stderr)
        self._progress: Progress | None = None

    def start(self, name: str, total: float | None) -> int:
        if self._progress is None:
            self._progress = self._display()
            self._progress.start()
        return self._progress.add_task(name, total=total)

    def advance(self, stage: int, amount: float) -> None:
        from rich.progress import TaskID

        if self._progress is not None:
            self._progress.advance(TaskID(stage), amount)

    def finish(self, stage: int) -> None:
        from rich.progress import TaskID

        if self._progress is None:
            return
        if len(self._progress.task_ids) > 1:
            self._progress.remove_task(TaskID(stage))
        else:
            # Stopped with its last bar on the screen: before 14.3, Rich leaves an empty line
            # where it stops a display that shows nothing.
            self._progress.stop()
            self._progress = None

    def _display(self) -> Progress:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )


def say(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Show the stages of the block on standard error, and say so if kernels must be compiled."""
    from atpgraph._jit import on_compilation

    announcement = "atp: compiling kernels, once per installation …"
    if sys.stderr.isatty():
        bars = BarReporter()
        with on_compilation(lambda: bars.console.print(announcement)), report_to(bars):
            yield
    else:
        with on_compilation(lambda: say(announcement)), report_to(LogReporter()):
            yield
