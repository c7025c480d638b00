from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cqa.routing.features.similarity import find_largest


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
def test_largest_in_one_pass(numbers: list[int], count: int) -> None:
    values = np.array(numbers, dtype=np.float64)
    best = np.full(count, -1, dtype=np.int64)
    found = find_largest(values, best)
    order = np.argsort(-values, kind="stable")
    assert best[:found].tolist() == order[values[order] > 0][:count].tolist()
