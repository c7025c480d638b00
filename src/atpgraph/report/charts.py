"""Charts as inline SVG: bars, lines, points and histograms, in the colors of the page.

They are drawn for a width of 440 units, so that their text stays readable on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from atpgraph.report.axes import (
    BOTTOM,
    LEFT,
    TOP,
    WIDTH,
    Frame,
    axis_label,
    color_of,
    grid_x,
    number,
    svg,
    ticks,
)

_LETTER = 6.6  # width of a letter of a label, generously


@dataclass(frozen=True)
class Bar:
    """One bar: label, length, ends of its interval (NaN for none), color number (None: grey)."""

    label: str
    value: float
    low: float = math.nan
    high: float = math.nan
    color: int | None = 0


@dataclass(frozen=True)
class Line:
    """One line: label, coordinates, color number (None draws it thin and grey)."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    color: int | None = 0
    markers: bool = False


@dataclass(frozen=True)
class Point:
    """One labelled point, with a color number (None: grey)."""

    label: str
    x: float
    y: float
    color: int | None = 0


def bar_chart(bars: Sequence[Bar], *, title: str, unit: str, top: float | None = None) -> str:
    """Horizontal bars from zero, with whiskers for the intervals and the values beside them.

    Examples
    --------
    >>> bar_chart([Bar("a", 0.5)], title="AUC", unit="AUC").count('class="bar"')
    1
    """
    space, step = 160, 22
    whole = all(float(bar.value).is_integer() for bar in bars) and any(b.value > 1 for b in bars)
    height = TOP + step * len(bars) + 36
    limit = top or _nice_top(max([bar.value for bar in bars] + _finite([b.high for b in bars])))
    width = WIDTH - space - 52

    def at(value: float) -> float:
        return space + width * min(max(value / limit, 0.0), 1.0)

    parts = [grid_x(at, ticks(0.0, limit, 4), TOP, height - 36)]
    for row, bar in enumerate(bars):
        y = TOP + step * row
        label, length = escape(_short(bar.label)), max(at(bar.value) - space, 0.5)
        parts.append(
            f'<text x="{space - 6}" y="{y + 15}" text-anchor="end">{label}</text>'
            f'<rect class="bar" x="{space}" y="{y + 4}" width="{length:.1f}" '
            f'height="{step - 8}" rx="1.5" fill="{color_of(bar.color)}">'
            f"<title>{escape(bar.label)}: {bar.value:.4f}</title></rect>"
        )
        if math.isfinite(bar.low):
            low, high, middle = at(bar.low), at(bar.high), y + step / 2
            parts.append(
                f'<path class="whisker" d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 3}v6'
                f'M{high:.1f} {middle - 3}v6"/>'
            )
        value = f"{bar.value:,.0f}" if whole else _fixed(bar.value)
        parts.append(f'<text x="{WIDTH}" y="{y + 15}" text-anchor="end">{value}</text>')
    parts.append(axis_label(space + width / 2, height - 5, unit))
    return svg("bars", title, height, parts)


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    y_range: tuple[float, float] | None = None,
    x_log: bool = False,
    diagonal: bool = False,
    x_ticks: Sequence[float] | None = None,
    height: int = 330,
) -> str:
    """Lines over common axes; grey ones lie below the colored ones.

    `diagonal` is where y = x. A single line has no legend: the axis names it.
    """
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in line.y]
    if diagonal and y_range is not None:
        xs += y_range  # so that the diagonal is that of the drawing
    frame = Frame(xs, ys, x_log, y_range, height)
    if x_ticks is None and x_log and len(set(xs)) < 8:
        x_ticks = sorted(set(xs))
    parts = [frame.axes(x_label, y_label, x_ticks)]
    low, high = max(frame.x_low, frame.y_low), min(frame.x_high, frame.y_high)
    if diagonal and low < high:
        parts.append(
            f'<path class="axis" stroke-dasharray="3 3" d="M{frame.x(low):.1f} {frame.y(low):.1f}'
            f'L{frame.x(high):.1f} {frame.y(high):.1f}"/>'
        )
    for line in sorted(lines, key=lambda line: line.color is not None):
        path = "L".join(
            f"{frame.x(x):.1f} {frame.y(y):.1f}" for x, y in zip(line.x, line.y, strict=True)
        )
        stroke, thick = ("var(--muted)", 1) if line.color is None else (color_of(line.color), 2)
        parts.append(
            f'<path class="line" fill="none" stroke="{stroke}" stroke-width="{thick}" '
            f'stroke-linejoin="round" d="M{path}"><title>{escape(line.label)}</title></path>'
        )
        if line.markers or len(line.x) == 1:  # a line of one point would not be seen
            parts += [
                f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3" fill="{stroke}"/>'
                for x, y in zip(line.x, line.y, strict=True)
            ]
    if len(lines) == 1:
        return svg("lines", title, height, parts)
    return svg("lines", title, height, parts) + legend(
        [(line.label, line.color) for line in lines if line.color is not None],
        "others" if any(line.color is None for line in lines) else "",
    )


def scatter_chart(
    points: Sequence[Point],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_log: bool = True,
    height: int = 330,
) -> str:
    """Labelled points; a label that had to move away from its point is tied to it by a line."""
    frame = Frame([p.x for p in points], [p.y for p in points], x_log, None, height)
    parts = [frame.axes(x_label, y_label)]
    places = [(frame.x(point.x), frame.y(point.y)) for point in points]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    labels = []
    for point, (x, y) in sorted(zip(points, places, strict=True), key=lambda pair: pair[1][1]):
        text = _short(point.label)
        left, middle = _free_place(x, y, _LETTER * len(text), taken, height)
        taken.append((left, middle - 6, left + _LETTER * len(text), middle + 6))
        if abs(middle - y) > 2:
            end = left - 1 if left > x else left + _LETTER * len(text) + 1
            parts.append(f'<path class="axis" d="M{x:.1f} {y:.1f}L{end:.1f} {middle:.1f}"/>')
        # Anchored at the end next to the point, since the width is only an estimate.
        anchor, at = ("start", left) if left > x else ("end", left + _LETTER * len(text))
        labels.append(
            f'<text class="soft" x="{at:.1f}" y="{middle + 4:.1f}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )
        parts.append(
            f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4.5" '
            f'fill="{color_of(point.color)}"><title>{escape(point.label)}: {number(point.y)} at '
            f"{number(point.x)}</title></circle>"
        )
    return svg("points", title, height, parts + labels)


def histogram(
    edges: Sequence[float],
    groups: Sequence[tuple[str, Sequence[float], int]],
    *,
    title: str,
    x_label: str = "",
) -> str:
    """Overlaid bars of shares per bin: (label, shares, color number) for each group."""
    width, height, low = 220, 110, 18
    top = max((max(shares) for _, shares, _ in groups), default=0.0) or 1.0
    first, span = edges[0], edges[-1] - edges[0] or 1.0
    parts = [f'<path class="axis" d="M0 {height - low}H{width}"/>']
    for label, shares, color in groups:
        steps = []
        for share, left, right in zip(shares, edges[:-1], edges[1:], strict=True):
            x0, x1 = width * (left - first) / span, width * (right - first) / span
            y = (height - low) - (height - low - 6) * share / top
            steps.append(f"L{x0:.1f} {y:.1f}L{x1:.1f} {y:.1f}")
        parts.append(
            f'<path class="area" fill="{color_of(color)}" fill-opacity=".35" '
            f'stroke="{color_of(color)}" stroke-width="1.2" '
            f'd="M0 {height - low}{"".join(steps)}L{width} {height - low}Z">'
            f"<title>{escape(label)}</title></path>"
        )
    parts.append(
        f'<text class="soft" x="{width / 2}" y="{height - 4}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
    )
    return svg("histogram", title, height, parts, width)


def figure(title: str, chart: str, note: str = "") -> str:
    """A chart (or what stands in for it) under its title, and a note below; both are HTML."""
    return f"<figure><h3>{escape(title)}</h3>{chart}{note}</figure>"


def grid(figures: Sequence[str], *, small: bool = False) -> str:
    """Figures beside each other where there is room."""
    return f'<div class="grid{" small" if small else ""}">{"".join(figures)}</div>'


def legend(entries: Sequence[tuple[str, int | None]], rest: str = "") -> str:
    """The names of the colors under a chart."""
    items = [
        f'<li><i style="background:{color_of(color)}"></i>{escape(label)}</li>'
        for label, color in entries
        if color is not None
    ]
    if rest:
        items.append(f'<li><i style="background:var(--muted)"></i>{escape(rest)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


_Box = tuple[float, float, float, float]


def _free_place(
    x: float, y: float, width: float, taken: Sequence[_Box], height: int
) -> tuple[float, float]:
    """Left end and middle of a label near (x, y) that covers nothing, if there is such a place."""
    for shift in (0, 11, -11, 22, -22, 33, -33, 44, -44, 55, -55, 66, -66):
        away = 8 + abs(shift) / 3
        for left in (x + away, x - away - width):
            box = (left, y + shift - 6, left + width, y + shift + 6)
            inside = left >= LEFT and box[2] <= WIDTH and TOP <= box[1] <= height - BOTTOM - 12
            if inside and not any(_overlap(box, other) for other in taken):
                return left, y + shift
    return min(x + 8, WIDTH - width), y


def _overlap(a: _Box, b: _Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _short(text: str, most: int = 20) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _nice_top(value: float) -> float:
    if value <= 0 or not math.isfinite(value):
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= value * 0.999)


def _fixed(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 0.1 else f"{value:.3f}"
