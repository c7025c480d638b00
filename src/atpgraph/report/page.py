"""The page all reports share: one HTML file, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from atpgraph._version import __version__
from atpgraph.errors import InputError
from atpgraph.util.files import atomic_path
from atpgraph.util.palette import DARK, LIGHT, variables

_STYLE = (
    f"""
:root {{ color-scheme: light dark; {variables(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}
"""
    + """
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.2rem clamp(1rem, 3vw, 3rem) 3rem; max-width: 92rem;
  background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: .4rem 0; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .4rem; }
h3 { font-size: 1rem; margin: 0 0 .2rem; font-weight: 600; }
p, li { max-width: 46rem; }
.quiet, figcaption, footer { color: var(--quiet); font-size: .875rem; }
.scroll { overflow-x: auto; margin: .4rem 0 1rem;
  /* A shadow at the right edge while there is more to scroll to. */
  background: linear-gradient(to left, var(--paper) 40%, transparent) right / 2.4rem 100% no-repeat
    local, linear-gradient(to left, var(--line), transparent) right / .9rem 100% no-repeat scroll; }
table { border-collapse: separate; border-spacing: 0; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: top; }
th { font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--paper); }
td small { display: block; color: var(--quiet); font-size: .72rem; }
td.text, th.text { text-align: left; white-space: normal; }
table.facts th { font-weight: 400; border-bottom-width: 1px; text-align: left; white-space: normal;
  vertical-align: top; }
tr:hover td { background: var(--wash); }
td ul { margin: 0; padding-left: 1.1rem; }
/* On a phone a row with a list in it is a block: each cell under its head, the list in full. */
@media (max-width: 40rem) {
  table.lists, .lists tbody { display: block; }
  .lists thead { position: absolute; clip-path: inset(50%); }
  .lists tr { display: flex; flex-wrap: wrap; gap: 0 1.4rem; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }
  .lists td { border: 0; padding: .15rem 0; text-align: left; white-space: normal; }
  .lists td[data-head]::before { content: attr(data-head); display: block; color: var(--quiet);
    font-size: .72rem; }
  .lists td:first-child { flex-basis: 100%; font-weight: 600; }
  .lists td:first-child::before, .lists td.text::before { content: none; }
  .lists td.text { flex-basis: 100%; }
}
.grid { display: grid; gap: 1.6rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.grid.small { gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); }
figure { margin: 0 0 .8rem; }
svg.chart { width: 100%; height: auto; max-width: 40rem; display: block; }
svg.chart text { fill: var(--ink); font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; }
svg.chart text.soft { fill: var(--quiet); font-size: 11px; }
@media (max-width: 30rem) { svg.chart text, svg.chart text.soft { font-size: 13px; } }
svg.chart .axis { stroke: var(--line); stroke-width: 1; fill: none; }
svg.chart .whisker { stroke: var(--ink); stroke-width: 1.2; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem .9rem; list-style: none; padding: 0;
  margin: .3rem 0 0; font-size: .8125rem; }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  margin-right: .35em; vertical-align: -.05em; }
details { margin: .8rem 0; }
summary { cursor: pointer; font-weight: 600; }
footer code { overflow-wrap: anywhere; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .6rem; }
"""
)


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, as HTML."""

    title: str
    body: str


def page(title: str, subtitle: str, sections: Iterable[Section], command: str = "") -> str:
    """A whole HTML document.

    Parameters
    ----------
    title, subtitle : str
        Plain text.
    sections : iterable of Section
    command : str
        The command that made the report, for the footer.

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


def write_page(path: str | os.PathLike[str], html: str) -> Path:
    """Write a document, whole or not at all."""
    with atomic_path(path) as temporary:
        # What UTF-8 does not hold, such as half of a file name of bytes, is written as an escape.
        temporary.write_text(html, encoding="utf-8", errors="backslashreplace")
    return Path(path)


def write_index(
    folder: str | os.PathLike[str], html: str, beside: Mapping[str, str] | None = None
) -> Path:
    """Write a document as ``index.html`` into a folder, created if needed, and files beside it.

    Returns the path of the document.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {folder}: {error.strerror}.") from error
    for name, text in (beside or {}).items():
        write_page(Path(folder) / name, text)
    return write_page(Path(folder) / "index.html", html)


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values; both are plain text.

    Examples
    --------
    >>> "<td>12,000</td>" in facts([("edges", 12000)])
    True
    """
    lines = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(_fact(value))}</td></tr>'
        for name, value in rows
    )
    body = f'<table class="facts"><tbody>\n{lines}\n</tbody></table>'
    return f'<div class="scroll" tabindex="0">{body}</div>'


def _fact(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls sideways on a narrow screen; heads and cells are HTML.

    Where cells hold lists, it does not scroll: its rows become blocks.

    Examples
    --------
    >>> "<td><b>0.9</b></td>" in table(["method", "AUC"], [["x", "<b>0.9</b>"]])
    True
    >>> '<td data-head="why"><ul>' in table(["who", "why"], [["x", "<ul><li>y</li></ul>"]])
    True
    """
    heads = [name if name.startswith("<th") else f'<th scope="col">{name}</th>' for name in columns]
    body = [
        [cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in row] for row in rows
    ]
    kind = ""
    if any("<ul" in cell for row in body for cell in row):
        kind = ' class="lists"'
        labels = [escape(re.sub(r"<[^>]*>", "", head), quote=True) for head in heads]
        body = [
            [
                cell.replace("<td", f'<td data-head="{label}"', 1)
                for label, cell in zip(labels, row, strict=True)
            ]
            for row in body
        ]
    head = "".join(heads)
    lines = "\n".join(f"<tr>{''.join(row)}</tr>" for row in body)
    return (
        f'<div class="scroll" tabindex="0"><table{kind}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )
