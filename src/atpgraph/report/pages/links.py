"""A link predictor as one HTML page: what it learned, how far to trust it, and what it suggests."""

from __future__ import annotations

from html import escape

import numpy as np

from atpgraph import report
from atpgraph.linkpred.predictor import LinkPredictor

_EXAMPLES = 10


def render(model: LinkPredictor, command: str = "", *, name: str = "a graph") -> str:
    """Return the page of a fitted predictor."""
    graph = model.graph_
    judged = [
        (f"{question}: {label}", model.validation_[question][key])
        for question in ("link", "connected", "direction", "order")
        for key, label in (("auc", "AUC on hidden edges"), ("error", "calibration error"))
    ]
    sections = [
        report.Section(
            "In short", report.facts([("evidence", ", ".join(model.evidence_.kinds)), *judged])
        ),
        report.Section("What evidence is worth", _worth(model)),
        report.Section("Stated and observed", _calibration(model)),
        report.Section("For the busiest nodes", _examples(model)),
        report.Section(
            "Settings", report.facts([(k, str(v)) for k, v in model.get_params().items()])
        ),
    ]
    subtitle = f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges"
    return report.page(f"Links of {name}", subtitle, sections, command)


def _worth(model: LinkPredictor) -> str:
    """Return the spread of each kind's contribution over sampled pairs, half of them edges."""
    graph = model.graph_
    rng = np.random.default_rng(0)
    some = rng.permutation(graph.n_edges)[:500]
    u = np.concatenate([graph.sources[some], rng.integers(graph.n_nodes, size=len(some))])
    v = np.concatenate([graph.targets[some], rng.integers(graph.n_nodes, size=len(some))])
    terms = model.evidence_.terms(u, v)
    kinds = np.array(model.evidence_.term_kinds)
    figures = []
    for question, head in model.heads_.items():
        bars = [
            report.Bar(kind, float((terms[:, kinds == kind] @ head.weights[kinds == kind]).std()))
            for kind in model.evidence_.kinds
        ]
        bars.sort(key=lambda bar: -bar.value)
        chart = report.bar_chart(bars, title=question, unit="log-odds")
        figures.append(report.figure(question, chart, "Standard deviation of what each kind adds."))
    return report.grid(figures)


def _calibration(model: LinkPredictor) -> str:
    bins = model.validation_["link"]["bins"]
    ranks = model.validation_["hits"]["ranks"]
    figures = []
    for title, rows in (("Hidden edges and as many other pairs", bins), ("By rank", ranks)):
        stated, right = [row["stated"] for row in rows], [row["right"] for row in rows]
        top = max([*stated, *right, 0.01])
        chart = report.line_chart(
            [report.Line("links", stated, right)],
            title="Stated and observed share of links",
            x_label="stated",
            y_label="observed",
            y_range=(0.0, 1.05 * top),
            diagonal=True,
        )
        figures.append(report.figure(title, chart, "Dashed: where stated and observed agree."))
    return report.grid(figures)


def _examples(model: LinkPredictor) -> str:
    graph, labels = model.graph_, model.graph_.labels.tolist()
    rows = []
    for code in np.argsort(-graph.out_degree, kind="stable")[:_EXAMPLES].tolist():
        names, rates = model.recommend(labels[code], 3)
        told = [f"{name} ({rate:.2f})" for name, rate in zip(names.tolist(), rates, strict=True)]
        rows.append([escape(str(labels[code])), escape(", ".join(told))])
    return report.table(["node", "likeliest new targets"], rows)
