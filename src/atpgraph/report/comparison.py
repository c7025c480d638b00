"""A comparison of link predictors as one HTML page."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from atpgraph import report
from atpgraph.evaluation.intervals import Interval
from atpgraph.linkpred.benchmark import BenchmarkResult, MethodResult

_GROUP_NAME = {"ours": "this package", "rival": "another method", "trivial": "trivial"}
_METRIC_NAME = {"auc": "AUC", "ap": "AP", "mrr": "MRR"}


class _Page:
    """The sections of the page, over the methods that have results."""

    def __init__(self, result: BenchmarkResult) -> None:
        self.result = result
        self.done = [row for row in result.main() if row.runs]
        self.pairwise = [p for p in result.protocols if any(p in row.curves for row in self.done)]
        rankings = [[row.key for row in self._ranked(p)] for p in result.protocols]
        self.colors = report.method_colors(rankings)

    def render(self, command: str) -> str:
        result = self.result
        trained = any(row.runs for row in result.methods if row.dim is not None)
        parts = {
            "Results": self._summary(),
            "By protocol": self._bars(),
            "ROC curves": self._rocs() if self.pairwise else "",
            "What a point costs": self._costs() if self.done else "",
            "Dimension": self._dimensions() if len(result.dims) > 1 and trained else "",
            "All metrics": self._details(),
            "Protocol": self._protocol(),
        }
        sections = [report.Section(title, body) for title, body in parts.items() if body]
        seeds = f"{len(result.seeds)} seed" + ("s" if len(result.seeds) != 1 else "")
        subtitle = (
            f"{result.nodes:,} nodes, {result.edges:,} edges, {result.test_edges:,} test edges; "
            f"dimension {', '.join(map(str, result.dims))} per side; {seeds}"
        )
        return report.page(f"Link prediction on {result.graph}", subtitle, sections, command)

    def _headline(self, row: MethodResult, protocol: str) -> Interval:
        return row.interval(protocol, self.result.headline(protocol))

    def _ranked(self, protocol: str) -> list[MethodResult]:
        """Return the rows by their headline metric, best first."""
        return sorted(self.done, key=lambda row: -self._headline(row, protocol).mean)

    def _cell(self, row: MethodResult, protocol: str, metric: str) -> str:
        """Return mean and interval, the best in bold."""
        value = row.interval(protocol, metric)
        text = f"{value.mean:.4f}"
        best = self.result.best(protocol, metric)
        if best is row:
            text = f"<b>{text}</b>"
        elif best and len(self.result.seeds) > 1 and metric == self.result.headline(protocol):
            compared = self.result.compare(row.key, best.key, protocol, metric)
            text = f"≈ {text}" if compared.p_value >= 0.05 else text
        low, high = f"{value.low:.4f}", f"{value.high:.4f}"
        return text + (f"<small>{low} – {high}</small>" if math.isfinite(value.low) else "")

    def _summary(self) -> str:
        result = self.result
        columns = ["method"]
        columns += [f"{escape(p)}<br>{_metric(result.headline(p))}" for p in result.protocols]
        columns += ["fit, s", "peak memory, MB"]
        rows = []
        for row in result.main():
            name = escape(row.name) + f"<small>{escape(row.key)}, {_GROUP_NAME[row.group]}</small>"
            if row.failure:
                width, why = len(columns) - 1, escape(row.failure)
                rows.append([name, f'<td class="text" colspan="{width}">{why}</td>'])
                continue
            cells = [self._cell(row, p, result.headline(p)) for p in result.protocols]
            memory = "unknown" if row.memory is None else _small(row.memory / 1e6, 1)
            rows.append([name, *cells, _small(row.seconds.mean, 0.01), memory])
        note = "Bold: the best. One seed gives no interval."
        if len(result.seeds) > 1:
            note = (
                "Bold: the best mean. Small print: 95% interval over the seeds (Student's t). "
                "≈: the gap to the best is not significant in a paired t-test over the seeds "
                "(p ≥ 0.05). Time and memory are of the fit alone."
            )
        notes = [f"{row.name}: {row.note}." for row in result.main() if row.note]
        return (
            report.table(columns, rows)
            + report.quiet(note)
            + "".join(report.quiet(escape(each)) for each in notes)
        )

    def _bars(self) -> str:
        figures = []
        for protocol in self.result.protocols if self.done else []:
            metric = self.result.headline(protocol)
            ranked = [(row, self._headline(row, protocol)) for row in self._ranked(protocol)]
            bars = [
                report.Bar(row.name, value.mean, value.low, value.high, self.colors.get(row.key))
                for row, value in ranked
            ]
            name, top = _metric(metric), 1.0 if metric == "auc" else None
            chart = report.bar_chart(bars, title=f"{protocol}: {name}", unit=name, top=top)
            figures.append(report.figure(protocol, chart))
        note = report.quiet(
            "The methods that do best under some protocol have a color, the same in all charts of "
            "this page; the others are gray."
        )
        return report.grid(figures) + (note if len(self.colors) < len(self.done) else "")

    def _rocs(self) -> str:
        figures = []
        for protocol in self.pairwise:
            rows = [row for row in self.done if protocol in row.curves]
            lines = []
            for row in sorted(rows, key=lambda row: -row.interval(protocol, "auc").mean):
                false, true = row.curves[protocol]
                lines.append(report.Line(row.name, false, true, self.colors.get(row.key)))
            chart = report.line_chart(
                lines,
                title=f"ROC curves, {protocol}",
                x_label="false positive rate",
                y_label="true positive rate",
                y_range=(0.0, 1.0),
                diagonal=True,
            )
            figures.append(report.figure(protocol, chart))
        return report.grid(figures) + report.quiet("First seed.")

    def _charts(self, kind: str, x_label: str, lines: Callable[[str], list[report.Line]]) -> str:
        """Return charts of the headline metric against another quantity, one per protocol."""
        figures = []
        for protocol in self.result.protocols:
            name = _metric(self.result.headline(protocol))
            chart = report.line_chart(
                sorted(lines(protocol), key=lambda line: -max(line.y)),
                title=f"{name} against {kind}, {protocol}",
                x_label=x_label,
                y_label=name,
                x_log=True,
            )
            figures.append(report.figure(protocol, chart))
        return report.grid(figures)

    def _line(self, rows: list[MethodResult], xs: list[float], protocol: str) -> report.Line:
        values = [self._headline(row, protocol).mean for row in rows]
        return report.Line(rows[0].name, xs, values, self.colors.get(rows[0].key), markers=True)

    def _costs(self) -> str:
        def points(protocol: str) -> list[report.Line]:
            return [self._line([row], [max(row.seconds.mean, 1e-3)], protocol) for row in self.done]

        return self._charts("time", "seconds to fit (at least 0.001)", points)

    def _dimensions(self) -> str:
        by_key: dict[str, list[MethodResult]] = {}
        for row in sorted(self.result.methods, key=lambda row: row.dim or 0):
            if row.dim is not None and row.runs:
                by_key.setdefault(row.key, []).append(row)

        def lines(protocol: str) -> list[report.Line]:
            return [
                self._line(rows, [float(row.dim or 0) for row in rows], protocol)
                for rows in by_key.values()
            ]

        return self._charts("dimension", "dimension", lines)

    def _details(self) -> str:
        parts = []
        for protocol in self.result.protocols:
            metrics = list(self.done[0].runs[0].metrics[protocol]) if self.done else []
            if "mrr" in metrics:
                metrics.remove("ap")  # with one relevant node it is the MRR
            rows = [
                [escape(row.name), *(self._cell(row, protocol, metric) for metric in metrics)]
                for row in self.done
            ]
            table = report.table(["method", *map(_metric, metrics)], rows)
            parts.append(f"<details><summary>{escape(protocol)}</summary>{table}</details>")
        return "".join(parts)

    def _protocol(self) -> str:
        result = self.result
        sample = next((p for p in result.protocols if p.startswith("ranking-")), "")
        texts = {
            "paper": "negatives are as many pairs (u, v) where v reaches u and u does not reach v "
            "in the whole network, drawn uniformly.",
            "random": "negatives are as many ordered pairs of different nodes without an edge, "
            "drawn uniformly.",
            "reversed": "test edges whose reverse is not an edge, against their reverses.",
            "ranking": "the target of each test edge (u, v) is ranked among all nodes that u has "
            "no edge to; other true edges of u, training and test, are left out.",
            sample: f"the same against {sample.rpartition('-')[2]} of those nodes, drawn "
            "uniformly.",
        }
        told = {name: texts[name] for name in result.protocols if name in texts}
        told |= {name: f"not run, {reason}." for name, reason in result.unavailable.items()}
        items = "".join(f"<li><b>{escape(n)}</b>: {escape(t)}</li>" for n, t in told.items())
        short = ""
        if result.test_edges < result.requested:
            short = f" Of {result.requested:,} requested, only {result.test_edges:,} can be."
        return (
            "<p>For every seed, edges are tried in random order and taken out if the rest stays as "
            f"connected as it was, ignoring directions; self-loops are never taken.{short} Methods "
            "are fitted on the remaining graph and see nothing else; each is fitted once per seed "
            "and judged under all protocols. A score is any number, larger for a likelier edge; "
            f"tied scores share the mean of their ranks.</p><ul>{items}</ul>"
            "<p>AUC is the probability that a test edge scores above a negative; AP is the average "
            "precision; Hits@K is the share of test edges ranked at most K among the negatives "
            "(in rankings, among the candidates of the query); MRR is the mean of 1 / rank.</p>"
        )


def _metric(metric: str) -> str:
    return _METRIC_NAME.get(metric, metric.replace("hits", "Hits"))


def _small(value: float, unit: float) -> str:
    return f"&lt; {unit:g}" if value < unit else f"{value:,.{2 if unit < 1 else 0}f}"


def render(result: BenchmarkResult, command: str = "") -> str:
    """Return the page of a comparison."""
    return _Page(result).render(command)
