"""Templates, filters, charts and the security headers of the page."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import Any, NamedTuple

from fastapi.responses import Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from atpgraph.report import Bar, Line, bar_chart, line_chart
from atpgraph.util.palette import DARK, LIGHT, variables
from atpgraph_qa._version import __version__
from atpgraph_qa.advisor.people import time_zone
from atpgraph_qa.service.adapters.base import plain_text
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.schemas import QualityOut
from atpgraph_qa.service.settings import as_text

_LEAST_PEOPLE = 10  # of similar confidence; with fewer, the share who answered means nothing
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {"Content-Security-Policy": _POLICY, "X-Frame-Options": "DENY"}


def when(moment_ms: int, zone: str = "UTC") -> Markup:
    """Format a moment for display, in a time zone."""
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    shown = moment.astimezone(time_zone(zone)).strftime("%d %b %Y, %H:%M %Z").lstrip("0")
    exact = moment.isoformat(timespec="seconds")
    return Markup('<time datetime="{}">{}</time>').format(exact, shown)


def percent(value: float | None) -> str:
    """Format a share as a percentage."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{100 * value:.1f}%" if 0 < value < 0.0095 else f"{value:.0%}"


def place(mrr: float | None) -> str:
    """Return a mean reciprocal rank as a place."""
    return "–" if not mrr else f"{1 / mrr:.1f}"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


TEMPLATES = Environment(
    loader=PackageLoader("atpgraph_qa.service"), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
TEMPLATES.filters |= {
    "percent": percent, "place": place, "count": count, "setting": as_text, "plain": plain_text
}  # fmt: skip
TEMPLATES.globals["version"] = __version__


def static(name: str) -> Response:
    """Return a file of the page."""
    if name not in ("app.css", "app.js"):
        raise ProblemError(404, "There is no such file.")
    text = files("atpgraph_qa.service").joinpath("static", name).read_text(encoding="utf-8")
    if name.endswith(".css"):
        light = f":root {{ color-scheme: light dark; {variables(LIGHT)} }}\n"
        dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
        return Response(light + dark + text, media_type="text/css")
    return Response(text, media_type="text/javascript")


class Figure(NamedTuple):
    """A chart with its title, a note, and what the colors mean."""

    title: str
    svg: Markup
    note: str
    key: tuple[tuple[str, str], ...] = ()


def figures(found: QualityOut, asks: list[tuple[str, int]]) -> list[Figure]:
    """Return the charts of the quality page that have data."""
    days, made = found.by_day, list[Figure]()
    if not days:
        return made

    def draw(title: str, note: str, axes: tuple[str, str], *lines: Line, **more: Any) -> None:
        chart = line_chart(
            lines, title=title, x_label=axes[0], y_label=axes[1], y_range=(0.0, 1.0),
            diagonal=more.pop("diagonal", False),
        )  # fmt: skip
        drawing = chart[: chart.index("</svg>") + 6]  # without the legend; the page has its own
        made.append(Figure(title, Markup(drawing), note, **more))

    def by_day(name: str, label: str = "", color: int | None = 0) -> Line:
        shown = [day for day in days if day[name] is not None]
        before = [float(day["day"] - days[-1]["day"]) for day in shown]
        values = [day[name] for day in shown]
        return Line(label, before, values, color, markers=color is not None)

    label = f"days before {date(1970, 1, 1) + timedelta(days=days[-1]['day']):%d %b %Y}"
    if sum(day["mrr"] is not None for day in days) > 1:
        draw(
            "Was the right person near the top?",
            "Mean of 1/place of the person who answered (MRR), by day: 0.5 is second place.",
            (label, "1 = always first"),
            by_day("baseline_mrr", "baseline", None), by_day("mrr", "suggestions"),
            key=(("suggestions", "c0"), ("most active people first", "")),
        )  # fmt: skip
    if len(days) > 1:
        axes = label, "share of questions"
        draw("Questions with somebody to ask", "By day.", axes, by_day("coverage"))
    bins = [one for one in found.calibration if one["people"] >= _LEAST_PEOPLE]
    if bins:
        draw(
            "Is the confidence right?",
            "On the dashed line, people answer as often as stated; below it, less often.",
            ("confidence stated", "share who answered"),
            Line("", [b["stated"] for b in bins], [b["observed"] for b in bins], 0, True),
            diagonal=True,
        )  # fmt: skip
    if asks:
        bars = [Bar(name, float(number)) for name, number in asks]
        title = "Who was asked most"
        top = float(max(4, asks[0][1]))  # a scale of whole numbers
        chart = bar_chart(bars, title=title, unit="times in the last seven days", top=top)
        made.append(Figure(title, Markup(chart), "Caps and rest times are on the settings page."))
    return made
