"""The rows of the table."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.linkpred import Method
from atpgraph.linkpred.registry import ROWS, choose


@pytest.mark.parametrize("key", list(ROWS))
def test_rows_keep_the_interface_and_the_seed(large: DiGraph, key: str) -> None:
    row = ROWS[key]
    first, second = row.make(6, 3).fit(large), row.make(6, 3).fit(large)
    assert isinstance(first, Method)
    u, v = np.arange(0, 50), np.arange(100, 150)
    scores = first.score(u, v)
    assert scores.shape == (50,)
    assert np.isfinite(scores).all()
    assert scores.tobytes() == second.score(u, v).tobytes()
    matrix = first.score_from(u)
    assert matrix.shape == (50, 200)
    assert matrix[np.arange(50), v] == pytest.approx(scores, rel=1e-4, abs=1e-6)


def test_choosing_rows() -> None:
    assert [row.key for row in choose("all")] == list(ROWS)
    assert {row.group for row in choose("trivial")} == {"trivial"}
    with pytest.raises(InputError, match="hope-katz"):
        choose("hopeless")
