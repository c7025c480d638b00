from __future__ import annotations

import pytest

from atpgraph import ATP, InputError, break_cycles, citation_dag, estimate, gnm
from atpgraph.closure import closure_forest, closure_forests

GRAPH = gnm(3000, 9000, random_state=0)


def test_it_is_about_right_before_cycles_are_broken() -> None:
    found = estimate(GRAPH)
    dag = break_cycles(GRAPH, random_state=0).dag
    true = closure_forest(dag)
    assert (found.nodes, found.edges) == (GRAPH.n_nodes, 9000)
    assert found.core_nodes < found.core_edges < 9000
    assert 0.5 < found.pairs / true.n_pairs < 2
    assert 0.4 < found.extras / true.n_extras < 2.5


def test_it_says_what_the_fit_will_do() -> None:
    for memory in ("500kB", "1GB"):
        told = estimate(GRAPH, n_components=8, memory=memory)
        made = ATP(8, memory=memory, max_iter=1).fit(GRAPH)
        assert told.closure == made.closure_.kind
    assert estimate(GRAPH, closure="sketch").reason == "as asked for"
    assert estimate(GRAPH, solver="svd", memory="1MB").closure == "exact"


def test_both_forests_count_for_links() -> None:
    dag = citation_dag(3000, 9000, random_state=0)
    found = estimate(dag, purpose="links")
    rows, columns = closure_forests(dag)
    assert found.core_edges == 0
    assert 0.4 < found.extras / (rows.n_extras + columns.n_extras) < 2.5
    assert found.exact.seconds > 0 < found.sketch.seconds


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="no parameter 'dim'"):
        estimate(GRAPH, dim=3)
