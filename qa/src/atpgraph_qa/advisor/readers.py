"""Rank in several processes over one copy of the arrays.

The process that holds the advisor is the writer. It writes the arrays of the advisor to a file
once; every reader maps that file, so that all share its pages, and builds the same advisor on it.
Readers are started, never forked: a fork of a process with threads may hang. Events go to all
readers in the order in which the writer applied them, in batches, and since applying events is
deterministic, every reader gives the writer's suggestions to the last bit. Columns that grow do so
in space left behind them in the file; only the pages that a reader writes to become its own.
"""

from __future__ import annotations

import io
import mmap
import pickle
import queue
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import AtpError
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.policies import Policy
from atpgraph_qa.advisor.suggest import Suggestions
from atpgraph_qa.timeline.events import Event
from atpgraph_qa.timeline.growth import PackedLines, lend_space
from atpgraph_qa.timeline.query import Question
from atpgraph_qa.timeline.tables import TextTable

_SPARE = 4096  # bytes at least that an array may grow by


class ReaderError(AtpError):
    """A reader ended; the question can be asked again."""


class Readers:
    """Processes that answer questions.

    Parameters
    ----------
    advisor : Advisor
        What they start from; later events come through :meth:`observe`.
    processes : int
        How many.

    Notes
    -----
    Methods can be called from several threads. A reader that ends unexpectedly is replaced.
    """

    def __init__(self, advisor: Advisor, processes: int = 2) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="atp-readers-")
        file = Path(self._folder.name) / "arrays"
        shared = settled(advisor)
        shared.warm_up()  # indexes and weekly statistics are shared, too
        self._start = file, *share(shared, file)
        self._batches: list[list[Event]] = []
        self._sending = threading.Lock()
        self._readers = [_Reader(self._start) for _ in range(processes)]
        self._idle: queue.Queue[_Reader] = queue.Queue()
        for reader in self._readers:
            reader.ready()
            self._idle.put(reader)

    def observe(self, events: Iterable[Event]) -> None:
        """Let all readers know what happened; later questions are answered knowing it."""
        batch = list(events)
        with self._sending:
            self._batches.append(batch)
            for reader in self._readers:
                reader.send(("observe", batch))

    def ask(self, question: Question, policy: Policy | None = None, *, top: int = 5) -> Suggestions:
        """Return the suggestions of :meth:`Advisor.ask`, made by the next reader that is free."""
        reader = self._idle.get()
        try:
            reader.send(("ask", question, policy, top))
            answer = reader.receive()
        except (EOFError, OSError):
            reader = self._replace(reader)
            raise ReaderError("A process that ranks people ended; ask again.") from None
        finally:
            self._idle.put(reader)
        if isinstance(answer, Exception):
            raise answer
        found: Suggestions = answer
        return found

    def close(self) -> None:
        """End all readers and remove the file."""
        for reader in self._readers:
            reader.end()
        self._folder.cleanup()

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _replace(self, ended: _Reader) -> _Reader:
        ended.end()
        with self._sending:
            reader = _Reader(self._start)
            reader.ready()
            reader.send(("observe", [event for batch in self._batches for event in batch]))
            self._readers[self._readers.index(ended)] = reader
        return reader


class _Reader:
    """One process, as the writer sees it."""

    def __init__(self, start: tuple[Any, ...]) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_read, args=(theirs, *start), daemon=True)
        self.process.start()
        theirs.close()
        self._lock = threading.Lock()  # events and questions may be sent at the same time

    def ready(self) -> None:
        self._pipe.recv()

    def send(self, message: tuple[Any, ...]) -> None:
        with self._lock:
            self._pipe.send(message)

    def receive(self) -> Any:
        return self._pipe.recv()

    def end(self) -> None:
        self._pipe.close()
        self.process.join(2.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _read(pipe: Connection, file: Path, spans: list[tuple[int, int]], stream: bytes) -> None:
    """Answer questions until the writer hangs up."""
    advisor: Advisor = attach(file, spans, stream)
    advisor.warm_up()
    pipe.send("ready")
    while True:
        try:
            kind, *rest = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        if kind == "observe":
            advisor = advisor.observe(*rest)
            continue
        question, policy, top = rest
        try:
            answer: Any = advisor.ask(question, policy, top=top)
        except AtpError as error:
            answer = error
        pipe.send(answer)


def settled(advisor: Advisor) -> Advisor:
    """Return the advisor with all that came since merged into its indexes, texts packed."""
    records = advisor.history.records.settled()
    texts = TextTable(
        *(PackedLines(lines) for lines in (records.texts.titles, records.texts.bodies))
    )
    history = replace(advisor.history, records=replace(records, texts=texts), counts=None)
    return replace(advisor, history=history, fitted=None, stored=None, ignored=())


def share(value: object, file: Path) -> tuple[list[tuple[int, int]], bytes]:
    """Write the arrays of an object to a file; return where they are, and the rest of it.

    The rest is pickled, for a process of our own; it is never written to a file.
    """
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    spans = []
    with file.open("wb") as out:
        for buffer in buffers:
            raw = buffer.raw()
            start = -(-out.tell() // mmap.PAGESIZE) * mmap.PAGESIZE
            out.seek(start)
            out.write(raw)
            spans.append((start, raw.nbytes))
            out.seek(start + raw.nbytes + raw.nbytes // 4 + _SPARE)  # a hole: it takes no space
        out.truncate(max(out.tell(), 1))
    return spans, stream


def attach(file: Path, spans: list[tuple[int, int]], stream: bytes) -> Any:
    """Return the object that :func:`share` wrote; its arrays are the pages of the file."""
    with file.open("rb") as opened:
        whole = np.frombuffer(
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY), dtype=np.uint8
        )
    ends = [start for start, _ in spans[1:]] + [len(whole)]
    for (start, _), end in zip(spans, ends, strict=True):
        lend_space(whole[start:end])
    views = [whole[start : start + size] for start, size in spans]
    return pickle.load(io.BytesIO(stream), buffers=views)


def private_mb(process: int) -> float:
    """Return the memory that only this process has, in megabytes (Linux)."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    kept = (line.split() for line in lines if line.startswith("Private_"))
    return sum(int(parts[1]) for parts in kept) / 1024
