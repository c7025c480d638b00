"""An embedding as one HTML page: what came in, what was made of it, and at what cost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np

from atpgraph.embedding.estimator import ATP
from atpgraph.embedding.fidelity import Fidelity
from atpgraph.embedding.projection import projection
from atpgraph.report import (
    Bar,
    Dots,
    Line,
    Section,
    bar_chart,
    dot_chart,
    facts,
    line_chart,
    page,
    table,
    write_index,
)
from atpgraph.report.charts import figure, grid
from atpgraph.report.distributions import step_legend
from atpgraph.report.levels import level_figure
from atpgraph.util.palette import N_STEPS

_DOTS = 2000
_EDGES = 10


def write_report(
    model: ATP,
    folder: str | os.PathLike[str],
    command: str = "",
    *,
    name: str = "a graph",
    seconds: Mapping[str, float] | None = None,
    memory_mb: float | None = None,
) -> Path:
    """Write :func:`render`'s page as ``index.html`` into a folder, created if needed."""
    html = render(model, command, name=name, seconds=seconds, memory_mb=memory_mb)
    return write_index(folder, html)


def render(
    model: ATP,
    command: str = "",
    *,
    name: str = "a graph",
    seconds: Mapping[str, float] | None = None,
    memory_mb: float | None = None,
) -> str:
    """The page as a string.

    Parameters
    ----------
    model : ATP
        A fitted model.
    command : str
        The command that made it, for the footer.
    name : str
        What the graph is called.
    seconds : mapping from stage to seconds, optional
        By default the stages of the fit.
    memory_mb : float, optional
        Peak memory in megabytes.
    """
    spent = model.timings_ if seconds is None else seconds
    graph = model.graph_
    top = int(model.levels_.max(initial=0))
    subtitle = (
        f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges; {len(model.removed_):,} edges removed "
        f"by {model.method}; {top:,} levels; vectors of {model.n_components} numbers per side"
    )
    sections = [Section("In short", _summary(model, memory_mb))]
    if model.fidelity_ is not None:
        sections.append(Section("Fidelity", _fidelity(model.fidelity_, model.settings_.purpose)))
    if graph.n_nodes:
        sections.append(Section("Levels", level_figure(model.levels_)))
        sections.append(Section("Map of the vectors", vector_map(model)))
    stages = {key: value for key, value in spent.items() if key != "total"}
    figures = [_time(stages)] if stages else []
    if len(model.objective_) > 1:
        figures.append(_objective(model))
    if figures:
        sections.append(Section("The fit", grid(figures)))
    if len(model.removed_):
        sections.append(Section("Removed edges", _removed(model)))
    settings = [(key, str(value)) for key, value in model.get_params().items()]
    sections.append(Section("Settings", facts(settings)))
    return page(f"Embedding of {name}", subtitle, sections, command)


def _summary(model: ATP, memory_mb: float | None) -> str:
    graph = model.graph_
    pairs = model.n_reachable_pairs_
    possible = graph.n_nodes * (graph.n_nodes - 1)
    rows: list[tuple[str, object]] = [
        ("purpose", model.purpose),
        ("nodes", graph.n_nodes),
        ("edges", graph.n_edges),
        ("self-loops among them", graph.n_self_loops),
        ("edges removed to break cycles", len(model.removed_)),
        ("levels", int(model.levels_.max(initial=0))),
        ("pairs joined by a path", pairs),
        ("share of all pairs", f"{100 * pairs / possible:.2g} %" if possible else "–"),
        ("iterations", model.n_iter_),
        ("weight of an unreachable pair", model.settings_.zero_weight),
        ("penalty", model.settings_.regularization),
    ]
    if memory_mb is not None:
        rows.append(("peak memory, MB", round(memory_mb)))
    return facts(rows)


def _fidelity(report: Fidelity, purpose: str) -> str:
    rows: list[tuple[str, object]] = [
        (line.label, f"{100 * line.value:.1f} % (goal {100 * line.goal:g} %)")
        for line in report.lines()
    ]
    rows += [
        ("AUC of the difference of levels alone", f"{100 * report.level_auc:.1f} %"),
        ("rank correlation of score and difference of levels", f"{report.level_correlation:.3f}"),
        ("sampled paths", report.pairs),
    ]
    advice = f"<p>{escape(report.advice(purpose))}</p>" if report.advice(purpose) else ""
    note = (
        '<p class="quiet">Weakest first. A look-alike target is a target of other paths, '
        "on a higher level and out of reach; sources are measured on the reversed graph.</p>"
    )
    return facts([(label, _known(value)) for label, value in rows]) + advice + note


def _known(value: object) -> object:
    return "–" if isinstance(value, str) and value.startswith("nan") else value


def vector_map(model: ATP) -> str:
    """Source and target vectors as two clouds of dots, colored by level."""
    sources, targets, shares = projection(model)
    both = np.concatenate([sources, targets])
    x_range, y_range = ((float(both[:, at].min()), float(both[:, at].max())) for at in (0, 1))
    margin = 0.05 * (y_range[1] - y_range[0]) or 0.05
    y_range = (y_range[0] - margin, y_range[1] + margin)
    n, top = len(sources), int(model.levels_.max())
    # Evenly spaced nodes, the same on both sides and in every run.
    shown = np.unique(np.linspace(0, n - 1, min(n, _DOTS)).astype(np.int64))
    step = ((model.levels_ - 1) * N_STEPS // max(top, 1)).astype(np.int64)
    figures = []
    for name, points in (("Source vectors", sources), ("Target vectors", targets)):
        chart = dot_chart(
            Dots(points[shown, 0].tolist(), points[shown, 1].tolist(), step[shown].tolist()),
            title=name,
            x_label=f"axis 1, {100 * shares[0]:.0f} % of the variance",
            y_label=f"axis 2, {100 * shares[1]:.0f} %",
            x_range=x_range,
            y_range=y_range,
        )
        figures.append(figure(name, chart))
    names = []
    for at in range(N_STEPS):
        inside = np.flatnonzero((np.arange(top) * N_STEPS) // max(top, 1) == at) + 1
        if len(inside):
            low, high = int(inside[0]), int(inside[-1])
            names.append((at, f"level {low}" if low == high else f"levels {low} – {high}"))
    part = f" {len(shown):,} of {n:,} nodes are shown." if len(shown) < n else ""
    note = (
        '<p class="quiet">Principal axes of all source and target vectors together, colored by '
        f"level.{part}</p>"
    )
    return grid(figures) + f"{step_legend(names)}{note}"


def _objective(model: ATP) -> str:
    values = model.objective_ / (model.objective_[0] or 1.0)
    iterations = list(range(1, len(values) + 1))
    every = -(-len(values) // 10)
    chart = line_chart(
        [Line("objective", iterations, values.tolist(), 0, markers=True)],
        title="Objective by iteration",
        x_label="iteration",
        y_label="objective, first = 1",
        x_ticks=iterations[::every],
        height=220,
    )
    first, last = (f"{value:,.4g}" for value in model.objective_[[0, -1]])
    text = f"{first} after the first iteration, {last} after the last; no step raises it."
    if model.margin_ > 0:
        text = (
            f"Mean loss for a path, on fresh pairs: {first} in the first round, {last} in the last."
        )
    note = f'<p class="quiet">{text}</p>'
    return figure("Objective", chart, note)


def _time(seconds: Mapping[str, float]) -> str:
    bars = [Bar(stage, value) for stage, value in seconds.items()]
    chart = bar_chart(bars, title="Seconds by stage", unit="seconds")
    total = sum(seconds.values())
    note = f'<p class="quiet">{total:.2f} s in all.</p>'
    return figure("Time", chart, note)


def _removed(model: ATP) -> str:
    sources, targets = model.graph_.edge_labels(model.removed_[:_EDGES])
    rows = [
        [escape(str(u)), f'<td class="text">{escape(str(v))}</td>']
        for u, v in zip(sources.tolist(), targets.tolist(), strict=True)
    ]
    rest = len(model.removed_) - len(rows)
    note = f'<p class="quiet">And {rest:,} more, in the model file.</p>' if rest else ""
    return table(["from", '<th class="text" scope="col">to</th>'], rows) + note
