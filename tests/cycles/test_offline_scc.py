from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cycles.offline_scc import closes_cycle
from atpgraph.graph import DiGraph
from atpgraph.graph.scc import cyclic_edges, strongly_connected_components
from tests.strategies import digraphs


@given(digraphs(max_nodes=12), st.integers(1, 40), st.integers(0, 2**32))
def test_equals_one_scc_pass_per_edge(graph: DiGraph, n_times: int, seed: int) -> None:
    core = np.flatnonzero(cyclic_edges(graph))
    sources, targets = graph.sources[core], graph.targets[core]
    time = np.random.default_rng(seed).integers(0, n_times, len(core))
    answers = closes_cycle(graph.n_nodes, sources, targets, time)
    for edge in range(len(core)):
        arrived = time <= time[edge]
        component = strongly_connected_components(
            DiGraph.from_codes(sources[arrived], targets[arrived], graph.n_nodes)
        )
        assert answers[edge] == (component[sources[edge]] == component[targets[edge]])
