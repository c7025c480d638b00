"""NRP against PageRank and its objective written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.graph import DiGraph
from atpgraph.linkpred.baselines import nrp
from atpgraph.linkpred.baselines.factored import reweight
from tests.linkpred.helpers import dense


def test_nrp_without_reweighting_is_personalised_pagerank(small: DiGraph) -> None:
    source, target = nrp(small, 25, epochs=0, steps=20, stop=0.3)
    A = dense(small)
    out = np.maximum(A.sum(axis=1, keepdims=True), 1)
    P, total, power = A / out, np.zeros((25, 25)), np.eye(25)
    for i in range(1, 21):
        power = power @ P
        total += 0.3 * 0.7**i * power
    # Without epochs the rows have the weights of the start, the out-degrees.
    assert source @ target.T == pytest.approx(small.out_degree[:, None] * total, abs=1e-8)


def objective(
    X: np.ndarray,
    Y: np.ndarray,
    f: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    inn: np.ndarray,
    penalty: float,
) -> float:
    S = (f[:, None] * X) @ (b[:, None] * Y).T
    np.fill_diagonal(S, 0.0)
    rows, columns = S.sum(axis=1) - out, S.sum(axis=0) - inn
    return float(rows @ rows + columns @ columns + penalty * (f @ f + b @ b))


@given(st.integers(0, 2**32))
def test_nrp_reweighting_minimises_its_objective(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k, penalty = 7, 3, 2.0
    X, Y = rng.random((n, k)), rng.random((n, k))
    f, b = rng.random(n) + 0.2, rng.random(n) + 0.2
    out, inn = rng.integers(0, 6, n) * 1.0, rng.integers(0, 6, n) * 1.0
    for v in rng.permutation(n):
        reweight(X, Y, f, b, out, inn, penalty, np.array([v]))
        found = objective(X, Y, f, b, out, inn, penalty)
        for step in (-1e-4, 1e-4):
            other = b.copy()
            other[v] = max(other[v] + step, 1 / n)
            assert objective(X, Y, f, other, out, inn, penalty) >= found - 1e-9
    reweight(Y, X, b, f, inn, out, penalty, rng.permutation(n))
    assert objective(X, Y, f, b, out, inn, penalty) <= found + 1e-9
