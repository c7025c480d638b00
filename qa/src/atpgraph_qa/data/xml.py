"""Cut the bytes of a dump file into blocks of whole rows, and read the attributes of the rows.

A dump file is one root element with a million ``<row …/>`` in it. A ``<`` cannot occur inside an
attribute value of well-formed XML, so ``<row`` always begins a row, and blocks of whole rows can be
parsed one by one, in any thread. libxml2 parses a block in small pieces. A piece that fails is
cleaned of illegal characters and parsed again. If that fails too, it is parsed row by row, so that
one broken row costs one row.

The input is treated as hostile: a document type declaration is an error, so there are no entities
to expand; the parser never opens a file; a row larger than 64 MiB is skipped and counted instead of
filling the memory; and every regular expression here takes linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from lxml import etree

from atpgraph.errors import InputError

BLOCK_BYTES = 4 << 20
LARGEST_ROW = 64 << 20
LARGEST_PROLOG = 1 << 20
PIECE_BYTES = 128 << 10  # parsed at a time: the tree stays in the cache of the processor
ROW = b"<row"
_KEPT_BYTES = 256  # of a row that is skipped: what follows it may have begun, or be the end tag
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?>\s+|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*)(?:\s[^<>]*?)?(/?)>")
_AFTER_ROOT = re.compile(rb"\s*>(?>\s+|<!--.*?-->)*+\Z", re.DOTALL)
_COMMENT = re.compile(rb"<!--(?:.*?(-->)|.*\Z)", re.DOTALL)
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r")
# References to characters that XML 1.0 does not allow: controls, surrogates, U+FFFE and U+FFFF.
_ILLEGAL_REFERENCE = re.compile(
    rb"&#(?:x0*(?:[0-8bcef]|1[0-9a-f]|d[89a-f][0-9a-f]{2}|fff[ef])?;"
    rb"|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|5529[6-9]|55[3-9][0-9]{2}|5[67][0-9]{3}|6553[45])?;)",
    re.IGNORECASE,
)
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)


class RowBlocks:
    """Cut the bytes of one dump file into blocks of whole rows, as they arrive.

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
        self.oversized = 0  # rows that were skipped
        self.truncated = False  # whether the file ended before its root element did
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
        tag = f"</{self.root}".encode()
        end = rest.lower().rfind(tag)
        self.truncated = end < 0 or not _AFTER_ROOT.match(rest, end + len(tag))
        rest = rest if self.truncated else rest[:end]
        if rest.strip() and not self._skipping:
            yield rest

    def _enter(self, *, final: bool) -> bool:
        """Step over declaration, comments and the root element; False if more bytes are needed."""
        pending = bytes(self._pending)
        if pending[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{self.name} is UTF-16, but dumps are UTF-8: convert it first.")
        prolog = _PROLOG.match(pending)
        start = prolog.end() if prolog else 0
        if pending[start : start + 9].upper() == b"<!DOCTYPE":
            raise InputError(
                f"{self.name} declares a document type; dumps have none, and its entities are "
                "not expanded. Remove the declaration if you trust the file."
            )
        root = _ROOT.match(pending, start)
        if root is None and not final and len(pending) < LARGEST_PROLOG + self._block_bytes:
            return False
        if root is None or root[1].lower() != self.root.encode():
            shown = pending[start : start + 40].decode("utf-8", "replace")
            raise InputError(
                f"{self.name} is not a table of a Stack Exchange dump: expected <{self.root}>, "
                + (f"found {shown!r}." if shown else "found nothing.")
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


class Rows:
    """Read the attributes of the rows of a block.

    `wanted` names the attributes that are read of each kind of row, and `switch` the attribute that
    tells the kind; without one, the kind of every row is 0.

    Examples
    --------
    >>> rows = Rows(b'<row Id="1" A="x&#x0E;y"/><row Id=2/><row Id="3"/>', {0: ("Id", "A")})
    >>> rows.columns(0), len(rows.broken), rows.cleaned
    ([['1', '3'], ['xy', None]], 1, 1)
    """

    def __init__(
        self, block: bytes, wanted: Mapping[int, tuple[str, ...]], switch: str = ""
    ) -> None:
        self._parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            recover=False,
            collect_ids=False,
            remove_comments=True,
            remove_pis=True,
            remove_blank_text=True,
        )
        self._nested = etree.XPath("boolean(*/*)")
        # lxml encodes a str on every call
        self._keys = {kind: [name.encode() for name in names] for kind, names in wanted.items()}
        self._switch = switch.encode()
        # One flat list for each kind: a tuple for every row would keep the garbage collector busy.
        self._values: dict[int, list[str | None]] = {kind: [] for kind in wanted}
        self.others: Counter[str | None] = Counter()  # rows of other kinds, by the text of switch
        self.broken: list[str] = []  # why rows could not be parsed, one message for each
        self.cleaned = 0  # illegal characters removed or replaced to make rows parse
        start = 0
        while start < len(block):
            stop = block.find(ROW, start + PIECE_BYTES)
            stop = len(block) if stop < 0 else stop
            self._read(block[start:stop])
            start = stop

    def columns(self, kind: int) -> list[list[str | None]]:
        """Return the text of each wanted attribute in every row of a kind, None where missing."""
        step = len(self._keys[kind])
        return [self._values[kind][place::step] for place in range(step)]

    def _read(self, piece: bytes) -> None:
        """Read a piece as it is; if that fails, clean it; if that fails too, read row by row."""
        if not self._add(piece):
            return
        piece = self._clean(piece)
        if not self._add(piece):
            return
        starts = [match.start() for match in re.finditer(ROW, piece)]
        if not starts or piece[: starts[0]].strip():
            self.broken.append("text or an element that is not a row")
        for start, stop in pairwise([*starts, len(piece)]):
            row = piece[start:stop]
            close = row.find(b"/>") + 2
            if close < 2 and b"</" not in row:  # cannot be sound: no need to ask the parser
                self.broken.append("not closed")
            # Something strange may follow a sound row: a stray end tag, another element.
            elif (why := self._add(row)) and not (close >= 2 and not self._add(row[:close])):
                self.broken.append(why)

    def _add(self, piece: bytes) -> str:
        """Add all rows of a piece or none; the reason returned does not quote them (names)."""
        try:
            root = etree.fromstring(b"<rows>" + piece + b"</rows>", self._parser)
        except etree.XMLSyntaxError as error:
            return re.sub(r"\s+", " ", str(error.msg or "not well formed"))[:80]
        rows = list(root.iterchildren("row"))
        if len(rows) != len(root) or self._nested(root):
            return "nothing but a row is expected"
        if not self._switch:
            self._take(0, rows)
            return ""
        texts = [row.get(self._switch) for row in rows]
        for text, count in Counter(texts).items():
            kind = None if text is None else integer(text)
            if kind in self._keys:
                mine = zip(rows, texts, strict=True)
                self._take(kind, [row for row, this in mine if this == text])
            else:
                self.others[text] += count
        return ""

    def _take(self, kind: int, rows: list[Any]) -> None:
        keys = self._keys[kind]
        self._values[kind] += [row.get(key) for row in rows for key in keys]

    def _clean(self, piece: bytes) -> bytes:
        """Return a piece without comments and illegal characters, which are counted."""
        piece = _COMMENT.sub(lambda comment: b"" if comment[1] else comment[0], piece)
        kept = piece.translate(None, _CONTROL)
        self.cleaned += len(piece) - len(kept)
        kept, references = _ILLEGAL_REFERENCE.subn(b"", kept)
        text = kept.decode("utf-8", "replace")
        self.cleaned += references + text.count("\ufffd") - kept.count("\ufffd".encode())
        return text.encode()


def integer(text: str) -> int | None:
    """Return the integer that a text represents, or None.

    ``int()`` alone would take "1_000", other scripts' digits, and more than 64 bits.
    """
    return int(text) if _INTEGER.fullmatch(text) else None
