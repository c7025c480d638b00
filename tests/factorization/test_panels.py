from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from atpgraph.closure import PanelRound, PanelSource, collect_paths, kernel_table
from atpgraph.closure.panel import Positions
from atpgraph.factorization import Descent, Factorization, Options, fit_panels
from atpgraph.factorization._panel_rows import (
    GROUP,
    HalfRound,
    Landmarks,
    Rivals,
    Side,
    Steps,
    first_vectors,
    learn_rows,
)
from atpgraph.factorization.panels import Start, learn_range
from atpgraph.graph import DiGraph
from atpgraph.graph.generators import citation_dag
from atpgraph.hierarchy import levels
from atpgraph.util.threads import Workers
from tests.dags import chain, closure_matrix, dags, random_dag


def fit(
    dag: DiGraph,
    k: int = 32,
    kernel: object = "log",
    *,
    start: Start | None = None,
    descent: Descent | None = None,
    **options,
) -> Factorization:
    level = levels(dag)
    table = kernel_table(kernel, int(level.max(initial=1)))
    how = Options(n_components=k, **{"random_state": 0} | options)
    return fit_panels(collect_paths(dag, level), table, how, start=start, descent=descent)


def a_round(
    dag: DiGraph, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, PanelRound]:
    """Who reaches whom, the levels, the kernel, and what a round draws from."""
    reach, level = closure_matrix(dag), levels(dag)
    table = kernel_table("log", int(level.max())).astype(np.float32)
    with Workers(1) as workers:
        sizes, ancestors = reach.sum(axis=1), reach.sum(axis=0)
        paths = PanelSource(Positions.of(dag, level), sizes, ancestors, ancestors + 0.0)
        return reach, level, table, paths.renew(4, rng, workers)


def scores(found: Factorization) -> np.ndarray:
    return found.source.astype(float) @ found.target.astype(float).T


@settings(max_examples=10, deadline=None)
@given(dags(max_nodes=30))
def test_the_sign_of_a_score_is_the_path(dag: DiGraph) -> None:
    apart = ~np.eye(dag.n_nodes, dtype=bool)
    np.testing.assert_array_equal((scores(fit(dag)) > 0)[apart], closure_matrix(dag)[apart])


@pytest.mark.parametrize("kernel", ["log", "linear", lambda delta: 0.001 * delta**0.5])
def test_the_size_of_a_score_is_the_kernel(kernel) -> None:
    dag = random_dag(60, 150, 3)
    level = levels(dag)
    found = scores(fit(dag, 48, kernel, max_iter=100))
    u, v = np.nonzero(closure_matrix(dag))
    wanted = kernel_table(kernel, int(level.max()))[level[v] - level[u]]
    assert np.corrcoef(found[u, v], wanted)[0, 1] > 0.9
    assert abs(found[u, v].mean() / wanted.mean() - 1) < 0.1


@pytest.mark.parametrize("k", [1, 2, 3, 16, 50])
def test_threads_do_not_matter(k: int) -> None:
    dag = citation_dag(9000, 27_000, random_state=1)
    one, two = (fit(dag, k, max_iter=2, n_jobs=jobs) for jobs in (1, 3))
    assert one.source.shape == one.target.shape == (9000, k)
    assert one.source.tobytes() == two.source.tobytes()
    assert one.target.tobytes() == two.target.tobytes()
    assert one.objective.tolist() == two.objective.tolist()
    assert fit(dag, k, max_iter=2, random_state=1).source.tobytes() != one.source.tobytes()


def test_a_graph_wider_than_the_panel_is_learnt() -> None:
    dag = random_dag(6000, 24_000, 1)
    reach = closure_matrix(dag)
    found = scores(fit(dag, 64, max_iter=16)) > 0
    assert found[reach].mean() > 0.84  # .847 with each of three seeds
    assert found[~reach].mean() < 0.02
    assert found[dag.sources, dag.targets].mean() > 0.9


def test_landmarks_alone_tell_the_order_of_a_chain() -> None:
    found = scores(fit(chain(5000), 32, max_iter=0))
    u, v = np.random.default_rng(0).integers(0, 5000, (2, 4000))
    far = np.abs(u - v) > 250
    assert ((found[u, v] > 0) == (u < v))[far].mean() > 0.99


def test_only_some_vectors_learn() -> None:
    dag = citation_dag(800, 2400, random_state=1)
    first = fit(dag, 24, max_iter=4)
    sources, targets = np.flatnonzero(dag.out_degree)[:50], np.flatnonzero(dag.in_degree)[:30]
    start = Start(first.source, first.target, sources, targets, float(first.objective.sum()))
    on = fit(dag, 24, max_iter=2, start=start)
    # A node without any path has a bias below what the others have, which may have moved.
    for side, degree, rows in (("source", "out_degree", sources), ("target", "in_degree", targets)):
        moved = np.any(getattr(on, side) != getattr(first, side), axis=1)
        assert set(np.flatnonzero(moved & (getattr(dag, degree) > 0))) == set(rows)
    nobody = np.zeros(0, dtype=int)
    assert fit(dag, 24, start=start._replace(sources=nobody, targets=nobody)).n_iter == 0


@pytest.mark.parametrize("n", [0, 1, 3])
def test_graphs_without_a_path(n: int) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    found = fit(DiGraph.from_codes(nothing, nothing, n))
    assert found.source.shape == (n, 32)
    assert found.n_iter == 0
    assert (scores(found) < 0).all()


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_first_vectors_do_what_plain_lines_do(seed: int, used: int) -> None:
    rng = np.random.default_rng(seed)
    n, k, free = 40, 16, 13
    reach, level, table, panel = a_round(random_dag(n, 90, seed % 1000), rng)
    known = panel.columns[: panel.uniform * used // 3]
    weights = rng.standard_normal((len(known), k)).astype(np.float32)
    base = rng.standard_normal(k).astype(np.float32)
    margin, calm, trust, noise = (np.float32(x) for x in (1.5, 3, 4, 0.2))
    made, seen = np.zeros((n, k), dtype=np.float32), np.zeros(n, dtype=np.float32)
    for first, stop in ((0, 25), (25, n)):
        landmarks = Landmarks(known, weights, base, calm, trust, margin, noise, free)
        side = Side(made, np.ones(n, dtype=np.bool_), level, table)
        task = first, stop, int(rng.integers(1, 2**63))
        first_vectors(panel, landmarks, side, made, seen, task)
    climbs = np.abs(level[known] - level[:, None])
    wanted = base + np.where(reach[:, known], table[climbs] + margin, 0) @ weights
    np.testing.assert_allclose(made[:, free:], wanted[:, free:], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(seen, calm + trust * (wanted**2).sum(axis=1), rtol=1e-3)
    added = (made - wanted)[:, :free] / noise
    assert np.abs(added).max() < 1.01
    assert abs(added.mean()) < 0.13  # of 520 numbers, with a standard error of .025
    assert abs((added**2).mean() - 1 / 3) < 0.07
    assert np.abs(np.corrcoef(added.T) - np.eye(free)).max() < 0.75


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.booleans(), st.booleans())
def test_kernels_do_what_plain_lines_do(seed: int, edges: int, hard: bool, fits: bool) -> None:
    rng = np.random.default_rng(seed)
    n, k = 40, 16
    reach, level, table, panel = a_round(random_dag(n, 90, seed % 1000), rng)
    near, far = rng.standard_normal((2, n, k)).astype(np.float32)
    near[:, 6] = 1
    margin, clip, rate, decay = (np.float32(x) for x in (1.5, 2.0, 0.1, 1e-3))
    known = panel.columns[: panel.uniform]
    only = rng.random(n) < 0.8
    seen, told = np.zeros(n, dtype=np.float32), np.zeros(2)
    source, squares = near.astype(float), np.zeros(n)
    state = first = int(rng.integers(1, 2**63))

    def step(u: int, v: int, wanted: float, rivals: list[int], below: float = margin) -> float:
        slopes = {v: source[u] @ far[v] - wanted}
        for rival in rivals:
            slopes[rival] = max(source[u] @ far[rival] + below, 0.0)
        lost = sum(slope**2 for slope in slopes.values()) / 2
        gradient = np.zeros(k)
        for at, slope in slopes.items():
            slope = np.clip(slope, -clip, clip)
            squares[u] += slope**2 * np.mean(far[at].astype(float) ** 2)
            gradient += slope * far[at]
        source[u] -= rate / np.sqrt(squares[u] + 1e-8) * (gradient + decay * source[u])
        source[u, 6] = 1
        return lost

    def draw() -> int:
        nonlocal state
        state ^= (state << 13) & (2**64 - 1)
        state ^= state >> 7
        state ^= (state << 17) & (2**64 - 1)
        return state

    groups = np.array([rng.permutation(len(panel.columns))[:GROUP] for _ in range(5)])
    places = groups.astype(np.uint64).ravel()
    vectors = far[panel.columns[places]]
    near_margin = np.float32(0.5)
    fits = np.float32(3 if fits else 0)
    many = len(places) if hard else 0
    how = Steps(2, 4, edges, many, 6, margin, near_margin, clip, rate, decay, fits)
    block = near[panel.nodes]  # by position
    rivals = Rivals(places, vectors, np.mean(vectors**2, axis=1))
    half = HalfRound(near, seen, panel, rivals, Side(far, only, level, table), how)
    learn_rows((0, n, first), half, np.arange(n, dtype=np.int32), block, seen, told)
    near[panel.nodes] = block
    loss, paths, done = 0.0, 0, set()
    for i, u in 2 * list(enumerate(panel.nodes.tolist())):
        if not reach[u].any() or not only[u] or u in done:
            continue
        before = loss
        place = (draw() >> 32) / 2.0**32
        many = min(int(reach[u].sum()), 4)
        # Every descendant is in the panel of so small a graph, in the order of its columns.
        below = [v for v in known.tolist() if reach[u, v]]
        targets = [below[int((part + place) * len(below) / many)] for part in range(many)]
        indptr, successors = panel.indptr, panel.successors
        direct = panel.nodes[successors[indptr[i] : indptr[i + 1]]].tolist()
        begin = int(place * len(direct))
        targets += [direct[(begin + part) % len(direct)] for part in range(edges)]
        if hard:
            # The more paths, the more rivals it looks at, of which half are uniform.
            first = groups.ravel()[: groups.size * len(targets) // (4 + edges)]
            uniform = panel.columns[first[np.arange(len(first)) % GROUP < GROUP // 2]].tolist()
            scored = {x: source[u] @ far[x] for x in uniform if x != u and not reach[u, x]}
            worst = sorted((x for x in scored if scored[x] > 0), key=scored.get)[-GROUP:]
            assume(len(set(uniform)) == len(uniform))
            if worst:
                step(u, targets[0], table[level[targets[0]] - level[u]], worst, 0.5)
        for v in targets:
            paths += 1
            met = panel.columns[groups[(draw() >> 32) * len(groups) >> 32]].tolist()
            loss += step(
                u, v, table[level[v] - level[u]], [x for x in met if x != u and not reach[u, x]]
            )
        mean = 2 * (loss - before) / len(targets)
        assume(abs(mean - fits) > 0.01)
        if mean < fits:
            done.add(u)
    assert told[1] == paths
    np.testing.assert_allclose(told[0], loss, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(near, source, atol=2e-3)


def test_edges_are_drawn_on_purpose() -> None:
    dag = chain(3000)
    without, with_edges = (
        scores(fit(dag, 16, max_iter=6, descent=Descent(edges=edges))) for edges in (0, 2)
    )
    u = np.arange(2999)
    assert (with_edges[u, u + 1] > 0).mean() > (without[u, u + 1] > 0).mean()


def test_a_half_round_can_be_written_and_read() -> None:
    rng = np.random.default_rng(0)
    _, level, table, panel = a_round(random_dag(40, 90, 1), rng)
    near, far = rng.standard_normal((2, 40, 16)).astype(np.float32)
    groups = np.arange(16, dtype=np.uint64)
    vectors = far[panel.columns[groups]]
    small = np.float32(0.1)
    given = HalfRound(
        near, np.zeros(40, dtype=np.float32), panel,
        Rivals(groups, vectors, np.mean(vectors**2, axis=1)),
        Side(far, np.ones(40, dtype=np.bool_), level, table),
        Steps(1, 4, 2, 0, -1, small, small, small, small, small, small),
    )  # fmt: skip
    before = near.copy()
    for one, two in zip(
        learn_range((3, 30, 7), given),
        learn_range((3, 30, 7), HalfRound.of(given.arrays())),
        strict=True,
    ):
        assert one.tobytes() == two.tobytes()
    np.testing.assert_array_equal(near, before)  # a task changes nothing that it is given


def test_averaging_and_hard_rivals_lower_false_positives() -> None:
    dag = random_dag(3000, 9000, 5)
    reach = closure_matrix(dag)
    plain = Descent(averaged=0.0, hard=0)
    shares = [
        (scores(fit(dag, 32, max_iter=24, descent=how)) > 0)[~reach].mean()
        for how in (plain, Descent())
    ]
    assert shares[1] < shares[0]
