"""Slow, obvious twins of the removal strategies: one removal, one SCC pass, again."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np

Edge = tuple[int, int]


def cyclic_edges(graph: nx.DiGraph) -> list[Edge]:
    """The edges whose ends lie in one strongly connected component, by one pass of NetworkX."""
    component = {
        v: i for i, nodes in enumerate(nx.strongly_connected_components(graph)) for v in nodes
    }
    return [(u, v) for u, v in graph.edges if u != v and component[u] == component[v]]


def one_by_one(graph: nx.DiGraph, key: dict[Edge, float]) -> Iterator[Edge]:
    """Take the cyclic edge with the largest key out of the graph until there is none.

    ``benchmarks/cycles.py`` times this loop.
    """
    while cyclic := cyclic_edges(graph):
        worst = max(cyclic, key=key.__getitem__)
        graph.remove_edge(*worst)
        yield worst


def by_edge(edges: set[Edge], key: dict[Edge, float]) -> set[Edge]:
    """What :func:`one_by_one` removes."""
    return set(one_by_one(nx.DiGraph(list(edges)), key))


def by_node(edges: set[Edge], key: np.ndarray, loses_out: np.ndarray) -> set[Edge]:
    """Let the cyclic node with the largest key lose its out- or in-edges until there is none."""
    left, removed = nx.DiGraph(list(edges)), set()
    while cyclic := cyclic_edges(left):
        top = max({v for edge in cyclic for v in edge}, key=lambda v: key[v])
        gone = {edge for edge in cyclic if edge[0 if loses_out[top] else 1] == top}
        left.remove_edges_from(gone)
        removed |= gone
    return removed
