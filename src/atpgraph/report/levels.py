"""The levels of a hierarchy as a figure."""

from __future__ import annotations

import numpy as np

from atpgraph.report.distributions import column_chart
from atpgraph.util.arrays import IntArray


def level_figure(level: IntArray) -> str:
    """How many nodes each level has, from the level of every node.

    Examples
    --------
    >>> level_figure(np.array([1, 1, 2])).count('class="bar"')
    2
    """
    count = np.bincount(level)[1:]
    uneven = bool(count.max() > 40 * np.median(count[count > 0]))
    chart = column_chart(
        count.tolist(), title="Nodes by level", x_label="level", y_label="nodes", log=uneven
    )
    note = (
        '<p class="quiet">Level: 1 + the longest path into a node, once cycles are broken. '
        f"The widest is level {int(count.argmax()) + 1:,} with {int(count.max()):,} nodes.</p>"
    )
    return f"<figure>{chart}</figure>{note}"
