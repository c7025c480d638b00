"""Cut the bytes of a dump file into blocks of whole rows.

A dump file is one root element with a million ``<row …/>`` in it. A ``<`` cannot stand inside an
attribute value of well-formed XML, so ``<row`` always begins a row, and blocks of whole rows can be
parsed one by one, in any thread.

The input is hostile until shown otherwise: a document type declaration is refused, so there are no
entities to expand, and a row larger than 64 MiB is skipped (and counted) instead of filling the
memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from atpgraph.errors import InputError

BLOCK_BYTES = 4 << 20
LARGEST_ROW = 64 << 20
LARGEST_PROLOG = 1 << 20
ROW = b"<row"
_KEPT_BYTES = 256  # of a row that is skipped: what follows it may have begun, or be the end tag
_BOM = b"\xef\xbb\xbf"
_PROLOG = re.compile(rb"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*)(?:\s[^<>]*?)?(/?)>")
_COMMENT, _COMMENT_END = b"<!--", b"-->"


class RowBlocks:
    """Cut the bytes of one dump file into blocks of whole rows, as they arrive.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    root : str
        Name its root element must have.

    Attributes
    ----------
    oversized : int
        Rows that were skipped because they are larger than 64 MiB.
    truncated : bool
        After :meth:`finish`: the file ended before its root element did.

    Examples
    --------
    >>> blocks = RowBlocks("Posts.xml", "posts")
    >>> list(blocks.feed(b'<posts><row Id="1"/>')), list(blocks.feed(b'<row Id="2"/></posts>'))
    ([], [])
    >>> list(blocks.finish()), blocks.truncated
    ([b'<row Id="1"/><row Id="2"/>'], False)
    """

    def __init__(self, name: str, root: str, block_bytes: int = BLOCK_BYTES) -> None:
        self.name = name
        self.root = root
        self.oversized = 0
        self.truncated = False
        self._block_bytes = block_bytes
        self._pending = bytearray()
        self._in_rows = False
        self._skipping = False
        self._empty = False

    def feed(self, data: bytes | bytearray) -> Iterator[bytes]:
        """Take the next bytes; yield the blocks that are complete."""
        for start in range(0, len(data), self._block_bytes):
            self._pending += data[start : start + self._block_bytes]
            if len(self._pending) < self._block_bytes:
                return
            if self._in_rows or self._enter(final=False):
                yield from self._cut()

    def finish(self) -> Iterator[bytes]:
        """Yield what is left at the end of the file."""
        if not self._in_rows:
            self._enter(final=True)
        rest = bytes(self._pending)
        self._pending.clear()
        if self._empty:
            return
        if self._skipping and ROW in rest:
            rest = rest[rest.find(ROW) :]
            self._skipping = False
        end = _trailer(rest, self.root.encode())
        self.truncated = end is None
        rest = rest[:end]
        if rest.strip() and not self._skipping:
            yield rest

    def _enter(self, *, final: bool) -> bool:
        """Step over declaration, comments and the root element; False if more bytes are needed."""
        pending = bytes(self._pending)
        if pending[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{self.name} is UTF-16, but dumps are UTF-8: convert it first.")
        start = len(_BOM) if pending.startswith(_BOM) else 0
        prolog = _PROLOG.match(pending, start)
        start = prolog.end() if prolog else start
        root = _ROOT.match(pending, start)
        if root is None:
            if pending[start : start + 9].upper() == b"<!DOCTYPE":
                raise InputError(
                    f"{self.name} declares a document type; a dump has none, and entities of "
                    "unknown files are not expanded. Remove the declaration if you trust the file."
                )
            if not final and len(pending) < LARGEST_PROLOG + self._block_bytes:
                return False
            shown = pending[start : start + 40].decode("utf-8", "replace")
            raise InputError(
                f"{self.name} is not a table of a Stack Exchange dump: expected <{self.root}>, "
                + (f"found {shown!r}." if shown else "found nothing.")
            )
        if root[1].decode("ascii", "replace").lower() != self.root:
            raise InputError(
                f"{self.name} is not a table of a Stack Exchange dump: its root element is "
                f"<{root[1].decode('utf-8', 'replace')[:40]}>, expected <{self.root}>."
            )
        self._empty = bool(root[2])
        self._in_rows = True
        del self._pending[: root.end()]
        return True

    def _cut(self) -> Iterator[bytes]:
        if self._skipping:
            start = self._pending.find(ROW)
            if start < 0:
                del self._pending[:-_KEPT_BYTES]
                return
            del self._pending[:start]
            self._skipping = False
        cut = self._pending.rfind(ROW, 1)
        if cut > 0:
            with memoryview(self._pending) as pending:
                block = bytes(pending[:cut])
            yield block
            del self._pending[:cut]
        if len(self._pending) > LARGEST_ROW:
            self.oversized += 1
            self._skipping = True
            self._pending.clear()


def _trailer(rest: bytes, root: bytes) -> int | None:
    """Where the end tag of the root begins, if nothing but comments and blanks follow it.

    From the end backwards, and each byte once: a regular expression would look through the rest of
    the file again for every comment that is opened and never closed.
    """
    stop = _before_blanks(rest, len(rest))
    while rest.endswith(_COMMENT_END, 0, stop):
        start = rest.rfind(_COMMENT, 0, stop - len(_COMMENT_END))
        if start < 0:
            return None
        stop = _before_blanks(rest, start)
    if not rest.endswith(b">", 0, stop):
        return None
    stop = _before_blanks(rest, stop - 1)
    start = stop - len(root) - 2
    return start if start >= 0 and rest[start:stop].lower() == b"</" + root else None


def _before_blanks(text: bytes, stop: int) -> int:
    while stop and text[stop - 1 : stop].isspace():
        stop -= 1
    return stop
