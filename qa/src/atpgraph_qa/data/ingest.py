"""Read a Stack Exchange data dump into a site's store: streaming, checked, all or nothing.

A dump is a folder of XML files or the site's 7z archive. Nothing is extracted to disk: the members
of an archive are decompressed in memory, piece by piece, and matched by their file name alone, so
no name in an archive can point outside the store.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as arrow

from atpgraph.errors import AtpError, InputError
from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph.util.progress import Stage, stage
from atpgraph_qa.data.rows import Batch
from atpgraph_qa.data.schema import FILES, LARGEST_ID
from atpgraph_qa.data.store import StoreWriter, new_version
from atpgraph_qa.data.xml import RowBlocks

_READ_BYTES = 1 << 20
_COMPRESSED_BYTES = 1 << 16  # read at a time: a small piece becomes a much larger one
BAD_ROWS_LIMIT = 0.01
_SAMPLES = 5


@dataclass
class FileReport:
    """Import statistics of one file of the dump."""

    bytes: int = 0
    rows: int = 0  # that were understood
    unreadable: int = 0  # rows that were not
    duplicates: int = 0  # rows left out because an earlier row has the same Id
    truncated: bool = False  # the file ends before its root element does
    samples: tuple[str, ...] = ()  # what was wrong with the first few unreadable rows
    notes: dict[str, int] = field(default_factory=dict)  # rows left out on purpose, and repairs


@dataclass(frozen=True)
class IngestReport:
    """Report of an ingest.

    It has the number of rows stored by table, a report for every file read, and what is not
    available because files are missing.
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
    """Read a data dump into a store, replacing an earlier one.

    Memory does not grow with the size of the files: blocks of rows are parsed by a few threads
    and written as they come. Per row, only a bit is kept, to recognize an Id that was seen before.

    Parameters
    ----------
    dump : path
        A folder with ``Posts.xml`` and, where present, ``Users.xml``, ``Votes.xml``,
        ``Tags.xml`` and ``PostLinks.xml``; or the site's ``.7z`` archive.
    site : path
        Folder of the store, made if needed. An existing store is replaced at the very end; if the
        ingest fails or is interrupted, it stays as it was.
    allow_bad_rows : bool
        Accept files with more than 1% unreadable rows, and files that were cut off.
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
    If rows of a file have the same Id, the first one counts. Posts that are neither questions nor
    answers, and the fabricated posts of 2025 dumps (Id from 1,000,000,000, owned by Community), are
    left out and counted.
    """
    threads = max(1, min(4, os.cpu_count() or 1) if workers is None else workers)
    with new_version(site) as writer, ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads, "atp-ingest"))
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        reader = _DumpReader(writer, pool, threads + 1, allow_bad_rows)
        stack.enter_context(reader.progress)
        reader.read(Path(dump))
        if writer.rows["questions"] == 0:
            raise InputError("Posts.xml contains no questions, so there is nothing to store.")
        files = reader.reports
        missing = {name: file.without for name, file in FILES.items() if name not in files}
        kept = {name: asdict(file) for name, file in files.items()}
        for file in kept.values():
            del file["samples"]
        writer.information = {"files": kept, "missing": missing}
    return IngestReport(writer.rows, files, missing)


def _known_files(paths: Iterable[str], where: Path) -> dict[str, str]:
    """Return the path of every known file, matched by its last part without regard to case."""
    wanted = {name.lower(): name for name in FILES}
    found: dict[str, str] = {}
    for path in paths:
        known = wanted.get(PurePosixPath(path.replace("\\", "/")).name.lower())
        if known in found:
            raise InputError(
                f"{where} holds {known} twice ({found[known]!r} and {path!r}); "
                "give the dump of one site."
            )
        if known is not None:
            found[known] = path
    if "Posts.xml" not in found:
        raise InputError(f"{where} contains no Posts.xml, so it is not a dump of a site.")
    return {name: found[name] for name in FILES if name in found}


class _DumpReader:
    """Read the files of a dump one by one: cut them, parse in threads, drop duplicates, store.

    py7zr writes the members of an archive to it: it is a ``WriterFactory`` and a ``Py7zIO``.
    """

    def __init__(
        self, writer: StoreWriter, pool: ThreadPoolExecutor, most_waiting: int, allow_bad_rows: bool
    ) -> None:
        self.writer, self.pool = writer, pool
        self.most_waiting, self.allow_bad_rows = most_waiting, allow_bad_rows
        self.reports: dict[str, FileReport] = {}
        self.progress = ExitStack()
        self.members: dict[str, tuple[str, int]] = {}  # of an archive: known name and size
        self.failure: Exception | None = None  # of ours while py7zr called
        self.waiting: deque[Future[Batch]] = deque()
        # Of the current file:
        self.name = ""
        self.report: FileReport
        self.blocks: RowBlocks
        self.seen: _SeenIds
        self.stage: Stage

    def read(self, dump: Path) -> None:
        """Read every known file of a folder or an archive."""
        if dump.is_file():
            self._read_7z(dump)
        elif dump.is_dir():
            found = _known_files((entry.name for entry in sorted(dump.iterdir())), dump)
            for name, path in found.items():
                try:
                    with (dump / path).open("rb") as file:
                        self._start(name, os.fstat(file.fileno()).st_size)
                        while data := file.read(_READ_BYTES):
                            self.write(data)
                except OSError as error:
                    raise InputError(f"Cannot read {dump / path}: {error.strerror}.") from error
        else:
            raise InputError(
                f"There is no dump at {dump}: give a folder of XML files or a .7z file."
            )
        self._finish()

    def _read_7z(self, path: Path) -> None:
        import py7zr

        try:
            # A file object, not a path, makes py7zr decompress in this thread, one by one.
            with (
                path.open("rb") as file,
                py7zr.SevenZipFile(file, blocksize=_COMPRESSED_BYTES) as archive,
            ):
                entries = [entry for entry in archive.list() if entry.is_file]
                found = _known_files((entry.filename for entry in entries), path)
                sizes = {entry.filename: int(entry.uncompressed) for entry in entries}
                self.members = {member: (name, sizes[member]) for name, member in found.items()}
                archive.extract(targets=list(self.members), factory=self)
        except AtpError:
            raise
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
        except Exception as error:
            # py7zr raises whatever its parts raise on a damaged archive: its own errors, lzma's,
            # struct's, IndexError, … All of them mean the same thing to whoever gave the file.
            if self.failure is not None:
                raise self.failure from None
            raise InputError(
                f"{path} cannot be read as a 7z archive: {str(error) or type(error).__name__}."
            ) from error

    def create(self, filename: str) -> _DumpReader:
        """Take the next member (py7zr)."""
        self._start(*self.members[filename])
        return self

    def write(self, data: bytes | bytearray) -> int:
        """Take the next bytes of the current file."""
        try:
            for block in self.blocks.feed(data):
                self._submit(block)
        except Exception as error:
            self.failure = error
            raise
        self.report.bytes += len(data)
        self.stage.advance(len(data))
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Do nothing; py7zr rewinds files it has written."""
        return 0

    def close(self) -> None:
        """Do nothing: py7zr closes damaged members, too; the next file finishes a sound one."""

    def _start(self, name: str, size: int) -> None:
        self._finish()
        self.name, self.report = name, FileReport()
        self.reports[name] = self.report
        self.blocks, self.seen = RowBlocks(name, FILES[name].root), _SeenIds()
        self.stage = self.progress.enter_context(stage(f"reading {name}", size))

    def _finish(self) -> None:
        """Read the rest of the current file; raise if it is too damaged to be trusted."""
        if not self.name:
            return
        for block in self.blocks.finish():
            self._submit(block)
        while self.waiting:
            self._store(self.waiting.popleft().result())
        self.progress.close()
        self._note_broken(["a row is larger than 64 MiB"] * self.blocks.oversized)
        report = self.report
        report.truncated = self.blocks.truncated
        report.notes = dict(sorted(report.notes.items()))
        if self.allow_bad_rows:
            return
        if report.truncated:
            raise InputError(
                f"{self.name} is cut off: </{FILES[self.name].root}> is missing at its end. Get "
                "the file again, or pass --allow-bad-rows to use what is there."
            )
        total = report.rows + report.unreadable
        if report.unreadable > BAD_ROWS_LIMIT * total:
            raise InputError(
                f"{report.unreadable:,} of {total:,} rows of {self.name} cannot be read "
                f"({'; '.join(report.samples)}). Get the file again, or pass --allow-bad-rows to "
                "leave them out."
            )

    def _submit(self, block: bytes) -> None:
        self.waiting.append(self.pool.submit(Batch, block, FILES[self.name]))
        while len(self.waiting) > self.most_waiting:
            self._store(self.waiting.popleft().result())

    def _store(self, batch: Batch) -> None:
        self.report.rows += batch.read
        self._note_broken(batch.broken)
        self.report.notes = Counter(self.report.notes) + batch.counts
        for table, rows in batch.tables.items():
            new = self.seen.add(rows["id"].to_numpy())
            self.report.duplicates += len(new) - int(np.count_nonzero(new))
            self.writer.write(table, rows if new.all() else rows.filter(arrow.array(new)))

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
