"""The evaluation of routing as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from atpgraph.evaluation.calibration import reliability
from atpgraph.evaluation.resampling import bootstrap
from atpgraph.report import Bar, Line, Section, bar_chart, line_chart, page, table, write_index
from atpgraph.report.charts import figure, grid
from atpgraph.report.method_colors import method_colors
from atpgraph_qa.evaluation.evaluation import ROUTER, ProtocolResult, RoutingReport

_ACTIVITY = (0, 1, 5, 20, 100, 500)
_SHOWN_LINES = 4
Colors = Mapping[str, int]

COLUMNS = {
    "p@1": "P@1",
    "p@3": "P@3",
    "accuracy": "accuracy",
    "ndcg": "NDCG",
    "hits@10": "Hits@10",
    "answered@3": "answered, top 3",
    "answered@10": "top 10",
}


def write_report(report: RoutingReport, folder: str | os.PathLike[str], command: str = "") -> Path:
    """Write :func:`render`'s page as ``index.html`` into a folder, created if needed."""
    return write_index(folder, render(report, command))


def render(report: RoutingReport, command: str = "") -> str:
    """The page as a string."""
    colors = colors_of(list(report.results.values()))
    sections = [
        Section(name, protocol_html(result, colors)) for name, result in report.results.items()
    ]
    if report.skipped:
        items = "".join(f"<li>{escape(text)}</li>" for text in report.skipped.values())
        sections.append(Section("Skipped", f"<ul>{items}</ul>"))
    return page("Routing questions", report.site or "a site in memory", sections, command)


def colors_of(results: Sequence[ProtocolResult]) -> Colors:
    """The router and the best methods of each protocol have a color, the same in all charts."""
    return method_colors([_lines(result) for result in results if len(result.candidates)])


def _p_value(p: float) -> str:
    return "&lt; 0.001" if p < 0.001 else f"{p:.3f}"


def protocol_html(result: ProtocolResult, colors: Colors | None = None) -> str:
    """Table and charts of one protocol; `colors` where they are shared with other protocols."""
    if not len(result.candidates):
        return "<p>No question qualifies.</p>"
    colors = colors_of([result]) if colors is None else colors
    means = {name: ranks.reciprocal.mean() for name, ranks in result.ranks.items()}
    ordered = sorted(means, key=lambda name: -means[name])
    note = (
        f'<p class="quiet">{len(result.candidates):,} questions, '
        f"{result.candidates.mean():.1f} candidates each; the accepted answerer is among them for "
        f"{result.reachable:,}. Intervals: 95 %, bootstrap over questions. Answered: how "
        "often somebody among the first three or ten answered at all. The last column is the "
        "share of paired resamples in which the router is not above the row.</p>"
    )
    rows = []
    for name in ordered:
        metrics = result.ranks[name].metrics()
        mrr = bootstrap(metrics["mrr"])
        value = f"{mrr.mean:.3f}"
        cells = [
            escape(name),
            (f"<b>{value}</b>" if name == ordered[0] else value)
            + f"<small>{mrr.low:.3f} – {mrr.high:.3f}</small>",
            *(f"{metrics[metric].mean():.3f}" for metric in COLUMNS),
        ]
        paired = ROUTER in result.ranks and name != ROUTER
        cells.append(_p_value(result.paired(name).p_value) if paired else "")
        rows.append(cells)
    columns = ["method", "MRR", *COLUMNS.values(), "p"]
    bars = []
    for name in ordered:
        mrr = bootstrap(result.ranks[name].reciprocal)
        bars.append(Bar(name, mrr.mean, mrr.low, mrr.high, colors.get(name)))
    by_activity, load = _by_activity(result, colors), _load(result, colors)
    figures = [
        figure("MRR", bar_chart(bars, title=f"{result.name}: MRR", unit="MRR")),
        figure("MRR against activity of the accepted answerer", by_activity),
        figure("Load: questions for which a person comes first", load),
    ]
    if len(result.stated):
        figures.append(figure("Calibration of the first choice", _calibration(result, colors)))
    return note + table(columns, rows) + grid(figures)


def _lines(result: ProtocolResult) -> list[str]:
    """The router and the best of the others."""
    others = [name for name in result.ranks if not name.startswith(ROUTER)]
    others.sort(key=lambda name: -float(result.ranks[name].reciprocal.mean()))
    return [name for name in (ROUTER, *others[:_SHOWN_LINES]) if name in result.ranks]


def _by_activity(result: ProtocolResult, colors: Colors) -> str:
    bins = np.searchsorted(_ACTIVITY, result.activity, side="right")
    lines = []
    for name in _lines(result):
        values = result.ranks[name].reciprocal
        there = [b for b in np.unique(bins).tolist() if np.count_nonzero(bins == b) >= 3]
        xs = [float(np.mean(result.activity[bins == b])) + 1 for b in there]
        ys = [float(values[bins == b].mean()) for b in there]
        if xs:
            lines.append(Line(name, xs, ys, colors.get(name), markers=True))
    if not lines:
        return "<p>Too few questions.</p>"
    return line_chart(
        lines,
        title="MRR against activity",
        x_label="earlier answers + 1",
        y_label="MRR",
        x_log=True,
    )


def _load(result: ProtocolResult, colors: Colors) -> str:
    lines = []
    for name in _lines(result):
        load = result.load[name]
        if len(load):
            share = np.cumsum(load) / load.sum()
            lines.append(
                Line(name, list(range(1, len(load) + 1)), share.tolist(), colors.get(name))
            )
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
