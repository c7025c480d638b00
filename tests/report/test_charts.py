"""Charts: every mark is there, inside the drawing, and text is escaped."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.report import (
    Bar,
    Line,
    Section,
    bar_chart,
    line_chart,
    method_colors,
    page,
    table,
    write_page,
)
from atpgraph.util.palette import N_COLORS

finite = st.floats(1e-6, 1e6)


def parse(chart: str) -> ET.Element:
    """The drawing; what follows it is the legend."""
    return ET.fromstring(chart[: chart.index("</svg>") + 6])


def inside(root: ET.Element) -> bool:
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for mark in root.iter():
        for name, limit in [("x", width), ("cx", width), ("y", height), ("cy", height)]:
            if name in mark.attrib and not -1 <= float(mark.attrib[name]) <= limit + 1:
                return False
    return True


@given(st.lists(finite, min_size=1, max_size=30))
def test_bars(values: list[float]) -> None:
    bars = [Bar(f"m{i} <&>", value, value * 0.9, value * 1.1) for i, value in enumerate(values)]
    root = parse(bar_chart(bars, title="a & b", unit="AUC"))
    drawn = [mark for mark in root.iter() if mark.get("class") == "bar"]
    assert len(drawn) == len(values)
    assert sum(mark.get("class") == "whisker" for mark in root.iter()) == len(values)
    assert inside(root)
    widths = [float(mark.attrib["width"]) for mark in drawn]
    for (a, x), (b, y) in zip(
        zip(values, widths, strict=True), list(zip(values, widths, strict=True))[1:], strict=False
    ):
        assert (a - b) * (x - y) >= 0  # longer bars for larger values


def test_bars_without_intervals_have_no_whiskers() -> None:
    chart = bar_chart([Bar("one", 0.0), Bar("two", 0.5)], title="t", unit="u", top=1.0)
    assert "whisker" not in chart


@given(st.lists(st.tuples(finite, st.floats(0, 1)), min_size=2, max_size=25), st.booleans())
def test_points_are_lines_of_one_point(values: list[tuple[float, float]], x_log: bool) -> None:
    points = [Line(f"method {i}", [x], [y]) for i, (x, y) in enumerate(values)]
    root = parse(line_chart(points, title="t", x_label="x", y_label="y", x_log=x_log))
    assert sum(mark.tag == "circle" for mark in root.iter()) == len(values)
    assert inside(root)


def test_lines_and_legend() -> None:
    lines = [
        Line("<best>", [0, 0.5, 1], [0, 0.9, 1], 0, markers=True),
        Line("grey", [0, 1], [0, 1], None),
    ]
    chart = line_chart(lines, title="t", x_label="x", y_label="y", diagonal=True)
    assert parse(chart) is not None
    assert chart.count('class="line"') == 2
    assert chart.count("<circle") == 3
    assert "&lt;best&gt;</li>" in chart
    assert "others</li>" in chart
    # The colored line is drawn last, above the grey one.
    assert chart.index("var(--muted)") < chart.index("var(--c0)")


@given(st.lists(st.integers(1, 100_000), min_size=2, max_size=200))
def test_a_line_rises_where_its_values_do(values: list[int]) -> None:
    line = Line("all", range(len(values)), values)
    root = parse(line_chart([line], title="t", x_label="level"))
    drawn = next(mark for mark in root.iter() if mark.get("class") == "line")
    heights = [float(y) for y in re.findall(r"[ML]-?[\d.]+ (-?[\d.]+)", drawn.attrib["d"])]
    assert len(heights) == len(values)
    assert all(math.isfinite(y) for y in heights)
    assert inside(root)
    for (a, x), (b, y) in itertools.pairwise(zip(values, heights, strict=True)):
        assert (a - b) * (x - y) <= 0


def test_page_loads_nothing_and_escapes() -> None:
    html = page("<t>", "s & s", [Section("<h>", table(["a"], [["1"]]))], command="atp <x>")
    assert "<title>&lt;t&gt;</title>" in html
    assert "<h2>&lt;h&gt;</h2>" in html
    assert "<code>atp &lt;x&gt;</code>" in html
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"https?://|<script|src=", html)


names = st.permutations([f"m{i}" for i in range(12)])


@given(st.lists(names, min_size=1, max_size=5))
def test_colors_are_distinct_and_go_to_the_best(rankings: list[list[str]]) -> None:
    colors = method_colors(rankings)
    assert sorted(colors.values()) == list(range(len(colors)))
    assert len(colors) == N_COLORS
    if len(rankings) <= len(colors):
        assert {ranking[0] for ranking in rankings} <= set(colors)


def test_a_diagonal_is_where_both_axes_agree() -> None:
    line = Line("router", [0.4, 0.6], [0.1, 0.9], 0)
    chart = line_chart([line], title="t", x_label="x", y_label="y", y_range=(0, 1), diagonal=True)
    path = re.search(r'stroke-dasharray="3 3" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', chart)
    assert path is not None
    x0, y0, x1, y1 = map(float, path.groups())
    ticks = {
        float(value): float(y)
        for y, value in re.findall(r'x="55" y="([\d.]+)" text-anchor="end">([\d.]+)<', chart)
    }
    # From corner to corner, though the line itself is shorter.
    assert (x0, x1) == (60, 428)
    assert y0 == pytest.approx(ticks[0] - 4, abs=0.2)
    assert y1 == pytest.approx(ticks[1] - 4, abs=0.2)


def test_a_page_holds_what_utf8_does_not(tmp_path) -> None:
    """Such as half of a file name that is no text, in the command at its foot."""
    path = write_page(tmp_path / "page.html", page("x", "", [], "atp embed \udcff"))
    assert r"atp embed \udcff" in path.read_text(encoding="utf-8")
