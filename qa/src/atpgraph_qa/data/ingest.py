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
from atpgraph_qa.data.archive import Sink, stream
from atpgraph_qa.data.arrow import load_arrow
from atpgraph_qa.data.blocks import RowBlocks
from atpgraph_qa.data.rows import Batch, read_block
from atpgraph_qa.data.schema import FILES, LARGEST_ID, DumpFile
from atpgraph_qa.data.store import StoreWriter, new_version
from atpgraph_qa.data.xml import load_lxml

BAD_ROWS_LIMIT = 0.01
_SAMPLES = 5


@dataclass(frozen=True)
class FileReport:
    """What became of one file of the dump.

    Attributes
    ----------
    bytes : int
        Size of the XML.
    rows : int
        Rows that were understood.
    unreadable : int
        Rows that were not.
    duplicates : int
        Rows left out because an earlier row has the same Id.
    truncated : bool
        The file ends before its root element does.
    samples : tuple of str
        What was wrong with the first few unreadable rows.
    notes : dict
        Rows left out on purpose and values repaired, by what they are.
    """

    bytes: int
    rows: int
    unreadable: int
    duplicates: int
    truncated: bool
    samples: tuple[str, ...] = ()
    notes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class IngestReport:
    """What an ingest read and stored.

    Attributes
    ----------
    rows : dict
        Rows stored, by table.
    files : dict
        A :class:`FileReport` for every file read.
    missing : dict
        Files the dump lacks, with what that disables.
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
    load_arrow()
    load_lxml()
    threads = max(1, min(4, os.cpu_count() or 1) if workers is None else workers)
    files: dict[str, FileReport] = {}
    with new_version(site) as writer, ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads, "atp-ingest"))
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)

        def opener(name: str, size: int) -> Sink:
            return _FileSink(FILES[name], size, writer, pool, threads, allow_bad_rows, files)

        stream(Path(dump), opener)
        missing = {name: file.without for name, file in FILES.items() if name not in files}
        if writer.rows["questions"] == 0:
            raise InputError("Posts.xml holds no question, so there is nothing to store.")
        report = IngestReport(dict(writer.rows), files, missing)
        kept = {
            name: {key: value for key, value in asdict(file).items() if key != "samples"}
            for name, file in files.items()
        }
        writer.commit({"files": kept, "missing": missing})
    return report


class _FileSink(Sink):
    """One file on its way from bytes to tables: cut, parse in threads, drop duplicates, write."""

    def __init__(
        self,
        file: DumpFile,
        size: int,
        writer: StoreWriter,
        pool: ThreadPoolExecutor,
        workers: int,
        allow_bad_rows: bool,
        reports: dict[str, FileReport],
    ) -> None:
        self.file = file
        self.writer = writer
        self.pool = pool
        self.allow_bad_rows = allow_bad_rows
        self.reports = reports
        self.blocks = RowBlocks(file.name, file.root)
        self.waiting: deque[Future[Batch]] = deque()
        self.most_waiting = workers + 1
        self.seen = _SeenIds()
        self.bytes = self.rows = self.unreadable = self.duplicates = 0
        self.samples: list[str] = []
        self.counts: Counter[str] = Counter()
        self._stage = ExitStack()
        self._progress: Stage = self._stage.enter_context(stage(f"reading {file.name}", size))

    def write(self, data: bytes | bytearray) -> None:
        try:
            for block in self.blocks.feed(data):
                self._submit(block)
        except BaseException:
            self._stage.close()
            raise
        self.bytes += len(data)
        self._progress.advance(len(data))

    def close(self) -> None:
        with self._stage:
            for block in self.blocks.finish():
                self._submit(block)
            while self.waiting:
                self._take(self.waiting.popleft().result())
        if self.blocks.oversized:
            self.unreadable += self.blocks.oversized
            self.samples.append("a row is larger than 64 MiB")
        self._refuse_if_damaged()
        self.reports[self.file.name] = FileReport(
            self.bytes,
            self.rows,
            self.unreadable,
            self.duplicates,
            self.blocks.truncated,
            tuple(self.samples[:_SAMPLES]),
            dict(sorted(self.counts.items())),
        )

    def _submit(self, block: bytes) -> None:
        self.waiting.append(self.pool.submit(read_block, block, self.file))
        while len(self.waiting) > self.most_waiting:
            self._take(self.waiting.popleft().result())

    def _take(self, batch: Batch) -> None:
        self.rows += batch.read
        self.unreadable += len(batch.broken)
        if len(self.samples) < _SAMPLES:
            self.samples += batch.broken[:_SAMPLES]
        self.counts.update(batch.counts)
        arrow, _ = load_arrow()
        for table, rows in batch.tables.items():
            if len(rows) == 0:
                continue
            new = self.seen.add(rows["id"].to_numpy())
            repeated = len(new) - int(np.count_nonzero(new))
            if repeated:
                self.duplicates += repeated
                rows = rows.filter(arrow.array(new))
            self.writer.write(table, rows)

    def _refuse_if_damaged(self) -> None:
        """Raise an error for a file too damaged to be trusted."""
        if self.allow_bad_rows:
            return
        what = "; ".join(self.samples[:_SAMPLES])
        if self.blocks.truncated:
            raise InputError(
                f"{self.file.name} is cut off: </{self.file.root}> is missing at its end. Get the "
                "file again, or pass --allow-bad-rows to use what is there."
            )
        total = self.rows + self.unreadable
        if self.unreadable > BAD_ROWS_LIMIT * total:
            raise InputError(
                f"{self.unreadable:,} of {total:,} rows of {self.file.name} cannot be read "
                f"({what}). Get the file again, or pass --allow-bad-rows to leave them out."
            )


class _SeenIds:
    """A growing set of ids as bits: 10 MB for the 80 million posts of the largest site."""

    def __init__(self) -> None:
        self._bits = np.zeros(1 << 16, dtype=np.uint8)

    def add(self, ids: Int64Array) -> BoolArray:
        """Add ids to the set; return True for the first occurrence of each new one."""
        place = ids >> 3
        bit = np.left_shift(1, ids & 7).astype(np.uint8)
        top = int(place.max()) + 1
        if top > len(self._bits):
            size = min(max(top, 2 * len(self._bits)), (LARGEST_ID >> 3) + 1)
            grown = np.zeros(size, dtype=np.uint8)
            grown[: len(self._bits)] = self._bits
            self._bits = grown
        new: BoolArray = (self._bits[place] & bit) == 0
        np.bitwise_or.at(self._bits, place, bit)
        first = np.zeros(len(ids), dtype=np.bool_)
        first[np.unique(ids, return_index=True)[1]] = True
        new &= first
        return new
