from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.ranking.features import put_side_by_side
from atpgraph_qa.timeline.query import find_largest
from qa.tests.twins import plain_side_by_side


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
def test_largest_in_one_pass(numbers: list[int], count: int) -> None:
    values = np.array(numbers, dtype=np.float32)
    best = np.full(count, -1, dtype=np.int64)
    found = find_largest(values, best)
    order = np.argsort(-values, kind="stable")
    assert best[:found].tolist() == order[values[order] > 0][:count].tolist()


def test_similarities_side_by_side() -> None:
    rng = np.random.default_rng(0)
    near, match, share = rng.random((3, 9)).astype(np.float32)
    near, questions = near[:6], rng.permutation(9)[:6]
    one, two = np.zeros((2, 6, 4), dtype=np.float32)
    scales = np.float32(0.3), np.float32(0.7)
    put_side_by_side(near, questions, match, share, *scales, one)
    plain_side_by_side(near, questions, match, share, *scales, two)
    np.testing.assert_array_equal(one, two)
