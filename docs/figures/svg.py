"""A little SVG: text, boxes, arrows, and where the nodes of a layered drawing stand."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from html import escape

from atpgraph.util.palette import BLUE, GREEN, INK, LINE, MUTED, ORANGE, PAPER, QUIET, RED, WASH

FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
NODE_HEIGHT = 24.0
Point = tuple[float, float]


def picture(width: float, height: float, parts: Sequence[str], title: str) -> str:
    """A whole SVG file on its own background, so that it reads on light and dark pages."""
    heads = "".join(
        f'<marker id="head-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" '
        f'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
        f'<path d="M0 .6 7.4 4 0 7.4z" fill="{color}"/></marker>'
        for name, color in _HEADS.items()
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="{FONT}" font-size="13">\n'
        f"<title>{escape(title)}</title>\n<defs>{heads}</defs>\n"
        f'<rect width="{width:g}" height="{height:g}" rx="10" fill="{PAPER}"/>\n{body}\n</svg>\n'
    )


_HEADS = {color.lstrip("#"): color for color in (INK, QUIET, LINE, MUTED, BLUE, RED, ORANGE, GREEN)}


def text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "middle",
    color: str = INK,
    size: float = 13,
    bold: bool = False,
    turn: float = 0,
) -> str:
    """Text whose baseline is at (x, y)."""
    weight = ' font-weight="600"' if bold else ""
    turned = f' transform="rotate({turn:g} {x:g} {y:g})"' if turn else ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{color}" font-size="{size:g}"'
        f"{weight}{turned}>{escape(words)}</text>"
    )


def box(
    x: float, y: float, width: float, height: float, *, fill: str = WASH, line: str = LINE,
    radius: float = 6,
) -> str:  # fmt: skip
    """A rectangle with round corners."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
        f'fill="{fill}" stroke="{line}"/>'
    )


def pill_width(label: str) -> float:
    """Width of a node with this label."""
    return max(NODE_HEIGHT, 7.0 * len(label) + 16)


def node(at: Point, label: str, *, fill: str = "#ffffff", line: str = INK) -> str:
    """A node: a pill with its label, the center at a point."""
    width = pill_width(label)
    x, y = at
    return box(
        x - width / 2, y - NODE_HEIGHT / 2, width, NODE_HEIGHT, fill=fill, line=line,
        radius=NODE_HEIGHT / 2,
    ) + text(x, y + 4.5, label)  # fmt: skip


def arrow(
    start: Point,
    end: Point,
    *,
    color: str = QUIET,
    bend: float = 0.0,
    dashed: bool = False,
    width: float = 1.3,
    widths: tuple[float, float] = (NODE_HEIGHT, NODE_HEIGHT),
) -> str:
    """An arrow from node to node, ending at their borders; `bend` moves its middle sideways."""
    (x0, y0), (x1, y1) = start, end
    middle = ((x0 + x1) / 2 - bend * (y1 - y0), (y0 + y1) / 2 + bend * (x1 - x0))
    a = _border(start, middle, widths[0], 2)
    b = _border(end, middle, widths[1], 4)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<path d="M{a[0]:.1f} {a[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {b[0]:.1f} {b[1]:.1f}" '
        f'fill="none" stroke="{color}" stroke-width="{width:g}"{dash} '
        f'marker-end="url(#head-{color.lstrip("#")})"/>'
    )


def _border(center: Point, towards: Point, width: float, gap: float) -> Point:
    """Where a line from the center of a pill leaves it."""
    dx, dy = towards[0] - center[0], towards[1] - center[1]
    length = math.hypot(dx, dy) or 1.0
    half_width, half_height = width / 2 + gap, NODE_HEIGHT / 2 + gap
    flat = half_width - half_height  # half of the straight part of the border
    if dy and abs(dx / dy) * half_height <= flat:
        step = half_height / abs(dy)
    else:
        # The round end: walk out until the distance to the end's center is the radius.
        step, low, high = 1.0, 0.0, (half_width + half_height) / length
        for _ in range(40):
            step = (low + high) / 2
            x, y = abs(dx) * step, abs(dy) * step
            inside = math.hypot(max(x - flat, 0.0), y) < half_height
            low, high = (step, high) if inside else (low, step)
    return center[0] + dx * step, center[1] + dy * step


def layered(
    level_of: dict[Hashable, int],
    edges: Sequence[tuple[Hashable, Hashable]],
    left: float,
    right: float,
    bottom: float,
    top: float,
) -> dict[Hashable, Point]:
    """Levels as rows, the first at the bottom; within a row by the mean place of the neighbors."""
    rows: dict[int, list[Hashable]] = {}
    for name, level in level_of.items():
        rows.setdefault(level, []).append(name)
    highest = max(rows)
    x: dict[Hashable, float] = {}

    def spread(row: list[Hashable]) -> None:
        for place, name in enumerate(row):
            x[name] = left + (right - left) * (place + 0.5) / len(row)

    for row in rows.values():
        spread(row)
    for _ in range(12):
        for level in sorted(rows):
            beside = {
                name: [x[v] for u, v in edges if u == name] + [x[u] for u, v in edges if v == name]
                for name in rows[level]
            }
            rows[level].sort(
                key=lambda name: (sum(beside[name]) / max(len(beside[name]), 1), str(name))
            )
            spread(rows[level])
    step = (bottom - top) / max(highest - 1, 1)
    return {name: (x[name], bottom - step * (level - 1)) for name, level in level_of.items()}
