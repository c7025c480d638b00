from __future__ import annotations

import pytest

from atpgraph_qa.data.xml import Rows


@pytest.mark.parametrize(
    "bad",
    ["&#x0E;", "&#x00;", "&#0;", "&#14;", "&#x1f;", "&#xD800;", "&#55296;", "&#xFFFE;", "\x07"],
)
def test_illegal_characters_are_removed_and_counted_and_the_row_stays(bad):
    block = f'<row Id="1" A="a{bad}b{bad}"/><row Id="2" A="&#xA;&#9;&#x10FFFF;"/>'.encode()
    rows = Rows(block, {0: ("Id", "A")})
    assert rows.columns(0) == [["1", "2"], ["ab", "\n\t\U0010ffff"]]
    assert (rows.broken, rows.cleaned) == ([], 2)


def test_bytes_that_are_no_utf8_become_replacement_characters():
    rows = Rows(b'<row Id="1" A="a\xff\xfeb"/>', {0: ("Id", "A")})
    assert rows.columns(0)[1] == ["a\ufffd\ufffdb"]
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
    rows = Rows(b'<row Id="1"/>' + broken + b'<row Id="4"/>', {0: ("Id",)})
    assert rows.columns(0)[0][0] == "1"
    assert rows.columns(0)[0][-1] == "4"
    assert len(rows.broken) == 1


def test_other_elements_are_reported():
    rows = Rows(b'<row Id="1"/><other/><row Id="2"/>', {0: ("Id",)})
    assert rows.columns(0) == [["1", "2"]]
    rows = Rows(b'<other/><row Id="2"/>', {0: ("Id",)})
    assert (rows.columns(0), len(rows.broken)) == ([["2"]], 1)
