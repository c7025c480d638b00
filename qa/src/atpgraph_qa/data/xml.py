"""The attributes of the rows of a block, by libxml2.

A block is parsed in small pieces; a piece that does not parse is cleaned of illegal characters and
parsed again, and if that fails too, row by row, so that one broken row costs one row. The parser
never resolves an entity or opens a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from atpgraph_qa.data.blocks import ROW

PIECE_BYTES = 128 << 10  # parsed at a time: the tree stays in the cache of the processor
_REASONS = 100  # broken rows of a block whose reason is looked up
_COMMENT, _COMMENT_END = b"<!--", b"-->"
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r")
# References to characters that XML 1.0 does not allow: controls, surrogates, U+FFFE and U+FFFF.
_ILLEGAL_REFERENCE = re.compile(
    rb"&#(?:x0*(?:[0-8bcef]|1[0-9a-f]|d[89a-f][0-9a-f]{2}|fff[ef])?;"
    rb"|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|5529[6-9]|55[3-9][0-9]{2}|5[67][0-9]{3}|6553[45])?;)",
    re.IGNORECASE,
)


def load_lxml() -> Any:
    """Import `lxml.etree`."""
    from lxml import etree

    return etree


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
        stop = block.find(ROW, start + PIECE_BYTES)
        stop = len(block) if stop < 0 else stop
        yield block[start:stop]
        start = stop


def _parse_piece(block: bytes, gather: _Gather, broken: list[str]) -> int:
    """Gather the rows of a piece and what is broken; return the number of illegal characters."""
    if gather.add(block):
        return 0
    block, cleaned = _clean(block)
    if gather.add(block):
        return cleaned
    starts = [match.start() for match in re.finditer(ROW, block)]
    if not starts or block[: starts[0]].strip():
        broken.append("text or an element that is not a row")
    for start, stop in pairwise([*starts, len(block)]):
        piece = block[start:stop]
        close = piece.find(b"/>") + 2
        if close < 2 and b"</" not in piece:  # cannot be sound: no need to ask the parser
            broken.append("not closed")
        # Something strange may follow a sound row: a stray end tag, another element.
        elif not gather.add(piece) and not (close >= 2 and gather.add(piece[:close])):
            broken.append(_why(gather, piece) if len(broken) < _REASONS else "not well formed")
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
        """Take a piece; return False if it is malformed or has elements other than rows."""
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
        """Return the values by column."""
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


def _without_comments(block: bytes) -> bytes:
    """The block without its closed comments, in one pass."""
    kept, place = [], 0
    while (start := block.find(_COMMENT, place)) >= 0:
        stop = block.find(_COMMENT_END, start + len(_COMMENT))
        if stop < 0:
            break
        kept.append(block[place:start])
        place = stop + len(_COMMENT_END)
    kept.append(block[place:])
    return b"".join(kept)


def _clean(block: bytes) -> tuple[bytes, int]:
    """The block without illegal characters and comments, and how many characters went."""
    block = _without_comments(block)
    kept = block.translate(None, _CONTROL)
    cleaned = len(block) - len(kept)
    kept, references = _ILLEGAL_REFERENCE.subn(b"", kept)
    text = kept.decode("utf-8", "replace")
    replaced = text.count("\ufffd")
    if replaced:
        replaced -= kept.count("\ufffd".encode())
        kept = text.encode()
    return kept, cleaned + references + replaced


def _why(gather: _Gather, piece: bytes) -> str:
    """What the parser says about a broken row; never the row itself, which may hold names."""
    try:
        root = gather.etree.fromstring(b"<rows>" + piece + b"</rows>", gather.parser)
    except gather.etree.XMLSyntaxError as error:
        return re.sub(r"\s+", " ", str(error.msg or "not well formed"))[:80]
    return "nothing but a row is expected" if len(root) else "not well formed"
