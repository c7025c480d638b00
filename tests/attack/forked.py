"""Run a command in a forked child: crashes, hangs and kills cost milliseconds and hurt nobody.

The parent has imported and compiled everything once (:func:`settle`); each child starts from there.
A child may also run many commands in turn (:func:`suspects`), several times faster.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HANG_SECONDS = 20.0
MEMORY_OVER = 1 << 30
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OPERATIONS = {
    "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate", "os.link",
    "os.symlink", "shutil.rmtree", "shutil.move",
}  # fmt: skip
_RELATIVE = {"os.remove", "os.rmdir", "os.mkdir", "os.chmod"}  # their last argument: dir_fd


@dataclass(frozen=True)
class Outcome:
    """How a command ended: a negative code is the signal that killed it."""

    code: int
    stdout: str
    stderr: str
    operations: int
    hung: bool = False

    def complaint(self) -> str:
        """What a user could rightly complain about, its kind first; empty if nothing."""
        said = self.stderr + self.stdout
        if self.hung:
            return f"hang: more than {HANG_SECONDS:g} s"
        if "MemoryError" in said or "Unable to allocate" in said:
            return f"memory: {self.stderr[-300:]}"
        if "Traceback" in said:
            return f"traceback: {self.stderr[-400:]}"
        if "a bug in atpgraph" in said:
            return f"bug: {self.stderr[-400:]}"
        if self.code not in (0, 2, 3):
            return f"crash: exit code {self.code}: {self.stderr[-300:]}"
        lines = [line for line in self.stderr.splitlines() if line.startswith("atp: error:")]
        if self.code and len(lines) != 1:
            return f"sentence: {len(lines)} of them: {self.stderr[-300:]}"
        if any(unprintable(character) for character in said):
            return "terminal: a control character reaches it"
        return ""


def unprintable(character: str) -> bool:
    return (ord(character) < 32 and character not in "\n\t\r") or 127 <= ord(character) < 160


def run(
    *arguments: object, within: Path | None = None, kill_at: int = 0, setup: Callable[[], None]
    = lambda: None,
) -> Outcome:  # fmt: skip
    """Run ``atp ARGUMENTS`` in a child.

    Parameters
    ----------
    within : path, optional
        Count the file operations below this folder.
    kill_at : int
        SIGKILL the child just before this operation (from 1); 0 lets it live.
    setup : callable
        Runs in the child before the command.
    """
    return forked(lambda: command(list(map(str, arguments))), within, kill_at, setup)


def command(arguments: Sequence[str]) -> int:
    """What the console script does, as a function that returns the exit code."""
    from atpgraph.cli import main

    sys.argv = ["atp", *arguments]
    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def here(*arguments: object) -> Outcome:
    """Run ``atp ARGUMENTS`` in this process, which is a child for many."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        try:
            code = command(list(map(str, arguments)))
        except BaseException:
            code = 70
            sys.stderr.write(traceback.format_exc())
        sys.stdout.flush()
        sys.stderr.flush()
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode("utf-8", "replace"))
    return Outcome(code, *said, operations=0)


def suspects(cases: Sequence[int], complaint: Callable[[int], str]) -> Iterator[int]:
    """The cases that have a complaint, or end the child in which they run one after the other.

    Each is to be tried again in a child of its own: what counts is what it does there.
    """
    left = list(cases)
    while left:
        mine, theirs = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _take_turns(left, complaint, theirs)
        os.close(theirs)
        done = 0
        for well in _answers(child, mine):
            if not well:
                yield left[done]
            done += 1
        os.close(mine)
        os.waitpid(child, 0)
        if done < len(left):  # the child died or hung in this one
            yield left[done]
            done += 1
        del left[:done]


def _take_turns(cases: Sequence[int], complaint: Callable[[int], str], end: int) -> None:
    try:
        _be_a_child(os.open(os.devnull, os.O_WRONLY), os.open(os.devnull, os.O_WRONLY))
        for case in cases:
            os.write(end, b"-" if complaint(case) else b"+")
    finally:
        os._exit(0)


def _answers(child: int, end: int) -> Iterator[bool]:
    """Whether each case went well, until the child ends or hangs; then it is killed."""
    while True:
        start = time.monotonic()
        while not select.select([end], [], [], 1.0)[0]:
            spent = time.monotonic() - start
            if spent > HANG_SECONDS and spent - _queued(child) > HANG_SECONDS:
                os.kill(child, signal.SIGKILL)
                return
        answers = os.read(end, 1)
        if not answers:
            return
        yield answers == b"+"


_built: Any = None


def settle() -> None:
    """Do once, before many forks, what every child would do again.

    Typer takes 40 ms to make its commands and 180 ms to load what a refusal of its own is drawn
    with; and what is frozen is not touched by a child's garbage collector, so that its pages stay
    shared.
    """
    global _built
    from typer.main import get_command

    from atpgraph.cli._app import app

    _built = get_command(app)
    with contextlib.redirect_stderr(io.StringIO()):
        command(["embed", "--dim", "none"])
    freeze()


def freeze() -> None:
    """Collect garbage, and let the collector leave alone what is in use now."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def forked(
    work: Callable[[], int],
    within: Path | None = None,
    kill_at: int = 0,
    setup: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run `work` in a child and collect what it wrote."""
    pipes = [os.pipe() for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the parent are idle
        child = os.fork()
    if child == 0:
        _live_and_die(work, [end for _, end in pipes], within, kill_at, setup)
    for _, end in pipes:
        os.close(end)
    return _collect(child, [end for end, _ in pipes])


def _live_and_die(
    work: Callable[[], int],
    ends: list[int],
    within: Path | None,
    kill_at: int,
    setup: Callable[[], None],
) -> None:
    code = 70
    try:
        _be_a_child(*ends[:2])
        setup()
        counter = _Counter(within, kill_at)
        sys.addaudithook(counter)
        code = work()
        counter.active = False
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(ends[2], str(counter.count).encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _be_a_child(stdout: int, stderr: int) -> None:
    """Streams, signals and memory as a command of its own would have them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_OVER, held + MEMORY_OVER))
    if _built is not None:
        from atpgraph.cli import _app

        _app.app = _built


def path_of(event: str, arguments: tuple[Any, ...]) -> str:
    """Return the absolute path that a file operation, an audit event, is about; "" if unknown."""
    name = arguments[0]
    if not isinstance(name, (str, bytes, os.PathLike)):
        return ""
    path = os.fsdecode(name)
    if event in _RELATIVE and arguments[-1] >= 0:  # shutil.rmtree works relative to open folders
        with contextlib.suppress(OSError):  # a system without /proc
            path = os.path.join(os.readlink(f"/proc/self/fd/{arguments[-1]}"), path)
    return os.path.abspath(path)


class _Counter:
    """An audit hook that counts file operations, and dies before one of them."""

    def __init__(self, within: Path | None, kill_at: int) -> None:
        self.root = None if within is None else os.fspath(within) + os.sep
        self.kill_at = kill_at
        self.count = 0
        self.active = self.root is not None

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            mode, flags = arguments[1], arguments[2]
            writes = bool(flags & _WRITES) if mode is None else not set("wax+").isdisjoint(mode)
            if not writes:
                return
        elif event not in _OPERATIONS:
            return
        if self.root is None or not path_of(event, arguments).startswith(self.root):
            return
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def _queued(child: int) -> float:
    """Seconds that a process was ready to run and others had the processor: nobody hangs then."""
    try:
        tasks = Path(f"/proc/{child}/task").iterdir()
        return max(int((task / "schedstat").read_text().split()[1]) for task in tasks) / 1e9
    except (OSError, ValueError, IndexError):  # it has just ended, or the system does not tell
        return 0.0


def _collect(child: int, ends: list[int]) -> Outcome:
    said: dict[int, bytes] = dict.fromkeys(ends, b"")
    waiting, start, hung = set(ends), time.monotonic(), False
    while waiting:
        spent = time.monotonic() - start
        if not hung and spent > HANG_SECONDS and spent - _queued(child) > HANG_SECONDS:
            hung = True
            os.kill(child, signal.SIGKILL)
        for end in select.select(list(waiting), [], [], 1.0)[0]:
            part = os.read(end, 1 << 16)
            said[end] += part
            if not part:
                waiting.discard(end)
    for end in ends:
        os.close(end)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    out, err, count = (said[end].decode("utf-8", "replace") for end in ends)
    return Outcome(code, out, err, int(count or 0), hung)
