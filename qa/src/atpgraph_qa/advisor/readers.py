"""Rank in several processes over one copy of the arrays.

The process that holds the advisor is the writer: it applies events, in batches, and decides whom to
ask. Readers compute scores and reasons. The writer writes the arrays of its advisor to a file once;
every reader maps that file, so that all share its pages, and builds the same advisor on it. Readers
are programs of their own, never forked: a fork of a process with threads may hang. Whatever changes
the writer's advisor is sent to all readers in that order, and since it is deterministic, every
reader gives the writer's scores to the last bit. Columns that grow do so in space left behind them
in the file; only the pages that a reader writes to become its own.

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
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from atpgraph.util.arrays import AnyArray, Float64Array, Int64Array
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.hierarchy import Hierarchy
from atpgraph_qa.advisor.model_folder import columns_of, names_of, records_of
from atpgraph_qa.advisor.newcomers import newcomer_from_json
from atpgraph_qa.advisor.reasons import Reason
from atpgraph_qa.advisor.suggest import Ranker
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.weekly import WEEKS, Posts, WeeklyStats, weekly_stats
from atpgraph_qa.text.model import OnnxText, StaticText
from atpgraph_qa.timeline.events import Accepted, Answered, Asked, Forgotten, Newcomer, Voted
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import Meaning
from atpgraph_qa.timeline.query import Query, Question
from atpgraph_qa.timeline.tables import Buffer, Grouped, TextLines, TextTable

_SPARE = 4096  # bytes at least that an array may grow by
_INDEXES = ("by_question", "by_owner", "by_asker", "by_tag")
_TEXT_MODELS: dict[str, Any] = {kind.__name__: kind for kind in (OnnxText, StaticText)}
_SENT: dict[str, Any] = {
    kind.__name__: kind
    for kind in (Asked, Answered, Accepted, Voted, Forgotten, Newcomer, Question, Reason)
}


class Readers:
    """Rank in separate processes for an advisor.

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
        self._advisor = advisor
        self._readers = self._made(processes)
        for reader in self._readers:
            self._idle.put(reader)

    def change(self, after: Advisor, function: Callable[..., Advisor], *arguments: Any) -> None:
        """Let all readers make the change ``after = function(before, *arguments)``.

        Parameters
        ----------
        after : Advisor
            What the change gave the writer.
        function : callable
            At the top of a module of this package, or a method of :class:`Advisor`.
        *arguments
            Events, newcomers, routers, arrays of int64, or sequences of these.
        """
        if after.week_ms != self._advisor.week_ms:
            # Statistics of a week take seconds: computed once, here, while the readers go on.
            self.restart(after)
            return
        name = f"{function.__module__}:{function.__qualname__}"
        with self._changing:
            self._advisor = after
            for reader in self._readers:
                with contextlib.suppress(OSError):  # it is replaced when it is next asked
                    reader.send("change", name, *arguments)

    def restart(self, advisor: Advisor) -> None:
        """Restart from an advisor; questions go to the old readers until the new ones are ready."""
        with self._changing:
            self._advisor = advisor
            self._readers = self._made(len(self._readers))
            for reader in self._readers:
                self._idle.put(reader)

    @contextlib.contextmanager
    def ranker(self, advisor: Advisor) -> Iterator[Ranker]:
        """Give the next reader that is free, for one question."""
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

    def _made(self, count: int) -> list[_Reader]:
        with tempfile.TemporaryDirectory(prefix="atp-readers-") as folder:
            share(self._advisor, Path(folder))
            made = [_Reader(folder) for _ in range(count)]
            for reader in made:
                reader.receive()  # it has mapped the file, whose name is not needed any more
        return made

    def _replaced(self, ended: _Reader) -> _Reader:
        with self._changing:
            if ended in self._readers:
                ended.end()
                (reader,) = self._made(1)
                self._readers[self._readers.index(ended)] = ended = reader
        return ended


class _Remote:
    """A reader that serves one question; if it fails, this process does the work."""

    def __init__(self, reader: _Reader, advisor: Advisor) -> None:
        self._reader, self._local, self.failed = reader, advisor.ranker, False

    def scores(self, query: Query, codes: Int64Array) -> Float64Array:
        question, people = replace(query.question, at=None), query.history.users[codes]
        found: Float64Array | None = self._asked("scores", question, query.asked_ms, people)
        return self._local.scores(query, codes) if found is None else found

    def reasons(self, query: Query, users: Sequence[int]) -> list[tuple[Reason, ...]]:
        found = self._asked("reasons", list(users))
        return self._local.reasons(query, users) if found is None else [*map(tuple, found)]

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
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()  # changes and questions may be sent at the same time

    def send(self, *message: Any) -> None:
        assert self.process.stdin is not None
        with self._lock:
            send(self.process.stdin, message)

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return receive(self.process.stdout)

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        try:
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def send(pipe: IO[bytes], message: Any) -> None:
    """Write a message: the length of its JSON, the JSON, and the bytes of its arrays."""
    arrays: list[AnyArray] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(np.ascontiguousarray(value))
            return {"array": value.dtype.str, "size": len(value)}
        if isinstance(value, Router):
            return {"router": value.to_json()}
        return {"@": type(value).__name__, **asdict(value)}

    head = json.dumps(message, default=plain).encode()
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

    def restored(entry: dict[str, Any]) -> Any:
        if "array" in entry:
            arrays.append(np.empty(entry["size"], dtype=entry["array"]))
            return arrays[-1]
        if "router" in entry:
            return Router.from_json(entry["router"])
        if "@" not in entry:
            return entry
        kind = _SENT[entry.pop("@")]
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})

    size = int.from_bytes(exactly(8), "little")
    message = json.loads(exactly(size), object_hook=restored)
    for array in arrays:
        array[:] = np.frombuffer(exactly(array.nbytes), dtype=array.dtype)
    return message


def serve(folder: Path, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until the writer closes the connection."""
    advisor = attach(folder)
    advisor.warm_up()
    send(answers, "ready")
    query = Query(advisor.history, 0)
    while True:
        match receive(requests):
            case "change", name, *arguments:
                module, _, path = name.partition(":")
                function: Any = import_module(module)
                for part in path.split("."):
                    function = getattr(function, part)
                advisor = function(advisor, *arguments)
            case "scores", question, asked_ms, people:
                query = Query(advisor.open_history, asked_ms, question)
                codes = query.history.codes(people)
                scores = advisor.ranker.scores(query, codes)
                # Somebody who came since, if new readers are about to take over from this one.
                scores[codes < 0] = scores.min(initial=0.0)
                send(answers, scores)
            case "reasons", users:
                send(answers, advisor.ranker.reasons(query, users))


def share(advisor: Advisor, folder: Path) -> None:
    """Write an advisor to two files: arrays that readers map, and JSON."""
    records = advisor.history.records.settled()
    history = History(records, advisor.history.now)
    week, titles = weekly_stats(history), TextLines.of(records.texts.titles)
    arrays = columns_of(records) | {"title_ends": titles.ends, "title_data": titles.data}
    for name in _INDEXES:
        index: Grouped = getattr(records, name)
        arrays |= {f"{name}_indptr": index.indptr, f"{name}_positions": index.positions}
    arrays |= {f"posts_{name}": part for name, part in week.posts._asdict().items()}
    own = [f.name for f in fields(week) if isinstance(getattr(week, f.name), np.ndarray)]
    arrays |= {f"week_{name}": getattr(week, name) for name in own}
    arrays |= {"level_users": advisor.hierarchy.users, "level_level": advisor.hierarchy.level}
    meaning, model = records.meaning, records.text_model
    if meaning is not None:
        arrays["vectors"] = meaning.vectors
    spans: dict[str, tuple[str, tuple[int, ...], int, int]] = {}
    with (folder / "arrays").open("wb") as out:
        for name, array in arrays.items():
            start = -(-out.tell() // mmap.PAGESIZE) * mmap.PAGESIZE
            out.seek(start)
            out.write(np.ascontiguousarray(array).data)
            row = max(array[:1].nbytes, array.itemsize)
            room = len(array) + (array.nbytes // 4 + _SPARE) // row
            spans[name] = array.dtype.str, array.shape, start, room
            out.seek(start + room * row)  # a hole: it takes no space
        out.truncate(max(out.tell(), 1))
    told = {
        "arrays": spans,
        "names": names_of(records),
        "now": history.now,
        "week": week.known.now,
        "router": advisor.router.to_json(),
        "top": advisor.hierarchy.top,
        "newcomers": [asdict(person) for person in advisor.newcomers],
        "text": model and [type(model).__name__, [str(file) for file in model.files], model.name],
    }
    (folder / "advisor.json").write_text(json.dumps(told), encoding="utf-8")


def attach(folder: Path) -> Advisor:
    """Return the advisor that :func:`share` wrote; its arrays are the pages of the file."""
    told = json.loads((folder / "advisor.json").read_text(encoding="utf-8"))
    with (folder / "arrays").open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
    arrays: dict[str, AnyArray] = {}
    for name, (dtype, shape, start, room) in told["arrays"].items():
        buffer = Buffer((room, *shape[1:]), np.dtype(dtype), mapped, start)
        buffer.used = shape[0]
        arrays[name] = np.ndarray(shape, np.dtype(dtype), buffer)
    titles = TextLines(arrays["title_ends"], arrays["title_data"])
    texts = TextTable(titles, TextLines.of([""] * len(titles)))
    records = records_of(arrays, texts, told["names"])
    if told["text"]:
        kind, files, name = told["text"]
        model = _TEXT_MODELS[kind](*map(Path, files), name)
        records = replace(records, meaning=Meaning(model, arrays["vectors"]))
    for name in _INDEXES:
        sizes = {"by_question": records.answers.question, "by_owner": records.answers.owner}
        sizes |= {"by_asker": records.questions.asker, "by_tag": records.tags.tags}
        parts = arrays[f"{name}_indptr"], arrays[f"{name}_positions"], len(sizes[name])
        vars(records)[name] = Grouped(*parts)
    posts = Posts(*(arrays[f"posts_{name}"] for name in Posts._fields))
    own = {name[5:]: array for name, array in arrays.items() if name.startswith("week_")}
    known = History(records.with_nobody(), told["week"])
    week = WeeklyStats(known=known, posts=posts, **own)
    records.memo.get(WEEKS, (records, told["week"]), lambda: week)
    hierarchy = Hierarchy(arrays["level_users"], arrays["level_level"], told["top"])
    newcomers = tuple(newcomer_from_json(entry, "a message") for entry in told["newcomers"])
    history = History(records, told["now"])
    return Advisor(history, Router.from_json(told["router"]), newcomers, hierarchy=hierarchy)


if __name__ == "__main__":
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed must not get between the answers
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        serve(Path(sys.argv[1]), sys.stdin.buffer, pipe)
