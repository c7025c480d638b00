"""Where a dump's files come from: a folder, or the site's 7z archive, as streams of bytes.

Nothing is ever extracted: the members of an archive are decompressed in memory, piece by piece, and
matched by their file name alone, so no name in an archive can point outside of anything.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from atpgraph.cqa.schema import FILES
from atpgraph.errors import AtpError, InputError, MissingDependencyError

READ_BYTES = 1 << 20
_COMPRESSED_BYTES = 1 << 16  # read at a time: a small piece becomes a much larger one

Feed = Callable[[str, int], "Sink"]  # file name and size -> where its bytes go


class Sink(abc.ABC):
    """Takes the bytes of one file."""

    @abc.abstractmethod
    def write(self, data: bytes | bytearray) -> None:
        """The next bytes."""

    @abc.abstractmethod
    def close(self) -> None:
        """The file is complete."""


def stream(dump: Path, opener: Feed) -> list[str]:
    """Send every known file of `dump` through the sink that `opener` gives for it.

    Returns the names of the files found, in the order in which they were read.
    """
    if dump.is_dir():
        return _stream_folder(dump, opener)
    if not dump.is_file():
        raise InputError(f"There is no dump at {dump}: give a folder of XML files or a .7z file.")
    return _stream_7z(dump, opener)


def _known(names: Iterator[str], where: Path) -> dict[str, str]:
    """Known file → its spelling in the dump, matched without regard to case."""
    wanted = {name.lower(): name for name in FILES}
    found: dict[str, str] = {}
    for name in names:
        known = wanted.get(PurePosixPath(name.replace("\\", "/")).name.lower())
        if known is None:
            continue
        if known in found:
            raise InputError(
                f"{where} holds {known} twice ({found[known]!r} and {name!r}); "
                "give the dump of one site."
            )
        found[known] = name
    if "Posts.xml" not in found:
        raise InputError(f"{where} holds no Posts.xml, so it is not the dump of a site.")
    return found


def _stream_folder(folder: Path, opener: Feed) -> list[str]:
    found = _known((entry.name for entry in sorted(folder.iterdir())), folder)
    order = [name for name in FILES if name in found]
    for name in order:
        path = folder / found[name]
        try:
            with path.open("rb") as file:
                sink = opener(name, os.fstat(file.fileno()).st_size)
                while data := file.read(READ_BYTES):
                    sink.write(data)
                sink.close()
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return order


def _stream_7z(path: Path, opener: Feed) -> list[str]:
    try:
        import py7zr
        from py7zr.io import Py7zIO, WriterFactory
    except ImportError as error:
        raise MissingDependencyError("py7zr", "cqa", "Reading a .7z dump") from error

    class Writer(Py7zIO):  # type: ignore[misc]
        """A member of the archive, on its way to its sink."""

        def __init__(self, sink: Sink, expected: int) -> None:
            self.sink = sink
            self.expected = expected
            self.written = 0

        def write(self, s: bytes | bytearray) -> int:
            try:
                self.sink.write(s)
            except Exception as error:
                ours.append(error)
                raise
            self.written += len(s)
            return len(s)

        def close(self) -> None:
            if self.written < self.expected:  # an error is on its way up
                return
            try:
                self.sink.close()
            except Exception as error:
                ours.append(error)
                raise

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return 0

        def flush(self) -> None:
            return None

        def size(self) -> int:
            return self.written

    order: list[str] = []
    ours: list[Exception] = []  # errors that are not the archive's

    class Writers(WriterFactory):  # type: ignore[misc]
        def create(self, filename: str) -> Any:
            name = known_as[PurePosixPath(filename).name.lower()]
            order.append(name)
            return Writer(opener(name, sizes[name]), sizes[name])

    try:
        # A file object, not a path, makes py7zr decompress in this thread, one member at a time.
        with (
            path.open("rb") as file,
            py7zr.SevenZipFile(file, blocksize=_COMPRESSED_BYTES) as archive,
        ):
            members = [entry for entry in archive.list() if entry.is_file]
            found = _known((entry.filename for entry in members), path)
            size_of = {entry.filename: int(entry.uncompressed) for entry in members}
            sizes = {name: size_of[inside] for name, inside in found.items()}
            known_as = {name.lower(): name for name in found}
            archive.extract(targets=list(found.values()), factory=Writers())
    except AtpError:
        raise
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:
        # py7zr raises whatever its parts raise on a damaged archive: its own errors, lzma's,
        # struct's, IndexError, … All of them mean the same thing to the person who gave the file.
        if ours:
            raise ours[0] from None
        raise InputError(
            f"{path} cannot be read as a 7z archive: {str(error) or type(error).__name__}."
        ) from error
    return order
