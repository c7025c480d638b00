"""Every rival against a closed form or on a graph where the answer is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph.cycles import break_cycles
from atpgraph.errors import AtpError, InputError
from atpgraph.graph import DiGraph
from atpgraph.linkpred import Method
from atpgraph.linkpred.metrics import auc
from atpgraph.linkpred.ours import LevelDifference
from atpgraph.linkpred.registry import choose, rows
from atpgraph.linkpred.rivals import (
    APP,
    HOPE,
    LINE,
    NRP,
    AdjacencySVD,
    CommonNeighbours,
    DegreeProduct,
    PreferentialAttachment,
)
from atpgraph.linkpred.rivals._factor import singular_factors
from atpgraph.linkpred.rivals._skipgram import _learn, noise_table
from atpgraph.linkpred.rivals.hope import spectral_radius
from atpgraph.linkpred.rivals.nrp import _reweight, objective


def dense(graph: DiGraph) -> np.ndarray:
    return graph.to_scipy().toarray()


def all_scores(method: Method, n: int) -> np.ndarray:
    u, v = np.divmod(np.arange(n * n), n)
    return np.asarray(method.score(u, v)).reshape(n, n)


@pytest.fixture(scope="module")
def small() -> DiGraph:
    rng = np.random.default_rng(11)
    return DiGraph.from_codes(rng.integers(25, size=110), rng.integers(25, size=110), 25)


@pytest.fixture(scope="module")
def large() -> DiGraph:
    """Large enough for the iterative solver."""
    rng = np.random.default_rng(12)
    return DiGraph.from_codes(rng.integers(200, size=900), rng.integers(200, size=900), 200)


def proximity(graph: DiGraph, name: str, beta: float = 0.0, alpha: float = 0.5) -> np.ndarray:
    A, n = dense(graph), graph.n_nodes
    if name == "katz":
        return np.linalg.inv(np.eye(n) - beta * A) @ (beta * A)
    if name == "common-neighbours":
        return A @ A
    if name == "adamic-adar":
        degree = graph.out_degree + graph.in_degree
        return A @ np.diag(np.where(degree > 0, 1 / np.maximum(degree, 1), 0)) @ A
    P = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    return (1 - alpha) * np.linalg.inv(np.eye(n) - alpha * P)


PROXIMITIES = ["katz", "common-neighbours", "adamic-adar", "rooted-pagerank"]


@pytest.mark.parametrize("name", PROXIMITIES)
def test_hope_at_full_rank_is_the_proximity(small: DiGraph, name: str) -> None:
    hope = HOPE(25, name, alpha=0.7, tolerance=1e-9).fit(small)
    expected = proximity(small, name, getattr(hope, "beta_", 0.0), 0.7)
    assert all_scores(hope, 25) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", PROXIMITIES)
def test_hope_is_the_best_low_rank_approximation(large: DiGraph, name: str) -> None:
    hope = HOPE(8, name, tolerance=1e-9).fit(large)
    u, s, vt = np.linalg.svd(proximity(large, name, getattr(hope, "beta_", 0.0)))
    best = (u[:, :8] * s[:8]) @ vt[:8]
    assert all_scores(hope, 200) == pytest.approx(best, abs=1e-5 * s[0])


def test_inexact_products_do_not_give_false_singular_vectors(large: DiGraph) -> None:
    S = proximity(large, "katz", 0.11)  # one large singular value, many small ones
    noise = np.random.default_rng(0)

    def rough(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
        y = matrix @ x
        return y + 1e-6 * np.abs(y).max() * noise.standard_normal(y.shape)

    source, target = singular_factors(
        200, 30, lambda x: rough(S, x), lambda x: rough(S.T, x), np.random.default_rng(1), 1e-4
    )
    values = np.linalg.svd(S, compute_uv=False)[:30]
    assert (source**2).sum(axis=0) == pytest.approx(values, rel=1e-2)
    assert (target**2).sum(axis=0) == pytest.approx(values, rel=1e-2)


def test_katz_decay_is_half_of_the_largest_that_converges(small: DiGraph, large: DiGraph) -> None:
    for graph in (small, large):
        radius = np.abs(np.linalg.eigvals(dense(graph))).max()
        assert HOPE(4).fit(graph).beta_ == pytest.approx(0.5 / radius)


def test_katz_of_an_acyclic_graph() -> None:
    path = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    hope = HOPE(4).fit(path)
    assert hope.beta_ == 0.5
    assert all_scores(hope, 4)[0] == pytest.approx([0, 0.5, 0.25, 0.125], abs=1e-6)


def test_spectral_radius_of_a_ring() -> None:
    ring = DiGraph.from_codes(range(100), [(i + 1) % 100 for i in range(100)], 100)
    assert spectral_radius(ring, np.random.default_rng(0)) == pytest.approx(1.0, abs=1e-6)


def test_katz_that_cannot_converge(small: DiGraph) -> None:
    with pytest.raises(AtpError, match="smaller beta"):
        HOPE(4, beta=2.0).fit(small)


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
    katz = HOPE(1, "katz", beta=0.01).fit(graph).score(pair, back)
    assert katz == pytest.approx([0.004153, 0.006727], abs=5e-7)
    adamic_adar = HOPE(1, "adamic-adar").fit(graph).score(pair, back)
    assert adamic_adar == pytest.approx([0.5, 0.5])
    common = HOPE(1, "common-neighbours").fit(graph).score(pair, back)
    assert common == pytest.approx([0.0, 0.0], abs=1e-12)
    # With all dimensions the two paths through C and D count, and still tie.
    assert CommonNeighbours().fit(graph).score(pair, back).tolist() == [2, 2]
    # Where (B, E) is an edge, breaking cycles removes the figure's four edges and finds the way.
    whole = DiGraph.from_edges([tuple(edge) for edge in [*edges, "BE"]], nodes="ABCDEF")
    removed = {u + v for u, v in break_cycles(whole).removed_edges}
    assert removed == {"CB", "DB", "EC", "ED"}
    assert LevelDifference().fit(whole).score(pair, back).tolist() == [2, -2]


def test_degrees_by_hand(small: DiGraph) -> None:
    A = dense(small)
    out, inn = A.sum(axis=1), A.sum(axis=0)
    assert all_scores(DegreeProduct().fit(small), 25) == pytest.approx(np.outer(out, inn))
    both = out + inn
    attachment = PreferentialAttachment().fit(small)
    assert all_scores(attachment, 25) == pytest.approx(np.outer(both, both))


def test_common_neighbours_are_the_square(small: DiGraph) -> None:
    assert all_scores(CommonNeighbours().fit(small), 25) == pytest.approx(
        dense(small) @ dense(small)
    )


def test_svd_at_full_rank_is_the_adjacency_matrix(small: DiGraph) -> None:
    assert all_scores(AdjacencySVD(25).fit(small), 25) == pytest.approx(dense(small), abs=1e-8)


def test_more_components_than_nodes(small: DiGraph) -> None:
    svd = AdjacencySVD(40).fit(small)
    assert svd.source_.shape == (25, 40)
    assert all_scores(svd, 25) == pytest.approx(dense(small), abs=1e-8)


def test_factors_are_balanced(large: DiGraph) -> None:
    A = dense(large)
    rng = np.random.default_rng(0)
    source, target = singular_factors(200, 5, lambda x: A @ x, lambda x: A.T @ x, rng, 1e-10)
    values = np.linalg.svd(A, compute_uv=False)[:5]
    assert (source**2).sum(axis=0) == pytest.approx(values)
    assert (target**2).sum(axis=0) == pytest.approx(values)


def test_levels_follow_a_chain() -> None:
    chain = DiGraph.from_codes([0, 1, 2, 3], [1, 2, 3, 0], 4)  # one edge of the ring has to go
    scores = all_scores(LevelDifference().fit(chain), 4)
    assert scores == pytest.approx(-scores.T)
    assert sorted(np.unique(np.abs(scores)).tolist()) == [0, 1, 2, 3]


def test_nrp_without_reweighting_is_personalised_pagerank(small: DiGraph) -> None:
    nrp = NRP(25, epochs=0, steps=20, alpha=0.3, tolerance=1e-10).fit(small)
    A = dense(small)
    out = np.maximum(A.sum(axis=1, keepdims=True), 1)
    P, total, power = A / out, np.zeros((25, 25)), np.eye(25)
    for i in range(1, 21):
        power = power @ P
        total += 0.3 * 0.7**i * power
    # Without epochs the rows have the weights of the start, the out-degrees.
    assert all_scores(nrp, 25) == pytest.approx(small.out_degree[:, None] * total, abs=1e-8)


@given(st.integers(0, 2**32))
def test_nrp_reweighting_minimises_its_objective(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k, penalty = 7, 3, 2.0
    X, Y = rng.random((n, k)), rng.random((n, k))
    f, b = rng.random(n) + 0.2, rng.random(n) + 0.2
    out, inn = rng.integers(0, 6, n) * 1.0, rng.integers(0, 6, n) * 1.0
    for v in rng.permutation(n):
        _reweight(X, Y, f, b, out, inn, penalty, np.array([v]))
        found = objective(X, Y, f, b, out, inn, penalty)
        for step in (-1e-4, 1e-4):
            other = b.copy()
            other[v] = max(other[v] + step, 1 / n)
            assert objective(X, Y, f, other, out, inn, penalty) >= found - 1e-9
    _reweight(Y, X, b, f, inn, out, penalty, rng.permutation(n))
    assert objective(X, Y, f, b, out, inn, penalty) <= found + 1e-9


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=20))
def test_noise_table_has_the_right_shares(weights: list[float]) -> None:
    table = noise_table(np.array(weights), size=1000)
    shares = np.bincount(table, minlength=len(weights)) / len(table)
    assert shares == pytest.approx(np.array(weights) / sum(weights), abs=2e-3)


def test_one_step_of_skip_gram_by_hand() -> None:
    source = np.array([[0.5, -0.2], [0.0, 0.0]], dtype=np.float32)
    target = np.array([[0.1, 0.3], [0.4, 0.2]], dtype=np.float32)
    s, t, rate = source.astype(float), target.astype(float), 0.1
    up = rate * (1 - 1 / (1 + np.exp(-s[0] @ t[1])))  # the pair (0, 1)
    down = rate * -(1 / (1 + np.exp(-s[0] @ t[0])))  # the noise node 0
    one = np.array([0], dtype=np.int32)
    noise = np.array([[0]], dtype=np.int32)
    _learn(source, target, one, one + np.int32(1), noise, np.array([rate], dtype=np.float32))
    assert source[0] == pytest.approx(s[0] + up * t[1] + down * t[0], abs=1e-6)
    assert target == pytest.approx(np.array([t[0] + down * s[0], t[1] + up * s[0]]), abs=1e-6)


def test_line_draws_edges_by_weight() -> None:
    graph = DiGraph.from_codes([0, 0], [1, 2], 3, weights=[1.0, 9.0])
    chunks = list(LINE()._pairs(graph, 2000, np.random.default_rng(0)))
    heavy = np.mean(np.concatenate([v for _, v in chunks]) == 2)
    assert 0.87 < heavy < 0.93
    with pytest.raises(InputError, match="positive"):
        LINE().fit(DiGraph.from_codes([0, 1], [1, 0], 2, weights=[1.0, -1.0]))


def test_app_walks_end_by_rooted_pagerank() -> None:
    graph = DiGraph.from_codes([0, 0, 1, 2, 3], [1, 2, 3, 3, 0], 5)  # node 4 stands alone
    app = APP(walks=4000, stop=0.4, max_steps=60)
    walkers = np.arange(4)
    pairs = list(app._pairs(graph, walkers, np.random.default_rng(0)))
    u, v = (np.concatenate(side) for side in zip(*pairs, strict=True))
    A = dense(graph)
    P = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    expected = 0.4 * P @ np.linalg.inv(np.eye(5) - 0.6 * P)
    found = np.zeros((5, 5))
    np.add.at(found, (u, v), 1 / 4000)
    np.fill_diagonal(expected, 0.0)
    assert found == pytest.approx(expected, abs=0.03)


def two_communities() -> tuple[DiGraph, np.ndarray, np.ndarray]:
    """Sources 0 … 19 point into 40 … 59, sources 20 … 39 into 60 … 79; some edges held out."""
    rng = np.random.default_rng(0)
    inside = [
        (u, v) for u, v in itertools.product(range(40), range(40, 80)) if (u < 20) == (v < 60)
    ]
    across = [
        (u, v) for u, v in itertools.product(range(40), range(40, 80)) if (u < 20) != (v < 60)
    ]
    held = rng.random(len(inside)) < 0.3
    train = np.array(inside)[~held]
    graph = DiGraph.from_codes(train[:, 0], train[:, 1], 80)
    return graph, np.array(inside)[held], np.array(across)


@pytest.mark.parametrize(
    "method",
    [
        LINE(8, samples_per_edge=400),
        APP(8, walks=300),
        NRP(2, regularization=0.1),
        HOPE(2, "katz"),
        AdjacencySVD(2),
    ],
    ids=lambda method: method.name,
)
def test_blocks_are_found(method: Method) -> None:
    graph, held, across = two_communities()
    method.fit(graph)
    good = method.score(held[:, 0], held[:, 1])
    assert auc(good, method.score(across[:, 0], across[:, 1])) > 0.99


@pytest.mark.parametrize("key", list(rows()))
def test_rows_keep_the_interface_and_the_seed(large: DiGraph, key: str) -> None:
    row = rows()[key]
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
    assert [row.key for row in choose("all")] == list(rows())
    assert {row.group for row in choose("trivial")} == {"trivial"}
    with pytest.raises(InputError, match="hope-katz"):
        choose("hopeless")


@pytest.mark.parametrize("make", [LINE, APP, NRP, HOPE, AdjacencySVD])
def test_dimension_must_be_positive(make: type) -> None:
    with pytest.raises(InputError, match="at least 1"):
        make(0)
