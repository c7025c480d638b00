"""Pictures of graphs and models, drawn with Matplotlib (``pip install 'atpgraph[plot]'``).

Every function returns a ``matplotlib.figure.Figure``; :func:`save` writes it, the same bytes for
the same picture.

Examples
--------
>>> figure = plot_hierarchy([("a", "b"), ("b", "c"), ("c", "a")])
>>> type(figure).__name__
'Figure'
"""

from atpgraph.plot.curves import plot_levels, plot_objective
from atpgraph.plot.figures import KINDS, plot, save
from atpgraph.plot.hierarchy import plot_hierarchy
from atpgraph.plot.vectors import plot_map

__all__ = [
    "KINDS",
    "plot",
    "plot_hierarchy",
    "plot_levels",
    "plot_map",
    "plot_objective",
    "save",
]
