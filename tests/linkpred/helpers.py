"""Graphs and obvious twins that several tests share."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from atpgraph.graph import DiGraph
from atpgraph.linkpred import Method, Pairs
from atpgraph.linkpred.baselines import FORMULAS, Formula


def dense(graph: DiGraph) -> np.ndarray:
    return graph.to_scipy().toarray()


def formula(key: str) -> Formula:
    return replace(FORMULAS[key])


def all_scores(method: Method, n: int) -> np.ndarray:
    u, v = np.divmod(np.arange(n * n), n)
    return np.asarray(method.score(u, v)).reshape(n, n)


def hierarchy(n: int = 60, m: int = 700) -> DiGraph:
    """Mostly upward edges, so that every protocol has something to tell."""
    rng = np.random.default_rng(4)
    u, v = (n * rng.random(m) ** 2).astype(int), rng.integers(n, size=m)
    keep = (u < v) | (rng.random(m) < 0.1)
    return DiGraph.from_codes(u[keep], v[keep], n)


def as_networkx(graph: DiGraph) -> nx.DiGraph:
    twin = nx.DiGraph()
    twin.add_nodes_from(range(graph.n_nodes))
    twin.add_edges_from(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    return twin


def as_set(pairs: Pairs | DiGraph) -> set[tuple[int, int]]:
    return set(zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True))


@st.composite
def graphs(draw: st.DrawFn) -> DiGraph:
    n = draw(st.integers(2, 12))
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=40))
    return DiGraph.from_codes([u for u, _ in pairs], [v for _, v in pairs], n)


def brute_one_way(graph: DiGraph) -> set[tuple[int, int]]:
    reach = {v: nx.descendants(as_networkx(graph), v) for v in range(graph.n_nodes)}
    nodes = range(graph.n_nodes)
    return {(u, v) for u in nodes for v in nodes if u != v and u in reach[v] and v not in reach[u]}
