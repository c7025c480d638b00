"""The best targets, against a full sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.embedding.ranking import pair_scores, ranked, top_by_product


@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([9, 100, 1003]))
def test_top_equals_sorting_all_products(seed: int, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    queries = rng.integers(0, 3, (4, 2)).astype(np.float32)  # small integers: many ties
    vectors = rng.integers(0, 3, (n, 2)).astype(np.float32)
    skip = rng.integers(0, n, 4)
    rows, scores = top_by_product(queries, vectors, k, skip)
    for i in range(4):
        product = (queries[i] @ vectors.T).astype(float)
        product[skip[i]] = -np.inf
        expected = np.argsort(-product, kind="stable")[: rows.shape[1]]
        assert rows[i].tolist() == expected.tolist()
        assert scores[i].tolist() == product[expected].tolist()


@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from(["nearest", "score"]))
def test_ranked_equals_sorting_what_is_above_the_threshold(seed: int, k: int, order: str) -> None:
    rng = np.random.default_rng(seed)
    queries = rng.integers(-1, 3, (4, 2)).astype(np.float16)
    vectors = rng.integers(-1, 3, (50, 2)).astype(np.float16)
    levels = rng.integers(1, 6, 50)
    skip = rng.integers(0, 50, 4)
    found = ranked(queries, vectors, k, levels, order=order, threshold=0.5, skip=skip)
    for i, (rows, scores) in enumerate(found):
        product = vectors.astype(float) @ queries[i].astype(float)
        likely = [v for v in range(50) if product[v] > 0.5 and levels[v] > levels[skip[i]]]
        nearest = order == "nearest"
        expected = sorted(likely, key=lambda v: (levels[v] * nearest, -product[v], v))[:k]
        assert rows.tolist() == expected
        assert scores.tolist() == product[expected].tolist()


def test_half_precision_is_widened_exactly() -> None:
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    half = half[np.isfinite(half)].reshape(-1, 64)
    rows = np.arange(len(half))
    unit = np.eye(64, dtype=np.float32)
    for c in range(0, 64, 9):
        scores = pair_scores(half, np.repeat(unit[c : c + 1], len(half), axis=0), rows, rows)
        assert scores.tolist() == half[:, c].astype(float).tolist()
