"""Read a Stack Exchange data dump into a site's store: streaming, checked, all or nothing."""

from __future__ import annotations

import os
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph.util.progress import Stage, stage
from atpgraph_qa.data.dump import Sink, stream
from atpgraph_qa.data.rows import Batch
from atpgraph_qa.data.schema import FILES, LARGEST_ID
from atpgraph_qa.data.store import StoreWriter, load_arrow, new_version
from atpgraph_qa.data.xml import RowBlocks

BAD_ROWS_LIMIT = 0.01
_SAMPLES = 5


@dataclass
class FileReport:
    """What became of one file of the dump."""

    bytes: int = 0
    rows: int = 0  # that were understood
    unreadable: int = 0  # rows that were not
    duplicates: int = 0  # rows left out because an earlier row has the same Id
    truncated: bool = False  # the file ends before its root element does
    samples: tuple[str, ...] = ()  # what was wrong with the first few unreadable rows
    notes: dict[str, int] = field(default_factory=dict)  # rows left out on purpose, and repairs


@dataclass(frozen=True)
class IngestReport:
    """What an ingest read and stored.

    Rows stored by table, a report for every file read, and what the files that are missing disable.
    """

    rows: dict[str, int]
    files: dict[str, FileReport]
    missing: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dictionaries, for JSON."""
        return asdict(self)


def ingest(
    dump: str | os.PathLike[str],
    site: str | os.PathLike[str],
    *,
    allow_bad_rows: bool = False,
    workers: int | None = None,
) -> IngestReport:
    """Read a data dump into a store, replacing what is there.

    Memory does not grow with the size of the files: blocks of rows are parsed by a few threads
    and written as they come. The one thing kept per row is a bit that says its Id was seen.

    Parameters
    ----------
    dump : path
        A folder with ``Posts.xml`` and, where present, ``Users.xml``, ``Votes.xml``,
        ``Tags.xml`` and ``PostLinks.xml``; or the site's ``.7z`` archive.
    site : path
        Folder of the store, made if needed. A store that is there is replaced at the very end;
        if the ingest fails or is interrupted it stays as it was.
    allow_bad_rows : bool
        Accept files with more than 1 % unreadable rows, and files that were cut off.
    workers : int, optional
        Threads that parse; by default the number of processors, four at most.

    Returns
    -------
    IngestReport
        What was read, left out and stored.

    Raises
    ------
    InputError
        The dump cannot be used; the message says which file and what to do.

    Notes
    -----
    Of rows with the same Id in a file the first one counts. Posts that are neither questions nor
    answers, and the fabricated posts of 2025 dumps (Id from 1,000,000,000, owned by Community), are
    left out and counted.
    """
    threads = max(1, min(4, os.cpu_count() or 1) if workers is None else workers)
    files: dict[str, FileReport] = {}
    with new_version(site) as writer, ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads, "atp-ingest"))
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)

        def opener(name: str, size: int) -> Sink:
            files[name] = FileReport()
            return _FileReader(name, size, files[name], writer, pool, threads + 1, allow_bad_rows)

        stream(Path(dump), opener)
        missing = {name: file.without for name, file in FILES.items() if name not in files}
        if writer.rows["questions"] == 0:
            raise InputError("Posts.xml holds no question, so there is nothing to store.")
        kept = {name: asdict(file) for name, file in files.items()}
        for file in kept.values():
            del file["samples"]
        writer.information = {"files": kept, "missing": missing}
    return IngestReport(writer.rows, files, missing)


class _FileReader:
    """Cut one file into blocks, parse them in threads, drop duplicates, write the rows."""

    def __init__(
        self,
        name: str,
        size: int,
        report: FileReport,
        writer: StoreWriter,
        pool: ThreadPoolExecutor,
        most_waiting: int,
        allow_bad_rows: bool,
    ) -> None:
        self.name, self.file = name, FILES[name]
        self.report, self.writer, self.pool = report, writer, pool
        self.most_waiting, self.allow_bad_rows = most_waiting, allow_bad_rows
        self.blocks = RowBlocks(name, self.file.root)
        self.waiting: deque[Future[Batch]] = deque()
        self.seen = _SeenIds()
        self.counts: Counter[str] = Counter()
        self._stage = ExitStack()
        self._progress: Stage = self._stage.enter_context(stage(f"reading {name}", size))

    def write(self, data: bytes | bytearray) -> None:
        """Take the next bytes."""
        try:
            for block in self.blocks.feed(data):
                self._submit(block)
        except BaseException:
            self._stage.close()
            raise
        self.report.bytes += len(data)
        self._progress.advance(len(data))

    def close(self) -> None:
        """Read the rest, and raise an error for a file too damaged to be trusted."""
        with self._stage:
            for block in self.blocks.finish():
                self._submit(block)
            while self.waiting:
                self._store(self.waiting.popleft().result())
        report = self.report
        report.truncated = self.blocks.truncated
        report.notes = dict(sorted(self.counts.items()))
        if self.blocks.oversized:
            self._note_broken(["a row is larger than 64 MiB"] * self.blocks.oversized)
        if self.allow_bad_rows:
            return
        if report.truncated:
            raise InputError(
                f"{self.name} is cut off: </{self.file.root}> is missing at its end. Get the "
                "file again, or pass --allow-bad-rows to use what is there."
            )
        total = report.rows + report.unreadable
        if report.unreadable > BAD_ROWS_LIMIT * total:
            raise InputError(
                f"{report.unreadable:,} of {total:,} rows of {self.name} cannot be read "
                f"({'; '.join(report.samples)}). Get the file again, or pass --allow-bad-rows to "
                "leave them out."
            )

    def _submit(self, block: bytes) -> None:
        self.waiting.append(self.pool.submit(Batch, block, self.file))
        while len(self.waiting) > self.most_waiting:
            self._store(self.waiting.popleft().result())

    def _store(self, batch: Batch) -> None:
        self.report.rows += batch.read
        self._note_broken(batch.broken)
        self.counts.update(batch.counts)
        for table, rows in batch.tables.items():
            new = self.seen.add(rows["id"].to_numpy())
            self.report.duplicates += len(new) - int(np.count_nonzero(new))
            self.writer.write(table, rows if new.all() else rows.filter(load_arrow()[0].array(new)))

    def _note_broken(self, messages: list[str]) -> None:
        self.report.unreadable += len(messages)
        self.report.samples = (*self.report.samples, *messages)[:_SAMPLES]


class _SeenIds:
    """A set of ids as bits: 10 MB for the 80 million posts of the largest site."""

    def __init__(self) -> None:
        # The system hands out zeros when they are first touched, so the room costs nothing.
        self._bits = np.zeros((LARGEST_ID >> 3) + 1, dtype=np.uint8)

    def add(self, ids: Int64Array) -> BoolArray:
        """Add ids to the set; return True for the first occurrence of each new one."""
        byte = ids >> 3
        bit = np.left_shift(1, ids & 7).astype(np.uint8)
        new: BoolArray = np.zeros(len(ids), dtype=np.bool_)
        new[np.unique(ids, return_index=True)[1]] = True
        new &= (self._bits[byte] & bit) == 0
        np.bitwise_or.at(self._bits, byte, bit)
        return new
