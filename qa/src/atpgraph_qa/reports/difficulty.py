"""The comparison of difficulty methods as files: a page, a text table and JSON."""

from __future__ import annotations

import json
import math
import os
from html import escape
from pathlib import Path
from typing import Any

from atpgraph.report import Bar, Section, bar_chart, page, table, write_index
from atpgraph.report.charts import grid
from atpgraph_qa.difficulty.accuracy import Accuracy
from atpgraph_qa.difficulty.evaluation import DifficultyReport, accuracy_rows

_OURS, _OTHERS = 1, 0


def write_report(
    report: DifficultyReport, folder: str | os.PathLike[str], command: str = ""
) -> Path:
    """Write :func:`render`'s page, ``report.md`` and ``report.json`` into a folder."""
    text = json.dumps(_finite(report.to_dict()), indent=2, allow_nan=False)
    beside = {"report.json": f"{text}\n", "report.md": markdown(report)}
    return write_index(folder, render(report, command), beside)


def parts(report: DifficultyReport) -> list[tuple[str, dict[str, Accuracy]]]:
    """The tables of a report, with their titles."""
    named = (
        ("Test half", report.test),
        ("Validation half", report.validation),
        ("All questions with a bounty", report.methods),
    )
    return [(f"{title}: {_pairs(part):,} pairs", part) for title, part in named]


def _pairs(part: dict[str, Accuracy]) -> int:
    return next(iter(part.values())).pairs


def render(report: DifficultyReport, command: str = "") -> str:
    """The page as a string."""
    numbers = report.site
    subtitle = (
        f"{numbers['questions']:,} questions, {numbers['answers']:,} answers, "
        f"{numbers['bounties']:,} bounties; competition graph of {numbers['nodes']:,} nodes and "
        f"{numbers['edges']:,} edges"
    )
    sections = [Section(title, chart_and_table(part)) for title, part in parts(report)]
    if report.tags:
        sections.append(Section("By tag", _tags(report)))
    settings = [[escape(key), escape(str(value))] for key, value in report.settings.items()]
    sections.append(Section("Protocol", _PROTOCOL + table(["setting", "value"], settings)))
    return page("Question difficulty against bounties", subtitle, sections, command)


_PROTOCOL = (
    "<p>The harder of two questions is the one with the larger bounty. Accuracy is the share of "
    "pairs with different bounties that a method orders so; a pair it has no opinion on counts "
    "half. Intervals: 95 %, bootstrap over questions. Methods whose name ends in "
    "<i>fitted</i> weigh signals by bounties: each half is scored with weights from the other. "
    "<i>atp</i> is the rule of the ATP paper.</p>"
)


def chart_and_table(part: dict[str, Accuracy]) -> str:
    """Accuracies as a bar chart and a table."""
    ordered = accuracy_rows(part)
    bars = [
        Bar(name, mean, low, high, _OURS if name.startswith("atp") else _OTHERS)
        for name, mean, low, high, _, _ in ordered
        if math.isfinite(mean)
    ]
    if not bars:
        return "<p>No two of these questions have different bounties.</p>"
    rows = [
        [escape(name), f"{mean:.4f}", f"{low:.3f} – {high:.3f}", f"{skip:.4f}", f"{right:.4f}"]
        for name, mean, low, high, skip, right in ordered
    ]
    columns = ["method", "accuracy", "95 % interval", "ties skipped", "ties right"]
    chart = bar_chart(bars, title="Pairwise accuracy", unit="accuracy", top=1.0)
    note = '<p class="quiet">Chance is 0.5; whiskers are the 95 % intervals.</p>'
    return grid([f"<figure>{chart}{note}</figure>", f"<div>{table(columns, rows)}</div>"])


def _tags(report: DifficultyReport) -> str:
    names = list(report.methods)
    rows = []
    for row in report.tags:
        best = max((row.methods[name].mean for name in names), default=math.nan)
        cells = [
            f"<b>{row.methods[name].mean:.3f}</b>"
            if row.methods[name].mean == best
            else f"{row.methods[name].mean:.3f}"
            for name in names
        ]
        rows.append([escape(row.tag), f"{row.questions}", f"{row.pairs:,}", *cells])
    note = '<p class="quiet">Accuracy among the questions of a tag; bold is the best.</p>'
    return table(["tag", "questions", "pairs", *map(escape, names)], rows) + note


def markdown(report: DifficultyReport) -> str:
    """The tables as text."""
    lines = ["# Question difficulty against bounties", ""]
    lines += [f"- {name}: {value:,}" for name, value in report.site.items()]
    lines += [f"- {name}: {value}" for name, value in report.settings.items()]
    for title, part in parts(report):
        lines += ["", f"## {title}", ""]
        lines += ["| method | accuracy | 95 % interval | ties skipped | ties right |"]
        lines += ["|---|---|---|---|---|"]
        lines += [
            f"| {name} | {mean:.4f} | {low:.3f} – {high:.3f} | {skip:.4f} | {right:.4f} |"
            for name, mean, low, high, skip, right in accuracy_rows(part)
        ]
    if report.tags:
        names = list(report.methods)
        lines += ["", "## By tag", "", f"| tag | questions | {' | '.join(names)} |"]
        lines += ["|---" * (2 + len(names)) + "|"]
        for row in report.tags:
            cells = " | ".join(f"{row.methods[name].mean:.3f}" for name in names)
            lines.append(f"| {row.tag} | {row.questions} | {cells} |")
    return "\n".join(lines) + "\n"


def _finite(value: Any) -> Any:
    """NaN, which JSON does not have, as null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
