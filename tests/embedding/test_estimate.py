from __future__ import annotations

import pytest

from atpgraph import InputError, break_cycles, citation_dag, estimate, gnm
from atpgraph.closure import closure_forest

GRAPH = gnm(3000, 9000, random_state=0)


def test_it_is_about_right_before_cycles_are_broken() -> None:
    found = estimate(GRAPH)
    dag = break_cycles(GRAPH, random_state=0).dag
    true = closure_forest(dag)
    assert (found.nodes, found.edges) == (GRAPH.n_nodes, 9000)
    assert found.core_nodes < found.core_edges < 9000
    assert 0.5 < found.pairs / true.n_pairs < 2
    # Vectors of 128 components in single precision, on two sides, and their sums.
    assert 2048 * GRAPH.n_nodes < found.memory < 6000 * GRAPH.n_nodes
    assert found.available > 0


def test_more_components_and_rounds_cost_more() -> None:
    dag = citation_dag(3000, 9000, random_state=0)
    for purpose in ("reachability", "paper"):
        less = estimate(dag, purpose=purpose, n_components=16, max_iter=2)
        more = estimate(dag, purpose=purpose, n_components=64, max_iter=9)
        assert less.core_edges == 0
        assert 0 < less.seconds < more.seconds
        assert less.memory < more.memory


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="no parameter 'dim'"):
        estimate(GRAPH, dim=3)
    with pytest.raises(InputError, match="cycle-breaking method"):
        estimate(GRAPH, method="nonsense")
