"""What policies cost, as one HTML page."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from atpgraph.report import Section, page, table, write_index
from atpgraph_qa.evaluation.load import COLUMNS, LoadReport


def write_report(
    report: LoadReport, folder: str | os.PathLike[str], site: str = "", command: str = ""
) -> Path:
    """Write ``index.html`` into a folder, which is made if need be."""
    sections = [Section("Load and its cost", load_html(report))]
    return write_index(folder, page("Who is asked how often", site, sections, command))


def load_html(report: LoadReport) -> str:
    """The policies as a table."""
    cells = [
        [escape(row[0])]
        + [f"{cell:,}" if isinstance(cell, int) else f"{cell:.3f}" for cell in row[1:]]
        for row in report.rows()
    ]
    note = (
        f"{report.n_questions:,} questions, {report.top} people asked each. "
        "Cost: MRR lost against no policy, with its 95 % interval (bootstrap over questions). "
        "Busiest ten: share of the places that the ten most asked people got."
    )
    return f'<p class="quiet">{note}</p>{table([escape(name) for name in COLUMNS], cells)}'
