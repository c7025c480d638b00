"""The charts of the quality page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from atpgraph.report import Bar, Line, bar_chart, line_chart


@dataclass(frozen=True)
class Figure:
    """A chart with its title, what the colors mean, and a note."""

    title: str
    svg: Markup
    note: str
    key: tuple[tuple[str, str], ...] = ()


def figures(found: dict[str, Any], asks: list[tuple[str, int]]) -> list[Figure]:
    """MRR, coverage, calibration and load; what has no data is left out."""
    days = found["by_day"]
    made: list[Figure] = []
    answered = [day for day in days if day["mrr"] is not None]
    if answered:
        last = answered[-1]["day"]
        x = [float(day["day"] - last) for day in answered]
        lines = [
            Line("baseline", x, [day["baseline_mrr"] for day in answered], None),
            Line("suggestions", x, [day["mrr"] for day in answered], 0, markers=True),
        ]
        chart = line_chart(
            lines, title="MRR by day", x_label="days, 0 is the last", y_label="MRR",
            y_range=(0.0, 1.0), height=260,
        )  # fmt: skip
        drawing = chart[: chart.index("</svg>") + 6]  # the page has a legend of its own
        key = (("suggestions", "c0"), ("baseline", ""))
        made.append(Figure("MRR by day", Markup(drawing), "1 is always first.", key))
    if days:
        x = [float(day["day"] - days[-1]["day"]) for day in days]
        line = Line("coverage", x, [day["coverage"] for day in days], 0, markers=True)
        chart = line_chart(
            [line], title="Coverage by day", x_label="days, 0 is the last",
            y_label="share of questions", y_range=(0.0, 1.0), height=260,
        )  # fmt: skip
        note = "Questions for which somebody could be asked."
        made.append(Figure("Coverage by day", Markup(chart), note))
    bins = found["calibration"]
    if bins:
        line = Line("", [b["stated"] for b in bins], [b["observed"] for b in bins], 0, True)
        chart = line_chart(
            [line], title="Calibration", x_label="confidence stated",
            y_label="share who answered", y_range=(0.0, 1.0), diagonal=True, height=260,
        )  # fmt: skip
        note = "On the dashed line, people answer as often as stated."
        made.append(Figure("Calibration", Markup(chart), note))
    if asks:
        bars = [Bar(name, float(count)) for name, count in asks]
        chart = bar_chart(bars, title="Asks by person", unit="asks in the last week")
        made.append(Figure("Load", Markup(chart), "The people who were asked most."))
    return made
