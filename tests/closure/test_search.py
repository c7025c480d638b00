"""The search for the extras of a forest."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import build, closure_forest, closure_forests
from atpgraph.closure.panel import Positions
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels
from tests.dags import closure_matrix, dags


def any_parents(dag: DiGraph, seed: int) -> np.ndarray:
    """A successor of every node, whichever."""
    rng = np.random.default_rng(seed)
    return np.array(
        [rng.choice(dag.targets[a:b]) if a < b else -1 for a, b in itertools.pairwise(dag.indptr)],
        dtype=np.int32,
    )


@settings(max_examples=100)
@given(dags(min_nodes=1), st.integers(0, 1000), st.integers(1, 3), st.integers(1, 50))
def test_any_guess_any_slices_any_threads(
    dag: DiGraph, seed: int, threads: int, limit: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_SLICE", limit)
        patch.setattr(build, "_LEAST_TASK", 3)
        found = build._build(Positions.of(dag), any_parents(dag, seed), threads)
    reach = closure_matrix(dag)
    sizes = reach.sum(axis=1)
    np.testing.assert_array_equal(found.sizes, sizes)
    for u in range(dag.n_nodes):
        p = found.parent[u]
        extras = found.extras[found.extras_indptr[u] : found.extras_indptr[u + 1]]
        if p < 0:
            assert not sizes[u]
            continue
        assert sizes[p] == sizes[dag.targets[dag.indptr[u] : dag.indptr[u + 1]]].max()
        expected = reach[u] & ~reach[p]
        expected[p] = False
        assert sorted(extras.tolist()) == np.flatnonzero(expected).tolist()
    whole = closure_forest(dag)
    for name in ("parent", "extras_indptr", "extras", "order"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=name)


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
