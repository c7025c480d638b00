from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.closure import closure_forest, closure_forests, kernel_table
from atpgraph.factorization import matrix_operator, svdm
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import dags, random_dag


@given(dags(min_nodes=1), st.sampled_from(["constant", "linear", "harmonic", "log"]))
def test_operator_is_the_matrix(dag: DiGraph, kernel: str) -> None:
    rank = levels(dag)
    M = closure_forest(dag).to_sparse(rank, kernel).toarray()
    operator = matrix_operator(*closure_forests(dag), rank, kernel_table(kernel, int(rank.max())))
    np.testing.assert_allclose(operator @ np.eye(dag.n_nodes), M, atol=1e-12)
    np.testing.assert_allclose(operator.T @ np.eye(dag.n_nodes), M.T, atol=1e-12)


def test_equals_the_dense_decomposition() -> None:
    dag = random_dag(120, 300, 0)
    rank = levels(dag)
    M = closure_forest(dag).to_sparse(rank, "log").toarray()
    table = kernel_table("log", int(rank.max()))
    first = svdm(*closure_forests(dag), rank, table, n_components=10, random_state=0)
    U, sigma, Vt = np.linalg.svd(M)
    np.testing.assert_allclose(
        first.source @ first.target.T, (U[:, :10] * sigma[:10]) @ Vt[:10], atol=1e-8
    )
    np.testing.assert_allclose(np.linalg.norm(first.source, axis=0) ** 2, sigma[:10], rtol=1e-9)
    again = svdm(*closure_forests(dag), rank, table, n_components=10, random_state=0)
    assert first.source.tobytes() == again.source.tobytes()
    other = svdm(*closure_forests(dag), rank, table, n_components=10, random_state=1)
    np.testing.assert_allclose(first.source, other.source, atol=1e-7)


@pytest.mark.parametrize("k", [1, 2, 3, 8])
@pytest.mark.parametrize(
    ("n", "edges"), [(0, []), (1, []), (3, []), (2, [(0, 1)]), (3, [(0, 1), (1, 2)])]
)
def test_degenerate_graphs(n: int, edges: list[tuple[int, int]], k: int) -> None:
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    dag = DiGraph.from_codes(ends[:, 0], ends[:, 1], n)
    rank = levels(dag)
    table = kernel_table("log", int(rank.max(initial=0)))
    result = svdm(*closure_forests(dag), rank, table, n_components=k, random_state=0)
    assert result.source.shape == result.target.shape == (n, k)
    M = closure_forest(dag).to_sparse(rank, "log").toarray()
    U, sigma, Vt = np.linalg.svd(M) if n else (M, np.zeros(0), M)
    np.testing.assert_allclose(
        result.source @ result.target.T, (U[:, :k] * sigma[:k]) @ Vt[:k], atol=1e-7
    )
