"""Run work on threads so that Ctrl-C can end it.

Python handles a signal in the main thread, never inside compiled code. So long work runs on other
threads while the main thread waits. When the wait is interrupted, tasks that have not begun are
dropped, and running work ends at its next :func:`checkpoint`; the thread of a kernel without
checkpoints ends after the kernel, or with the process.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from atpgraph.util.checks import whole_number

MOST = 1024  # more only cost memory

T = TypeVar("T")
R = TypeVar("R")

_pool = threading.local()


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads: None or −1 is all cores this process may use.

    Examples
    --------
    >>> thread_count(3), thread_count(-1) >= 1
    (3, True)
    """
    if n_jobs is None or n_jobs == -1:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    return whole_number("n_jobs, the number of threads,", n_jobs, most=MOST)


class Workers:
    """Threads for the tasks of a block, which waits for them unless it ends with an exception.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     list(workers.map(str.upper, ["a", "b", "c"]))
    ['A', 'B', 'C']
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)
        self.given_up = threading.Event()
        self._tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._started: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.given_up.set()
        for _ in self._started:
            self._tasks.put(None)
        if kind is None:
            for thread in self._started:
                thread.join()

    def submit(self, work: Callable[..., R], *arguments: Any) -> Future[R]:
        """Start `work` and return the future of its result."""
        future: Future[R] = Future()
        context = contextvars.copy_context()  # who shows progress, how NumPy treats errors
        self._tasks.put((future, lambda: context.run(work, *arguments)))
        if len(self._started) < self.threads:
            # A daemon, so that the process can end while the thread is inside a kernel.
            thread = threading.Thread(target=self._run, daemon=True)
            self._started.append(thread)
            thread.start()
        return future

    def map(self, work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results of `work` for every task, in the order of the tasks."""
        futures = [self.submit(work, task) for task in tasks][::-1]
        while futures:
            yield result_of(futures.pop())

    def both(self, work: Callable[[int, Workers], R]) -> list[R]:
        """Return the results of `work` for 0 and 1, run at once with half the threads each."""

        def one(at: int) -> R:
            with Workers(max(self.threads // 2, 1)) as some:
                return work(at, some)

        return list(self.map(one, (0, 1)))

    def _run(self) -> None:
        _pool.given_up = self.given_up
        while (item := self._tasks.get()) is not None and not self.given_up.is_set():
            future, work = item
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)


def result_of(future: Future[R]) -> R:
    """Wait for a result; wake now and then for a signal that another thread received."""
    while not future.done():
        checkpoint()
        wait([future], timeout=0.2)
    return future.result()


class GivenUp(BaseException):
    """Raised in a worker to cancel a task whose result is no longer needed."""


def checkpoint() -> None:
    """Cancel the running task here if its result is no longer needed."""
    given_up = getattr(_pool, "given_up", None)
    if given_up is not None and given_up.is_set():
        raise GivenUp


def interruptible(work: Callable[..., R], *arguments: Any) -> R:
    """Run `work` and return its result; Ctrl-C need not wait for its end.

    Examples
    --------
    >>> interruptible(divmod, 17, 5)
    (3, 2)
    """
    if threading.current_thread() is not threading.main_thread():
        return work(*arguments)
    with Workers(1) as workers:
        return result_of(workers.submit(work, *arguments))


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Postpone Ctrl-C until the end of the block."""
    handler = signal.getsignal(signal.SIGINT)
    # Other threads never see it, and where it is ignored there is nothing to postpone.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *arguments: pressed.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            handler(*pressed[0])
