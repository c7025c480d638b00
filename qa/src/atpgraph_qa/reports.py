"""HTML reports about sites: routing, difficulty, load of a policy."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.resampling import bootstrap
from atpgraph.report import (
    Bar,
    Line,
    Section,
    bar_chart,
    figure,
    grid,
    line_chart,
    method_colors,
    page,
    table,
    write_index,
)
from atpgraph_qa.difficulty.evaluation import COLUMNS as ACCURACIES
from atpgraph_qa.difficulty.evaluation import DifficultyReport, Row
from atpgraph_qa.evaluation.evaluation import ROUTER, ProtocolResult, RoutingReport
from atpgraph_qa.evaluation.load import COLUMNS as LOADS
from atpgraph_qa.evaluation.load import LoadReport

_ACTIVITY = (0, 1, 5, 20, 100, 500)
_SHOWN_LINES = 4
_OURS, _OTHERS = 1, 0
_METRICS = {
    "p@1": "P@1",
    "p@3": "P@3",
    "accuracy": "accuracy",
    "ndcg": "NDCG",
    "hits@10": "Hits@10",
    "answered@3": "answered, top 3",
    "answered@10": "top 10",
}
_PROTOCOL = (
    "<p>The harder of two questions is the one with the larger bounty. Accuracy is the share of "
    "pairs with different bounties that a method orders so; a pair it has no opinion on counts "
    "half. Intervals: 95 %, bootstrap over questions. Methods whose name ends in "
    "<i>fitted</i> weigh signals by bounties: each half is scored with weights from the other. "
    "<i>atp</i> is the rule of the ATP paper.</p>"
)

Folder = str | os.PathLike[str]
Colors = Mapping[str, int]


def write_difficulty(report: DifficultyReport, folder: Folder, command: str = "") -> Path:
    """Write the comparison with bounties into a folder: page, ``report.md``, ``report.json``."""
    numbers = report.site
    subtitle = (
        f"{numbers['questions']:,} questions, {numbers['answers']:,} answers, "
        f"{numbers['bounties']:,} bounties; competition graph of {numbers['nodes']:,} nodes and "
        f"{numbers['edges']:,} edges"
    )
    sections = [Section(title, _accuracies(rows)) for title, rows in report.tables()]
    if report.tags:
        sections.append(Section("By tag", _tags(report)))
    settings = [[escape(key), escape(str(value))] for key, value in report.settings.items()]
    sections.append(Section("Protocol", _PROTOCOL + table(["setting", "value"], settings)))
    html = page("Question difficulty against bounties", subtitle, sections, command)
    text = json.dumps(_finite(report.to_dict()), indent=2, allow_nan=False)
    return write_index(folder, html, {"report.json": f"{text}\n", "report.md": _markdown(report)})


def _accuracies(rows: Sequence[Row]) -> str:
    """Return accuracies as a bar chart and a table."""
    bars = [
        Bar(name, mean, low, high, _OURS if name.startswith("atp") else _OTHERS)
        for name, mean, low, high, _, _ in rows
        if math.isfinite(mean)
    ]
    if not bars:
        return "<p>No two of these questions have different bounties.</p>"
    chart = bar_chart(bars, title="Pairwise accuracy", unit="accuracy", top=1.0)
    note = '<p class="quiet">Chance is 0.5; whiskers are the 95 % intervals.</p>'
    cells = table(_HEADER, [[escape(cell) for cell in _cells(row)] for row in rows])
    return grid([f"<figure>{chart}{note}</figure>", f"<div>{cells}</div>"])


_HEADER = [*ACCURACIES[:2], "95 % interval", *ACCURACIES[4:]]


def _cells(row: Row) -> list[str]:
    name, mean, low, high, skip, right = row
    return [name, f"{mean:.4f}", f"{low:.3f} – {high:.3f}", f"{skip:.4f}", f"{right:.4f}"]


def _tags(report: DifficultyReport) -> str:
    names = list(report.methods)
    rows = []
    for row in report.tags:
        means = [row.methods[name].mean for name in names]
        cells = [f"<b>{mean:.3f}</b>" if mean == max(means) else f"{mean:.3f}" for mean in means]
        rows.append([escape(row.tag), f"{row.questions}", f"{row.pairs:,}", *cells])
    note = '<p class="quiet">Accuracy among the questions of a tag; bold is the best.</p>'
    return table(["tag", "questions", "pairs", *map(escape, names)], rows) + note


def _markdown(report: DifficultyReport) -> str:
    """Return the tables as text."""
    lines = ["# Question difficulty against bounties", ""]
    lines += [f"- {name}: {value:,}" for name, value in report.site.items()]
    lines += [f"- {name}: {value}" for name, value in report.settings.items()]
    tables = [(title, _HEADER, [_cells(row) for row in rows]) for title, rows in report.tables()]
    if report.tags:
        names = list(report.methods)
        rows = [
            [row.tag, str(row.questions), *(f"{row.methods[name].mean:.3f}" for name in names)]
            for row in report.tags
        ]
        tables.append(("By tag", ["tag", "questions", *names], rows))
    for title, header, cells in tables:
        lines += ["", f"## {title}", "", f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        lines += [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join(lines) + "\n"


def _finite(value: Any) -> Any:
    """Return a value for JSON, which has no NaN: null instead."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_load(report: LoadReport, folder: Folder, site: str = "", command: str = "") -> Path:
    """Write what policies cost as ``index.html`` into a folder, created if needed."""
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
    html = f'<p class="quiet">{note}</p>{table([escape(name) for name in LOADS], cells)}'
    sections = [Section("Load and its cost", html)]
    return write_index(folder, page("Who is asked how often", site, sections, command))


def write_routing(report: RoutingReport, folder: Folder, command: str = "") -> Path:
    """Write the evaluation of routing as ``index.html`` into a folder, created if needed."""
    colors = _colors(list(report.results.values()))
    sections = [
        Section(name, protocol_html(result, colors)) for name, result in report.results.items()
    ]
    if report.skipped:
        items = "".join(f"<li>{escape(text)}</li>" for text in report.skipped.values())
        sections.append(Section("Skipped", f"<ul>{items}</ul>"))
    site = report.site or "a site in memory"
    return write_index(folder, page("Routing questions", site, sections, command))


def _colors(results: Sequence[ProtocolResult]) -> Colors:
    """Give the router and the best methods of each protocol a color, the same in all charts."""
    return method_colors([_shown(result) for result in results if len(result.candidates)])


def _shown(result: ProtocolResult) -> list[str]:
    """Return the router and the best of the others."""
    others = [name for name in result.ranks if not name.startswith(ROUTER)]
    others.sort(key=lambda name: -float(result.ranks[name].reciprocal.mean()))
    return [name for name in (ROUTER, *others[:_SHOWN_LINES]) if name in result.ranks]


def protocol_html(result: ProtocolResult, colors: Colors | None = None) -> str:
    """Return table and charts of one protocol; `colors` if they are shared with other protocols."""
    if not len(result.candidates):
        return "<p>No question qualifies.</p>"
    colors = _colors([result]) if colors is None else colors
    ordered = sorted(result.ranks, key=lambda name: -result.ranks[name].reciprocal.mean())
    note = (
        f'<p class="quiet">{len(result.candidates):,} questions, '
        f"{result.candidates.mean():.1f} candidates each; the accepted answerer is among them for "
        f"{result.reachable:,}. Intervals: 95 %, bootstrap over questions. Answered: how "
        "often somebody among the first three or ten answered at all. The last column is the "
        "share of paired resamples in which the router is not above the row.</p>"
    )
    rows, bars = [], []
    for name in ordered:
        metrics = result.ranks[name].metrics()
        mrr = bootstrap(metrics["mrr"])
        bars.append(Bar(name, mrr.mean, mrr.low, mrr.high, colors.get(name)))
        value = f"<b>{mrr.mean:.3f}</b>" if name == ordered[0] else f"{mrr.mean:.3f}"
        cells = [escape(name), f"{value}<small>{mrr.low:.3f} – {mrr.high:.3f}</small>"]
        cells += [f"{metrics[metric].mean():.3f}" for metric in _METRICS]
        p_value = ""
        if ROUTER in result.ranks and name != ROUTER:
            p = result.paired(name).p_value
            p_value = "&lt; 0.001" if p < 0.001 else f"{p:.3f}"
        rows.append([*cells, p_value])
    figures = [
        figure("MRR", bar_chart(bars, title=f"{result.name}: MRR", unit="MRR")),
        figure("MRR against activity of the accepted answerer", _by_activity(result, colors)),
        figure("Load: questions for which a person comes first", _load(result, colors)),
    ]
    if len(result.stated):
        figures.append(figure("Calibration of the first choice", _calibration(result, colors)))
    return note + table(["method", "MRR", *_METRICS.values(), "p"], rows) + grid(figures)


def _by_activity(result: ProtocolResult, colors: Colors) -> str:
    bins = np.searchsorted(_ACTIVITY, result.activity, side="right")
    there = [b for b in np.unique(bins).tolist() if np.count_nonzero(bins == b) >= 3]
    if not there:
        return "<p>Too few questions.</p>"
    xs = [float(np.mean(result.activity[bins == b])) + 1 for b in there]
    lines = []
    for name in _shown(result):
        values = result.ranks[name].reciprocal
        ys = [float(values[bins == b].mean()) for b in there]
        lines.append(Line(name, xs, ys, colors.get(name), markers=True))
    return line_chart(
        lines,
        title="MRR against activity",
        x_label="earlier answers + 1",
        y_label="MRR",
        x_log=True,
    )


def _load(result: ProtocolResult, colors: Colors) -> str:
    lines = []
    for name in _shown(result):
        load = result.load[name]
        if len(load):
            share = (np.cumsum(load) / load.sum()).tolist()
            lines.append(Line(name, list(range(1, len(load) + 1)), share, colors.get(name)))
    if not lines:
        return "<p>Nobody was ranked.</p>"
    return line_chart(
        lines,
        title="Load per person",
        x_label="people, the most often chosen first",
        y_label="share of questions",
        y_range=(0.0, 1.0),
        x_log=True,
    )


def _calibration(result: ProtocolResult, colors: Colors) -> str:
    bins = reliability(result.stated, result.right)["bins"]
    xs, ys = [b["stated"] for b in bins], [b["right"] for b in bins]
    return line_chart(
        [Line("router", xs, ys, colors.get(ROUTER), markers=True)],
        title="Calibration",
        x_label="stated confidence",
        y_label="share right",
        y_range=(0.0, 1.0),
        diagonal=True,
    )
