"""The HTML report of ``atp qa evaluate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from atpgraph.evaluation.calibration import reliability
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
    quiet,
    table,
)
from atpgraph_qa.evaluation.evaluation import ROUTER, ProtocolResult, RoutingReport

_ACTIVITY = (0, 1, 5, 20, 100, 500)
_SHOWN_LINES = 4
_METRICS = {
    "answered@1": "top 1 answered",
    "answered@3": "top 3",
    "answered@5": "top 5",
    "answered@10": "top 10",
    "p@1": "P@1",
    "p@3": "P@3",
    "accuracy": "accuracy",
    "ndcg": "NDCG",
    "hits@10": "Hits@10",
}
Colors = Mapping[str, int]


def render(report: RoutingReport, command: str = "") -> str:
    """Return the page of an evaluation of routing."""
    colors = _colors(list(report.results.values()))
    sections = [
        Section(name, protocol_html(result, colors)) for name, result in report.results.items()
    ]
    if report.skipped:
        items = "".join(f"<li>{escape(text)}</li>" for text in report.skipped.values())
        sections.append(Section("Skipped", f"<ul>{items}</ul>"))
    site = report.site or "a site in memory"
    return page("Routing questions", site, sections, command)


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
    found = result.to_dict()["methods"]
    ordered = sorted(found, key=lambda name: -found[name]["mrr"]["mean"])
    note = quiet(
        f"{len(result.candidates):,} questions, "
        f"{result.candidates.mean():.1f} candidates each; the accepted answerer is among them for "
        f"{result.reachable:,}. Intervals: 95%, bootstrap over questions. Top k answered: "
        "how often somebody among the first k answered at all. The last column is the "
        "share of paired resamples in which the router is not above the row."
    )
    rows, bars = [], []
    for name in ordered:
        row = found[name]
        mean, low, high = (row["mrr"][end] for end in ("mean", "low", "high"))
        bars.append(Bar(name, mean, low, high, colors.get(name)))
        value = f"<b>{mean:.3f}</b>" if name == ordered[0] else f"{mean:.3f}"
        cells = [escape(name), f"{value}<small>{low:.3f} – {high:.3f}</small>"]
        cells += [f"{row[metric]:.3f}" for metric in _METRICS]
        p = row["router_above"]["p"] if "router_above" in row else None
        rows.append([*cells, "" if p is None else "&lt; 0.001" if p < 0.001 else f"{p:.3f}"])
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
