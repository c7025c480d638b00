"""LINE and APP: what they draw, and one step by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.linkpred.baselines import line
from atpgraph.linkpred.baselines.skipgram import drawn_edges, learn, noise_table, walk_ends
from tests.linkpred.helpers import dense


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=20))
def test_noise_table_has_the_right_shares(weights: list[float]) -> None:
    table = noise_table(np.array(weights), size=1000)
    shares = np.bincount(table, minlength=len(weights)) / len(table)
    assert shares == pytest.approx(np.array(weights) / sum(weights), abs=2e-3)


def test_one_step_of_skip_gram_by_hand() -> None:
    source = np.array([[0.5, -0.2], [0.0, 0.0]], dtype=np.float32)
    target = np.array([[0.1, 0.3], [0.4, 0.2]], dtype=np.float32)
    s, t, rate = source.astype(float), target.astype(float), 0.1
    up = rate * (1 - 1 / (1 + np.exp(-s[0] @ t[1])))  # the pair (0, 1)
    down = rate * -(1 / (1 + np.exp(-s[0] @ t[0])))  # the noise node 0
    one = np.array([0], dtype=np.int32)
    noise = np.array([[0]], dtype=np.int32)
    learn(source, target, one, one + np.int32(1), noise, np.array([rate], dtype=np.float32))
    assert source[0] == pytest.approx(s[0] + up * t[1] + down * t[0], abs=1e-6)
    assert target == pytest.approx(np.array([t[0] + down * s[0], t[1] + up * s[0]]), abs=1e-6)


def test_line_draws_edges_by_weight() -> None:
    graph = DiGraph.from_codes([0, 0], [1, 2], 3, weights=[1.0, 9.0])
    chunks = list(drawn_edges(graph, 2000, np.random.default_rng(0)))
    heavy = np.mean(np.concatenate([v for _, v in chunks]) == 2)
    assert 0.87 < heavy < 0.93
    with pytest.raises(InputError, match="positive"):
        line(DiGraph.from_codes([0, 1], [1, 0], 2, weights=[1.0, -1.0]), 4)


def test_app_walks_end_by_rooted_pagerank() -> None:
    graph = DiGraph.from_codes([0, 0, 1, 2, 3], [1, 2, 3, 3, 0], 5)  # node 4 stands alone
    pairs = list(walk_ends(graph, 4000, 0.4, 60, np.random.default_rng(0)))
    u, v = (np.concatenate(side) for side in zip(*pairs, strict=True))
    A = dense(graph)
    P = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    expected = 0.4 * P @ np.linalg.inv(np.eye(5) - 0.6 * P)
    found = np.zeros((5, 5))
    np.add.at(found, (u, v), 1 / 4000)
    np.fill_diagonal(expected, 0.0)
    assert found == pytest.approx(expected, abs=0.03)
