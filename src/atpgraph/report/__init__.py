"""Self-contained HTML reports: one file, no scripts, and no external resources."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from atpgraph._version import __version__
from atpgraph.errors import InputError
from atpgraph.report.charts import (
    Bar,
    Line,
    bar_chart,
    figure,
    grid,
    line_chart,
    method_colors,
)
from atpgraph.util.files import atomic_path
from atpgraph.util.palette import DARK, LIGHT, variables

if TYPE_CHECKING:
    from rich.table import Table as RichTable

__all__ = [
    "Bar", "Line", "Section", "bar_chart", "figure", "grid", "line_chart", "method_colors", "page",
    "page_of_tables", "quiet", "table", "write_index", "write_page",
]  # fmt: skip

_STYLE = (
    f":root {{ color-scheme: light dark; {variables(LIGHT)} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
    + Path(__file__).with_name("style.css").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Section:
    """A heading, and the HTML below it."""

    title: str
    body: str


def page(title: str, subtitle: str, sections: Iterable[Section], command: str = "") -> str:
    """Return an HTML document; its footer shows the `command` that made it.

    Examples
    --------
    >>> "<h2>Result</h2>" in page("Run", "today", [Section("Result", "<p>42</p>")])
    True
    """
    body = "\n".join(
        f"<section>\n<h2>{escape(part.title)}</h2>\n{part.body}\n</section>" for part in sections
    )
    made = f"atpgraph {__version__}, {datetime.date.today().isoformat()}"
    if command:
        made += f" · <code>{escape(command)}</code>"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="quiet">{escape(subtitle)}</p>\n{body}\n'
        f"<footer>{made}</footer>\n</body>\n</html>\n"
    )


def page_of_tables(items: Iterable[str | RichTable], command: str) -> str:
    """Return a page with the lines and tables that `command` prints."""
    parts = []
    for item in items:
        if isinstance(item, str):
            parts.append(f"<p>{escape(item)}</p>")
            continue
        sides = ["text" if column.justify == "left" else "number" for column in item.columns]
        heads = [
            f'<th class="{side}" scope="col">{escape(str(column.header))}'
            for side, column in zip(sides, item.columns, strict=True)
        ]
        rows = [
            [f'<td class="{s}">{escape(str(cell))}' for s, cell in zip(sides, row, strict=True)]
            for row in zip(*(column.cells for column in item.columns), strict=True)
        ]
        title = f"<h3>{escape(str(item.title))}</h3>" if item.title else ""
        parts.append(title + table(heads, rows))
    return page(command.partition(" -")[0], "", [Section("Result", "".join(parts))], command)


def write_page(path: str | os.PathLike[str], html: str) -> Path:
    """Write a document, whole or not at all, and return its path."""
    with atomic_path(path) as temporary:
        # What UTF-8 does not hold, such as half of a file name of bytes, is written as an escape.
        temporary.write_text(html, encoding="utf-8", errors="backslashreplace")
    return Path(path)


def write_index(folder: str | os.PathLike[str], html: str) -> Path:
    """Write a document as ``index.html`` into a folder, created if needed, and return its path."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot create the folder {folder}: {error.strerror}.") from error
    return write_page(Path(folder) / "index.html", html)


def quiet(text: str) -> str:
    """Return a paragraph in small print; `text` is HTML."""
    return f'<p class="quiet">{text}</p>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that scrolls sideways on a narrow screen; heads and cells are HTML.

    Examples
    --------
    >>> "<td><b>0.9</b></td>" in table(["method", "AUC"], [["x", "<b>0.9</b>"]])
    True
    """
    head = "".join(
        name if name.startswith("<th") else f'<th scope="col">{name}</th>' for name in columns
    )
    lines = "\n".join(
        "<tr>"
        + "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )
