"""The files of a dump as streams of bytes, from a folder or from the site's 7z archive.

Nothing is extracted to disk: the members of an archive are decompressed in memory, piece by piece,
and matched by their file name alone, so no name in an archive can point outside of anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Protocol

from atpgraph.errors import AtpError, InputError
from atpgraph_qa.data.schema import FILES

_READ_BYTES = 1 << 20
_COMPRESSED_BYTES = 1 << 16  # read at a time: a small piece becomes a much larger one


class Sink(Protocol):
    """Takes the bytes of one file."""

    def write(self, data: bytes | bytearray) -> None:
        """Take the next bytes."""

    def close(self) -> None:
        """Finish: the file is complete."""


Opener = Callable[[str, int], Sink]  # file name and size -> where its bytes go


def stream(dump: Path, opener: Opener) -> None:
    """Send every known file of `dump` through the sink that `opener` returns for it."""
    if dump.is_dir():
        _stream_folder(dump, opener)
    elif dump.is_file():
        _stream_7z(dump, opener)
    else:
        raise InputError(f"There is no dump at {dump}: give a folder of XML files or a .7z file.")


def _known_files(paths: Iterable[str], where: Path) -> dict[str, str]:
    """Return the path of every known file, matched by its last part without regard to case."""
    wanted = {name.lower(): name for name in FILES}
    found: dict[str, str] = {}
    for path in paths:
        known = wanted.get(_file_name(path))
        if known is None:
            continue
        if known in found:
            raise InputError(
                f"{where} holds {known} twice ({found[known]!r} and {path!r}); "
                "give the dump of one site."
            )
        found[known] = path
    if "Posts.xml" not in found:
        raise InputError(f"{where} holds no Posts.xml, so it is not the dump of a site.")
    return found


def _file_name(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).name.lower()


def _stream_folder(folder: Path, opener: Opener) -> None:
    found = _known_files((entry.name for entry in sorted(folder.iterdir())), folder)
    for name in FILES:
        if name not in found:
            continue
        path = folder / found[name]
        try:
            with path.open("rb") as file:
                sink = opener(name, os.fstat(file.fileno()).st_size)
                while data := file.read(_READ_BYTES):
                    sink.write(data)
                sink.close()
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror}.") from error


def _stream_7z(path: Path, opener: Opener) -> None:
    import py7zr

    members = _Members(opener)
    try:
        # A file object, not a path, makes py7zr decompress in this thread, one member at a time.
        with (
            path.open("rb") as file,
            py7zr.SevenZipFile(file, blocksize=_COMPRESSED_BYTES) as archive,
        ):
            entries = [entry for entry in archive.list() if entry.is_file]
            found = _known_files((entry.filename for entry in entries), path)
            sizes = {entry.filename: int(entry.uncompressed) for entry in entries}
            members.known = {name.lower(): (name, sizes[found[name]]) for name in found}
            archive.extract(targets=list(found.values()), factory=members)
    except AtpError:
        raise
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:
        # py7zr raises whatever its parts raise on a damaged archive: its own errors, lzma's,
        # struct's, IndexError, … All of them mean the same thing to the person who gave the file.
        if members.sink_error is not None:
            raise members.sink_error from None
        raise InputError(
            f"{path} cannot be read as a 7z archive: {str(error) or type(error).__name__}."
        ) from error


class _Members:
    """Open a sink for each member that py7zr decompresses (its ``WriterFactory``)."""

    def __init__(self, opener: Opener) -> None:
        self.opener = opener
        self.known: dict[str, tuple[str, int]] = {}  # lower-case name -> known name and size
        self.sink_error: Exception | None = None  # py7zr may wrap it

    def create(self, filename: str) -> _Member:
        name, size = self.known[_file_name(filename)]
        return _Member(self, self.opener(name, size), size)


class _Member:
    """Pass a member on to its sink (py7zr's ``Py7zIO``)."""

    def __init__(self, members: _Members, sink: Sink, expected: int) -> None:
        self.members, self.sink, self.expected = members, sink, expected
        self.written = 0

    def write(self, data: bytes | bytearray) -> int:
        self._pass_on(lambda: self.sink.write(data))
        self.written += len(data)
        return len(data)

    def close(self) -> None:
        if self.written >= self.expected:  # otherwise an error is on its way up
            self._pass_on(self.sink.close)

    def _pass_on(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.members.sink_error = self.members.sink_error or error
            raise

    def read(self, size: int | None = None) -> bytes:
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def flush(self) -> None:
        return None

    def size(self) -> int:
        return self.written
