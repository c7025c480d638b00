from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph_qa.ranking.similarity import (
    find_largest,
    put_side_by_side,
    sum_tagged,
)
from qa.tests.twins import plain_likeness, plain_sum_tagged


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
def test_largest_in_one_pass(numbers: list[int], count: int) -> None:
    values = np.array(numbers, dtype=np.float64)
    best = np.full(count, -1, dtype=np.int64)
    found = find_largest(values, best)
    order = np.argsort(-values, kind="stable")
    assert best[:found].tolist() == order[values[order] > 0][:count].tolist()


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 8))
def test_sums_under_tags(seed: int, n_answers: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    owner, question = rng.integers(-1, people, n_answers), rng.integers(0, 7, n_answers)
    some = rng.permutation(n_answers)[: int(rng.integers(0, n_answers + 1))]
    accepted, faded, share = rng.random(n_answers) < 0.5, rng.random(len(some)), rng.random(7)
    sums: list[np.ndarray] = []
    for add in (sum_tagged, plain_sum_tagged):
        place = np.full(people, -1, dtype=np.int64)
        met, each = np.empty(people, dtype=np.int64), np.zeros((4, people))
        found = add(some, owner, question, accepted, faded, share, place, met, each)
        assert met[place[place >= 0]].tolist() == np.flatnonzero(place >= 0).tolist()
        assert np.count_nonzero(place >= 0) == found
        sums.append(np.where(place >= 0, each[:, place], 0.0))
    np.testing.assert_allclose(*sums)


def test_likeness_side_by_side() -> None:
    rng = np.random.default_rng(0)
    near, match = rng.random(9).astype(np.float32), 5 * rng.random(9)
    one, two = np.zeros((2, 9, 2), dtype=np.float32)
    put_side_by_side(near, match, 3.0, one)
    plain_likeness(near, match, 3.0, two)
    np.testing.assert_array_equal(one, two)
