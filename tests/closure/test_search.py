"""The forest by searching is the forest by bitsets, to the last number."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import _search, build, closure_forests
from atpgraph.closure._blocks import Extras, block_forest
from atpgraph.closure.panel import Positions
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import chain, dags, random_dag


def same(one: Extras, other: Extras) -> None:
    for name in ("parent", "indptr", "extras", "sizes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def any_parents(view: Positions, seed: int) -> np.ndarray:
    """A successor of every node, whichever."""
    rng = np.random.default_rng(seed)
    indptr, successors = view.successors
    return np.array(
        [rng.choice(successors[a:b]) if a < b else -1 for a, b in itertools.pairwise(indptr)],
        dtype=np.int32,
    )


@settings(max_examples=100)
@given(
    dags(min_nodes=1),
    st.integers(0, 1000),
    st.integers(1, 3),
    st.integers(1, 50),
    st.integers(1, 9),
)
def test_any_guess_any_slices_any_threads(
    dag: DiGraph, seed: int, threads: int, limit: int, buffer: int
) -> None:
    view = Positions.of(dag)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "_SLICE", limit)
        patch.setattr(_search, "_BUFFER", buffer)
        patch.setattr(_search, "_LEAST_TASK", 3)
        searched = _search.search_forest(view, any_parents(view, seed), threads)
    same(searched, block_forest(view, 1, threads))


@pytest.mark.parametrize("n", [3_000, 60_000])
def test_deep_graphs_are_searched_and_wide_ones_are_not(n: int) -> None:
    def searched(dag: DiGraph) -> bool:
        view = Positions.of(dag)
        sample = build._sampled(view)
        if n < 10_000:
            same(_search.search_forest(view, sample.parent, 2), block_forest(view, 4, 2))
        return build._searching_is_faster(view, sample.estimate.extras)

    half = np.arange(n // 2)
    ladder = DiGraph.from_codes(
        np.concatenate([half[:-1], half[:-1] + n // 2, half]),
        np.concatenate([half[1:], half[1:] + n // 2, half + n // 2]),
        n,
    )
    for deep in (chain(n), ladder):
        assert searched(deep) == (n > 10_000)
    assert not searched(random_dag(n, 5 * n, 0))


def test_a_ladder_of_many_nodes() -> None:
    h = 100_000
    step = np.arange(h)
    dag = DiGraph.from_codes(
        np.concatenate([step[:-1], step[:-1] + h, step]),
        np.concatenate([step[1:], step[1:] + h, step + h]),
        2 * h,
    )
    rows, columns = closure_forests(dag, levels(dag))
    assert rows.n_pairs == columns.n_pairs == h * (h - 1) // 2 * 2 + h * (h + 1) // 2
    assert rows.n_extras == columns.n_extras == h - 1
    assert rows.reaches([0, h, 5], [2 * h - 1, 0, h + 4]).tolist() == [True, False, False]
