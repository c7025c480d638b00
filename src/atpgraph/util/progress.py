"""Print to a terminal: notes, and the progress of long work.

Library code opens a :func:`stage` and advances it. A stage is shown only inside the block of a
display, which commands and estimators with ``verbose=True`` open.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from atpgraph.util.threads import undisturbed

if TYPE_CHECKING:
    from rich.progress import Progress

_display: ContextVar[Any] = ContextVar("display", default=None)

# Controls, the C1 range that 8-bit terminals obey, and what reverses the direction of writing.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


@dataclass
class Stage:
    """A running stage, and its number on the display that shows it."""

    display: Any
    number: int = 0

    def advance(self, amount: float = 1.0) -> None:
        """Advance the stage by `amount`."""
        if self.display is not None:
            self.display.advance(self.number, amount)


@contextlib.contextmanager
def stage(name: str, total: float | None = None) -> Iterator[Stage]:
    """Run a block as a stage called `name`, of `total` steps if they are known.

    Examples
    --------
    >>> with stage("counting", total=3) as step:
    ...     for _ in range(3):
    ...         step.advance()
    """
    display = _display.get()
    if display is None:
        yield Stage(None)
        return
    number = display.start(name, total)
    try:
        yield Stage(display, number)
    finally:
        display.finish(number)


@contextlib.contextmanager
def report_to(display: Any) -> Iterator[None]:
    """Show the stages of the block on `display`, which has start, advance and finish."""
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


def visible(text: str, keep: str = "") -> str:
    r"""Return `text` with every control character as an escape, except those in `keep`.

    Examples
    --------
    >>> print(visible("a\x1b[31mred\nb"))
    a\x1b[31mred\nb
    >>> print(visible("one\ntwo\x9b", keep="\n"))
    one
    two\x9b
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else ascii(match[0])[1:-1], text)


def say(text: str) -> None:
    """Print a line to standard error; errors of the stream are ignored."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(visible(text, keep="\n"), file=sys.stderr, flush=True)


@dataclass
class _Running:
    name: str
    total: float | None
    started: float
    printed: float
    done: float = 0.0


class LineDisplay:
    """Print stages to standard error: their start, sometimes their progress, and their time.

    Once closed it prints nothing: a thread that Ctrl-C left behind may still begin a stage.
    """

    pause = 10.0  # seconds between two lines

    def __init__(self) -> None:
        self._stages: list[_Running] = []
        self._closed = False

    def start(self, name: str, total: float | None) -> int:
        """Begin a stage and return its number."""
        now = time.perf_counter()
        self._stages.append(_Running(name, total, now, now))
        self.announce(f"atp: {name} …")
        return len(self._stages) - 1

    def advance(self, stage: int, amount: float) -> None:
        """Advance a stage."""
        running, now = self._stages[stage], time.perf_counter()
        running.done += amount
        if running.total and now - running.printed >= self.pause:
            running.printed = now
            self.announce(f"atp: {running.name}: {running.done / running.total:.0%}")

    def finish(self, stage: int) -> None:
        """End a stage."""
        running = self._stages[stage]
        seconds = time.perf_counter() - running.started
        if seconds >= 1:
            self.announce(f"atp: {running.name}: {seconds:.1f} s")

    def announce(self, text: str) -> None:
        """Print a line."""
        if not self._closed:
            say(text)

    def close(self) -> None:
        """Print nothing from now on."""
        self._closed = True


class BarDisplay(LineDisplay):
    """Show stages as bars on a terminal; they disappear when the work is done.

    Bars hide the cursor, so Ctrl-C waits while they are being started or stopped.
    """

    def __init__(self) -> None:
        from rich.console import Console

        super().__init__()
        self.console = Console(file=sys.stderr)
        self._bars: Progress | None = None
        self._lock = threading.RLock()

    def start(self, name: str, total: float | None) -> int:
        """Begin a stage and return its number."""
        with undisturbed(), self._lock:
            if self._closed:
                return 0
            if self._bars is None:
                from rich import progress

                self._bars = progress.Progress(
                    progress.SpinnerColumn(),
                    progress.TextColumn("{task.description}", markup=False),
                    progress.BarColumn(),
                    progress.TimeElapsedColumn(),
                    console=self.console,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self._bars.start()
            return self._bars.add_task(visible(name), total=total)

    def advance(self, stage: Any, amount: float) -> None:
        """Advance a stage."""
        if (bars := self._bars) is not None:
            bars.advance(stage, amount)

    def finish(self, stage: Any) -> None:
        """End a stage."""
        with undisturbed(), self._lock:
            if self._bars is not None and len(self._bars.task_ids) > 1:
                self._bars.remove_task(stage)
            else:
                # Stopped with its last bar on the screen: before 14.3, Rich leaves an empty line
                # where it stops a display that shows nothing.
                self._stop()

    def announce(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text)

    def close(self) -> None:
        """Remove the bars, and show none from now on."""
        with undisturbed(), self._lock:
            super().close()
            self._stop()

    def _stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


@contextlib.contextmanager
def progress_display() -> Iterator[None]:
    """Show the stages of the block, and the compilation of kernels, on standard error.

    A terminal gets bars, anything else lines.
    """
    from atpgraph.util.jit import compilation_note, on_compilation

    display = BarDisplay() if sys.stderr.isatty() else LineDisplay()
    announced = on_compilation(lambda: display.announce(f"atp: {compilation_note()} …"))
    with contextlib.closing(display), announced, report_to(display):
        yield
