"""The frame of a chart: axes, ticks, numbers and colors, shared by all charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from atpgraph.util.palette import N_COLORS

WIDTH = 440
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 10, 42


class Frame:
    """The axes of a chart, which turn data into positions in the drawing."""

    def __init__(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        x_log: bool,
        y_range: tuple[float, float] | None,
        height: int,
    ) -> None:
        self.x_log, self.height = x_log, height
        self.x_low, self.x_high = min(xs, default=0.0), max(xs, default=1.0)
        if x_log:
            self.x_low, self.x_high = max(self.x_low, 1e-4) / 1.3, max(self.x_high, 1e-4) * 1.3
        if self.x_low == self.x_high:
            self.x_high = self.x_low + 1.0
        low, high = min(ys, default=0.0), max(ys, default=1.0)
        margin = 0.06 * (high - low) or 0.05
        self.y_low, self.y_high = y_range or (low - margin, high + margin)

    def x(self, value: float) -> float:
        """Where a value lies across the drawing."""
        low, high = self.x_low, self.x_high
        if self.x_log:
            value, low, high = math.log(max(value, 1e-4)), math.log(low), math.log(high)
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Where a value lies down the drawing."""
        inside = self.height - TOP - BOTTOM
        return TOP + inside * (1 - (value - self.y_low) / (self.y_high - self.y_low))

    def axes(self, x_label: str, y_label: str, x_ticks: Sequence[float] | None = None) -> str:
        """Grid, numbers and names of both axes."""
        bottom = self.height - BOTTOM
        if x_ticks is None:
            x_ticks = (
                log_ticks(self.x_low, self.x_high) if self.x_log else ticks(self.x_low, self.x_high)
            )
        parts = [grid_x(self.x, x_ticks, TOP, bottom)]
        for value in ticks(self.y_low, self.y_high):
            y = self.y(value)
            parts.append(
                f'<path class="axis" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
                f'<text class="soft" x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">'
                f"{number(value)}</text>"
            )
        middle = (TOP + bottom) / 2
        parts.append(axis_label((LEFT + WIDTH - RIGHT) / 2, self.height - 5, x_label))
        parts.append(
            f'<text class="soft" text-anchor="middle" transform="translate(11 {middle}) '
            f'rotate(-90)">{escape(y_label)}</text>'
        )
        return "".join(parts)


def svg(kind: str, title: str, height: int, parts: Sequence[str], width: int = WIDTH) -> str:
    """The drawing as an element of a page."""
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title, quote=True)}">{"".join(parts)}</svg>'
    )


def grid_x(at: Callable[[float], float], ticks: Sequence[float], top: float, bottom: float) -> str:
    """Vertical lines at the ticks, with their numbers below."""
    parts = []
    for value in ticks:
        x = at(value)
        parts.append(
            f'<path class="axis" d="M{x:.1f} {top}V{bottom}"/>'
            f'<text class="soft" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">'
            f"{number(value)}</text>"
        )
    return "".join(parts)


def axis_label(x: float, y: float, text: str) -> str:
    """The name of a horizontal axis."""
    return f'<text class="soft" x="{x:.1f}" y="{y}" text-anchor="middle">{escape(text)}</text>'


def color_of(number: int | None) -> str:
    """A color of the page by its number; None is grey."""
    return "var(--muted)" if number is None else f"var(--c{number % N_COLORS})"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two ends."""
    rough = (high - low) / about
    size = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten between two ends, with 2 and 5 times them where those are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [10.0**p for p in powers if low <= 10.0**p <= high]
    if len(marks) < 2:
        marks = [f * 10.0**p for p in powers for f in (1, 2, 5) if low <= f * 10.0**p <= high]
    return marks


def number(value: float) -> str:
    """A number as short as it reads well."""
    if value != 0 and abs(value) < 0.001:
        return f"{value:.0e}".replace("e-0", "e-")
    if abs(value) >= 10_000 and value % 100 == 0:
        return f"{value / 1000:,g}k"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return text.rstrip("0").rstrip(".") or "0"
