from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import ClosureForest, closure_forest, closure_forests
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import chain, closure_matrix, dags, random_dag, star


def matrix_of(forest: ClosureForest) -> np.ndarray:
    """The closure read off the definition R(u) = R(p) ∪ {p} ∪ extras(u)."""
    reach = np.zeros((forest.n_nodes, forest.n_nodes), dtype=np.int64)
    for u in forest.order.tolist():  # parents first
        p = forest.parent[u]
        if p >= 0:
            reach[u] = reach[p]
            reach[u, p] += 1
        np.add.at(reach[u], forest.extras[forest.extras_indptr[u] : forest.extras_indptr[u + 1]], 1)
    return reach


@given(dags())
def test_forest_is_the_closure(dag: DiGraph) -> None:
    expected = closure_matrix(dag)
    rows, columns = closure_forests(dag)
    # Equal as counts: the union is disjoint.
    np.testing.assert_array_equal(matrix_of(rows), expected)
    np.testing.assert_array_equal(matrix_of(columns), expected.T)
    np.testing.assert_array_equal(rows.sizes, expected.sum(axis=1))
    assert rows.n_pairs == columns.n_pairs == expected.sum()


@settings(max_examples=20)
@given(dags(max_nodes=400, min_nodes=300), st.integers(1, 3))
def test_tiny_budgets_make_many_blocks_and_the_same_forest(dag: DiGraph, n_jobs: int) -> None:
    tight = closure_forest(dag, memory=2_000_000, n_jobs=n_jobs)
    roomy = closure_forest(dag, n_jobs=1)
    for name in ("parent", "extras_indptr", "extras", "sizes", "order"):
        np.testing.assert_array_equal(getattr(tight, name), getattr(roomy, name))
    np.testing.assert_array_equal(matrix_of(tight), closure_matrix(dag))


@given(dags(min_nodes=1))
def test_parent_has_the_largest_closure(dag: DiGraph) -> None:
    forest = closure_forest(dag)
    for u in range(dag.n_nodes):
        successors = dag.targets[dag.indptr[u] : dag.indptr[u + 1]]
        if len(successors):
            assert forest.parent[u] in successors
            assert forest.sizes[forest.parent[u]] == forest.sizes[successors].max()
        else:
            assert forest.parent[u] == -1


@given(dags(min_nodes=1))
def test_order_is_depth_first_and_slots_are_few(dag: DiGraph) -> None:
    forest = closure_forest(dag)
    n = forest.n_nodes
    assert sorted(forest.order.tolist()) == list(range(n))
    live: dict[int, int] = {}  # which node each buffer holds
    for u in forest.order.tolist():
        p = int(forest.parent[u])
        if p >= 0:
            assert live[int(forest.slot[p])] == p  # the parent's buffer is still there
        live[int(forest.slot[u])] = u
    assert forest.slot.max() <= np.log2(n)


@given(dags(min_nodes=1))
def test_queries(dag: DiGraph) -> None:
    reach = closure_matrix(dag)
    forest = closure_forest(dag)
    n = dag.n_nodes
    u, v = np.divmod(np.arange(n * n), n)
    np.testing.assert_array_equal(forest.reaches(u, v), reach.reshape(-1))
    np.testing.assert_array_equal(forest.reaches(np.arange(n)[:, None], np.arange(n)), reach)
    for node in range(n):
        assert forest.descendants(node).tolist() == np.flatnonzero(reach[node]).tolist()
        assert forest.ancestors(node).tolist() == np.flatnonzero(reach[:, node]).tolist()
    some = [0, n - 1]
    assert forest.descendants(some).tolist() == np.flatnonzero(reach[some].any(axis=0)).tolist()
    assert forest.ancestors(some).tolist() == np.flatnonzero(reach[:, some].any(axis=1)).tolist()


@given(dags())
def test_written_out_matrix(dag: DiGraph) -> None:
    rank = levels(dag)
    reach = closure_matrix(dag)
    matrix = closure_forest(dag).to_sparse(rank, "linear")
    expected = reach * (rank[None, :] - rank[:, None])
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert matrix.has_canonical_format


def test_unknown_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="7 is not a node index"):
        closure_forest(chain(3)).reaches([0, 7], [1, 1])


def test_deep_chain() -> None:
    n = 60_000
    forest = closure_forest(chain(n))
    assert forest.n_extras == 0
    assert forest.n_pairs == n * (n - 1) // 2
    assert forest.slot.max() == 0
    assert forest.reaches([0, 5, n - 1], [n - 1, 5, 0]).tolist() == [True, False, False]


def test_wide_star() -> None:
    n = 60_000
    rows, columns = closure_forests(star(n))
    assert (rows.n_extras, rows.n_pairs) == (0, n - 1)
    assert (columns.n_extras, columns.n_pairs) == (n - 2, n - 1)
    assert len(columns.descendants(n - 1)) == n - 1


def test_cycles_are_refused() -> None:
    with pytest.raises(InputError, match="cycle"):
        closure_forest(DiGraph.from_edges([("a", "b"), ("b", "a")]))


def test_forest_of_a_larger_graph_by_pairs() -> None:
    dag = random_dag(3000, 6000, 1)
    forest = closure_forest(dag, n_jobs=2)
    np.testing.assert_array_equal(
        forest.to_sparse(levels(dag), "constant").toarray() > 0, closure_matrix(dag)
    )
