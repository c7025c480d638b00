"""Hypothesis strategies that several test modules share."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from atpgraph.graph import DiGraph


@st.composite
def digraphs(draw: st.DrawFn, max_nodes: int = 9, self_loops: bool = True) -> DiGraph:
    """Small directed graphs, dense enough to have cycles most of the time."""
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=4 * n))
    if not self_loops:
        edges = [(u, v) for u, v in edges if u != v]
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return DiGraph.from_codes(pairs[:, 0], pairs[:, 1], n)
