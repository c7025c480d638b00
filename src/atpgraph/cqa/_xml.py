"""From the bytes of a dump file to the attributes of its rows.

A dump file is one root element with a million ``<row …/>`` in it. The stream is cut into blocks of
whole rows: a ``<`` cannot stand inside an attribute value of well-formed XML, so ``<row`` always
begins a row. Each block is parsed on its own, in whatever thread and in small pieces, with libxml2;
a piece that does not parse is cleaned of illegal characters and parsed again, and if that fails
too, row by row, so that one broken row costs one row.

The input is hostile until shown otherwise: a document type declaration is refused, so there are no
entities to expand, the parser never resolves an entity or opens a file, and a row larger than
64 MiB is skipped (and counted) instead of filling the memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from atpgraph.errors import InputError, MissingDependencyError

BLOCK_BYTES = 4 << 20
PIECE_BYTES = 128 << 10  # parsed at a time: the tree stays in the cache of the processor
LARGEST_ROW = 64 << 20
LARGEST_PROLOG = 1 << 20
_KEPT_BYTES = 256  # of a row that is skipped: what follows it may have begun, or be the end tag

_ROW = b"<row"
_BOM = b"\xef\xbb\xbf"
_PROLOG = re.compile(rb"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*)(?:\s[^<>]*?)?(/?)>")
# Atomic groups: a file that ends in a million comments must not cost exponential time.
_TRAILER = rb"</%s\s*>(?>\s+|<!--(?>.*?-->))*+\Z"
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r")
# References to characters that XML 1.0 does not allow: controls, surrogates, U+FFFE and U+FFFF.
_ILLEGAL_REFERENCE = re.compile(
    rb"&#(?:x0*(?:[0-8bcef]|1[0-9a-f]|d[89a-f][0-9a-f]{2}|fff[ef])?;"
    rb"|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|5529[6-9]|55[3-9][0-9]{2}|5[67][0-9]{3}|6553[45])?;)",
    re.IGNORECASE,
)


def load_lxml() -> Any:
    """The module `lxml.etree`, or the sentence that says how to get it."""
    try:
        from lxml import etree
    except ImportError as error:
        raise MissingDependencyError("lxml", "cqa", "Reading a Stack Exchange dump") from error
    return etree


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
        """Take the next bytes; give the blocks that are complete."""
        for start in range(0, len(data), self._block_bytes):
            self._pending += data[start : start + self._block_bytes]
            if len(self._pending) < self._block_bytes:
                return
            if self._in_rows or self._enter(final=False):
                yield from self._cut()

    def finish(self) -> Iterator[bytes]:
        """The file is over: give what is left."""
        if not self._in_rows:
            self._enter(final=True)
        rest = bytes(self._pending)
        self._pending.clear()
        if self._empty:
            return
        if self._skipping and _ROW in rest:
            rest = rest[rest.find(_ROW) :]
            self._skipping = False
        end = re.search(_TRAILER % self.root.encode(), rest, re.DOTALL | re.IGNORECASE)
        self.truncated = end is None
        if end is not None:
            rest = rest[: end.start()]
        if rest.strip() and not self._skipping:
            yield rest

    def _enter(self, *, final: bool) -> bool:
        """Step over declaration, comments and the root element; False if more bytes are needed."""
        pending = bytes(self._pending)
        if pending[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{self.name} is UTF-16; dumps are UTF-8: convert it first.")
        start = len(_BOM) if pending.startswith(_BOM) else 0
        prolog = _PROLOG.match(pending, start)
        start = prolog.end() if prolog else start
        found = _ROOT.match(pending, start)
        if found is None:
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
        if found[1].decode("ascii", "replace").lower() != self.root:
            raise InputError(
                f"{self.name} is not a table of a Stack Exchange dump: its root element is "
                f"<{found[1].decode('utf-8', 'replace')[:40]}>, expected <{self.root}>."
            )
        self._empty = bool(found[2])
        self._in_rows = True
        del self._pending[: found.end()]
        return True

    def _cut(self) -> Iterator[bytes]:
        if self._skipping:
            start = self._pending.find(_ROW)
            if start < 0:
                del self._pending[:-_KEPT_BYTES]
                return
            del self._pending[:start]
            self._skipping = False
        cut = self._pending.rfind(_ROW, 1)
        if cut > 0:
            with memoryview(self._pending) as pending:
                block = bytes(pending[:cut])
            yield block
            del self._pending[:cut]
        if len(self._pending) > LARGEST_ROW:
            self.oversized += 1
            self._skipping = True
            self._pending.clear()


Names = Mapping[str, tuple[str, ...]]  # kind of row -> its attributes that are wanted


@dataclass
class Rows:
    """The rows of one block.

    Attributes
    ----------
    columns : dict of lists
        For every kind, and every wanted attribute of it, the text in every row, None where missing.
    others : dict
        Number of rows of each other kind; None for rows without the attribute that tells.
    broken : list of str
        One message for every row that could not be parsed.
    cleaned : int
        Illegal characters that were removed or replaced to make rows parse.
    """

    columns: dict[str, list[list[str | None]]]
    others: Counter[str | None]
    broken: list[str]
    cleaned: int = 0


def parse_block(block: bytes, names: Names, switch: str = "") -> Rows:
    """Attributes of every row of `block`, which holds whole rows.

    Parameters
    ----------
    block : bytes
        Whole rows.
    names : dict
        The attributes wanted, by kind of row.
    switch : str
        The attribute that tells the kind; without one, the kind of every row is ``""``.

    Examples
    --------
    >>> names = {"": ("Id", "A")}
    >>> parse_block(b'<row Id="1" A="&lt;"/><row Id="2"/>', names).columns
    {'': [['1', '2'], ['<', None]]}
    >>> rows = parse_block(b'<row Id="1" A="x&#x0E;y"/><row Id=2/><row Id="3"/>', names)
    >>> rows.columns, len(rows.broken), rows.cleaned
    ({'': [['1', '3'], ['xy', None]]}, 1, 1)
    """
    gather = _Gather(load_lxml(), names, switch)
    broken: list[str] = []
    cleaned = sum(_parse_piece(piece, gather, broken) for piece in _pieces(block))
    return Rows(gather.columns(), gather.others, broken, cleaned)


def _pieces(block: bytes) -> Iterator[bytes]:
    """Parts of a block that begin with rows."""
    start = 0
    while start < len(block):
        stop = block.find(_ROW, start + PIECE_BYTES)
        stop = len(block) if stop < 0 else stop
        yield block[start:stop]
        start = stop


def _parse_piece(block: bytes, gather: _Gather, broken: list[str]) -> int:
    """Gather the rows of a piece, and what is broken; the number of illegal characters."""
    if gather.add(block):
        return 0
    block, cleaned = _clean(block)
    if gather.add(block):
        return cleaned
    starts = [match.start() for match in re.finditer(_ROW, block)]
    if not starts or block[: starts[0]].strip():
        broken.append("text or an element that is not a row")
    for start, stop in pairwise([*starts, len(block)]):
        piece = block[start:stop]
        # Something strange may follow a sound row: a stray end tag, another element.
        sound = piece[: piece.find(b"/>") + 2]
        if not gather.add(piece) and not (sound and gather.add(sound)):
            broken.append(_why(gather.etree, piece))
    return cleaned


class _Gather:
    """Collects the values of sound blocks, row by row.

    One flat list for each kind: a tuple for every row would keep the garbage collector busy.
    """

    def __init__(self, etree: Any, names: Names, switch: str) -> None:
        self.etree = etree
        self.parser = _parser(etree)
        self.nested = etree.XPath("boolean(*/*)")
        # lxml encodes a str on every call
        self.keys = {kind: [name.encode() for name in wanted] for kind, wanted in names.items()}
        self.switch = switch.encode()
        self.values: dict[str, list[str | None]] = {kind: [] for kind in names}
        self.others: Counter[str | None] = Counter()

    def add(self, block: bytes) -> bool:
        """Take a piece; False if it is not well formed or has other elements than rows."""
        try:
            root = self.etree.fromstring(b"<rows>" + block + b"</rows>", self.parser)
        except self.etree.XMLSyntaxError:
            return False
        rows = list(root.iterchildren("row"))
        if len(rows) != len(root) or self.nested(root):
            return False
        if not self.switch:
            self._take("", rows)
            return True
        kinds = [row.get(self.switch) for row in rows]
        for kind, count in Counter(kinds).items():
            known = _canonical(kind)
            if known in self.keys:
                mine = zip(rows, kinds, strict=True)
                self._take(known, [row for row, this in mine if this == kind])
            else:
                self.others[kind] += count
        return True

    def _take(self, kind: str, rows: list[Any]) -> None:
        keys = self.keys[kind]
        self.values[kind] += [row.get(key) for row in rows for key in keys]

    def columns(self) -> dict[str, list[list[str | None]]]:
        """The values by column."""
        return {
            kind: [values[place :: len(self.keys[kind])] for place in range(len(self.keys[kind]))]
            for kind, values in self.values.items()
        }


def _canonical(kind: str | None) -> str:
    """``"1"`` for ``" 01"``, which XML's idea of an integer allows."""
    text = (kind or "").strip()
    return str(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else text


def _parser(etree: Any) -> Any:
    return etree.XMLParser(
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


def _clean(block: bytes) -> tuple[bytes, int]:
    """The block without illegal characters and comments, and how many characters went."""
    block = _COMMENT.sub(b"", block)
    kept = block.translate(None, _CONTROL)
    cleaned = len(block) - len(kept)
    kept, references = _ILLEGAL_REFERENCE.subn(b"", kept)
    text = kept.decode("utf-8", "replace")
    replaced = text.count("\ufffd")
    if replaced:
        replaced -= kept.count("\ufffd".encode())
        kept = text.encode()
    return kept, cleaned + references + replaced


def _why(etree: Any, piece: bytes) -> str:
    """What the parser says about a broken row; never the row itself, which may hold names."""
    try:
        root = etree.fromstring(b"<rows>" + piece + b"</rows>", _parser(etree))
    except etree.XMLSyntaxError as error:
        return re.sub(r"\s+", " ", str(error.msg or "not well formed"))[:80]
    return "nothing but a row is expected" if len(root) else "not well formed"
