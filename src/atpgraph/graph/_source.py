"""The bytes of an edge list, in blocks: a file or standard input, plain, gzipped or Zstandard."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from atpgraph.errors import InputError, MissingDependencyError

_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"


class Source:
    """A stream of bytes with a name for messages.

    Attributes
    ----------
    path : Path
        What to call it.
    size : int or None
        Bytes to come, where that is known: a plain file.
    is_parquet : bool
        Whether it is a Parquet file, which is not read from here.
    """

    def __init__(self, given: str | os.PathLike[str]) -> None:
        self.path = shown_name(given)
        self._file = self._open(os.fspath(given) == "-")
        begin = self._read(self._file, 4)
        self.is_parquet = begin == _PARQUET
        self.size: int | None = None
        self._packed = ""
        rest = io.BufferedReader(_Rejoined(begin, self._file), 1 << 16)
        self._stream: Any = rest
        if begin.startswith(_GZIP):
            self._packed, self._stream = "gzip", gzip.GzipFile(fileobj=rest, mode="rb")
        elif begin == _ZSTD:
            self._packed, self._stream = "Zstandard", io.BufferedReader(_Zstd(rest), 1 << 20)
        elif self.path.suffix == ".gz" and begin:
            self.close()
            raise InputError(f"{self.path} is not a gzip file; rename it or compress it.")
        elif self.path.suffix == ".zst" and begin:
            self.close()
            raise InputError(f"{self.path} is not a Zstandard file; rename it or compress it.")
        elif self._file is not _stdin():
            status = os.fstat(self._file.fileno())
            self.size = status.st_size or None

    def blocks(self, size: int) -> Iterator[bytes]:
        """The bytes, unpacked, `size` at a time; the last block may be shorter."""
        while block := self._read(self._stream, size):
            yield block

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._file is not _stdin():
            self._file.close()

    def _open(self, standard_input: bool) -> IO[bytes]:
        path = self.path
        if standard_input:
            return _stdin()
        try:
            return path.open("rb", buffering=0)
        except IsADirectoryError:
            raise InputError(f"{path} is a directory; name a file.") from None
        except FileNotFoundError:
            raise InputError(f"{path} does not exist; check the name.") from None
        except PermissionError:
            if os.path.isdir(path):  # what Windows says about a directory
                raise InputError(f"{path} is a directory; name a file.") from None
            raise InputError(f"{path} may not be read: permission denied.") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}.") from None

    def _read(self, stream: Any, size: int) -> bytes:
        """Exactly `size` bytes, except at the end."""
        parts: list[bytes] = []
        while size > 0:
            try:
                part = stream.read(size)
            except EOFError:
                raise self._damage("truncated", "") from None
            except (zlib.error, gzip.BadGzipFile) as error:
                raise self._damage("damaged", f" ({error})") from None
            except OSError as error:
                raise InputError(f"{self.path} cannot be read: {error}.") from None
            except Exception as error:
                if type(error).__name__ != "ZstdError":
                    raise
                raise self._damage("damaged", f" ({error})") from None
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _damage(self, how: str, why: str) -> InputError:
        return InputError(f"{self.path} is a {how} {self._packed} file{why}; fetch it again.")


class _Rejoined(io.RawIOBase):
    """Bytes that were looked at, then the rest of their file."""

    def __init__(self, begin: bytes, rest: IO[bytes]) -> None:
        self._begin, self._rest = begin, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._begin[: len(buffer)] or self._rest.read(len(buffer))
        self._begin = self._begin[len(part) :]
        buffer[: len(part)] = part
        return len(part)


class _Zstd(io.RawIOBase):
    """Unpacked Zstandard; the package's own stream would take a file that is cut off for whole."""

    # Fed in small pieces, because three bytes can stand for 128 KiB.
    _PIECE = 1 << 10

    def __init__(self, file: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingDependencyError("zstandard", "zstd", "Reading .zst files") from None
        self._file, self._frames = file, zstandard.ZstdDecompressor()
        self._frame: Any = None
        self._packed = self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = self._packed or self._file.read(self._PIECE)
            if not packed:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._frame = self._frame or self._frames.decompressobj()
            self._ready, self._packed = self._frame.decompress(packed), b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        part = self._ready[: len(buffer)]
        self._ready = self._ready[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def _stdin() -> IO[bytes]:
    return sys.stdin.buffer


def shown_name(path: str | os.PathLike[str]) -> Path:
    """What to call a file."""
    return Path("standard input" if os.fspath(path) == "-" else path)
