from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.closure import closure_forest, closure_forests, kernel_table
from atpgraph.factorization.nnls import ImplicitMatrix
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.baselines import svdm
from tests.dags import dags, random_dag


@given(dags(min_nodes=1), st.sampled_from(["constant", "linear", "harmonic", "log"]))
def test_products_are_those_of_the_matrix(dag: DiGraph, kernel: str) -> None:
    rank = levels(dag)
    M = closure_forest(dag).to_sparse(rank, kernel).toarray()
    table = kernel_table(kernel, int(rank.max()))
    x = np.random.default_rng(0).random(dag.n_nodes)
    down, up = ImplicitMatrix.both(closure_forests(dag), rank)
    np.testing.assert_allclose(down.times(table, x), M @ x, atol=1e-12)
    np.testing.assert_allclose(up.times(table, x), M.T @ x, atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 8), (40, 10), (240, 10)])
def test_equals_the_dense_decomposition(n: int, k: int) -> None:
    dag = random_dag(n, 2 * n if n > 3 else n - 1, 0)
    M = closure_forest(dag).to_sparse(levels(dag), "log").toarray()
    source, target = svdm(dag, k)
    assert source.shape == target.shape == (n, k)
    U, sigma, Vt = np.linalg.svd(M)
    np.testing.assert_allclose(source @ target.T, (U[:, :k] * sigma[:k]) @ Vt[:k], atol=1e-4)
    assert source.tobytes() == svdm(dag, k)[0].tobytes()
