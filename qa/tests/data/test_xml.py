from __future__ import annotations

import pytest

from atpgraph_qa.data.xml import parse_block


@pytest.mark.parametrize(
    "bad",
    ["&#x0E;", "&#x00;", "&#0;", "&#14;", "&#x1f;", "&#xD800;", "&#55296;", "&#xFFFE;", "\x07"],
)
def test_illegal_characters_are_removed_and_counted_and_the_row_stays(bad):
    block = f'<row Id="1" A="a{bad}b{bad}"/><row Id="2" A="&#xA;&#9;&#x10FFFF;"/>'.encode()
    rows = parse_block(block, {"": ("Id", "A")})
    assert rows.columns[""] == [["1", "2"], ["ab", "\n\t\U0010ffff"]]
    assert (rows.broken, rows.cleaned) == ([], 2)


def test_bytes_that_are_no_utf8_become_replacement_characters():
    rows = parse_block(b'<row Id="1" A="a\xff\xfeb"/>', {"": ("Id", "A")})
    assert rows.columns[""][1] == ["a\ufffd\ufffdb"]
    assert (rows.broken, rows.cleaned) == ([], 2)


@pytest.mark.parametrize(
    "broken",
    [
        b'<row Id="2" A="x/>',
        b"<row Id=2/>",
        b'<row Id="2" Id="3"/>',
        b'<row Id="2" A="&undefined;"/>',
        b'<row Id="2" A="&"/>',
        b'<row Id="2"><row Id="3"/>',
    ],
)
def test_one_broken_row_costs_one_row(broken):
    rows = parse_block(b'<row Id="1"/>' + broken + b'<row Id="4"/>', {"": ("Id",)})
    assert rows.columns[""][0][0] == "1"
    assert rows.columns[""][0][-1] == "4"
    assert len(rows.broken) == 1


def test_other_elements_are_reported():
    rows = parse_block(b'<row Id="1"/><other/><row Id="2"/>', {"": ("Id",)})
    assert rows.columns[""] == [["1", "2"]]
    rows = parse_block(b'<other/><row Id="2"/>', {"": ("Id",)})
    assert (rows.columns[""], len(rows.broken)) == ([["2"]], 1)
