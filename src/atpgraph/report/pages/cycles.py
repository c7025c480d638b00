"""Broken cycles as one HTML page: one method, or several compared."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from atpgraph import report
from atpgraph.cycles.breaking import CycleBreak
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import strongly_connected_components
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import Float64Array, IntArray

EDGES = 10  # shown of those removed


def render(
    results: Sequence[CycleBreak],
    command: str = "",
    *,
    name: str = "a graph",
    agony: int | None = None,
    seconds: Sequence[float] | None = None,
    truth: IntArray | None = None,
) -> str:
    """Return the page.

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
    several = len(results) > 1
    sections = [
        report.Section("The graph", report.facts(rows)),
        report.Section("Methods" if several else "Result", _methods(results, spent, truth)),
    ]
    if graph.n_nodes:
        title = f"Levels after {fewest.method}" if several else "Levels"
        sections.append(report.Section(title, level_figure(levels(fewest.dag))))
    if several:
        sections.append(report.Section("Agreement", _agreement(results)))
    elif len(fewest.removed):
        order = np.lexsort((fewest.removed, -fewest.scores))
        shown = edge_table(graph, fewest.removed[order], fewest.scores[order])
        sections.append(report.Section("Removed edges", shown))
    done = f"{len(fewest.removed):,} edges removed by {fewest.method}"
    subtitle = f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges; " + (
        f"{len(results)} methods compared" if several else done
    )
    return report.page(f"Breaking the cycles of {name}", subtitle, sections, command)


def level_figure(level: IntArray) -> str:
    """Return a chart of how many nodes each level has.

    Examples
    --------
    >>> level_figure(np.array([1, 1, 2])).count('class="area"')
    1
    """
    count = np.bincount(level)[1:]
    # One level often holds most nodes; on a plain scale the others would not be seen.
    uneven = bool(count.max() > 40 * np.median(count[count > 0]))
    steps = np.arange(len(count) + 1) + 0.5
    chart = report.line_chart(
        [report.Line("nodes", steps, count, style="area")],
        title="Nodes by level",
        x_label="level",
        y_label="nodes, logarithmic" if uneven else "nodes",
        x_ticks=range(1, len(count) + 1, -(-len(count) // 9)),
        y_log=uneven,
        height=240,
    )
    return f"<figure>{chart}</figure>" + report.quiet(
        "Level: 1 + the longest path into a node, once cycles are broken. "
        f"The widest is level {int(count.argmax()) + 1:,} with {int(count.max()):,} nodes."
    )


def edge_table(graph: DiGraph, edges: IntArray, scores: Float64Array | None = None) -> str:
    """Return a table of the first edges, with their scores, and how many more there are."""
    sources, targets = graph.edge_labels(edges[:EDGES])
    rows = [
        [escape(str(u)), f'<td class="text">{escape(str(v))}</td>']
        for u, v in zip(sources.tolist(), targets.tolist(), strict=True)
    ]
    columns = ["from", '<th class="text" scope="col">to</th>']
    if scores is not None:
        columns.append("score")
        for row, score in zip(rows, scores, strict=False):
            row.append("self-loop" if np.isinf(score) else f"{score:.4g}")
    rest = len(edges) - len(rows)
    return report.table(columns, rows) + (report.quiet(f"And {rest:,} more.") if rest else "")


def _methods(
    results: Sequence[CycleBreak], seconds: Sequence[float], truth: IntArray | None
) -> str:
    columns = ["method", "removed", "share of edges", "levels"]
    columns += ["precision", "recall", "F1"] if truth is not None else []
    f1s = [0.0 if truth is None else result.agreement(truth).f1 for result in results]
    counts = [len(result.removed) for result in results]
    rows = []
    for result, f1, count, spent in zip(results, f1s, counts, seconds, strict=True):
        cells = [
            escape(result.method),
            _bold(f"{count:,}", count == min(counts)),
            f"{100 * count / max(result.graph.n_edges, 1):.2f} %",
            f"{int(levels(result.dag).max(initial=0)):,}",
        ]
        if truth is not None:
            one = result.agreement(truth)
            cells += [f"{one.precision:.3f}", f"{one.recall:.3f}"]
            cells.append(_bold(f"{f1:.3f}", f1 == max(f1s)))
        rows.append([*cells, f"{spent:.3f}"])
    text = report.table([*columns, "seconds"], rows)
    if len(results) == 1:
        return text
    names, figures = [result.method for result in results], []
    if truth is not None:
        bars = sorted(map(report.Bar, names, f1s), key=lambda bar: -bar.value)
        chart = report.bar_chart(bars, title="F1 against the truth", unit="F1", top=1.0)
        figures.append(report.figure("F1 against the truth", chart))
    bars = sorted(map(report.Bar, names, map(float, counts)), key=lambda bar: bar.value)
    figures.append(
        report.figure("Edges removed", report.bar_chart(bars, title="Edges removed", unit="edges"))
    )
    return text + report.grid(figures)


def _bold(text: str, best: bool) -> str:
    return f"<b>{text}</b>" if best else text


def _agreement(results: Sequence[CycleBreak]) -> str:
    """Return how many methods remove an edge, over the edges that any of them removes."""
    removed = np.concatenate([result.removed for result in results])
    votes = np.bincount(np.unique(removed, return_counts=True)[1], minlength=len(results) + 1)
    rows = [[f"{at} of {len(results)}", f"{votes[at]:,}"] for at in range(len(results), 0, -1)]
    note = report.quiet("Edges by the number of methods that remove them.")
    return report.table(["methods", "edges"], rows) + note
