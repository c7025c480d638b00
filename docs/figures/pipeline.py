"""The map of the code: the pipeline, and where each file sits."""

from __future__ import annotations

from pathlib import Path

import svg
from svg import BLUE, LINE, QUIET, WASH

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "atpgraph"

# Folder or module, what it does, what it hands on.
STAGES = [
    ("graph", "read and hold graphs", "DiGraph"),
    ("cycles", "break cycles", "CycleBreak"),
    ("hierarchy.py", "levels of the DAG", "levels"),
    ("closure", "who reaches whom", "ClosureForest"),
    ("factorization", "M ≈ S·Tᵀ, S, T ≥ 0", "Factorization"),
    ("embedding", "the estimator ATP", "ATP"),
]
USERS = [
    ("linkpred", "the laboratory"),
    ("cqa", "Stack Exchange sites"),
    ("cqa/routing", "who should answer"),
    ("report", "HTML pages, charts"),
    ("plot", "pictures"),
    ("cli", "the command atp, thin"),
]


def draw() -> str:
    """The picture; it lists the files that are there."""
    width, gap, left, top = 150, 14, 20, 58
    parts = [svg.text(24, 30, "src/atpgraph: data flows to the right and down, imports only back",
                      anchor="start", bold=True)]  # fmt: skip
    files = [_files(name) for name, _, _ in STAGES]
    deepest = max(map(len, files))
    height = 74 + 16 * deepest
    for place, ((name, what, gives), listed) in enumerate(zip(STAGES, files, strict=True)):
        x = left + (width + gap) * place
        parts.append(svg.box(x, top, width, height, fill="#e6eefa", line=BLUE))
        title = name if name.endswith(".py") else f"{name}/"
        parts.append(svg.text(x + 10, top + 22, title, anchor="start", bold=True))
        parts.append(svg.text(x + 10, top + 39, what, anchor="start", colour=QUIET, size=12))
        for row, file in enumerate(listed):
            parts.append(svg.text(x + 10, top + 60 + 16 * row, file, anchor="start", size=12))
        if place:
            start, end = (x - gap - 1, top + 18), (x + 1, top + 18)
            parts.append(
                f'<path d="M{start[0]} {start[1]}H{end[0] - 2}" stroke="{BLUE}" '
                f'stroke-width="1.8" marker-end="url(#head-{BLUE.lstrip("#")})"/>'
            )
        parts.append(
            svg.text(x + width - 8, top + height - 8, f"→ {gives}", anchor="end", colour=BLUE,
                     size=12)
        )  # fmt: skip
    second = top + height + 30
    across = (width + gap) * len(STAGES) - gap
    each = (across - gap * (len(USERS) - 1)) / len(USERS)
    tall = 52 + 16 * max(len(_columns(_files(name))) for name, _ in USERS)
    middle = left + across / 2
    parts.append(
        f'<path d="M{middle} {top + height + 3}V{second - 5}" stroke="{BLUE}" stroke-width="1.8" '
        f'marker-end="url(#head-{BLUE.lstrip("#")})"/>'
    )
    for place, (name, what) in enumerate(USERS):
        x = left + (each + gap) * place
        parts.append(svg.box(x, second, each, tall, fill=WASH))
        parts.append(svg.text(x + 10, second + 22, f"{name}/", anchor="start", bold=True))
        parts.append(svg.text(x + 10, second + 38, what, anchor="start", colour=QUIET, size=11))
        for row, pair in enumerate(_columns(_files(name))):
            for column, file in enumerate(pair):
                parts.append(
                    svg.text(x + 10 + column * (each / 2 + 6), second + 58 + 16 * row,
                             file.removesuffix(".py"), anchor="start", size=11)
                )  # fmt: skip
    third = second + tall + 14
    shared = [path.name for path in sorted(SOURCE.glob("*.py")) if path.stem not in _PLACED]
    parts.append(svg.box(left, third, across, 34, fill="#ffffff", line=LINE))
    parts.append(
        svg.text(left + 10, third + 22, "used by all:  " + "   ".join(shared), anchor="start",
                 size=12)
    )  # fmt: skip
    return svg.picture(left * 2 + across, third + 52, parts, "Map of the code of atpgraph")


_PLACED = {"__init__", "__main__", "hierarchy"}


def _files(name: str) -> list[str]:
    """The modules of a folder, without the internal ones."""
    folder = SOURCE / name
    if not folder.is_dir():
        return []
    return [path.name for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]


def _columns(files: list[str]) -> list[list[str]]:
    """One column, or two if they are many, filled from the top."""
    half = len(files) if len(files) <= 13 else (len(files) + 1) // 2
    return [files[row::half] for row in range(half)]
