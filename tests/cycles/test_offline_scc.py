from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cycles.methods import Workspace
from atpgraph.cycles.offline_scc import closes_in_order
from atpgraph.graph import DiGraph
from atpgraph.graph.scc import cyclic_edges, strongly_connected_components
from tests.strategies import digraphs


@given(digraphs(max_nodes=12), st.integers(0, 2**32))
def test_equals_one_scc_pass_per_edge(graph: DiGraph, seed: int) -> None:
    core = np.flatnonzero(cyclic_edges(graph))
    sources, targets = graph.sources[core], graph.targets[core]
    order = np.random.default_rng(seed).permutation(len(core))
    answers = closes_in_order(graph.n_nodes, sources, targets, order)
    for at, edge in enumerate(order):
        arrived = order[: at + 1]
        component = strongly_connected_components(
            DiGraph.from_codes(sources[arrived], targets[arrived], graph.n_nodes)
        )
        assert answers[edge] == (component[sources[edge]] == component[targets[edge]])


@given(digraphs(max_nodes=5), st.integers(0, 2**32))
def test_edges_drawn_out_to_paths_answer_alike(graph: DiGraph, seed: int) -> None:
    # Long ways without branches are contracted: put nodes of degree two on every edge.
    rng = np.random.default_rng(seed)
    sources, targets, n = [], [], graph.n_nodes
    for u, v in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        way = [u, *range(n, n + int(rng.integers(0, 6))), v]
        n += len(way) - 2
        sources += way[:-1]
        targets += way[1:]
    drawn_out = DiGraph.from_codes(sources, targets, n)
    test_equals_one_scc_pass_per_edge.hypothesis.inner_test(drawn_out, seed)


@given(digraphs(self_loops=False), st.integers(0, 2**32))
def test_edges_that_are_there_from_the_beginning(graph: DiGraph, seed: int) -> None:
    """Edges that go up some order close no cycle; with them first, the answers are the same."""
    space = Workspace(graph, seed)
    core, rng = space.core, np.random.default_rng(seed)
    place = rng.permutation(core.n_nodes)
    up = place[core.sources] < place[core.targets]
    order = rng.permutation(core.n_edges)
    order = np.concatenate([order[up[order]], order[~up[order]]])
    every = closes_in_order(core.n_nodes, core.sources, core.targets, order)
    asked = closes_in_order(core.n_nodes, core.sources, core.targets, order[~up[order]])
    assert not every[up].any()
    assert np.array_equal(every, asked)
