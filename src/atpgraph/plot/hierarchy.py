"""The hierarchy of a small graph: levels as rows, edges upwards, removed edges in red."""

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

    Returns
    -------
    matplotlib.figure.Figure
    """
    ranked = levelled(thing, method, random_state)
    graph, level = ranked.graph, ranked.level.astype(np.int64)
    _check_size(graph.n_nodes, graph.n_edges)
    names = [_short(str(label)) for label in graph.labels.tolist()]
    width = np.array([max(_HEIGHT, _LETTER * len(name) + 0.14) for name in names])
    sources, targets = graph.sources.astype(np.int64), graph.targets.astype(np.int64)
    loops = np.zeros(graph.n_nodes)
    loops[sources[sources == targets]] = 0.5
    sheet = arranged(level, sources, targets, width + loops)
    gone = np.zeros(graph.n_edges, dtype=bool)
    gone[ranked.removed] = True

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
    kept = graph.n_edges - len(ranked.removed)
    legend = [Line2D([], [], color=QUIET, label=counted(kept, "edge"))]
    if len(ranked.removed):
        label = f"{len(ranked.removed):,} removed to break cycles"
        legend.append(Line2D([], [], color=RED, linestyle=(0, (4, 2)), label=label))
    figure.legend(
        handles=legend, loc="outside lower left", ncols=2, frameon=False, fontsize=9, labelcolor=INK
    )
    return figure


def _check_size(nodes: int, edges: int) -> None:
    """Raise an InputError if a drawing could not be read."""
    if nodes > MAX_NODES or edges > MAX_EDGES:
        raise InputError(
            f"The graph has {counted(nodes, 'node')} and {counted(edges, 'edge')}; a drawing of "
            f"the hierarchy stays readable up to {MAX_NODES} nodes and {MAX_EDGES} edges. Draw a "
            "part of the graph, or another kind of picture: levels, or map for a model."
        )
    if nodes == 0:
        raise InputError("The graph has no nodes; there is nothing to draw.")


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
        path=path,
        arrowstyle="-|>,head_length=4,head_width=1.8",
        color=RED if removed else QUIET,
        linewidth=1.3 if removed else 0.9,
        linestyle=(0, (4, 2)) if removed else "solid",
        zorder=2 if removed else 1,
        shrinkA=0,
        shrinkB=0,
        capstyle="butt",
        joinstyle="miter",
    )
    arrow.set_gid(name)
    return arrow


def _spread_ends(
    routes: list[Float64Array],
    sources: Int64Array,
    targets: Int64Array,
    width: Float64Array,
) -> None:
    """Let the edges of a node end side by side along its box, in the order they come from."""
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

    points = route.copy()
    if len(points) == 2 and (points[0] == points[1]).all():  # a self-loop, at the right of the box
        (x, y), half = points[0], _HEIGHT / 2
        x += width / 2 - 0.06
        curve = [(x, y + half), (x + 0.1, y + 0.42), (x + 0.42, y + 0.16), (x + 0.06, y + 0.02)]
        return Path(curve, [Path.MOVETO, *[Path.CURVE4] * 3])
    up = np.array([0.0, 1.0])
    rise = np.sign(points[-1, 1] - points[0, 1])
    if rise == 0:  # within a row: an arc above it
        start, end = points[0] + up * _HEIGHT / 2, points[-1] + up * _HEIGHT / 2
        bow = min(0.2 + 0.05 * abs(end[0] - start[0]), 0.45)
        curve = [start, start + bow * up, end + bow * up, end]
        return Path(curve, [Path.MOVETO, *[Path.CURVE4] * 3])
    points[0, 1] += rise * _HEIGHT / 2
    points[-1, 1] -= rise * _HEIGHT / 2
    vertices, codes = [points[0]], [Path.MOVETO]
    for start, end in pairwise(points):
        half = (end[1] - start[1]) / 2
        vertices += [start + half * up, end - half * up, end]
        codes += [Path.CURVE4] * 3
    return Path(vertices, codes)
