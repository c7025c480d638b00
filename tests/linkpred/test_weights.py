"""Weights of blocks, learned where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.graph import DiGraph
from atpgraph.linkpred import Pairs
from atpgraph.linkpred._weights import Parts, Weights, learn_pairs, learn_ranking, unit_scale


def test_unit_scale() -> None:
    rng = np.random.default_rng(0)
    source, target = unit_scale(
        rng.random((30, 5), dtype=np.float32), rng.random((30, 5), dtype=np.float32)
    )
    assert np.mean((source @ target.T) ** 2) == pytest.approx(1.0, rel=1e-5)
    nothing = np.zeros((3, 2), dtype=np.float32)
    assert not unit_scale(nothing, nothing)[0].any()


def random_parts(n: int, rng: np.random.Generator) -> Parts:
    blocks = [
        unit_scale(
            rng.standard_normal((n, 3)).astype(np.float32),
            rng.standard_normal((n, 3)).astype(np.float32),
        )
        for _ in range(2)
    ]
    features = np.column_stack([np.ones(n), rng.standard_normal(n)]).astype(np.float32)
    return Parts(blocks, features, popularity=1)


def test_joined_vectors_give_the_weighted_sum() -> None:
    rng = np.random.default_rng(1)
    parts = random_parts(20, rng)
    weights = Weights(np.array([0.5, -2.0]), rng.standard_normal((2, 2)))
    source, target = parts.join(weights)
    wanted = sum(w * (s @ t.T) for w, (s, t) in zip(weights.blocks, parts.blocks, strict=True)) + (
        parts.features @ weights.form @ parts.features.T
    )
    assert np.allclose(source @ target.T, wanted, atol=1e-4)
    assert source.shape == (20, 3 + 3 + 2)
    assert parts.join(Weights(np.array([0.0, 1.0]), weights.form))[0].shape == (20, 3 + 2)


def test_logistic_weights_find_the_block_that_matters() -> None:
    rng = np.random.default_rng(2)
    n = 80
    parts = random_parts(n, rng)
    u, v = rng.integers(n, size=(2, 4000))
    score = parts.inner_products(u, v)[:, 1] + 0.5 * parts.features[v, 1]
    edge = rng.random(4000) < 1 / (1 + np.exp(-3 * score))
    weights = learn_pairs(parts, Pairs(u[edge], v[edge]), Pairs(u[~edge], v[~edge]), 1e-4)
    assert weights.blocks[1] == pytest.approx(3.0, rel=0.15)
    assert abs(weights.blocks[0]) < 0.2
    assert weights.form[0, 1] == pytest.approx(1.5, rel=0.2)


def test_ranking_weights_find_the_block_that_matters() -> None:
    rng = np.random.default_rng(3)
    n = 200
    parts = random_parts(n, rng)
    everyone = parts.blocks[1][0] @ parts.blocks[1][1].T
    np.fill_diagonal(everyone, -np.inf)
    u = np.arange(n)
    v = everyone.argmax(axis=1)
    known = DiGraph.from_codes(u, v, n)
    weights = learn_ranking(parts, Pairs(u, v), known, rng)
    assert weights.blocks.tolist() == [0.0, 1.0]  # alone it ranks every target first
    assert not weights.form.any()
