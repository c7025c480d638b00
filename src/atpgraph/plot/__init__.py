"""Pictures of graphs and models, drawn with Matplotlib (``pip install 'atpgraph[plot]'``).

Every function returns a ``matplotlib.figure.Figure``; :func:`save` writes it, the same bytes for
the same picture.

Examples
--------
>>> figure = plot_hierarchy([("a", "b"), ("b", "c"), ("c", "a")])
>>> type(figure).__name__
'Figure'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from atpgraph.plot.figures import check_output, plot_levels, plot_map, plot_objective, save
from atpgraph.plot.hierarchy import MAX_EDGES, MAX_NODES, plot_hierarchy
from atpgraph.util.checks import Registry
from atpgraph.util.random import RandomState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "KINDS",
    "MAX_EDGES",
    "MAX_NODES",
    "check_output",
    "plot",
    "plot_hierarchy",
    "plot_levels",
    "plot_map",
    "plot_objective",
    "save",
]

KINDS: Registry[Callable[..., Any]] = Registry(
    "kind of picture",
    {
        "hierarchy": plot_hierarchy,
        "map": lambda thing, **breaking: plot_map(thing),
        "levels": plot_levels,
        "objective": lambda thing, **breaking: plot_objective(thing),
    },
)


def plot(thing: Any, kind: str, *, method: str = "auto", random_state: RandomState = 0) -> Figure:
    """Draw a graph or a model.

    Parameters
    ----------
    thing : fitted ATP, or anything :func:`atpgraph.as_graph` takes
    kind : {"hierarchy", "map", "levels", "objective"}
        ``map`` and ``objective`` need a model.
    method, random_state
        How to break the cycles of a graph; a model has its own.
    """
    figure: Figure = KINDS[kind](thing, method=method, random_state=random_state)
    return figure
