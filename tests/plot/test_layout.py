"""Layered layout: nothing overlaps, edges go where they should, few crossings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from hypothesis import given
from hypothesis import strategies as st

from atpgraph import levels, random_dag
from atpgraph.plot._layout import layered


def layout_of(n: int, m: int, seed: int):
    dag = random_dag(n, m, random_state=seed)
    level = levels(dag).astype(np.int64)
    sources, targets = dag.sources.astype(np.int64), dag.targets.astype(np.int64)
    width = np.random.default_rng(seed).uniform(0.3, 2.0, n)
    return level, sources, targets, width, layered(level, sources, targets, width)


@given(st.integers(2, 25), st.integers(0, 60), st.integers(0, 5))
def test_boxes_do_not_overlap_and_routes_join_their_ends(n: int, m: int, seed: int) -> None:
    level, sources, targets, width, made = layout_of(n, min(m, n * (n - 1) // 2), seed)
    for u, v in itertools.combinations(range(n), 2):
        if level[u] == level[v]:
            assert abs(made.x[u] - made.x[v]) >= (width[u] + width[v]) / 2
    for u, v, route in zip(sources, targets, made.routes, strict=True):
        assert route[0].tolist() == [made.x[u], level[u]]
        assert route[-1].tolist() == [made.x[v], level[v]]
        assert route[:, 1].tolist() == list(range(level[u], level[v] + 1))


def crossings(routes: list[np.ndarray]) -> int:
    """The obvious count: every pair of segments between the same rows."""
    segments = [
        (*sorted(((a[1], a[0]), (b[1], b[0]))),)
        for route in routes
        for a, b in itertools.pairwise(route)
    ]
    found = 0
    for (a, b), (c, d) in itertools.combinations(segments, 2):
        if a[0] == c[0] and (a[1] - c[1]) * (b[1] - d[1]) < 0:
            found += 1
    return found


@given(st.integers(2, 14), st.integers(0, 30), st.integers(0, 5))
def test_crossings_are_those_of_the_drawing(n: int, m: int, seed: int) -> None:
    *_, made = layout_of(n, min(m, n * (n - 1) // 2), seed)
    assert made.crossings == crossings(made.routes)


def test_sweeps_untangle_a_planar_graph() -> None:
    rng = np.random.default_rng(3)
    depth = 5
    n = 2**depth - 1
    name = rng.permutation(n)
    child = np.arange(1, n)
    parent = (child - 1) // 2
    level = np.empty(n, dtype=np.int64)
    level[name] = np.floor(np.log2(np.arange(n) + 1)).astype(int) + 1
    made = layered(level, name[parent], name[child], np.ones(n))
    assert made.crossings == 0


def test_edges_down_and_within_a_row_are_routed_too() -> None:
    level = np.array([1, 2, 3, 3])
    sources, targets = np.array([0, 1, 2, 2, 3]), np.array([1, 2, 0, 3, 3])
    made = layered(level, sources, targets, np.ones(4))
    assert made.routes[2][:, 1].tolist() == [3, 2, 1]
    assert made.routes[3][:, 1].tolist() == [3, 3]
    assert made.routes[4].tolist() == [[made.x[3], 3]] * 2
