"""Single rows against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import closure_forest
from atpgraph.errors import InputError
from atpgraph.factorization import solve_rows
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import dags
from tests.factorization.twins import nnls_row

weights = st.sampled_from([0.0, 0.05, 0.6, 1.0])


penalties = st.sampled_from([0.0, 0.01, 0.5])


@settings(max_examples=30)
@given(dags(max_nodes=25, min_nodes=2), st.integers(1, 10), weights, penalties)
def test_rows_on_their_own(dag: DiGraph, k: int, w0: float, penalty: float) -> None:
    matrix = closure_forest(dag).to_sparse(levels(dag), "log")
    T = np.random.default_rng(0).random((dag.n_nodes, k))
    rows = solve_rows(
        T, matrix.indptr, matrix.indices, matrix.data, zero_weight=w0, regularization=penalty,
        max_inner=20_000, inner_tol=0.0,
    )  # fmt: skip
    M = matrix.toarray()
    for i in range(dag.n_nodes):
        if not M[i].any():
            assert not rows[i].any()
            continue
        best = nnls_row(M[i], M[i] > 0, T, w0, penalty)
        weight = np.where(M[i] > 0, 1.0, w0)
        found, least = (
            weight @ (M[i] - T @ s) ** 2 + penalty * np.count_nonzero(M[i]) * (s @ s)
            for s in (rows[i], best)
        )
        # Coordinate descent crawls where components outnumber columns and nothing is penalised.
        assert found == pytest.approx(least, rel=1e-5, abs=1e-4 if penalty == 0.0 else 1e-6)


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="do not fit"):
        solve_rows(np.ones((3, 2)), [0, 2], [0], [1.0])
    with pytest.raises(InputError, match="outside"):
        solve_rows(np.ones((3, 2)), [0, 1], [3], [1.0])
