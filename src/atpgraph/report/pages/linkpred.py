"""The laboratory's results as one HTML page."""

from __future__ import annotations

import math
import os
from html import escape
from pathlib import Path

from atpgraph.evaluation.intervals import Interval
from atpgraph.linkpred.benchmark import BenchmarkResult, MethodResult
from atpgraph.report import (
    Bar,
    Line,
    Point,
    Section,
    bar_chart,
    histogram,
    line_chart,
    page,
    scatter_chart,
    table,
    write_index,
)
from atpgraph.report.charts import figure, grid, legend
from atpgraph.report.method_colors import method_colors

_GROUP_NAME = {"ours": "this package", "rival": "another method", "trivial": "trivial"}
_METRIC_NAME = {"auc": "AUC", "ap": "AP", "mrr": "MRR"}


def write_report(
    result: BenchmarkResult, folder: str | os.PathLike[str], command: str = ""
) -> Path:
    """Write :func:`render`'s page as ``index.html`` into a folder, created if needed."""
    return write_index(folder, render(result, command))


def render(result: BenchmarkResult, command: str = "") -> str:
    """The page as a string."""
    dims = ", ".join(str(k) for k in result.dims)
    seeds = f"{len(result.seeds)} seed" + ("s" if len(result.seeds) != 1 else "")
    subtitle = (
        f"{result.nodes:,} nodes, {result.edges:,} edges, {result.test_edges:,} test edges; "
        f"dimension {dims} per side; {seeds}"
    )
    done = [row for row in result.main() if row.runs]
    colors = method_colors(
        [[row.key for row in _ranked(result, done, p)] for p in result.protocols]
    )
    sections = [
        Section("Results", _summary(result)),
        Section("By protocol", _bars(result, done, colors)),
    ]
    pairwise = [p for p in result.protocols if any(p in row.curves for row in done)]
    if pairwise:
        sections.append(Section("ROC curves", _rocs(done, pairwise, colors)))
        sections.append(Section("Score distributions", _histograms(done, pairwise)))
    if done:
        sections.append(Section("What a point costs", _costs(result, done, colors)))
    if len(result.dims) > 1 and any(row.runs for row in result.methods if row.dim is not None):
        sections.append(Section("Dimension", _dimensions(result, colors)))
    sections.append(Section("All metrics", _details(result, done)))
    sections.append(Section("Protocol", _protocol(result)))
    return page(f"Link prediction on {result.graph}", subtitle, sections, command)


def _ranked(result: BenchmarkResult, done: list[MethodResult], protocol: str) -> list[MethodResult]:
    """The rows by their headline metric, best first."""
    metric = result.headline(protocol)
    return sorted(done, key=lambda row: -row.interval(protocol, metric).mean)


def _summary(result: BenchmarkResult) -> str:
    columns = ["method"]
    columns += [f"{escape(p)}<br>{_metric(result.headline(p))}" for p in result.protocols]
    columns += ["fit, s", "peak memory, MB"]
    best = {p: result.best(p, result.headline(p)) for p in result.protocols}
    rows = []
    for row in result.main():
        name = escape(row.name) + f"<small>{escape(row.key)}, {_GROUP_NAME[row.group]}</small>"
        if row.failure:
            width = len(columns) - 1
            rows.append([name, f'<td class="text" colspan="{width}">{escape(row.failure)}</td>'])
            continue
        cells = [name]
        for protocol in result.protocols:
            metric = result.headline(protocol)
            text = _value(row.interval(protocol, metric))
            top = best[protocol]
            if top is row:
                text = f"<b>{text}</b>"
            elif top is not None and _level_with(result, row, top, protocol):
                text = f"≈ {text}"
            cells.append(text + _range(row.interval(protocol, metric)))
        rows.append([*cells, _small(row.seconds.mean, 0.01), _megabytes(row.memory)])
    note = (
        '<p class="quiet">Bold: the best mean. Small print: 95 % interval over the seeds '
        "(Student's t). ≈: the gap to the best is not significant in a paired t-test over "
        "the seeds (p ≥ 0.05). Time and memory are of the fit alone.</p>"
        if len(result.seeds) > 1
        else '<p class="quiet">Bold: the best. One seed gives no interval.</p>'
    )
    remarks = "".join(
        f'<p class="quiet">{escape(row.name)}: {escape(row.note)}.</p>'
        for row in result.main()
        if row.note
    )
    return table(columns, rows) + note + remarks


def _level_with(
    result: BenchmarkResult, row: MethodResult, top: MethodResult, protocol: str
) -> bool:
    if len(result.seeds) < 2:
        return False
    return result.compare(row.key, top.key, protocol, result.headline(protocol)).p_value >= 0.05


def _bars(result: BenchmarkResult, done: list[MethodResult], colors: dict[str, int]) -> str:
    figures = []
    for protocol in result.protocols if done else []:
        metric = result.headline(protocol)
        bars = []
        for row in _ranked(result, done, protocol):
            value = row.interval(protocol, metric)
            bars.append(Bar(row.name, value.mean, value.low, value.high, colors.get(row.key)))
        title = f"{protocol}: {_metric(metric)}"
        top = 1.0 if metric == "auc" else None
        chart = bar_chart(bars, title=title, unit=_metric(metric), top=top)
        figures.append(figure(protocol, chart))
    note = (
        '<p class="quiet">The methods that do best under some protocol have a color, the same in '
        "all charts of this page; the others are grey.</p>"
        if len(colors) < len(done)
        else ""
    )
    return grid(figures) + note


def _rocs(done: list[MethodResult], protocols: list[str], colors: dict[str, int]) -> str:
    figures = []
    for protocol in protocols:
        lines = [
            Line(
                row.name,
                row.curves[protocol].roc[0].tolist(),
                row.curves[protocol].roc[1].tolist(),
                colors.get(row.key),
            )
            for row in _by_auc(done, protocol)
        ]
        chart = line_chart(
            lines,
            title=f"ROC curves, {protocol}",
            x_label="false positive rate",
            y_label="true positive rate",
            y_range=(0.0, 1.0),
            diagonal=True,
        )
        figures.append(figure(protocol, chart))
    note = '<p class="quiet">First seed.</p>'
    return grid(figures) + note


def _by_auc(done: list[MethodResult], protocol: str) -> list[MethodResult]:
    """The rows that have curves, best AUC first."""
    rows = [row for row in done if protocol in row.curves]
    return sorted(rows, key=lambda row: -row.interval(protocol, "auc").mean)


def _histograms(done: list[MethodResult], protocols: list[str]) -> str:
    parts = [
        '<p class="quiet">Scores of test edges and of negatives, as positions among all scores of '
        "the method (0 lowest, 1 highest); first seed.</p>",
        legend([("test edges", 0), ("negatives", 1)]),
    ]
    for number, protocol in enumerate(protocols):
        figures = []
        for row in _by_auc(done, protocol):
            curves = row.curves[protocol]
            groups = [
                ("negatives", curves.negatives.tolist(), 1),
                ("test edges", curves.positives.tolist(), 0),
            ]
            title = f"Scores of {row.name}, {protocol}"
            chart = histogram(curves.edges.tolist(), groups, title=title, x_label="score rank")
            figures.append(figure(row.name, chart))
        opened = " open" if number == 0 else ""
        parts.append(
            f"<details{opened}><summary>{escape(protocol)}</summary>"
            f"{grid(figures, small=True)}</details>"
        )
    return "".join(parts)


def _costs(result: BenchmarkResult, done: list[MethodResult], colors: dict[str, int]) -> str:
    figures = []
    for protocol in result.protocols:
        metric = result.headline(protocol)
        points = [
            Point(
                row.name,
                max(row.seconds.mean, 1e-3),
                row.interval(protocol, metric).mean,
                colors.get(row.key),
            )
            for row in done
        ]
        name = _metric(metric)
        chart = scatter_chart(
            points,
            title=f"{name} against time, {protocol}",
            x_label="seconds to fit (at least 0.001)",
            y_label=name,
        )
        figures.append(figure(protocol, chart))
    return grid(figures)


def _dimensions(result: BenchmarkResult, colors: dict[str, int]) -> str:
    figures = []
    keys = list(dict.fromkeys(row.key for row in result.methods if row.dim is not None))
    for protocol in result.protocols:
        metric = result.headline(protocol)
        lines = []
        for key in keys:
            rows = [row for row in result.methods if row.key == key and row.runs]
            rows.sort(key=lambda row: row.dim or 0)
            if rows:
                dims = [float(row.dim or 0) for row in rows]
                values = [row.interval(protocol, metric).mean for row in rows]
                lines.append(Line(rows[0].name, dims, values, colors.get(key), markers=True))
        lines.sort(key=lambda line: -max(line.y))
        name = _metric(metric)
        chart = line_chart(
            lines,
            title=f"{name} against dimension, {protocol}",
            x_label="dimension",
            y_label=name,
            x_log=True,
        )
        figures.append(figure(protocol, chart))
    return grid(figures)


def _details(result: BenchmarkResult, done: list[MethodResult]) -> str:
    parts = []
    for protocol in result.protocols:
        metrics = list(done[0].runs[0].metrics[protocol]) if done else []
        if "mrr" in metrics:
            metrics.remove("ap")  # with one relevant node it is the MRR
        best = {metric: result.best(protocol, metric) for metric in metrics}
        rows = []
        for row in done:
            cells = [escape(row.name)]
            for metric in metrics:
                value = row.interval(protocol, metric)
                text = f"<b>{_value(value)}</b>" if best[metric] is row else _value(value)
                cells.append(text + _range(value))
            rows.append(cells)
        heading = ["method", *(_metric(metric) for metric in metrics)]
        parts.append(
            f"<details><summary>{escape(protocol)}</summary>{table(heading, rows)}</details>"
        )
    return "".join(parts)


def _protocol(result: BenchmarkResult) -> str:
    sample = next((p for p in result.protocols if p.startswith("ranking-")), "")
    texts = {
        "paper": "negatives are as many pairs (u, v) where v reaches u and u does not reach v in "
        "the whole network, drawn uniformly.",
        "random": "negatives are as many ordered pairs of different nodes without an edge, drawn "
        "uniformly.",
        "reversed": "test edges whose reverse is not an edge, against their reverses.",
        "ranking": "the target of each test edge (u, v) is ranked among all nodes that u has no "
        "edge to; other true edges of u, training and test, are left out.",
        sample: f"the same against {sample.rpartition('-')[2]} of those nodes, drawn uniformly.",
    }
    items = [
        f"<li><b>{escape(name)}</b>: {escape(texts[name])}</li>"
        for name in result.protocols
        if name in texts
    ]
    items += [
        f"<li><b>{escape(name)}</b>: not run, {escape(reason)}.</li>"
        for name, reason in result.unavailable.items()
    ]
    short = (
        f" Of {result.requested:,} asked for, the graph has only {result.test_edges:,} such edges."
        if result.test_edges < result.requested
        else ""
    )
    return (
        "<p>For every seed, edges are tried in random order and taken out if the rest stays as "
        "connected as it was, the direction of edges disregarded; self-loops are never taken."
        f"{short} Methods are fitted on the remaining graph and see nothing else; each is fitted "
        "once per seed and judged under all protocols. Score: any number, larger for a likelier "
        "edge. A score tied with others gets the mean of their ranks.</p>"
        f"<ul>{''.join(items)}</ul>"
        "<p>AUC is the chance that a test edge scores above a negative; AP the average precision; "
        "Hits@K the share of test edges ranked at most K among the negatives (rankings: among the "
        "candidates of the query); MRR the mean of 1 / rank.</p>"
    )


def _metric(metric: str) -> str:
    return _METRIC_NAME.get(metric, metric.replace("hits", "Hits"))


def _value(value: Interval) -> str:
    return f"{value.mean:.4f}"


def _small(value: float, unit: float) -> str:
    return f"&lt; {unit:g}" if value < unit else f"{value:,.{2 if unit < 1 else 0}f}"


def _megabytes(count: int | None) -> str:
    return "unknown" if count is None else _small(count / 1e6, 1)


def _range(value: Interval) -> str:
    if not math.isfinite(value.low):
        return ""
    return f"<small>{value.low:.4f} – {value.high:.4f}</small>"
