"""A picture by the name of its kind, and pictures as files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atpgraph._version import __version__
from atpgraph.errors import InputError
from atpgraph.plot._style import require_matplotlib
from atpgraph.plot.curves import plot_levels, plot_objective
from atpgraph.plot.hierarchy import plot_hierarchy
from atpgraph.plot.vectors import plot_map
from atpgraph.util.files import atomic_path, check_writable
from atpgraph.util.random import RandomState
from atpgraph.util.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg")
_DPI = 150

Draw = Callable[[Any, str, RandomState], "Figure"]
KINDS: Registry[Draw] = Registry(
    "kind of picture",
    {
        "hierarchy": lambda thing, method, seed: plot_hierarchy(
            thing, method=method, random_state=seed
        ),
        "map": lambda thing, method, seed: plot_map(thing),
        "levels": lambda thing, method, seed: plot_levels(thing, method=method, random_state=seed),
        "objective": lambda thing, method, seed: plot_objective(thing),
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

    Returns
    -------
    matplotlib.figure.Figure
    """
    return KINDS[kind](thing, method, random_state)


def check_output(path: str | os.PathLike[str]) -> Path:
    """Refuse, before the work, a picture that could not be written in the end."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(f"{target} ends in neither .png nor .svg; name a file that does.")
    check_writable(target)
    require_matplotlib()
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
    with atomic_path(target) as temporary, matplotlib.rc_context(settings):
        figure.savefig(temporary, format=ending, dpi=_DPI, metadata=metadata)
    return target
