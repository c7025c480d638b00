"""Small models with labels of several kinds."""

from __future__ import annotations

from atpgraph import ATP
from atpgraph.graph import generators


def model(labels: str = "int") -> ATP:
    graph = generators.noisy_hierarchy(40, 120, 10, random_state=0).graph
    edges = list(graph.edges())
    if labels == "text":
        edges = [(f"n{u}", f"n{v}") for u, v in edges]
    elif labels == "mixed":
        edges = [(("t", u), v) for u, v in edges]
    return ATP(n_components=3, random_state=2).fit(edges)
