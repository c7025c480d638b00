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
        self._is_stdin = os.fspath(given) == "-"
        self._file = self._opened()
        self._stream: Any = self._file
        self._packed = ""
        self.size: int | None = None
        try:
            begin = self._file.peek(4)[:4]
            self.is_parquet = begin == _PARQUET
            if begin.startswith(_GZIP):
                self._packed, self._stream = "gzip", gzip.GzipFile(fileobj=self._file, mode="rb")
            elif begin == _ZSTD:
                zstd = io.BufferedReader(_Zstd(self._file), 1 << 20)
                self._packed, self._stream = "Zstandard", zstd
            elif begin and self.path.suffix in (".gz", ".zst"):
                kind = "gzip" if self.path.suffix == ".gz" else "Zstandard"
                raise InputError(f"{self.path} is not a {kind} file; rename it or compress it.")
            elif not self._is_stdin:
                self.size = os.fstat(self._file.fileno()).st_size or None
        except OSError as error:
            self.close()
            raise InputError(f"{self.path} cannot be read: {error}.") from None
        except BaseException:
            self.close()
            raise

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield the bytes, unpacked, `size` at a time; the last block may be shorter."""
        while block := self._read(size):
            yield block

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._is_stdin:
            self._file.detach()
        else:
            self._file.close()

    def _opened(self) -> Any:
        path = self.path
        if self._is_stdin:
            return io.BufferedReader(sys.stdin.buffer, 1 << 16)
        try:
            return path.open("rb", buffering=1 << 16)
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

    def _read(self, size: int) -> bytes:
        """Return exactly `size` bytes, except at the end."""
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._stream.read(size)
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


def shown_name(path: str | os.PathLike[str]) -> Path:
    """Return what to call a file."""
    return Path("standard input" if os.fspath(path) == "-" else path)
