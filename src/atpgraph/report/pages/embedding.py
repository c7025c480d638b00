"""An embedding as one HTML page: the graph, the vectors, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from atpgraph import report
from atpgraph.embedding.estimator import ATP
from atpgraph.embedding.fidelity import Fidelity
from atpgraph.embedding.projection import projection
from atpgraph.util.arrays import IntArray
from atpgraph.util.palette import N_STEPS

_DOTS = 2000  # nodes shown of a large graph
_EDGES = 10  # removed edges shown


def render(
    model: ATP,
    command: str = "",
    *,
    name: str = "a graph",
    seconds: Mapping[str, float] | None = None,
    memory_mb: float | None = None,
) -> str:
    """Return the page of a fitted model.

    Parameters
    ----------
    model : ATP
    command : str
        The command that made it, for the footer.
    name : str
        What the graph is called.
    seconds : mapping from stage to seconds, optional
        By default the stages of the fit.
    memory_mb : float, optional
        Peak memory in megabytes.
    """
    graph = model.graph_
    sections = [report.Section("In short", _summary(model, memory_mb))]
    if model.fidelity_ is not None:
        sections.append(
            report.Section("Fidelity", _fidelity(model.fidelity_, model.settings_.purpose))
        )
    if graph.n_nodes:
        sections.append(report.Section("Levels", _levels(model.levels_)))
        sections.append(report.Section("Map of the vectors", vector_map(model)))
    spent = model.timings_ if seconds is None else seconds
    figures = []
    if stages := [report.Bar(key, value) for key, value in spent.items() if key != "total"]:
        chart = report.bar_chart(stages, title="Seconds by stage", unit="seconds")
        total = sum(bar.value for bar in stages)
        figures.append(report.figure("Time", chart, report.quiet(f"{total:.2f} s in all.")))
    if len(model.objective_) > 1:
        figures.append(_objective(model))
    if figures:
        sections.append(report.Section("The fit", report.grid(figures)))
    if len(model.removed_):
        sections.append(report.Section("Removed edges", _removed(model)))
    settings = report.facts([(key, str(value)) for key, value in model.get_params().items()])
    subtitle = (
        f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges; {len(model.removed_):,} edges removed "
        f"by {model.method_}; {int(model.levels_.max(initial=0)):,} levels; vectors of "
        f"{model.n_components} numbers per side"
    )
    sections.append(report.Section("Settings", settings))
    return report.page(f"Embedding of {name}", subtitle, sections, command)


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
    return report.facts(rows)


def _fidelity(found: Fidelity, purpose: str) -> str:
    rows: list[tuple[str, object]] = [
        (line.label, f"{100 * line.value:.1f} % (goal {100 * line.goal:g} %)")
        for line in found.lines()
    ]
    rows += [
        (label, "–" if value != value else text.format(value))
        for label, value, text in (
            ("AUC of the difference of levels alone", 100 * found.level_auc, "{:.1f} %"),
            ("rank correlation of score and levels", found.level_correlation, "{:.3f}"),
        )
    ]
    rows.append(("sampled paths", found.pairs))
    advice = f"<p>{escape(found.advice(purpose))}</p>" if found.advice(purpose) else ""
    note = (
        "Weakest first. A look-alike target is a target of other paths, on a higher level and out "
        "of reach; sources are measured on the reversed graph."
    )
    return report.facts(rows) + advice + report.quiet(note)


def vector_map(model: ATP) -> str:
    """Return source and target vectors as two clouds of dots, colored by level."""
    sources, targets, shares = projection(model)
    both = np.concatenate([sources, targets])
    margin = 0.05 * float(np.ptp(both[:, 1])) or 0.05
    y_range = (float(both[:, 1].min()) - margin, float(both[:, 1].max()) + margin)
    # Evenly spaced nodes, the same on both sides and in every run.
    n = len(sources)
    shown = np.unique(np.linspace(0, n - 1, min(n, _DOTS)).astype(np.int64))
    level, top = model.levels_[shown], int(model.levels_.max())
    groups = []
    for step, inside in enumerate(np.array_split(np.arange(1, top + 1), min(N_STEPS, top))):
        low, high = int(inside[0]), int(inside[-1])
        name = f"level {low}" if low == high else f"levels {low} – {high}"
        groups.append((name, f"s{step}", shown[(low <= level) & (level <= high)]))
    figures = []
    for side, points in (("Source vectors", sources), ("Target vectors", targets)):
        clouds = [
            report.Line(name, points[some, 0], points[some, 1], color, style="dots")
            for name, color, some in groups
            if len(some)
        ]
        chart = report.line_chart(
            clouds,
            title=side,
            x_label=f"axis 1, {100 * shares[0]:.0f} % of the variance",
            y_label=f"axis 2, {100 * shares[1]:.0f} %",
            x_range=[float(both[:, 0].min()), float(both[:, 0].max())],
            y_range=y_range,
        )
        figures.append(report.figure(side, chart[: chart.index("</svg>") + 6]))
    part = f" {len(shown):,} of {n:,} nodes are shown." if len(shown) < n else ""
    note = "Principal axes of all source and target vectors together, colored by level."
    names = [(name, color) for name, color, _ in groups]
    return report.grid(figures) + report.legend(names) + report.quiet(note + part)


def _levels(level: IntArray) -> str:
    """Return a chart of how many nodes each level has."""
    count = np.bincount(level)[1:]
    # One level often holds most nodes; on a linear scale the others would be invisible.
    uneven = bool(count.max() > 40 * np.median(count))
    chart = report.line_chart(
        [report.Line("nodes", range(1, len(count) + 1), count, markers=True)],
        title="Nodes by level",
        x_label="level",
        y_label="nodes, logarithmic" if uneven else "nodes",
        y_log=uneven,
    )
    return f"<figure>{chart}</figure>" + report.quiet(
        "The level of a node is 1 + the length of the longest path into it without the removed "
        f"edges. Level {int(count.argmax()) + 1:,} is the largest: {int(count.max()):,} nodes."
    )


def _objective(model: ATP) -> str:
    values = model.objective_ / (model.objective_[0] or 1.0)
    chart = report.line_chart(
        [report.Line("objective", range(1, len(values) + 1), values, markers=True)],
        title="Objective by iteration",
        x_label="iteration",
        y_label="objective, first = 1",
    )
    first, last = (f"{value:,.4g}" for value in model.objective_[[0, -1]])
    text = f"{first} after the first iteration, {last} after the last; no step raises it."
    if model.margin_ > 0:
        text = (
            f"Mean loss for a path, on fresh pairs: {first} in the first round, {last} in the last."
        )
    return report.figure("Objective", chart, report.quiet(text))


def _removed(model: ATP) -> str:
    """Return a table of the first removed edges, and how many more there are."""
    sources, targets = model.graph_.edge_labels(model.removed_[:_EDGES])
    rows = [
        [escape(str(u)), f'<td class="text">{escape(str(v))}</td>']
        for u, v in zip(sources.tolist(), targets.tolist(), strict=True)
    ]
    rest = len(model.removed_) - len(rows)
    more = report.quiet(f"And {rest:,} more.") if rest else ""
    return report.table(["from", '<th class="text" scope="col">to</th>'], rows) + more
