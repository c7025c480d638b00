from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.errors import InputError
from atpgraph_qa.data import xml as cutting
from atpgraph_qa.data.xml import RowBlocks, Rows

from ..dumps import xml

# What XML 1.0 allows in an attribute.
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="￾￿"), max_size=20)
legal = text.map(lambda s: "".join(c for c in s if ord(c) >= 32))


def read(data: bytes, sizes: list[int], block_bytes: int) -> tuple[list[list[str | None]], bool]:
    """Ids and values of all rows, from pieces of the given sizes."""
    blocks = RowBlocks("Posts.xml", "posts", block_bytes)
    found: list[list[str | None]] = [[], []]
    start = 0
    pieces = []
    while start < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[start : start + size])
        start += size
    for part in [b for piece in pieces for b in blocks.feed(piece)] + list(blocks.finish()):
        rows = Rows(part, {0: ("Id", "A")})
        assert not rows.broken
        for column, more in zip(found, rows.columns(0), strict=True):
            column += more
    return found, blocks.truncated


@given(
    st.lists(legal, max_size=30),
    st.lists(st.integers(1, 50), min_size=1, max_size=5),
    st.integers(8, 300),
)
def test_any_cut_of_the_stream_gives_the_same_rows(values, sizes, block_bytes):
    data = xml("posts", [{"Id": i, "A": value} for i, value in enumerate(values)]).encode()
    found, truncated = read(data, sizes, block_bytes)
    assert found == [[str(i) for i in range(len(values))], values]
    assert not truncated


@pytest.mark.parametrize(
    "prolog",
    [
        b"",
        b"\xef\xbb\xbf",
        b'<?xml version="1.0" encoding="utf-8"?>\n',
        b'\xef\xbb\xbf<?xml version="1.0"?><!-- a comment with <row Id="9"/> -->\n',
        b"<!-- one --> <!-- two -->",
    ],
)
def test_what_may_stand_before_the_root(prolog):
    found, _ = read(prolog + b'<posts><row Id="1" A="x"/></posts><!-- end -->\n', [1000], 1 << 20)
    assert found == [["1"], ["x"]]


def test_an_empty_table():
    assert read(b"<posts/>", [3], 8) == ([[], []], False)
    assert read(b"<posts></posts>", [3], 8) == ([[], []], False)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not xml",
        b"<html><body/></html>",
        b"<users><row/></users>",
        b"\xff\xfe<\x00p\x00",
        b'<!DOCTYPE posts [<!ENTITY a "b">]><posts><row Id="&a;"/></posts>',
        b'<!DOCTYPE posts SYSTEM "file:///etc/passwd"><posts/>',
    ],
)
def test_what_is_no_table_is_refused(data):
    with pytest.raises(InputError, match=r"Posts\.xml"):
        read(data, [5], 8)


@pytest.mark.parametrize("last", [b'<row Id="3"/><row Id="4"/></posts>', b"</posts>", b""])
@pytest.mark.parametrize("block_bytes", [8, 64, 700])
def test_a_row_that_is_too_large_is_skipped_and_counted(monkeypatch, block_bytes, last):
    monkeypatch.setattr(cutting, "LARGEST_ROW", 1000)
    data = b'<posts><row Id="1"/><row Id="2" A="' + b"x" * 5000 + b'"/>' + last
    blocks = RowBlocks("Posts.xml", "posts", block_bytes)
    pieces = [part for i in range(0, len(data), 50) for part in blocks.feed(data[i : i + 50])]
    pieces += blocks.finish()
    ids = [number for part in pieces for number in Rows(part, {0: ("Id",)}).columns(0)[0]]
    assert ids == (["1", "3", "4"] if b"3" in last else ["1"])
    assert (blocks.oversized, blocks.truncated) == (1, last == b"")


TOKENS = [b"<!--", b"<?", b"<![CDATA[", b"<row ", b'<row Id="', b'"', b"<", b"<!---->", b"-->"]


@pytest.mark.parametrize("start", [b"", b'<posts><row Id="1"/>'], ids=["before", "within"])
@pytest.mark.parametrize("token", TOKENS, ids=str)
def test_what_is_never_closed_costs_no_quadratic_time(token, start):
    """Three megabytes of it; one regular expression that starts over at each took hours."""
    blocks = RowBlocks("Posts.xml", "posts")
    data = start + token * (3_000_000 // len(token))
    with contextlib.suppress(InputError):
        for at in range(0, len(data), 1 << 16):
            for block in blocks.feed(data[at : at + (1 << 16)]):
                Rows(block, {0: ("Id",)})
        list(blocks.finish())
        assert blocks.truncated


def test_a_million_comments_at_the_end_cost_no_exponential_time():
    data = b'<posts><row Id="1" A="x"/></posts>' + b"<!---->" * 5000 + b"x"
    blocks = RowBlocks("Posts.xml", "posts")
    assert list(blocks.feed(data)) == []
    list(blocks.finish())
    assert blocks.truncated
