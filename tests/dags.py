"""Random acyclic graphs and the slow, obvious closure."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from atpgraph.graph import DiGraph


def random_dag(n: int, m: int, seed: int) -> DiGraph:
    """About m edges between n nodes, all upwards in a random order of the nodes."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, max(n, 1), (m if n > 1 else 0, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]]
    names = rng.permutation(n)
    return DiGraph.from_codes(names[ends[:, 0]], names[ends[:, 1]], n)


@st.composite
def dags(draw: st.DrawFn, max_nodes: int = 40, min_nodes: int = 0) -> DiGraph:
    n = draw(st.integers(min_nodes, max_nodes))
    m = draw(st.integers(0, 4 * n))
    return random_dag(n, m, draw(st.integers(0, 2**32 - 1)))


def closure_matrix(dag: DiGraph) -> np.ndarray:
    """Whether u reaches v, by a search from every node."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(dag.n_nodes))
    graph.add_edges_from(zip(dag.sources.tolist(), dag.targets.tolist(), strict=True))
    reach = np.zeros((dag.n_nodes, dag.n_nodes), dtype=bool)
    for u in range(dag.n_nodes):
        reach[u, list(nx.descendants(graph, u))] = True
    return reach


def chain(n: int) -> DiGraph:
    return DiGraph.from_codes(np.arange(n - 1), np.arange(1, n), n)


def star(n: int) -> DiGraph:
    """n − 1 nodes, all pointing at the last one."""
    return DiGraph.from_codes(np.arange(n - 1), np.full(n - 1, n - 1), n)
