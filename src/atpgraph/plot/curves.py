"""The level histogram and the objective curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from atpgraph.embedding import ATP
from atpgraph.errors import InputError
from atpgraph.plot._style import (
    counted,
    levelled,
    new_figure,
    plain_axes,
    title,
    whole_ticks,
)
from atpgraph.util.palette import BLUE, INK, LINE, QUIET
from atpgraph.util.random import RandomState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WRITTEN = 25  # levels up to which every bar gets its number


def plot_levels(thing: Any, *, method: str = "auto", random_state: RandomState = 0) -> Figure:
    """Draw how many nodes each level has.

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
    if not len(ranked.level):
        raise InputError("The graph has no nodes; there is nothing to draw.")
    count = np.bincount(ranked.level)[1:]
    figure = new_figure(float(np.clip(0.3 * len(count) + 2, 4.5, 10)), 3.6)
    axes = figure.add_subplot()
    bars = axes.bar(np.arange(1, len(count) + 1), count, color=BLUE, width=0.82)
    for at, bar in enumerate(bars, start=1):
        bar.set_gid(f"level-{at}")
    if len(count) <= _WRITTEN:
        axes.bar_label(bars, [f"{n:,}" for n in count], fontsize=8, color=INK, padding=2)
    there = count[count > 0]
    # One level often holds most nodes; on a plain scale the others would not be seen.
    uneven = int(count.max()) > 40 * float(np.median(there))
    if uneven:
        axes.set_yscale("log")
        axes.set_ylim(0.7, None)
    else:
        whole_ticks(axes.yaxis)
    plain_axes(axes, "level", "nodes (logarithmic)" if uneven else "nodes")
    axes.set_xlim(0.4, len(count) + 0.6)
    whole_ticks(axes.xaxis)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    nodes, removed = len(ranked.level), len(ranked.removed)
    title(
        axes,
        f"{counted(nodes, 'node')} on {counted(len(count), 'level')}, "
        f"{counted(removed, 'edge')} removed",
    )
    return figure


def plot_objective(model: Any) -> Figure:
    """Draw the objective of the factorization after each iteration.

    Parameters
    ----------
    model : ATP
        Fitted by the solver ``"nnls"``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if not isinstance(model, ATP):
        raise InputError("An objective belongs to a model; embed the graph first (atp embed).")
    model._fitted()
    values = model.objective_
    if not len(values):
        raise InputError(
            "The model has no objective curve: its graph has no paths. Draw its map or its levels."
        )
    figure = new_figure(5.2, 3.4)
    axes = figure.add_subplot()
    (line,) = axes.plot(np.arange(1, len(values) + 1), values, "o-", color=BLUE, markersize=5)
    line.set_gid("objective")
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    plain_axes(axes, "iteration", "objective")
    axes.margins(x=0.08, y=0.12)
    whole_ticks(axes.xaxis)
    axes.yaxis.get_offset_text().set(color=QUIET, fontsize=9)
    fall = 1 - values[-1] / values[0] if values[0] > 0 else 0.0
    title(axes, f"{counted(len(values), 'iteration')}, the objective fell by {100 * fall:.2g} %")
    return figure
