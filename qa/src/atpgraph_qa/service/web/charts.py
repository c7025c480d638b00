"""The charts of the quality page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
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
    """Return the charts; what has no data is left out."""
    days, made = found["by_day"], list[Figure]()
    if not days:
        return made
    last = days[-1]["day"]
    label = f"days before {date(1970, 1, 1) + timedelta(days=last):%d %b %Y}"

    def before(chosen: list[dict[str, Any]]) -> list[float]:
        return [float(day["day"] - last) for day in chosen]

    answered = [day for day in days if day["mrr"] is not None]
    if len(answered) > 1:
        lines = [
            Line("baseline", before(answered), [d["baseline_mrr"] for d in answered], None),
            Line("suggestions", before(answered), [d["mrr"] for d in answered], 0, markers=True),
        ]
        title = "Was the right person near the top?"
        chart = line_chart(
            lines, title=title, x_label=label, y_label="1 = always first", y_range=(0.0, 1.0),
            height=260,
        )  # fmt: skip
        drawing = chart[: chart.index("</svg>") + 6]  # the page has a legend of its own
        key = (("suggestions", "c0"), ("most active people first", ""))
        note = "Mean of 1/place of the person who answered (MRR), by day: 0.5 is second place."
        made.append(Figure(title, Markup(drawing), note, key))
    if len(days) > 1:
        line = Line("", before(days), [day["coverage"] for day in days], 0, markers=True)
        title = "Questions with somebody to ask"
        chart = line_chart(
            [line], title=title, x_label=label, y_label="share of questions", y_range=(0.0, 1.0),
            height=260,
        )  # fmt: skip
        made.append(Figure(title, Markup(chart), "By day."))
    bins = found["calibration"]
    if bins:
        line = Line("", [b["stated"] for b in bins], [b["observed"] for b in bins], 0, True)
        title = "Is the confidence right?"
        chart = line_chart(
            [line], title=title, x_label="confidence stated", y_label="share who answered",
            y_range=(0.0, 1.0), diagonal=True, height=260,
        )  # fmt: skip
        note = "On the dashed line, people answer as often as stated; below it, less often."
        made.append(Figure(title, Markup(chart), note))
    if asks:
        bars = [Bar(name, float(count)) for name, count in asks]
        title = "Who was asked most"
        chart = bar_chart(bars, title=title, unit="times in the last seven days")
        made.append(Figure(title, Markup(chart), "Caps and rest times are on the settings page."))
    return made
