"""HOPE against the proximities written out."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.cycles import break_cycles
from atpgraph.errors import AtpError
from atpgraph.graph import DiGraph
from atpgraph.linkpred.baselines import PROXIMITIES, hope
from atpgraph.linkpred.baselines.factored import spectral_radius
from atpgraph.linkpred.factor import operator, singular_factors
from tests.linkpred.helpers import dense, formula


def products(vectors: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return vectors[0] @ vectors[1].T


def katz_decay(graph: DiGraph) -> float:
    return 0.5 / np.abs(np.linalg.eigvals(dense(graph))).max()


def proximity(graph: DiGraph, name: str, beta: float = 0.0, alpha: float = 0.5) -> np.ndarray:
    A, n = dense(graph), graph.n_nodes
    if name == "katz":
        return np.linalg.inv(np.eye(n) - beta * A) @ (beta * A)
    if name == "cn":
        return A @ A
    if name == "aa":
        degree = graph.out_degree + graph.in_degree
        return A @ np.diag(np.where(degree > 0, 1 / np.maximum(degree, 1), 0)) @ A
    P = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    return (1 - alpha) * np.linalg.inv(np.eye(n) - alpha * P)


@pytest.mark.parametrize("name", PROXIMITIES)
def test_hope_at_full_rank_is_the_proximity(small: DiGraph, name: str) -> None:
    expected = proximity(small, name, katz_decay(small), 0.7)
    assert products(hope(small, 25, proximity=name, alpha=0.7)) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", PROXIMITIES)
def test_hope_is_the_best_low_rank_approximation(large: DiGraph, name: str) -> None:
    u, s, vt = np.linalg.svd(proximity(large, name, katz_decay(large)))
    best = (u[:, :8] * s[:8]) @ vt[:8]
    assert products(hope(large, 8, proximity=name)) == pytest.approx(best, abs=1e-5 * s[0])


def test_inexact_products_do_not_give_false_singular_vectors(large: DiGraph) -> None:
    S = proximity(large, "katz", 0.11)  # one large singular value, many small ones
    noise = np.random.default_rng(0)

    def rough(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
        y = matrix @ x
        return y + 1e-6 * np.abs(y).max() * noise.standard_normal(y.shape)

    inexact = operator(200, lambda x: rough(S, x), lambda x: rough(S.T, x))
    source, target = singular_factors(inexact, 30, np.random.default_rng(1), 1e-4)
    values = np.linalg.svd(S, compute_uv=False)[:30]
    assert (source**2).sum(axis=0) == pytest.approx(values, rel=1e-2)
    assert (target**2).sum(axis=0) == pytest.approx(values, rel=1e-2)


def test_katz_of_an_acyclic_graph() -> None:
    path = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    assert products(hope(path, 4))[0] == pytest.approx([0, 0.5, 0.25, 0.125], abs=1e-6)


def test_spectral_radius_of_a_ring() -> None:
    ring = DiGraph.from_codes(range(100), [(i + 1) % 100 for i in range(100)], 100)
    assert spectral_radius(ring, np.random.default_rng(0)) == pytest.approx(1.0, abs=1e-6)


def test_katz_that_cannot_converge(small: DiGraph) -> None:
    with pytest.raises(AtpError, match="smaller beta"):
        hope(small, 4, beta=2.0)


def test_worked_example_of_the_atp_paper() -> None:
    """Figure 1: one dimension each, and decay 0.01 for Katz, give the paper's numbers.

    The figure's edge list is not printed. Among the graphs that fit its text this one, with (B, E)
    to be predicted, gives its six digits for Katz, and explains why its common neighbours are 0.
    Its numbers for rooted PageRank (0.2129, 0.2446) fit no setting that was tried.
    """
    edges = ["AB", "BC", "CB", "BD", "DB", "CE", "EC", "DE", "ED", "EF"]
    graph = DiGraph.from_edges([tuple(edge) for edge in edges], nodes="ABCDEF")
    b, e = graph.codes(["B", "E"])
    pair, back = np.array([b, e]), np.array([e, b])
    katz = products(hope(graph, 1, beta=0.01))[pair, back]
    assert katz == pytest.approx([0.004153, 0.006727], abs=5e-7)
    adamic_adar = products(hope(graph, 1, proximity="aa"))[pair, back]
    assert adamic_adar == pytest.approx([0.5, 0.5])
    common = products(hope(graph, 1, proximity="cn"))[pair, back]
    assert common == pytest.approx([0.0, 0.0], abs=1e-12)
    # With all dimensions the two paths through C and D count, and still tie.
    assert formula("common-neighbours").fit(graph).score(pair, back).tolist() == [2, 2]
    # Where (B, E) is an edge, breaking cycles removes the figure's four edges and finds the way.
    whole = DiGraph.from_edges([tuple(edge) for edge in [*edges, "BE"]], nodes="ABCDEF")
    removed = {u + v for u, v in break_cycles(whole, "h-voting").removed_edges}
    assert removed == {"CB", "DB", "EC", "ED"}
    assert formula("levels").fit(whole).score(pair, back).tolist() == [2, -2]
