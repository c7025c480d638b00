"""The map of the code: the pipeline, and where each file sits."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import svg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))
import architecture
from architecture import Part

from atpgraph.util.palette import BLUE, LINE, PALE_BLUE, PAPER, QUIET, WASH

STAGES = [part for part in architecture.parts() if part.gives]
USERS = [part for part in architecture.parts() if not part.gives]


def draw() -> str:
    """The picture; it lists the files that are there."""
    width, gap, left, top = 150, 14, 20, 58
    parts = [svg.text(24, 30, "src/atpgraph: data flows to the right and down, imports only back",
                      anchor="start", bold=True)]  # fmt: skip
    files = [_files(part) for part in STAGES]
    deepest = max(map(len, files))
    height = 74 + 16 * deepest
    for place, (part, listed) in enumerate(zip(STAGES, files, strict=True)):
        x = left + (width + gap) * place
        parts.append(svg.box(x, top, width, height, fill=PALE_BLUE, line=BLUE))
        parts.append(svg.text(x + 10, top + 22, part.title, anchor="start", bold=True))
        parts.append(svg.text(x + 10, top + 39, part.does, anchor="start", color=QUIET, size=12))
        for row, file in enumerate(listed):
            parts.append(svg.text(x + 10, top + 60 + 16 * row, file, anchor="start", size=12))
        if place:
            start, end = (x - gap - 1, top + 18), (x + 1, top + 18)
            parts.append(
                f'<path d="M{start[0]} {start[1]}H{end[0] - 2}" stroke="{BLUE}" '
                f'stroke-width="1.8" marker-end="url(#head-{BLUE.lstrip("#")})"/>'
            )
        parts.append(
            svg.text(x + width - 8, top + height - 8, f"→ {part.gives}", anchor="end", color=BLUE,
                     size=12)
        )  # fmt: skip
    second = top + height + 30
    across = (width + gap) * len(STAGES) - gap
    each = (across - gap * (len(USERS) - 1)) / len(USERS)
    tall = 52 + 16 * max(len(_files(part)) for part in USERS)
    middle = left + across / 2
    parts.append(
        f'<path d="M{middle} {top + height + 3}V{second - 5}" stroke="{BLUE}" stroke-width="1.8" '
        f'marker-end="url(#head-{BLUE.lstrip("#")})"/>'
    )
    for place, part in enumerate(USERS):
        x = left + (each + gap) * place
        parts.append(svg.box(x, second, each, tall, fill=WASH))
        parts.append(svg.text(x + 10, second + 22, part.title, anchor="start", bold=True))
        parts.append(svg.text(x + 10, second + 38, part.does, anchor="start", color=QUIET,
                              size=11))  # fmt: skip
        for row, file in enumerate(_files(part)):
            parts.append(svg.text(x + 10, second + 58 + 16 * row, file, anchor="start", size=11))
    third = second + tall + 14
    helpers = textwrap.wrap("used by all:  " + "  ".join(architecture.shared()), 150)
    parts.append(svg.box(left, third, across, 16 + 18 * len(helpers), fill=PAPER, line=LINE))
    for row, line in enumerate(helpers):
        parts.append(svg.text(left + 10, third + 22 + 18 * row, line, anchor="start", size=12))
    bottom = third + 34 + 18 * len(helpers)
    return svg.picture(left * 2 + across, bottom, parts, "Map of the code of atpgraph")


def _files(part: Part) -> list[str]:
    """The modules and folders of a part, without the internal ones."""
    inside = sorted(part.path.glob("*")) if part.path.is_dir() else []
    folders = [f"{path.name}/" for path in inside if (path / "__init__.py").exists()]
    files = [path.name for path in inside if path.suffix == ".py"]
    return [name for name in [*folders, *files] if not name.startswith("_")]
