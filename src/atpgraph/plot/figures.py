"""A picture by the name of its kind, and pictures as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atpgraph import __version__
from atpgraph._files import atomic_path, check_writable
from atpgraph._random import RandomState
from atpgraph.errors import InputError
from atpgraph.plot.curves import plot_levels, plot_objective
from atpgraph.plot.hierarchy import plot_hierarchy
from atpgraph.plot.vectors import plot_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("hierarchy", "map", "levels", "objective")
ENDINGS = (".png", ".svg")
_DPI = 150


def plot(
    thing: Any, kind: str, *, method: str = "h-voting", random_state: RandomState = 0
) -> Figure:
    """Draw a graph or a model.

    Parameters
    ----------
    thing : fitted ATP, or anything :func:`atpgraph.as_graph` takes
    kind : {"hierarchy", "map", "levels", "objective"}
        ``map`` and ``objective`` need a model.
    method, random_state
        How to break the cycles of a graph; a model has its own.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if kind == "hierarchy":
        return plot_hierarchy(thing, method=method, random_state=random_state)
    if kind == "levels":
        return plot_levels(thing, method=method, random_state=random_state)
    if kind == "map":
        return plot_map(thing)
    if kind == "objective":
        return plot_objective(thing)
    raise InputError(f"There is no kind {kind!r} of picture; choose one of {', '.join(KINDS)}.")


def check_ending(path: str | os.PathLike[str]) -> Path:
    """Refuse, before the work, a file that could not be written in the end."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(f"{target} ends in neither .png nor .svg; name a file that does.")
    return check_writable(target)


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG or SVG, by the ending; the same figure gives the same bytes."""
    target = check_ending(path)
    ending = target.suffix.lower()[1:]
    import matplotlib

    # Without these, a date and random identifiers would be in the file. Text stays text.
    settings = {"svg.hashsalt": "atpgraph", "svg.fonttype": "none", "font.family": "sans-serif"}
    maker = f"atpgraph {__version__}"
    metadata = {"Date": None, "Creator": maker} if ending == "svg" else {"Software": maker}
    with atomic_path(target) as temporary, matplotlib.rc_context(settings):
        figure.savefig(temporary, format=ending, dpi=_DPI, metadata=metadata)
    return target
