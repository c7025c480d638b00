"""What all pictures share: Matplotlib when it is needed, colors, and what is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from atpgraph.cycles import break_cycles
from atpgraph.embedding import ATP
from atpgraph.errors import MissingDependencyError
from atpgraph.graph.convert import as_graph
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.util.arrays import Int32Array, Int64Array
from atpgraph.util.palette import INK, LINE, QUIET, STEPS
from atpgraph.util.random import RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Levelled:
    """A graph, the edges that break its cycles, and the levels without them."""

    graph: DiGraph
    removed: Int64Array
    level: Int32Array


def levelled(thing: Any, method: str, random_state: RandomState) -> Levelled:
    """The levels a fitted model has, or those of a graph once its cycles are broken."""
    if isinstance(thing, ATP):
        thing._fitted()
        return Levelled(thing.graph_, thing.removed_, thing.levels_)
    broken = break_cycles(as_graph(thing), method, random_state=random_state)
    return Levelled(broken.graph, broken.removed, levels(broken.dag))


def require_matplotlib() -> None:
    """Say what to install where Matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingDependencyError("matplotlib", "plot", "Drawing") from None


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, that no global state of pyplot knows."""
    require_matplotlib()
    from atpgraph.plot._figure import Figure

    return Figure(figsize=(width, height), facecolor="white", layout="constrained")


def plain_axes(axes: Axes, x_label: str, y_label: str) -> None:
    """Two thin axes and small grey labels."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(LINE)
    axes.tick_params(colors=QUIET, labelsize=9)
    axes.set_xlabel(x_label, color=INK, fontsize=10)
    axes.set_ylabel(y_label, color=INK, fontsize=10)


def level_colors() -> Colormap:
    """From low to high, through the steps that reports use."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("levels", STEPS)


def whole_ticks(axis: Axis) -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=9, integer=True, min_n_ticks=1))


def title(axes: Axes, text: str) -> None:
    """A title, left."""
    axes.set_title(text, loc="left", fontsize=11, color=INK)


def counted(number: int, what: str) -> str:
    """A number and its noun.

    Examples
    --------
    >>> counted(1, "edge"), counted(2000, "edge")
    ('1 edge', '2,000 edges')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")
