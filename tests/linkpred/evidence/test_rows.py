"""Local evidence against its closed form on small dense graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.linkpred.evidence import LocalEvidence, PersonalisedPageRank, Walks
from atpgraph.linkpred.evidence._rows import best_of
from tests.linkpred.helpers import dense


def all_pairs(evidence: LocalEvidence, n: int) -> np.ndarray:
    u, v = np.divmod(np.arange(n * n), n)
    return evidence.pairs(u, v)[:, 0].reshape(n, n)


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
def test_push_is_personalised_pagerank(graph: DiGraph, direction: str, restart: float) -> None:
    evidence = PersonalisedPageRank(direction, restart=restart, tolerance=1e-9).fit(graph)
    expected = pagerank(graph, direction, restart)
    assert np.allclose(all_pairs(evidence, graph.n_nodes), expected, atol=1e-6)


@given(graphs(), st.sampled_from([0.05, 0.01, 1e-3]))
def test_push_errs_by_no_more_than_its_tolerance_allows(graph: DiGraph, tolerance: float) -> None:
    evidence = PersonalisedPageRank("both", tolerance=tolerance).fit(graph)
    degree = np.maximum(matrix(graph, "both").sum(axis=1), 1)
    exact = pagerank(graph, "both", 0.15)
    found = all_pairs(evidence, graph.n_nodes)
    assert (found <= exact + 1e-6).all()  # mass not yet spread is missing, never too much
    # By reversibility Σ_x r(x) p_x(v) ≤ tolerance · d(v) for r(x) ≤ tolerance · d(x).
    assert (exact - found <= tolerance * degree + 1e-6).all()


@given(
    graphs(),
    st.text("<>", min_size=1, max_size=3),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([2, 1000]),
    st.sampled_from([3, 10**6]),
    st.sampled_from([0.0, 0.5]),
)
def test_walks_are_products_of_matrices(
    graph: DiGraph, pattern: str, damping: float, hub: int, budget: int, arrival: float
) -> None:
    n = graph.n_nodes
    expected = np.eye(n)
    for at, arrow in enumerate(pattern):
        step = matrix(graph, "out" if arrow == ">" else "in")
        degree = step.sum(axis=1)
        limit = np.full((n, 1), hub if at else n)  # of a node that is passed, for every source
        for row, reached in zip(limit, expected > 0, strict=True):
            while at and degree[reached & (degree <= row)].sum() > budget:
                row //= 2
        passed = np.where(degree <= limit, expected, 0.0)
        size = np.maximum(degree, 1)[:, None]
        expected = passed @ (step / size ** (damping if at else 0.0))
    expected = expected / np.maximum(step.sum(axis=0), 1) ** arrival
    walks = Walks(pattern, damping=damping, hub=hub, budget=budget, arrival=arrival).fit(graph)
    assert np.allclose(all_pairs(walks, n), expected, rtol=1e-5)


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 6), st.integers(0, 2**32))
def test_best_of_is_the_head_of_a_sorted_list(found: list[int], k: int, seed: int) -> None:
    values = np.array(found, dtype=np.float32)
    nodes = np.random.default_rng(seed).permutation(len(found)).astype(np.int32)
    free = np.random.default_rng(seed + 1).random(len(found)) < 0.7
    best = np.empty(k, dtype=np.int64)
    count = best_of(nodes, values, free, best, np.empty(k))
    expected = [nodes[i] for i in np.argsort(-values, kind="stable") if free[nodes[i]]][:k]
    assert best[:count].tolist() == expected


def test_rows_and_pairs_agree_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    graph = DiGraph.from_codes(*rng.integers(500, size=(2, 3000)), 500)
    for evidence in (PersonalisedPageRank(), Walks("><>")):
        evidence.fit(graph)
        one = evidence.rows(np.arange(500), n_jobs=1)
        two = evidence.rows(np.arange(500), n_jobs=3)
        assert [a.tobytes() for a in one] == [b.tobytes() for b in two]
        line = np.zeros((500, 500))
        line[np.repeat(np.arange(500), np.diff(one.indptr)), one.nodes] = one.values
        u, v = rng.integers(500, size=(2, 4000))
        assert np.array_equal(evidence.pairs(u, v, n_jobs=2)[:, 0], line[u, v])


def test_a_row_that_does_not_fit_begins_a_new_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    from atpgraph.linkpred.evidence import base

    graph = DiGraph.from_codes(*np.divmod(np.arange(400), 20), 20)  # everybody reaches everybody
    wide = Walks(">>").fit(graph).rows(np.arange(20))
    monkeypatch.setattr(base, "_ENTRIES", 45)
    assert [a.tolist() for a in Walks(">>").fit(graph).rows(np.arange(20))] == [
        a.tolist() for a in wide
    ]


@pytest.mark.parametrize("pattern", ["", "x", "> <"])
def test_a_pattern_is_made_of_arrows(pattern: str) -> None:
    with pytest.raises(InputError, match="no row of"):
        Walks(pattern)


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'both'"):
        PersonalisedPageRank("bot")
    with pytest.raises(InputError, match="restart is 1"):
        PersonalisedPageRank(restart=1)
    with pytest.raises(InputError, match="2 dampings for the 3 steps"):
        Walks("><>", damping=(1.0, 1.0))
