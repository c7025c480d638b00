"""The bytes of an edge list, in blocks: a file or standard input, plain, gzipped or Zstandard."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from atpgraph.errors import InputError, MissingDependencyError

_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"


class Source:
    """A stream of bytes with a name for messages, `path`.

    `size` is the number of bytes to come, None unless it is a plain file. Parquet files are not
    read from here: `is_parquet`.
    """

    def __init__(self, given: str | os.PathLike[str]) -> None:
        self.path = shown_name(given)
        self._is_stdin = os.fspath(given) == "-"
        self._file = self._opened()
        self.size: int | None = None
        try:
            begin = self._file.peek(4)[:4]
            self.is_parquet = begin == _PARQUET
            self._packing = ""
            if begin.startswith(_GZIP):
                self._packing = "gzip"
            elif begin == _ZSTD:
                self._packing = "Zstandard"
            elif begin and self.path.suffix in (".gz", ".zst"):
                kind = "gzip" if self.path.suffix == ".gz" else "Zstandard"
                raise InputError(f"{self.path} is not a {kind} file; rename it or compress it.")
            elif not self._is_stdin:
                self.size = os.fstat(self._file.fileno()).st_size or None
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise InputError(f"{self.path} cannot be read: {error}.") from None
            raise

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield the bytes, unpacked, `size` at a time; the last block may be shorter."""
        try:
            if not self._packing:
                yield from iter(partial(self._file.read, size), b"")
                return
            block = bytearray()
            for part in self._unpacked():
                block += part
                while len(block) >= size:
                    yield bytes(block[:size])
                    del block[:size]
            if block:
                yield bytes(block)
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error}.") from None

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
        except (OSError, ValueError) as error:
            problem = f"cannot be read: {error}"
            if os.path.isdir(path):  # Windows denies permission
                problem = "is a directory; name a file"
            elif isinstance(error, FileNotFoundError):
                problem = "does not exist; check the name"
            elif isinstance(error, PermissionError):
                problem = "may not be read: permission denied"
            raise InputError(f"{path} {problem}.") from None

    def _unpacked(self) -> Iterator[bytes]:
        """Yield the unpacked bytes; there may be several gzip members, or Zstandard frames."""
        # The reader that comes with Zstandard mistakes a file that is cut off for a whole one.
        # Pieces are small because three bytes can stand for 128 KiB.
        start: Any = partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)
        failure: Any = zlib.error
        piece = 1 << 14
        if self._packing == "Zstandard":
            try:
                import zstandard
            except ImportError:
                raise MissingDependencyError("zstandard", "zstd", "Reading .zst files") from None
            start, failure = zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError
            piece = 1 << 10
        stream = None
        while packed := self._file.read(piece):
            while packed:
                stream = stream or start()
                try:
                    yield stream.decompress(packed)
                except failure as error:
                    raise self._damage("damaged", f" ({error})") from None
                packed = b""
                if stream.eof:
                    packed, stream = stream.unused_data, None
                    if self._packing == "gzip":  # tape drives pad with zeros
                        packed = packed.lstrip(b"\0")
        if stream is not None:
            raise self._damage("truncated", "")

    def _damage(self, how: str, why: str) -> InputError:
        return InputError(f"{self.path} is a {how} {self._packing} file{why}; fetch it again.")


def shown_name(path: str | os.PathLike[str]) -> Path:
    """Return the name of a file in messages."""
    return Path("standard input" if os.fspath(path) == "-" else path)
