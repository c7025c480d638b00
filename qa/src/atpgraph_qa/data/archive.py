"""The files of a dump as streams of bytes, from a folder or from the site's 7z archive.

Nothing is extracted to disk: the members of an archive are decompressed in memory, piece by piece,
and matched by their file name alone, so no name in an archive can point outside of anything.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from atpgraph.errors import AtpError, InputError
from atpgraph_qa.data.schema import FILES

READ_BYTES = 1 << 20
_COMPRESSED_BYTES = 1 << 16  # read at a time: a small piece becomes a much larger one

Opener = Callable[[str, int], "Sink"]  # file name and size -> where its bytes go


class Sink(abc.ABC):
    """Takes the bytes of one file."""

    @abc.abstractmethod
    def write(self, data: bytes | bytearray) -> None:
        """Take the next bytes."""

    @abc.abstractmethod
    def close(self) -> None:
        """Finish: the file is complete."""


def stream(dump: Path, opener: Opener) -> list[str]:
    """Send every known file of `dump` through the sink that `opener` gives for it.

    Returns the names of the files, in the order in which they were read.
    """
    if dump.is_dir():
        return _stream_folder(dump, opener)
    if not dump.is_file():
        raise InputError(f"There is no dump at {dump}: give a folder of XML files or a .7z file.")
    return _stream_7z(dump, opener)


def _known_files(names: Iterable[str], where: Path) -> dict[str, str]:
    """Known file → its spelling in the dump, matched without regard to case."""
    wanted = {name.lower(): name for name in FILES}
    spelling: dict[str, str] = {}
    for name in names:
        known = wanted.get(_file_name(name))
        if known is None:
            continue
        if known in spelling:
            raise InputError(
                f"{where} holds {known} twice ({spelling[known]!r} and {name!r}); "
                "give the dump of one site."
            )
        spelling[known] = name
    if "Posts.xml" not in spelling:
        raise InputError(f"{where} holds no Posts.xml, so it is not the dump of a site.")
    return spelling


def _file_name(path: str) -> str:
    """Last part of a path in either style, in lower case."""
    return PurePosixPath(path.replace("\\", "/")).name.lower()


def _stream_folder(folder: Path, opener: Opener) -> list[str]:
    spelling = _known_files((entry.name for entry in sorted(folder.iterdir())), folder)
    order = [name for name in FILES if name in spelling]
    for name in order:
        path = folder / spelling[name]
        try:
            with path.open("rb") as file:
                sink = opener(name, os.fstat(file.fileno()).st_size)
                while data := file.read(READ_BYTES):
                    sink.write(data)
                sink.close()
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    return order


def _stream_7z(path: Path, opener: Opener) -> list[str]:
    import py7zr

    members = _Members(opener)
    try:
        # A file object, not a path, makes py7zr decompress in this thread, one member at a time.
        with (
            path.open("rb") as file,
            py7zr.SevenZipFile(file, blocksize=_COMPRESSED_BYTES) as archive,
        ):
            entries = [entry for entry in archive.list() if entry.is_file]
            spelling = _known_files((entry.filename for entry in entries), path)
            sizes = {entry.filename: int(entry.uncompressed) for entry in entries}
            members.known = {
                _file_name(inside): (name, sizes[inside]) for name, inside in spelling.items()
            }
            archive.extract(targets=list(spelling.values()), factory=members)
    except AtpError:
        raise
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:
        # py7zr raises whatever its parts raise on a damaged archive: its own errors, lzma's,
        # struct's, IndexError, … All of them mean the same thing to the person who gave the file.
        if members.sink_errors:
            raise members.sink_errors[0] from None
        raise InputError(
            f"{path} cannot be read as a 7z archive: {str(error) or type(error).__name__}."
        ) from error
    return members.order


class _Members:
    """Opens a sink for each member that py7zr decompresses (its ``WriterFactory``)."""

    def __init__(self, opener: Opener) -> None:
        self.opener = opener
        self.known: dict[str, tuple[str, int]] = {}  # lower-case name -> known name and size
        self.order: list[str] = []
        self.sink_errors: list[Exception] = []

    def create(self, filename: str) -> _Member:
        name, size = self.known[_file_name(filename)]
        self.order.append(name)
        return _Member(self.opener(name, size), size, self.sink_errors)


class _Member:
    """A member on its way to its sink (py7zr's ``Py7zIO``)."""

    def __init__(self, sink: Sink, expected: int, sink_errors: list[Exception]) -> None:
        self.sink = sink
        self.expected = expected
        self.sink_errors = sink_errors
        self.written = 0

    def write(self, data: bytes | bytearray) -> int:
        with self._noting_errors():
            self.sink.write(data)
        self.written += len(data)
        return len(data)

    def close(self) -> None:
        if self.written >= self.expected:  # otherwise an error is on its way up
            with self._noting_errors():
                self.sink.close()

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """Tell errors of the sink from those of the archive, which py7zr may wrap."""
        try:
            yield
        except Exception as error:
            self.sink_errors.append(error)
            raise

    def read(self, size: int | None = None) -> bytes:
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def flush(self) -> None:
        return None

    def size(self) -> int:
        return self.written
