"""Degrees, common neighbours and the SVD against dense twins."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.graph import DiGraph
from atpgraph.linkpred.baselines import adjacency_svd
from atpgraph.linkpred.factor import singular_factors, stored
from tests.linkpred.helpers import all_scores, dense, formula


def test_degrees_by_hand(small: DiGraph) -> None:
    A = dense(small)
    out, inn = A.sum(axis=1), A.sum(axis=0)
    assert all_scores(formula("degree-product").fit(small), 25) == pytest.approx(np.outer(out, inn))
    both = out + inn
    attachment = formula("preferential").fit(small)
    assert all_scores(attachment, 25) == pytest.approx(np.outer(both, both))


def test_common_neighbours_are_the_square(small: DiGraph) -> None:
    assert all_scores(formula("common-neighbours").fit(small), 25) == pytest.approx(
        dense(small) @ dense(small)
    )


def test_svd_at_full_rank_is_the_adjacency_matrix(small: DiGraph) -> None:
    source, target = adjacency_svd(small, 25)
    assert source @ target.T == pytest.approx(dense(small), abs=1e-8)


def test_more_components_than_nodes(small: DiGraph) -> None:
    source, target = adjacency_svd(small, 40)
    assert source.shape == (25, 40)
    assert source @ target.T == pytest.approx(dense(small), abs=1e-8)


def test_factors_are_balanced(large: DiGraph) -> None:
    A = dense(large)
    rng = np.random.default_rng(0)
    source, target = singular_factors(stored(large.to_scipy()), 5, rng, 1e-10)
    values = np.linalg.svd(A, compute_uv=False)[:5]
    assert (source**2).sum(axis=0) == pytest.approx(values)
    assert (target**2).sum(axis=0) == pytest.approx(values)
