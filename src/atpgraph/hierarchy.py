"""Compute the levels of an acyclic graph by removing nodes without in-edges, layer by layer."""

from __future__ import annotations

from typing import Any

from atpgraph.graph.convert import as_graph
from atpgraph.graph.traversal import peel
from atpgraph.util.arrays import Int32Array


def levels(dag: Any) -> Int32Array:
    """Return the level of every node: 1 + the number of edges of the longest path into it.

    Parameters
    ----------
    dag : anything :func:`atpgraph.as_graph` takes
        A graph without cycles (and without self-loops).

    Returns
    -------
    int32 array of n entries
        Levels from 1, in the order of the labels of ``as_graph(dag)``. Along every edge u → v the
        level rises: ``levels[u] < levels[v]``.

    Raises
    ------
    InputError
        If the graph has a cycle; the message names a node on a cycle or reachable from one.

    Examples
    --------
    >>> levels([("a", "b"), ("b", "c"), ("a", "c")]).tolist()
    [1, 2, 3]
    """
    return peel(as_graph(dag))[1]
