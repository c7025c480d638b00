"""Charts of many values: columns side by side, and clouds of dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from atpgraph.report.axes import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Frame, number, svg
from atpgraph.util.palette import N_STEPS


@dataclass(frozen=True)
class Dots:
    """Points without labels, each with the step (from 0) of the scale of colors it belongs to."""

    x: Sequence[float]
    y: Sequence[float]
    step: Sequence[int]


def column_chart(
    values: Sequence[float],
    *,
    title: str,
    x_label: str,
    y_label: str,
    first: int = 1,
    log: bool = False,
    height: int = 240,
) -> str:
    """Columns over whole numbers, the leftmost standing for `first`.

    Parameters
    ----------
    values : sequence of float
        Heights, at least 0.
    log : bool
        Heights on a logarithmic scale, for values of which a few are much larger than the rest.

    Examples
    --------
    >>> chart = column_chart([3, 0, 1], title="Levels", x_label="level", y_label="nodes")
    >>> chart.count('class="bar"')
    2
    """
    top = max(values, default=1.0) or 1.0
    left, bottom = LEFT, height - BOTTOM
    width = WIDTH - left - RIGHT
    step = min(width / max(len(values), 1), 44.0)
    floor = 0.5 if log else 0.0

    def y(value: float) -> float:
        if log:
            share = math.log(max(value, floor) / floor) / math.log(1.1 * top / floor)
        else:
            share = value / (1.05 * top)
        return TOP + (bottom - TOP) * (1 - share)

    parts = []
    for tick in _ticks_up_to(top, log):
        at = y(tick)
        parts.append(
            f'<path class="axis" d="M{left} {at:.1f}H{WIDTH - RIGHT}"/>'
            f'<text class="soft" x="{left - 5}" y="{at + 4:.1f}" text-anchor="end">'
            f"{number(tick)}</text>"
        )
    gap = min(2.0, 0.15 * step)
    for place, value in enumerate(values):
        if value > 0:
            parts.append(
                f'<rect class="bar" x="{left + step * place + gap / 2:.2f}" y="{y(value):.1f}" '
                f'width="{step - gap:.2f}" height="{bottom - y(value):.1f}" fill="var(--c0)">'
                f"<title>{escape(x_label)} {first + place}: {number(value)}</title></rect>"
            )
    every = next(s for p in range(9) for s in (10**p, 2 * 10**p, 5 * 10**p) if len(values) / s <= 9)
    parts += [
        f'<text class="soft" x="{left + step * (place + 0.5):.1f}" y="{bottom + 14}" '
        f'text-anchor="middle">{first + place:,}</text>'
        for place in range(len(values))
        if (first + place) % every == 0 or (place == 0 and every > 2)
    ]
    names = f"{y_label}, logarithmic" if log else y_label
    parts.append(
        f'<text class="soft" text-anchor="middle" x="{left + width / 2}" y="{height - 5}">'
        f"{escape(x_label)}</text>"
        f'<text class="soft" text-anchor="middle" transform="translate(11 {(TOP + bottom) / 2}) '
        f'rotate(-90)">{escape(names)}</text>'
    )
    return svg("columns", title, height, parts)


def _ticks_up_to(top: float, log: bool) -> list[float]:
    if log:
        return [10.0**p for p in range(math.floor(math.log10(max(top, 1.0))) + 1)]
    rough = top / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = max(1.0, next(size * f for f in (1, 2, 5, 10) if size * f >= rough * 0.999))
    return [step * i for i in range(int(top / step) + 1)]


def dot_chart(
    dots: Dots,
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    height: int = 330,
) -> str:
    """A cloud of dots; ranges make several clouds comparable."""
    frame = Frame(x_range or dots.x, dots.y, False, y_range, height)
    radius = 2.6 if len(dots.x) <= 400 else 1.7
    # One path per color: a dot is a line of no length with round ends, a few bytes each.
    ways: dict[int, list[str]] = {}
    for x, y, step in zip(dots.x, dots.y, dots.step, strict=True):
        place = f"M{frame.x(x):.1f} {frame.y(y):.1f}h0"
        ways.setdefault(min(max(step, 0), N_STEPS - 1), []).append(place)
    parts = [frame.axes(x_label, y_label)]
    parts += [
        f'<path class="dots" fill="none" stroke="var(--s{step})" stroke-width="{2 * radius}" '
        f'stroke-linecap="round" d="{"".join(way)}"/>'
        for step, way in sorted(ways.items())
    ]
    return svg("cloud", title, height, parts)


def step_legend(names: Sequence[tuple[int, str]]) -> str:
    """The names of steps of the scale of colors."""
    items = [
        f'<li><i style="background:var(--s{step})"></i>{escape(name)}</li>' for step, name in names
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'
