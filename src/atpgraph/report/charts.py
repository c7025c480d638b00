"""Charts as inline SVG in the colors of the page.

They are drawn for a width of 440 units, so that their text stays readable on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from atpgraph.util.arrays import AnyArray
from atpgraph.util.palette import N_COLORS

Values = Sequence[float] | AnyArray
Color = int | None  # number of a color; None is gray

_WIDTH, _HEIGHT = 440, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 12, 10, 42
_LABELS, _ROW = 160, 22  # of a bar chart: width of the labels, height of a row


@dataclass(frozen=True)
class Bar:
    """One bar: label, length, ends of its interval (NaN for none), color."""

    label: str
    value: float
    low: float = math.nan
    high: float = math.nan
    color: Color = 0


@dataclass(frozen=True)
class Line:
    """One series: label, coordinates, color (gray ones are thin and lie below the others).

    ``markers`` adds a mark at each point.
    """

    label: str
    x: Values
    y: Values
    color: Color = 0
    markers: bool = False


class _Axis:
    """A scale from values to positions between `start` and `end`."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool) -> None:
        if low >= high:
            high = low * 2 if log else low + 1.0
        self.low, self.high, self.log = low, high, log
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            value, low, high = (math.log(max(each, 1e-4)) for each in (value, low, high))
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return self._start + (self._end - self._start) * share

    def ticks(self, about: int = 5) -> list[float]:
        """Return round numbers between both ends."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for factors in ((1,), (1, 2, 5)):
                marks = [factor * 10.0**power for power in powers for factor in factors]
                marks = [mark for mark in marks if self.low <= mark <= self.high]
                if len(marks) > 1:
                    break
            return marks
        step = _round_up((self.high - self.low) / about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [step * i for i in range(first, last + 1)]


def bar_chart(bars: Sequence[Bar], *, title: str, unit: str, top: float | None = None) -> str:
    """Draw horizontal bars from zero, with whiskers for the intervals and the values beside them.

    Examples
    --------
    >>> bar_chart([Bar("a", 0.5)], title="AUC", unit="AUC").count('class="bar"')
    1
    """
    values = [float(bar.value) for bar in bars]
    whole = all(value.is_integer() for value in values) and max([top or 0.0, *values]) > 1
    ends = [end for bar in bars for end in (bar.value, bar.high) if math.isfinite(end)]
    bottom = _TOP + _ROW * len(bars)
    at = _Axis(0.0, top or _round_up(max(ends, default=1.0)), _LABELS, _WIDTH - 52, False)
    parts = [_x_grid(at, at.ticks(4), bottom)]
    for row, bar in enumerate(bars):
        y, middle = _TOP + _ROW * row, _TOP + _ROW * (row + 0.5)
        length = max(at(bar.value) - _LABELS, 0.5)
        parts.append(
            f'<text x="{_LABELS - 6}" y="{y + 15}" text-anchor="end">{_short(bar.label)}</text>'
            f'<rect class="bar" x="{_LABELS}" y="{y + 4}" width="{length:.1f}" '
            f'height="{_ROW - 8}" rx="1.5" fill="{_css(bar.color)}">'
            f"<title>{escape(bar.label)}: {bar.value:.4f}</title></rect>"
        )
        if math.isfinite(bar.low):
            low, high = at(bar.low), at(bar.high)
            parts.append(
                f'<path class="whisker" d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 3}v6'
                f'M{high:.1f} {middle - 3}v6"/>'
            )
        digits = 0 if whole else 4 if abs(bar.value) < 0.1 else 3
        value = f"{bar.value:,.{digits}f}"
        parts.append(f'<text x="{_WIDTH}" y="{y + 15}" text-anchor="end">{value}</text>')
    parts.append(_x_label((_LABELS + _WIDTH - 52) / 2, bottom + 31, unit))
    return _svg("bars", title, _WIDTH, bottom + 36, parts)


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str = "",
    y_range: tuple[float, float] | None = None,
    x_log: bool = False,
    diagonal: bool = False,
) -> str:
    """Draw lines over common axes, with a legend if there are several.

    `diagonal` adds the line y = x.
    """
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in line.y]
    if diagonal and y_range is not None:
        xs += y_range  # so that the diagonal is that of the drawing
    left, right, bottom = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    if x_log:
        low, high = max(low, 1e-4) / 1.3, max(high, 1e-4) * 1.3
    x_at = _Axis(low, high, left, right, x_log)
    low, high = min(ys, default=0.0), max(ys, default=1.0)
    margin = 0.06 * (high - low) or 0.05
    y_at = _Axis(*(y_range or (low - margin, high + margin)), bottom, _TOP, False)
    few = sorted(set(xs)) if x_log and len(set(xs)) < 8 else None
    parts = [_x_grid(x_at, few or x_at.ticks(), bottom)]
    for value in y_at.ticks():
        y = y_at(value)
        parts.append(
            f'<path class="axis" d="M{left} {y:.1f}H{right}"/><text class="soft" x="{left - 5}" '
            f'y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        )
    parts.append(_x_label((left + right) / 2, _HEIGHT - 5, x_label))
    parts.append(
        f'<text class="soft" text-anchor="middle" transform="translate(11 {(_TOP + bottom) / 2}) '
        f'rotate(-90)">{escape(y_label)}</text>'
    )
    low, high = max(x_at.low, y_at.low), min(x_at.high, y_at.high)
    if diagonal and low < high:
        parts.append(
            f'<path class="axis" stroke-dasharray="3 3" d="M{x_at(low):.1f} {y_at(low):.1f}'
            f'L{x_at(high):.1f} {y_at(high):.1f}"/>'
        )
    for line in sorted(lines, key=lambda line: line.color is not None):
        parts += _series(line, x_at, y_at)
    drawing = _svg("lines", title, _WIDTH, _HEIGHT, parts)
    if len(lines) == 1:
        return drawing
    named = [(line.label, line.color) for line in lines if line.color is not None]
    gray = [("others", None)] if len(named) < len(lines) else []
    return drawing + _legend([*named, *gray])


def _series(line: Line, x_at: _Axis, y_at: _Axis) -> list[str]:
    """Return the marks of one series."""
    color, name = _css(line.color), f"<title>{escape(line.label)}</title>"
    places = [f"{x_at(x):.1f} {y_at(y):.1f}" for x, y in zip(line.x, line.y, strict=True)]
    thick = 1 if line.color is None else 2
    parts = [
        f'<path class="line" fill="none" stroke="{color}" stroke-width="{thick}" '
        f'stroke-linejoin="round" d="M{"L".join(places)}">{name}</path>'
    ]
    if line.markers or len(places) == 1:  # a line of one point would not be seen
        for place in places:
            x, y = place.split()
            parts.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{color}">{name}</circle>')
    return parts


def figure(title: str, chart: str) -> str:
    """Return a chart, or the HTML in its place, under its title."""
    return f"<figure><h3>{escape(title)}</h3>{chart}</figure>"


def grid(figures: Sequence[str]) -> str:
    """Return figures side by side where there is room."""
    return f'<div class="grid">{"".join(figures)}</div>'


def _legend(entries: Iterable[tuple[str, Color]]) -> str:
    """Return the names of the colors, to go under a chart."""
    items = [
        f'<li><i style="background:{_css(color)}"></i>{escape(label)}</li>'
        for label, color in entries
    ]
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


def method_colors(rankings: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return color numbers for the methods that rank highest under any protocol, best first.

    The other methods are drawn in gray, so that a color means the same in all charts.

    Examples
    --------
    >>> method_colors([["atp", "line"], ["nrp", "atp"]])
    {'atp': 0, 'nrp': 1, 'line': 2}
    """
    places: dict[str, list[int]] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking):
            places.setdefault(name, []).append(place)
    ordered = sorted(
        places, key=lambda name: (min(places[name]), -len(places[name]), sum(places[name]))
    )
    return {name: color for color, name in enumerate(ordered[:N_COLORS])}


def _svg(kind: str, title: str, width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{"".join(parts)}</svg>'
    )


def _x_grid(at: _Axis, ticks: Sequence[float], bottom: float) -> str:
    """Return vertical lines at the ticks, with their numbers below."""
    return "".join(
        f'<path class="axis" d="M{at(value):.1f} {_TOP}V{bottom}"/><text class="soft" '
        f'x="{at(value):.1f}" y="{bottom + 14}" text-anchor="middle">{_number(value)}</text>'
        for value in ticks
    )


def _x_label(x: float, y: float, text: str) -> str:
    return f'<text class="soft" x="{x:.1f}" y="{y}" text-anchor="middle">{escape(text)}</text>'


def _css(color: Color) -> str:
    return "var(--muted)" if color is None else f"var(--c{color % N_COLORS})"


def _short(text: str) -> str:
    return escape(text if len(text) <= 20 else text[:19] + "…")


def _round_up(value: float) -> float:
    """Return the next round number: 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= value * 0.999)


def _number(value: float) -> str:
    """Return a number as short, readable text."""
    if value != 0 and abs(value) < 0.001:
        return f"{value:.0e}".replace("e-0", "e-")
    if abs(value) >= 10_000 and value % 100 == 0:
        return f"{value / 1000:,g}k"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return text.rstrip("0").rstrip(".") or "0"
