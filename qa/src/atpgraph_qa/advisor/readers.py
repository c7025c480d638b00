"""Rank in several processes over one copy of the arrays.

The process that holds the advisor is the writer: it applies events, in batches, and decides whom to
ask. Readers compute scores and reasons. The writer writes the arrays of its advisor to a file once;
every reader maps that file, so that all share its pages, and builds the same advisor on it. Readers
are separate programs, never forks: a fork of a process with threads may hang. Every change of the
writer's advisor is sent to all readers in the same order; since changes are deterministic, every
reader computes the writer's scores to the last bit. Columns grow into space left behind them in the
file; only the pages that a reader writes to become its own.

Messages are JSON, with the bytes of arrays behind it; nothing is pickled.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import csc_matrix

from atpgraph.util.arrays import AnyArray, Float64Array, Int64Array
from atpgraph.util.files import temporary_folder
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.reasons import Reason
from atpgraph_qa.advisor.suggest import Ranker
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.weekly import WEEKS, Posts, WeeklyStats, weekly_stats
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Memo
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.tables import Buffer

_SPARE = 4096  # bytes at least that an array may grow by
_PIPE_BYTES = 1 << 20  # a message of 100,000 numbers, so that nobody waits for its other half
_INDEXES = ("by_question", "by_owner", "by_asker", "by_tag")


class Readers:
    """Rank in separate processes for an advisor.

    Parameters
    ----------
    advisor : Advisor
        The advisor to start from; changes come through :meth:`change`.
    processes : int
        Number of readers.

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
        self._processes = processes
        self.restart(advisor)

    def change(self, after: Advisor, function: Callable[..., Advisor], *arguments: Any) -> None:
        """Let all readers make the change ``after = function(before, *arguments)``.

        Parameters
        ----------
        after : Advisor
            The writer's advisor after the change.
        function : callable
            A top-level function of this package, or a method of :class:`Advisor`.
        *arguments
            Events, newcomers, routers, arrays of int64, or sequences of these.
        """
        if after.week_ms != self._advisor.week_ms:
            # Statistics of a week take seconds: computed once, here, while the readers go on.
            self.restart(after)
            return
        with self._changing:
            self._advisor = after
            for reader in self._readers:
                with contextlib.suppress(OSError):  # it is replaced when it is next asked
                    reader.send("change", name_of(function), *arguments)

    def started(self, advisor: Advisor) -> list[_Reader]:
        """Return new readers for :meth:`restart`, while the old ones keep working."""
        return _made(advisor, self._processes)

    def restart(self, advisor: Advisor, started: list[_Reader] | None = None) -> None:
        """Restart from an advisor; questions go to the old readers until the new ones are ready.

        `started` are new readers with the data of the advisor.
        """
        with self._changing:
            self._advisor = advisor
            self._readers = self.started(advisor) if started is None else started
            for reader in self._readers:
                self._idle.put(reader)

    @contextlib.contextmanager
    def ranker(self, advisor: Advisor) -> Iterator[Ranker]:
        """Yield the next free reader, for one question."""
        reader = self._idle.get()
        while reader not in self._readers:  # one from before a restart
            reader.end()
            reader = self._idle.get()
        used = _Remote(reader, advisor)
        try:
            yield used
        finally:
            with contextlib.suppress(EOFError, OSError):  # it fails again, and this process works
                reader = self._replaced(reader) if used.failed else reader
            self._idle.put(reader)

    def close(self) -> None:
        """End all readers."""
        with self._changing, contextlib.suppress(queue.Empty):
            for reader in self._readers:
                reader.end()
            while True:
                self._idle.get_nowait().end()

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _replaced(self, ended: _Reader) -> _Reader:
        with self._changing:
            if ended in self._readers:
                ended.end()
                (reader,) = _made(self._advisor, 1)
                self._readers[self._readers.index(ended)] = ended = reader
        return ended


class _Remote(Ranker):
    """A reader that answers one question; if it fails, this process does the work."""

    def __init__(self, reader: _Reader, advisor: Advisor) -> None:
        super().__init__(advisor.router, advisor.hierarchy)
        self._reader, self.failed = reader, False

    def scores(self, query: Query, codes: Int64Array) -> Float64Array:
        question, people = replace(query.question, at=None), query.history.users[codes]
        found: Float64Array | None = self._asked("scores", question, query.asked_ms, people)
        return super().scores(query, codes) if found is None else found

    def reasons(self, query: Query, users: Sequence[int]) -> list[tuple[Reason, ...]]:
        found = self._asked("reasons", list(users))
        return super().reasons(query, users) if found is None else [*map(tuple, found)]

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

    def __init__(self, folder: str) -> None:
        command = [sys.executable, "-m", "atpgraph_qa.advisor.readers", folder]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pipesize=_PIPE_BYTES
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._answers = self.process.stdin, self.process.stdout
        self._lock = threading.Lock()  # changes and questions may be sent at the same time

    def send(self, *message: Any) -> None:
        with self._lock:
            send(self._requests, message)

    def catch_up(self, changes: Iterable[Sequence[Any]]) -> bool:
        """Make changes, each a function of an advisor and its other arguments, and warm up.

        Returns False if the process has ended.
        """
        try:
            for function, *arguments in changes:
                self.send("change", name_of(function), *arguments)
            self.send("warm up")
            return bool(self.receive())
        except (EOFError, OSError):
            return False

    def receive(self) -> Any:
        return receive(self._answers)

    def end(self) -> None:
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _made(advisor: Advisor, count: int) -> list[_Reader]:
    with temporary_folder("atp-readers") as folder:  # it has titles, so nothing may stay
        share(advisor, folder)
        made = [_Reader(str(folder)) for _ in range(count)]
        try:
            for reader in made:
                reader.receive()  # it has mapped the file, whose name is not needed any more
        except EOFError:
            for reader in made:
                reader.end()
            raise
    return made


def encoded(message: Any, put: Callable[[AnyArray], Any]) -> bytes:
    """Return a message as JSON; `put` stores each array and returns its place."""

    def plain(value: Any) -> Any:
        kind = {"@": name_of(type(value))}
        match value:
            case np.ndarray():
                return {"@": "array", "at": put(value)}
            case csc_matrix():
                parts = value.data, value.indices, value.indptr
                return {"@": "matrix", "parts": parts, "shape": value.shape}
            case Router():
                return kind | {"learned": value.to_json()}
            case TextModel():
                return kind | {"files": [str(file) for file in value.files], "name": value.name}
            case Memo():
                return kind
        return kind | {f.name: getattr(value, f.name) for f in fields(value) if f.init}

    return json.dumps(message, default=plain).encode()


def decoded(raw: bytes, get: Callable[[Any], AnyArray]) -> Any:
    """Return the message that :func:`encoded` wrote; `get` finds arrays."""

    def restored(entry: dict[str, Any]) -> Any:
        match entry.pop("@", None):
            case None:
                return entry
            case "array":
                return get(entry["at"])
            case "matrix":
                return csc_matrix(tuple(entry["parts"]), shape=entry["shape"])
            case name:
                kind = named(name)
        if "learned" in entry:
            return kind.from_json(entry["learned"])
        if "files" in entry:
            return kind(*map(Path, entry["files"]), entry["name"])
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})

    return json.loads(raw, object_hook=restored)


def name_of(what: Any) -> str:
    """Return the name by which :func:`named` finds a class or function of this package."""
    return f"{what.__module__}:{what.__qualname__}"


def named(name: str) -> Any:
    """Return the class or function with this name."""
    module, _, path = name.partition(":")
    return attrgetter(path)(import_module(module))


def send(pipe: IO[bytes], message: Any) -> None:
    """Write a message: the length of its JSON, the JSON, and the bytes of its arrays."""
    arrays: list[AnyArray] = []

    def put(array: AnyArray) -> tuple[str, int]:
        arrays.append(np.ascontiguousarray(array))
        return array.dtype.str, len(array)

    head = encoded(message, put)
    pipe.write(len(head).to_bytes(8, "little") + head)
    for array in arrays:
        pipe.write(array.data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Return the message that :func:`send` wrote; EOFError if there is none."""

    def exactly(size: int) -> bytes:
        found = pipe.read(size)
        if len(found) < size:
            raise EOFError
        return found

    arrays: list[AnyArray] = []

    def get(at: tuple[str, int]) -> AnyArray:
        arrays.append(np.empty(at[1], dtype=at[0]))
        return arrays[-1]

    message = decoded(exactly(int.from_bytes(exactly(8), "little")), get)
    for array in arrays:
        array[:] = np.frombuffer(exactly(array.nbytes), dtype=array.dtype)
    return message


def serve(folder: Path, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the writer closes the connection."""
    with ThreadPoolExecutor(1, initializer=yield_to_others) as background:
        advisor = background.submit(_ready, folder).result()
    send(answers, "ready")
    query = Query(advisor.history, 0)
    while True:
        match receive(requests):
            case "change", name, *arguments:
                advisor = named(name)(advisor, *arguments)
            case "scores", question, asked_ms, people:
                query = Query(advisor.open_history, asked_ms, question)
                codes = query.history.codes(people)
                scores = advisor.ranker.scores(query, codes)
                # Somebody who came since, if new readers are about to take over from this one.
                scores[codes < 0] = scores.min(initial=0.0)
                send(answers, scores)
            case ("warm up",):
                advisor.warm_up()
                send(answers, "ready")
            case "reasons", users:
                send(answers, advisor.ranker.reasons(query, users))


def yield_to_others() -> None:
    """Lower the priority of this thread, because readers that answer need the cores more."""
    if sys.platform == "linux":  # elsewhere priorities are those of processes
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def _ready(folder: Path) -> Advisor:
    advisor = attach(folder)
    advisor.warm_up()
    return advisor


def share(advisor: Advisor, folder: Path) -> None:
    """Write an advisor to two files: arrays that readers map, and JSON."""
    records = advisor.history.records.settled()
    history = History(records, advisor.history.now)
    week = weekly_stats(history)
    with (folder / "arrays").open("wb") as out:

        def put(array: AnyArray) -> tuple[str, tuple[int, ...], int, int]:
            start = -(-out.tell() // mmap.PAGESIZE) * mmap.PAGESIZE
            out.seek(start)
            out.write(np.ascontiguousarray(array).data)
            row = max(array[:1].nbytes, array.itemsize)
            room = len(array) + (array.nbytes // 4 + _SPARE) // row
            out.seek(start + room * row)  # a hole: it takes no space
            return array.dtype.str, array.shape, start, room

        bare = replace(advisor, history=history, stored=None, embedding={}, ignored=())
        indexes = {name: getattr(records, name) for name in _INDEXES}
        own = {f.name: getattr(week, f.name) for f in fields(week) if f.name != "known"}
        written = encoded((bare, indexes, week.known.now, own), put)
        out.truncate(max(out.tell(), 1))
    (folder / "advisor.json").write_bytes(written)


def attach(folder: Path) -> Advisor:
    """Return the advisor that :func:`share` wrote; its arrays are the pages of the file."""
    with (folder / "arrays").open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)

    def get(at: tuple[str, list[int], int, int]) -> AnyArray:
        dtype, shape, start, room = at
        buffer = Buffer((room, *shape[1:]), np.dtype(dtype), mapped, start)
        buffer.used = shape[0]
        return np.ndarray(tuple(shape), np.dtype(dtype), buffer)

    advisor: Advisor
    advisor, indexes, monday, own = decoded((folder / "advisor.json").read_bytes(), get)
    records = advisor.history.records
    vars(records).update(indexes)
    own["posts"] = Posts(*own["posts"])
    week = WeeklyStats(known=History(records.with_nobody(), monday), **own)
    records.memo.get(WEEKS, monday, lambda: week)
    return advisor


if __name__ == "__main__":
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed must not get between the answers
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        serve(Path(sys.argv[1]), sys.stdin.buffer, pipe)
