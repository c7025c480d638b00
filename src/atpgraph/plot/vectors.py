"""A map of the vectors: the plane in which sources and targets spread the most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from atpgraph.embedding import ATP
from atpgraph.embedding.projection import projection
from atpgraph.errors import InputError
from atpgraph.plot._style import level_colors, new_figure, plain_axes, title, whole_ticks
from atpgraph.util.palette import INK, LINE, QUIET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MANY = 3000  # points from which an SVG holds them as one picture


def plot_map(model: Any) -> Figure:
    """Draw source and target vectors on a plane, colored by level.

    Parameters
    ----------
    model : fitted ATP

    Returns
    -------
    matplotlib.figure.Figure
        Two panels on the same axes: the sources left, the targets right.
    """
    if not isinstance(model, ATP):
        raise InputError("A map shows vectors, and a graph has none; embed it first (atp embed).")
    sources, targets, shares = projection(model)
    if not len(sources):
        raise InputError("The model has no nodes; there is nothing to draw.")
    figure = new_figure(9.2, 4.6)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    level = model.levels_
    # Low levels last where they are rare, and the other way round: the rare ones stay visible.
    size = np.bincount(level)
    order = np.argsort(-size[level], kind="stable")
    dot = float(np.clip(4000 / len(level), 3, 30))
    names = (("source vectors", sources, "sources"), ("target vectors", targets, "targets"))
    for axes, (name, points, gid) in zip(panels, names, strict=True):
        dots = axes.scatter(
            points[order, 0], points[order, 1], c=level[order], s=dot, cmap=level_colors(),
            vmin=1, vmax=max(int(level.max()), 2), linewidths=0,
            rasterized=len(level) > _MANY,
        )  # fmt: skip
        dots.set_gid(gid)
        plain_axes(axes, f"axis 1, {100 * shares[0]:.0f} % of the variance", "")
        axes.axhline(0, color=LINE, linewidth=0.8, zorder=0)
        axes.axvline(0, color=LINE, linewidth=0.8, zorder=0)
        title(axes, name)
    panels[0].set_ylabel(f"axis 2, {100 * shares[1]:.0f} %", color=INK, fontsize=10)
    bar = figure.colorbar(dots, ax=panels, pad=0.02, aspect=28)
    bar.outline.set_visible(False)
    bar.set_label("level", color=INK, fontsize=10)
    bar.ax.tick_params(colors=QUIET, labelsize=9)
    whole_ticks(bar.ax.yaxis)
    return figure
