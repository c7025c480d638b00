"""Rank in several processes over one copy of the arrays.

The process that holds the advisor is the writer: it applies events, in batches, and decides whom to
ask. Readers compute scores and reasons. The writer writes the arrays of its advisor to a file once;
every reader maps that file, so that all share its pages, and builds the same advisor on it. Readers
are started, never forked: a fork of a process with threads may hang. Whatever changes the writer's
advisor is sent to all readers in that order, and since it is deterministic, every reader gives the
writer's scores to the last bit. Columns that grow do so in space left behind them in the file; only
the pages that a reader writes to become its own.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import pickle
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.reasons import Reason
from atpgraph_qa.advisor.suggest import Ranker
from atpgraph_qa.timeline.growth import TextLines, lend_space
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.tables import TextTable

_SPARE = 4096  # bytes at least that an array may grow by


class Readers:
    """Processes that rank for an advisor.

    Parameters
    ----------
    advisor : Advisor
        What they start from; changes come through :meth:`change`.
    processes : int
        How many.

    Notes
    -----
    Methods can be called from several threads. A reader that ends unexpectedly is replaced, and
    what it was asked for is computed here.

    Examples
    --------
    ::

        with Readers(advisor, processes=2) as readers:
            with readers.ranker(advisor) as ranker:
                found = advisor.ask(question, policy, ranker=ranker)
            later = advisor.observe(events)
            readers.change(later, Advisor.observe, events)
    """

    def __init__(self, advisor: Advisor, processes: int = 2) -> None:
        self._changing = threading.Lock()
        self._idle: queue.SimpleQueue[_Reader] = queue.SimpleQueue()
        self._readers: list[_Reader] = []
        self._advisor = advisor
        self._start(processes)

    def change(self, after: Advisor, function: Callable[..., Advisor], *arguments: Any) -> None:
        """Let all readers make the change ``after = function(before, *arguments)``.

        Parameters
        ----------
        after : Advisor
            What the change gave the writer.
        function : callable
            At the top of a module, or a method of :class:`Advisor`.
        """
        with self._changing:
            self._advisor = after
            for reader in self._readers:
                with contextlib.suppress(OSError):  # it is replaced when it is next asked
                    reader.send("change", function, arguments)

    def restart(self, advisor: Advisor) -> None:
        """Start again from an advisor that has little to do with the one before."""
        with self._changing:
            self._advisor = advisor
            waiting = [self._idle.get() for _ in self._readers]  # until nobody uses one
            for reader in waiting:
                reader.end()
            self._start(len(waiting))

    @contextlib.contextmanager
    def ranker(self, advisor: Advisor) -> Iterator[Ranker]:
        """Give the next reader that is free, for one question."""
        reader = self._idle.get()
        used = _Remote(reader, advisor)
        try:
            yield used
        finally:
            self._idle.put(self._replaced(reader) if used.failed else reader)

    def close(self) -> None:
        """End all readers."""
        with self._changing:
            for reader in self._readers:
                reader.end()

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, count: int) -> None:
        with tempfile.TemporaryDirectory(prefix="atp-readers-") as folder:
            file = Path(folder) / "arrays"
            shared = settled(self._advisor)
            shared.warm_up()  # indexes and weekly statistics are shared, too
            start = file, *share(shared, file)
            self._readers = [_Reader(start) for _ in range(count)]
            for reader in self._readers:
                reader.receive()  # it has mapped the file, whose name is not needed any more
                self._idle.put(reader)

    def _replaced(self, ended: _Reader) -> _Reader:
        with self._changing, tempfile.TemporaryDirectory(prefix="atp-readers-") as folder:
            file = Path(folder) / "arrays"
            ended.end()
            reader = _Reader((file, *share(settled(self._advisor), file)))
            reader.receive()
            self._readers[self._readers.index(ended)] = reader
        return reader


class _Remote:
    """A reader that serves one question; if it fails, this process does the work."""

    def __init__(self, reader: _Reader, advisor: Advisor) -> None:
        self._reader, self._local, self.failed = reader, advisor.ranker, False

    def scores(self, query: Query, codes: Int64Array) -> Float64Array:
        people = query.history.users[codes]
        found: Float64Array | None = self._asked("scores", query.question, query.asked_ms, people)
        return self._local.scores(query, codes) if found is None else found

    def reasons(self, query: Query, users: Sequence[int]) -> list[tuple[Reason, ...]]:
        found: list[tuple[Reason, ...]] | None = self._asked("reasons", users)
        return self._local.reasons(query, users) if found is None else found

    def _asked(self, *message: Any) -> Any:
        if not self.failed:
            try:
                self._reader.send(*message)
                return self._reader.receive()
            except (EOFError, OSError):
                self.failed = True
        return None


class _Reader:
    """One process, as the writer sees it."""

    def __init__(self, start: tuple[Any, ...]) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_read, args=(theirs, *start), daemon=True)
        self.process.start()
        theirs.close()
        self._lock = threading.Lock()  # changes and questions may be sent at the same time

    def send(self, *message: Any) -> None:
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
        self.process.close()


def _read(pipe: Connection, file: Path, spans: list[tuple[int, int]], stream: bytes) -> None:
    """Answer questions until the writer hangs up, or something goes wrong."""
    advisor: Advisor = attach(file, spans, stream)
    advisor.warm_up()
    pipe.send("ready")
    query = Query(advisor.history, 0)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            match pipe.recv():
                case "change", function, arguments:
                    week = advisor.week_ms
                    advisor = function(advisor, *arguments)
                    if advisor.week_ms != week:
                        advisor.warm_up()
                case "scores", question, asked_ms, people:
                    query = Query(advisor.open_history, asked_ms, question)
                    pipe.send(advisor.ranker.scores(query, query.history.codes(people)))
                case "reasons", users:
                    pipe.send(advisor.ranker.reasons(query, users))


def settled(advisor: Advisor) -> Advisor:
    """Return the advisor with all that came since merged into its indexes, texts packed."""
    records = advisor.history.records.settled()
    texts = TextTable(TextLines.of(records.texts.titles), TextLines.of(records.texts.bodies))
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
