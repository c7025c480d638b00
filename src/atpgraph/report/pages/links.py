"""A link predictor as one HTML page: what it learned, how far to trust it, and what it suggests."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

import numpy as np

from atpgraph.linkpred.predictor import LinkPredictor
from atpgraph.report import (
    Bar,
    Line,
    Section,
    bar_chart,
    facts,
    line_chart,
    page,
    table,
    write_index,
)
from atpgraph.report.charts import figure, grid

_EXAMPLES = 10


def write_report(
    model: LinkPredictor,
    folder: str | os.PathLike[str],
    command: str = "",
    *,
    name: str = "a graph",
) -> Path:
    """Write :func:`render`'s page as ``index.html`` into a folder, created if needed."""
    return write_index(folder, render(model, command, name=name))


def render(model: LinkPredictor, command: str = "", *, name: str = "a graph") -> str:
    """The page of a fitted predictor as a string."""
    graph = model.graph_
    subtitle = f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges"
    judged = [
        (f"{question}: {label}", model.validation_[question][key])
        for question in ("link", "connected", "direction", "order")
        for key, label in (("auc", "AUC on hidden edges"), ("error", "calibration error"))
    ]
    sections = [
        Section("In short", facts([("evidence", ", ".join(model.evidence_.kinds)), *judged])),
        Section("What evidence is worth", _worth(model)),
        Section("Stated and observed", _calibration(model)),
        Section("For the busiest nodes", _examples(model)),
        Section("Settings", facts([(k, str(v)) for k, v in model.get_params().items()])),
    ]
    return page(f"Links of {name}", subtitle, sections, command)


def _worth(model: LinkPredictor) -> str:
    """Spread of each kind's contribution over sampled pairs, half of them edges."""
    graph = model.graph_
    rng = np.random.default_rng(0)
    some = rng.permutation(graph.n_edges)[:500]
    u = np.concatenate([graph.sources[some], rng.integers(graph.n_nodes, size=len(some))])
    v = np.concatenate([graph.targets[some], rng.integers(graph.n_nodes, size=len(some))])
    terms = model.evidence_.terms(u, v)
    kinds = np.array(model.evidence_.term_kinds)
    figures = []
    for question, head in model.heads_.items():
        spread = {
            kind: float((terms[:, kinds == kind] @ head.weights[kinds == kind]).std())
            for kind in model.evidence_.kinds
        }
        bars = [Bar(kind, value) for kind, value in sorted(spread.items(), key=lambda x: -x[1])]
        chart = bar_chart(bars, title=question, unit="log-odds")
        figures.append(figure(question, chart, "Standard deviation of what each kind adds."))
    return grid(figures)


def _calibration(model: LinkPredictor) -> str:
    bins = model.validation_["link"]["bins"]
    ranks = model.validation_["hits"]["ranks"]
    figures = []
    for title, rows in (("Hidden edges and as many other pairs", bins), ("By rank", ranks)):
        stated, right = [row["stated"] for row in rows], [row["right"] for row in rows]
        top = max([*stated, *right, 0.01])
        lines = [
            Line("links", stated, right, 0),
            Line("if stated were true", [0, top], [0, top], None),
        ]
        chart = line_chart(
            lines, title="Stated and observed share of links", x_label="stated", y_label="observed"
        )
        figures.append(figure(title, chart))
    return grid(figures)


def _examples(model: LinkPredictor) -> str:
    graph = model.graph_
    rows = []
    for code in np.argsort(-graph.out_degree, kind="stable")[:_EXAMPLES].tolist():
        label = graph.labels.tolist()[code]
        names, rates = model.recommend(label, 3)
        told = ", ".join(
            f"{name} ({rate:.2f})" for name, rate in zip(names.tolist(), rates, strict=True)
        )
        rows.append([escape(str(label)), escape(told)])
    return table(["node", "likeliest new targets"], rows)
