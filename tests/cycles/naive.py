"""Slow, obvious twins of the removal strategies: one removal, one SCC pass, again."""

from __future__ import annotations

import networkx as nx
import numpy as np

Edge = tuple[int, int]


def cyclic_part(edges: set[Edge]) -> set[Edge]:
    """The edges whose ends lie in one strongly connected component."""
    graph = nx.DiGraph(list(edges))
    component = {
        v: i for i, nodes in enumerate(nx.strongly_connected_components(graph)) for v in nodes
    }
    return {(u, v) for u, v in edges if u != v and component[u] == component[v]}


def by_edge(edges: set[Edge], key: dict[Edge, float]) -> set[Edge]:
    """Remove the cyclic edge with the largest key until there is none."""
    left, removed = set(edges), set()
    while cyclic := cyclic_part(left):
        worst = max(cyclic, key=lambda edge: key[edge])
        left.remove(worst)
        removed.add(worst)
    return removed


def by_node(edges: set[Edge], key: np.ndarray, loses_out: np.ndarray) -> set[Edge]:
    """Let the cyclic node with the largest key lose its out- or in-edges until there is none."""
    left, removed = set(edges), set()
    while cyclic := cyclic_part(left):
        top = max({v for edge in cyclic for v in edge}, key=lambda v: key[v])
        gone = {edge for edge in cyclic if edge[0 if loses_out[top] else 1] == top}
        left -= gone
        removed |= gone
    return removed
