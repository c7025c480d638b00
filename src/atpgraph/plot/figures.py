"""Draw levels, maps and objectives of graphs and models, and write pictures to files."""

from __future__ import annotations

import io
import logging
import os
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from atpgraph._version import __version__
from atpgraph.cycles import break_cycles
from atpgraph.embedding import ATP
from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import Float64Array, Int32Array, Int64Array
from atpgraph.util.files import atomic_path, check_writable
from atpgraph.util.palette import BLUE, INK, LINE, QUIET, STEPS
from atpgraph.util.random import RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

_SCREEN, _FILE = 110, 150  # dots per inch; the first is about the width of a notebook cell
_WRITTEN = 25  # levels up to which every bar gets its number
_MANY = 3000  # points from which an SVG holds them as one picture


def levelled(
    thing: Any, method: str, random_state: RandomState
) -> tuple[DiGraph, Int64Array, Int32Array]:
    """Return a graph (or the graph of a model), the edges that break its cycles, and its levels."""
    if isinstance(thing, ATP):
        thing._fitted()
        found = thing.graph_, thing.removed_, thing.levels_
    else:
        broken = break_cycles(as_graph(thing), method, random_state=random_state)
        found = broken.graph, broken.removed, levels(broken.dag)
    if not found[0].n_nodes:
        raise InputError("The graph has no nodes; there is nothing to draw.")
    return found


def _model(thing: Any, otherwise: str) -> ATP:
    """Return a fitted model; for anything else, raise an InputError that says `otherwise`."""
    if not isinstance(thing, ATP):
        raise InputError(otherwise)
    thing._fitted()
    return thing


@cache
def _figure_class() -> Any:
    """Return the class of all figures; without Matplotlib, the error says how to install it."""
    try:
        from matplotlib.figure import Figure as Plain
    except ImportError:
        raise MissingDependencyError("matplotlib", "plot", "Drawing") from None

    class Figure(Plain):
        """A Matplotlib figure that a notebook displays without ``%matplotlib inline``.

        IPython calls ``_repr_png_`` only if no backend has registered a formatter for figures, so
        a figure is never displayed twice.
        """

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=_SCREEN)
            return buffer.getvalue()

    return Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, outside the global state of pyplot."""
    figure: Figure = _figure_class()(
        figsize=(width, height), facecolor="white", layout="constrained"
    )
    return figure


def _finish(axes: Axes, x_label: str, y_label: str, title: str) -> None:
    """Give axes their names, a title at the left, and two thin lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(colors=QUIET, labelsize=9)
    axes.set_xlabel(x_label, color=INK, fontsize=10)
    axes.set_ylabel(y_label, color=INK, fontsize=10)
    axes.set_title(title, loc="left", fontsize=11, color=INK)


def _whole_ticks(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=9, integer=True, min_n_ticks=1))


def counted(number: int, what: str) -> str:
    """Return a number and its noun.

    Examples
    --------
    >>> counted(1, "edge"), counted(2000, "edge")
    ('1 edge', '2,000 edges')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def plot_levels(thing: Any, *, method: str = "auto", random_state: RandomState = 0) -> Figure:
    """Draw how many nodes each level has.

    Parameters
    ----------
    thing : fitted ATP, or anything :func:`atpgraph.as_graph` takes
    method, random_state
        How to break the cycles of a graph; a model has its own.
    """
    graph, removed, level = levelled(thing, method, random_state)
    count = np.bincount(level)[1:]
    figure = new_figure(float(np.clip(0.3 * len(count) + 2, 4.5, 10)), 3.6)
    axes = figure.add_subplot()
    bars = axes.bar(np.arange(1, len(count) + 1), count, color=BLUE, width=0.82)
    for at, bar in enumerate(bars, start=1):
        bar.set_gid(f"level-{at}")
    if len(count) <= _WRITTEN:
        axes.bar_label(bars, [f"{n:,}" for n in count], fontsize=8, color=INK, padding=2)
    # One level often holds most nodes; on a plain scale the others would not be seen.
    uneven = int(count.max()) > 40 * float(np.median(count[count > 0]))
    if uneven:
        axes.set_yscale("log")
        axes.set_ylim(0.7, None)
    else:
        _whole_ticks(axes.yaxis)
    axes.set_xlim(0.4, len(count) + 0.6)
    _whole_ticks(axes.xaxis)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    nodes, gone = counted(graph.n_nodes, "node"), counted(len(removed), "edge")
    title = f"{nodes} on {counted(len(count), 'level')}, {gone} removed"
    _finish(axes, "level", "nodes (logarithmic)" if uneven else "nodes", title)
    return figure


def plot_objective(model: Any) -> Figure:
    """Draw the objective of a fitted model after each iteration."""
    values = _model(
        model, "An objective belongs to a model; embed the graph first (atp embed)."
    ).objective_
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
    axes.margins(x=0.08, y=0.12)
    _whole_ticks(axes.xaxis)
    axes.yaxis.get_offset_text().set(color=QUIET, fontsize=9)
    fall = 1 - values[-1] / values[0] if values[0] > 0 else 0.0
    title = f"{counted(len(values), 'iteration')}, the objective fell by {100 * fall:.2g} %"
    _finish(axes, "iteration", "objective", title)
    return figure


def projection(model: ATP) -> tuple[Float64Array, Float64Array, list[float]]:
    """Return points of the source vectors and target vectors, and the variance along both axes.

    The axes are the first two principal components of all vectors together, so that a node's two
    points can be compared; the variance is a share of the total.
    """
    both = np.concatenate([model.source_, model.target_]).astype(np.float64)
    if model.margin_ > 0 and both.shape[1] > 2:
        both = both[:, :-2]  # biases and ones: far from everything else for nodes without paths
    both -= both.mean(axis=0)
    _, values, axes = np.linalg.svd(both.T @ both)
    # A singular vector and its negative are equally good: the largest entry is made positive.
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    flat = np.zeros((len(both), 2))
    shares = [0.0, 0.0]
    for at in range(min(2, len(values))):
        flat[:, at] = both @ axes[at]
        shares[at] = float(values[at] / values.sum()) if values.sum() > 0 else 0.0
    n = len(model.source_)
    return flat[:n], flat[n:], shares


def plot_map(model: Any) -> Figure:
    """Draw the vectors of a fitted model on a plane: sources left, targets right."""
    sources, targets, shares = projection(
        _model(model, "A map shows vectors, and a graph has none; embed it first (atp embed).")
    )
    if not len(sources):
        raise InputError("The model has no nodes; there is nothing to draw.")
    figure = new_figure(9.2, 4.6)
    from matplotlib.colors import LinearSegmentedColormap

    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    level = model.levels_
    # The nodes of rare levels are drawn last, so that they stay visible.
    order = np.argsort(-np.bincount(level)[level], kind="stable")
    for axes, side, points in zip(panels, ("source", "target"), (sources, targets), strict=True):
        dots = axes.scatter(
            points[order, 0], points[order, 1], c=level[order],
            s=float(np.clip(4000 / len(level), 3, 30)), linewidths=0,
            cmap=LinearSegmentedColormap.from_list("levels", STEPS),
            vmin=1, vmax=max(int(level.max()), 2), rasterized=len(level) > _MANY,
        )  # fmt: skip
        dots.set_gid(f"{side}s")
        axes.axhline(0, color=LINE, linewidth=0.8, zorder=0)
        axes.axvline(0, color=LINE, linewidth=0.8, zorder=0)
        x_label = f"axis 1, {100 * shares[0]:.0f} % of the variance"
        _finish(axes, x_label, "", f"{side} vectors")
    panels[0].set_ylabel(f"axis 2, {100 * shares[1]:.0f} %", color=INK, fontsize=10)
    bar = figure.colorbar(dots, ax=panels, pad=0.02, aspect=28)
    bar.outline.set_visible(False)
    bar.set_label("level", color=INK, fontsize=10)
    bar.ax.tick_params(colors=QUIET, labelsize=9)
    _whole_ticks(bar.ax.yaxis)
    return figure


def check_output(path: str | os.PathLike[str]) -> Path:
    """Return the path of a picture; raise an InputError if it cannot be written."""
    target = Path(path)
    if target.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"{target} ends in neither .png nor .svg; name a file that does.")
    check_writable(target)
    _figure_class()
    return target


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG or SVG, by the ending; the same figure gives the same bytes."""
    target = check_output(path)
    ending = target.suffix.lower()[1:]
    import matplotlib

    # Without these, a date and random identifiers would be in the file. Text stays text.
    settings = {"svg.hashsalt": "atpgraph", "svg.fonttype": "none", "font.family": "sans-serif"}
    maker = f"atpgraph {__version__}"
    metadata = {"Date": None, "Creator": maker} if ending == "svg" else {"Software": maker}
    with (
        atomic_path(target) as temporary,
        matplotlib.rc_context(settings),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")  # of letters: each would be a line
        figure.savefig(temporary, format=ending, dpi=_FILE, metadata=metadata)
    if ending == "png" and any("missing from font" in str(each.message) for each in caught):
        log.warning("%s has boxes for letters that no font has; an .svg keeps them", target)
    return target
