"""The hierarchy of a small graph: levels as rows, edges upward, removed edges in red."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.plot._layout import Row, arranged
from atpgraph.plot.figures import counted, levelled, new_figure
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.palette import BLUE, INK, LINE, PALE_BLUE, QUIET, RED
from atpgraph.util.random import RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

MAX_NODES, MAX_EDGES = 100, 300
_HEIGHT, _LETTER, _LONGEST = 0.27, 0.083, 16  # inches, and letters of a label
_KEPT: dict[str, Any] = {"color": QUIET, "linewidth": 0.9, "linestyle": "solid", "zorder": 1}
_REMOVED: dict[str, Any] = {"color": RED, "linewidth": 1.3, "linestyle": (0, (4, 2)), "zorder": 2}


def plot_hierarchy(thing: Any, *, method: str = "auto", random_state: RandomState = 0) -> Figure:
    """Draw a small graph with its levels as rows, the lowest at the bottom.

    Edges point up; the edges removed to break cycles are red and dashed. Within a row, nodes are
    ordered by sweeps over the mean position of their neighbors, which keeps crossings few. Parts
    that no edge connects are packed side by side, on several shelves if there are many, and a level
    with many nodes takes several rows: the picture stays about a page wide.

    Parameters
    ----------
    thing : fitted ATP, or anything :func:`atpgraph.as_graph` takes
    method, random_state
        How to break the cycles of a graph; a model has its own.
    """
    graph, removed, level = levelled(thing, method, random_state)
    if graph.n_nodes > MAX_NODES or graph.n_edges > MAX_EDGES:
        raise InputError(
            f"The graph has {counted(graph.n_nodes, 'node')} and {counted(graph.n_edges, 'edge')}; "
            f"a drawing of the hierarchy stays readable up to {MAX_NODES} nodes and {MAX_EDGES} "
            "edges. Draw a part of the graph, or another kind: levels, or map for a model."
        )
    names = [_short(str(label)) for label in graph.labels.tolist()]
    width = np.array([max(_HEIGHT, _LETTER * len(name) + 0.14) for name in names])
    sources, targets = graph.sources.astype(np.int64), graph.targets.astype(np.int64)
    loops = np.zeros(graph.n_nodes)
    loops[sources[sources == targets]] = 0.5
    sheet = arranged(level.astype(np.int64), sources, targets, width + loops)
    gone = np.zeros(graph.n_edges, dtype=bool)
    gone[removed] = True

    right = max(sheet.width + 0.3, 2.6)
    figure = new_figure(right + 1.2, sheet.height + 1.5)
    from matplotlib.lines import Line2D

    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-0.8, right + 0.1)
    axes.set_ylim(-0.4, sheet.height + 0.5)
    for row in sheet.rows:
        _row(axes, row, -0.25, right)
    _spread_ends(sheet.routes, sources, targets, width)
    for edge, route in enumerate(sheet.routes):
        path = _way(route, float(width[sources[edge]]))
        kind = "removed" if gone[edge] else "edge"
        axes.add_patch(_arrow(path, gone[edge], f"{kind}-{edge}"))
    for node, name in enumerate(names):
        _node(axes, node, name, sheet.x[node], sheet.y[node], width[node])
    legend = [Line2D([], [], color=QUIET, label=counted(graph.n_edges - len(removed), "edge"))]
    if len(removed):
        label = f"{len(removed):,} removed to break cycles"
        legend.append(Line2D([], [], color=RED, linestyle=_REMOVED["linestyle"], label=label))
    figure.legend(
        handles=legend, loc="outside lower left", ncols=2, frameon=False, fontsize=9, labelcolor=INK
    )
    return figure


def _short(name: str) -> str:
    name = "".join(c if c.isprintable() else "�" for c in name)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _row(axes: Axes, row: Row, left: float, right: float) -> None:
    for place, y in enumerate(row.heights):
        line = axes.plot([left, right], [y, y], color=LINE, linewidth=0.8, zorder=0)[0]
        line.set_gid(f"row-{row.shelf}-{row.level}-{place}")
    axes.text(
        left - 0.08, row.heights.mean(), f"level {row.level}", ha="right", va="center", fontsize=8,
        color=QUIET,
    )  # fmt: skip


def _node(axes: Axes, node: int, name: str, x: float, y: float, width: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (x - width / 2, y - _HEIGHT / 2), width, _HEIGHT, boxstyle="round,pad=0,rounding_size=0.09",
        facecolor=PALE_BLUE, edgecolor=BLUE, linewidth=1.0, zorder=3,
    )  # fmt: skip
    box.set_gid(f"node-{node}")
    axes.add_patch(box)
    axes.text(
        x, y, name, ha="center", va="center_baseline", fontsize=9, color=INK, zorder=4,
        parse_math=False,
    )  # fmt: skip


def _arrow(path: Path, removed: bool, name: str) -> FancyArrowPatch:
    from matplotlib.patches import FancyArrowPatch

    arrow = FancyArrowPatch(
        path=path, arrowstyle="-|>,head_length=4,head_width=1.8",
        shrinkA=0, shrinkB=0, capstyle="butt", joinstyle="miter",
        **(_REMOVED if removed else _KEPT),
    )  # fmt: skip
    arrow.set_gid(name)
    return arrow


def _spread_ends(
    routes: list[Float64Array],
    sources: Int64Array,
    targets: Int64Array,
    width: Float64Array,
) -> None:
    """Spread the ends of a node's edges along its box, ordered by their other ends."""
    sides: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}
    for edge, (u, v) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        route = routes[edge]
        if u == v:
            continue
        for node, end, beside in ((u, 0, 1), (v, -1, -2)):
            above = bool(route[beside, 1] >= route[end, 1])
            sides.setdefault((node, above), []).append((float(route[beside, 0]), edge, end))
    for (node, _), ends in sides.items():
        step = min(0.11, (width[node] - 0.12) / max(len(ends) - 1, 1))
        for place, (_, edge, end) in enumerate(sorted(ends)):
            routes[edge][end, 0] += step * (place - (len(ends) - 1) / 2)


def _way(route: Float64Array, width: float) -> Path:
    """Return a curve through the points of a route that leaves and enters boxes vertically."""
    from matplotlib.path import Path

    up = np.array([0.0, 1.0])
    half = up * _HEIGHT / 2
    rise = np.sign(route[-1, 1] - route[0, 1])
    if len(route) == 2 and (route[0] == route[1]).all():  # a self-loop, at the right of the box
        bends = np.array([[0, _HEIGHT / 2], [0.1, 0.42], [0.42, 0.16], [0.06, 0.02]])
        vertices = list(bends + route[0] + [width / 2 - 0.06, 0.0])
    elif rise == 0:  # within a row: an arc above it
        start, end = route[0] + half, route[-1] + half
        bow = up * min(0.2 + 0.05 * abs(end[0] - start[0]), 0.45)
        vertices = [start, start + bow, end + bow, end]
    else:
        points = route.copy()
        points[0] += rise * half
        points[-1] -= rise * half
        vertices = [points[0]]
        for start, end in pairwise(points):
            middle = up * (end[1] - start[1]) / 2
            vertices += [start + middle, end - middle, end]
    return Path(vertices, [Path.MOVETO, *[Path.CURVE4] * (len(vertices) - 1)])
