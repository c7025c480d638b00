"""Levels of an acyclic graph: peel the nodes without in-edges, layer by layer."""

from __future__ import annotations

from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.traversal import peel
from atpgraph.util.arrays import Int32Array


def levels(dag: DiGraph) -> Int32Array:
    """Level of every node: 1 + the number of edges of the longest path into it.

    Parameters
    ----------
    dag : DiGraph
        A graph without cycles (and without self-loops).

    Returns
    -------
    int32 array of n entries
        Levels from 1. Along every edge u → v the level rises: ``levels[u] < levels[v]``.

    Raises
    ------
    InputError
        If the graph has a cycle; the message names a node on one, or below one.

    Examples
    --------
    >>> levels(DiGraph.from_edges([("a", "b"), ("b", "c"), ("a", "c")])).tolist()
    [1, 2, 3]
    """
    return peel(dag)[1]
