"""Broken cycles as one HTML page: one method, or several compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from atpgraph.cycles.breaking import CycleBreak
from atpgraph.graph.scc import strongly_connected_components
from atpgraph.hierarchy import levels
from atpgraph.report import Bar, Section, bar_chart, facts, page, table, write_index
from atpgraph.report.charts import figure, grid
from atpgraph.report.levels import level_figure
from atpgraph.util.arrays import IntArray

_EDGES = 10


def write_report(
    results: Sequence[CycleBreak],
    folder: str | os.PathLike[str],
    command: str = "",
    *,
    name: str = "a graph",
    agony: int | None = None,
    seconds: Sequence[float] | None = None,
    truth: IntArray | None = None,
) -> Path:
    """Write :func:`render`'s page as ``index.html`` into a folder, created if needed."""
    html = render(results, command, name=name, agony=agony, seconds=seconds, truth=truth)
    return write_index(folder, html)


def render(
    results: Sequence[CycleBreak],
    command: str = "",
    *,
    name: str = "a graph",
    agony: int | None = None,
    seconds: Sequence[float] | None = None,
    truth: IntArray | None = None,
) -> str:
    """The page as a string.

    Parameters
    ----------
    results : sequence of CycleBreak
        Of the same graph, by different methods.
    command : str
        The command that made it, for the footer.
    name : str
        What the graph is called.
    agony : int, optional
        Minimum social agony of the graph.
    seconds : sequence of float, optional
        Time of each result; by default the sum of its stages.
    truth : int array, optional
        Indices of the edges that should go.
    """
    spent = [sum(r.timings.values()) for r in results] if seconds is None else seconds
    graph = results[0].graph
    fewest = min(results, key=lambda result: len(result.removed))
    subtitle = f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges; " + (
        f"{len(fewest.removed):,} edges removed by {fewest.method}"
        if len(results) == 1
        else f"{len(results)} methods compared"
    )
    sections = [
        Section("The graph", _graph(results[0], agony)),
        Section("Methods" if len(results) > 1 else "Result", _methods(results, spent, truth)),
    ]
    if graph.n_nodes:
        title = f"Levels after {fewest.method}" if len(results) > 1 else "Levels"
        sections.append(Section(title, level_figure(levels(fewest.dag))))
    if len(results) == 1 and len(fewest.removed):
        sections.append(Section("Removed edges", _removed(fewest)))
    if len(results) > 1:
        sections.append(Section("Agreement", _agreement(results)))
    return page(f"Breaking the cycles of {name}", subtitle, sections, command)


def _graph(result: CycleBreak, agony: int | None) -> str:
    graph = result.graph
    size = np.bincount(strongly_connected_components(graph), minlength=1)
    rows: list[tuple[str, object]] = [
        ("nodes", graph.n_nodes),
        ("edges", graph.n_edges),
        ("self-loops among them", graph.n_self_loops),
        ("nodes on cycles, self-loops aside", int(size[size > 1].sum())),
        ("strongly connected components of two or more nodes", int((size > 1).sum())),
        ("nodes of the largest", int(size.max())),
    ]
    if agony is not None:
        rows.append(("social agony: how far edges must go down at the least", agony))
    return facts(rows)


def _methods(
    results: Sequence[CycleBreak], seconds: Sequence[float], truth: IntArray | None
) -> str:
    agreements = [None if truth is None else result.agreement(truth) for result in results]
    columns = ["method", "removed", "share of edges", "levels"]
    columns += ["precision", "recall", "F1"] if truth is not None else []
    rows = []
    best = max((one.f1 for one in agreements if one is not None), default=0.0)
    fewest = min(len(result.removed) for result in results)
    for result, one, spent in zip(results, agreements, seconds, strict=True):
        removed = f"{len(result.removed):,}"
        share = 100 * len(result.removed) / max(result.graph.n_edges, 1)
        cells = [
            escape(result.method),
            f"<b>{removed}</b>" if len(result.removed) == fewest else removed,
            f"{share:.2f} %",
            f"{int(levels(result.dag).max(initial=0)):,}",
        ]
        if one is not None:
            f1 = f"<b>{one.f1:.3f}</b>" if one.f1 == best else f"{one.f1:.3f}"
            cells += [f"{one.precision:.3f}", f"{one.recall:.3f}", f1]
        rows.append([*cells, f"{spent:.3f}"])
    text = table([*columns, "seconds"], rows)
    if len(results) == 1:
        return text
    charts: list[tuple[str, list[float], str, float | None]] = []
    if truth is not None:
        f1s = [one.f1 for one in agreements if one is not None]
        charts.append(("F1 against the truth", f1s, "F1", 1.0))
    charts.append(("Edges removed", [float(len(r.removed)) for r in results], "edges", None))
    figures = []
    for title, values, unit, top in charts:
        bars = [Bar(r.method, value) for r, value in zip(results, values, strict=True)]
        bars.sort(key=lambda bar: bar.value, reverse=unit == "F1")
        chart = bar_chart(bars, title=title, unit=unit, top=top)
        figures.append(figure(title, chart))
    return text + grid(figures)


def _removed(result: CycleBreak) -> str:
    order = np.lexsort((result.removed, -result.scores))[:_EDGES]
    sources, targets = result.graph.edge_labels(result.removed[order])
    rows = [
        [
            escape(str(u)),
            f'<td class="text">{escape(str(v))}</td>',
            "self-loop" if np.isinf(score) else f"{score:.4g}",
        ]
        for u, v, score in zip(
            sources.tolist(), targets.tolist(), result.scores[order].tolist(), strict=True
        )
    ]
    rest = len(result.removed) - len(rows)
    note = (
        f'<p class="quiet">The {len(rows)} with the highest scores; {rest:,} more were removed. '
        "--removed FILE writes all.</p>"
        if rest
        else ""
    )
    return table(["from", '<th class="text" scope="col">to</th>', "score"], rows) + note


def _agreement(results: Sequence[CycleBreak]) -> str:
    """How many methods remove an edge, over the edges that any of them removes."""
    votes = np.zeros(results[0].graph.n_edges, dtype=np.int64)
    for result in results:
        votes[result.removed] += 1
    count = np.bincount(votes, minlength=len(results) + 1)[1:]
    rows = [
        [f"{at} of {len(results)}", f"{edges:,}"]
        for at, edges in zip(range(len(results), 0, -1), count[::-1].tolist(), strict=True)
    ]
    note = '<p class="quiet">Edges by the number of methods that remove them.</p>'
    return table(["methods", "edges"], rows) + note
