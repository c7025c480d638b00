"""Local evidence against its closed form on small dense graphs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.graph import DiGraph
from atpgraph.linkpred.evidence import LOCAL
from atpgraph.linkpred.evidence.kernels import Room, best_of
from atpgraph.linkpred.evidence.local import Local, PageRank, Walk
from tests.linkpred.helpers import dense


def all_pairs(evidence: Local, n: int) -> np.ndarray:
    u, v = np.divmod(np.arange(n * n), n)
    return evidence.pairs(u, v).reshape(n, n, -1)


def graphs() -> st.SearchStrategy[DiGraph]:
    def build(n: int, pairs: list[tuple[int, int]]) -> DiGraph:
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2) % n
        return DiGraph.from_codes(ends[:, 0], ends[:, 1], n)

    edge = st.tuples(st.integers(0, 40), st.integers(0, 40))
    return st.builds(build, st.integers(1, 9), st.lists(edge, max_size=30))


def matrix(graph: DiGraph, direction: str) -> np.ndarray:
    forward = (dense(graph) > 0).astype(float)
    return {"out": forward, "in": forward.T, "both": np.maximum(forward, forward.T)}[direction]


def pagerank(graph: DiGraph, direction: str, restart: float) -> np.ndarray:
    """restart · (I − (1 − restart) P)⁻¹, rows without edges zero."""
    step = matrix(graph, direction)
    step = step / np.maximum(step.sum(axis=1, keepdims=True), 1)
    return restart * np.linalg.inv(np.eye(len(step)) - (1 - restart) * step)


@given(graphs(), st.sampled_from(["both", "out", "in"]), st.sampled_from([0.15, 0.5]))
def test_push_is_personalized_pagerank(graph: DiGraph, direction: str, restart: float) -> None:
    column = PageRank(direction, restart=restart, tolerance=1e-9)
    expected = pagerank(graph, direction, restart)
    found = all_pairs(Local([column]).fit(graph), graph.n_nodes)[:, :, 0]
    assert np.allclose(found, expected, atol=1e-6)


@given(graphs(), st.sampled_from([0.05, 0.01, 1e-3]))
def test_push_errs_by_no_more_than_its_tolerance_allows(graph: DiGraph, tolerance: float) -> None:
    degree = np.maximum(matrix(graph, "both").sum(axis=1), 1)
    exact = pagerank(graph, "both", 0.15)
    found = all_pairs(Local([PageRank(tolerance=tolerance)]).fit(graph), graph.n_nodes)[:, :, 0]
    assert (found <= exact + 1e-6).all()  # mass not yet spread is missing, never too much
    # By reversibility Σ_x r(x) p_x(v) ≤ tolerance · d(v) for r(x) ≤ tolerance · d(x).
    assert (exact - found <= tolerance * degree + 1e-6).all()


def walks_naively(graph: DiGraph, column: Walk, hub: int, budget: int) -> np.ndarray:
    n = graph.n_nodes
    expected = np.eye(n)
    for at, arrow in enumerate(column.pattern):
        step = matrix(graph, "out" if arrow == ">" else "in")
        degree = step.sum(axis=1)
        limit = np.full((n, 1), hub if at else n)  # of a node that is passed, for every source
        for row, reached in zip(limit, expected > 0, strict=True):
            while at and degree[reached & (degree <= row)].sum() > budget:
                row //= 2
        passed = np.where(degree <= limit, expected, 0.0)
        size = np.maximum(degree, 1)[:, None]
        expected = passed @ (step / size ** (column.damping[at - 1] if at else 0.0))
    return np.asarray(expected / np.maximum(step.sum(axis=0), 1) ** column.arrival)


@given(graphs(), st.sampled_from([2, 1000]), st.sampled_from([3, 10**6]))
def test_walks_that_share_steps_are_products_of_matrices(
    graph: DiGraph, hub: int, budget: int
) -> None:
    columns = [c for c in LOCAL if isinstance(c, Walk)]
    found = all_pairs(Local(columns, hub=hub, budget=budget).fit(graph), graph.n_nodes)
    for at, column in enumerate(columns):
        expected = walks_naively(graph, column, hub, budget)
        assert np.allclose(found[:, :, at], expected, rtol=1e-4, atol=1e-6), column


@given(
    graphs(), st.text("<>", min_size=1, max_size=3), st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5]),
)  # fmt: skip
def test_any_pattern_and_damping(
    graph: DiGraph, pattern: str, damping: float, arrival: float
) -> None:
    column = Walk(pattern, damping=(damping,) * (len(pattern) - 1), arrival=arrival)
    found = all_pairs(Local([column]).fit(graph), graph.n_nodes)[:, :, 0]
    assert np.allclose(found, walks_naively(graph, column, 1000, 10**6), rtol=1e-4, atol=1e-6)


def test_scans_agree_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    graph = DiGraph.from_codes(*rng.integers(300, size=(2, 2000)), 300)
    columns = [PageRank(), Walk("><>")]

    def visit(_: int, room: Room) -> np.ndarray:
        return room.table.copy()

    one, many = (
        np.stack(Local(columns, n_jobs=jobs).fit(graph).scan(np.arange(300), visit))
        for jobs in (1, 3)
    )
    assert one.tobytes() == many.tobytes()
    u, v = rng.integers(300, size=(2, 4000))
    assert np.array_equal(Local(columns).fit(graph).pairs(u, v), one[u, v])


@given(graphs(), st.integers(1, 4))
def test_the_best_of_each_column_are_those_of_a_sort(graph: DiGraph, k: int) -> None:
    free = np.arange(graph.n_nodes) % 3 > 0

    def visit(_: int, room: Room) -> None:
        for column, found in zip(room.table.T, best_of(room, free, k), strict=True):
            nodes = room.near[free[room.near] & (column[room.near] > 0)]
            expected = nodes[np.argsort(-column[nodes], kind="stable")][:k]
            assert found[found >= 0].tolist() == expected.tolist()

    Local(LOCAL).fit(graph).scan(np.arange(graph.n_nodes), visit)
