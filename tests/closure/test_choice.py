from __future__ import annotations

import numpy as np
import pytest

from atpgraph.closure import check_closure, closure_forests, hold_closure
from atpgraph.closure.choice import sketch_size_for
from atpgraph.errors import BudgetError, InputError
from atpgraph.hierarchy import levels
from tests.dags import random_dag

DAG = random_dag(3000, 9000, 1)
LEVELS = levels(DAG)


def test_auto_takes_the_forest_where_it_fits() -> None:
    held = hold_closure(DAG, LEVELS, memory="1GB")
    assert held.choice.kind == "exact"
    assert held.choice.reason.endswith("within the memory budget")
    rows, columns = closure_forests(DAG, LEVELS)
    assert (held.n_pairs, held.n_stored) == (rows.n_pairs, rows.n_extras + columns.n_extras)


@pytest.mark.parametrize("both", [True, False])
def test_auto_takes_sketches_where_it_does_not(both: bool) -> None:
    held = hold_closure(DAG, LEVELS, both=both, memory="100kB")
    assert held.choice.kind == "sketch"
    assert held.choice.reason == "the closure forest exceeds the memory budget"
    true = closure_forests(DAG, LEVELS)[0]
    assert abs(held.n_pairs / true.n_pairs - 1) < 0.15
    assert str(held.choice).startswith("sketch of 16: the closure forest exceeds")
    with pytest.raises(BudgetError):
        hold_closure(DAG, LEVELS, "exact", both=both, memory="100kB")


def test_sketches_of_everything_count_exactly() -> None:
    held = hold_closure(DAG, LEVELS, "sketch", sketch_size=3000)
    true = closure_forests(DAG, LEVELS)
    assert held.n_pairs == true[0].n_pairs
    np.testing.assert_array_equal(held.paths.sizes, true[0].sizes)
    np.testing.assert_array_equal(held.paths_back.sizes, true[1].sizes)
    assert held.choice.reason == "as asked for"


def test_the_size_of_a_sketch_follows_the_budget() -> None:
    assert sketch_size_for(1000, "auto", 10**9) == 64
    assert sketch_size_for(10**6, "auto", 6 * 10**8) == 32
    assert sketch_size_for(10**6, "auto", 1000) == 16
    assert sketch_size_for(10**6, 100, 1000) == 100


@pytest.mark.parametrize(
    ("closure", "size", "solver", "words"),
    [
        ("exakt", "auto", "pairs", "did you mean 'exact'"),
        ("sketch", 1, "nnls", "sketch_size is 1; it must be at least 2"),
        ("sketch", "auto", "svd", "solver='svd' multiplies with the whole matrix"),
    ],
)
def test_what_is_refused(closure: str, size: object, solver: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_closure(closure, size, solver)
