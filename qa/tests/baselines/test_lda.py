from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import psi

from atpgraph_qa.baselines.lda import BATCH, PASSES, Lda, digamma


@given(st.floats(1e-6, 1e6))
def test_digamma(x: float) -> None:
    assert digamma(x) == pytest.approx(psi(x), rel=1e-9, abs=1e-9)


def documents(n: int) -> sparse.csr_matrix:
    """Of two kinds of words, four of each; the last one is empty."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.5, (n, 8)) * np.repeat(np.eye(2)[rng.integers(0, 2, n)], 4, axis=1)
    counts[-1] = 0.0
    return sparse.csr_matrix(counts)


def test_the_same_as_scikit_learn() -> None:
    model = pytest.importorskip("sklearn.decomposition").LatentDirichletAllocation(
        3, batch_size=BATCH, total_samples=700, random_state=0
    )
    counts = documents(700)
    for _ in range(PASSES):
        model.partial_fit(counts)
    found = Lda.fit(counts, 3, np.random.RandomState(0))  # type: ignore[arg-type]  # its draws
    np.testing.assert_allclose(found.strength.T, model.components_, rtol=1e-5)
    np.testing.assert_allclose(found.topics(counts), model.transform(counts), atol=1e-5)


def test_documents_of_two_kinds_fall_apart() -> None:
    counts = documents(700)
    topics = Lda.fit(counts, 2, np.random.default_rng(1)).topics(counts)
    np.testing.assert_allclose(topics.sum(axis=1), 1.0)
    np.testing.assert_allclose(topics[-1], 0.5)
    kind = counts[:, :4].sum(axis=1) > counts[:, 4:].sum(axis=1)
    some = np.asarray(counts.sum(axis=1)).ravel() > 3
    first = topics[some, 0] > 0.5
    agree = np.mean(first == np.asarray(kind).ravel()[some])
    assert max(agree, 1 - agree) > 0.95
