from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.closure import Positions, ReachSketch, panel, reach_sketch
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.util.threads import Workers
from tests.dags import chain, closure_matrix, dags, random_dag, star


def ranks_of(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(n)


@settings(max_examples=80)
@given(dags(), st.integers(2, 9), st.integers(0, 5))
def test_a_sketch_holds_the_lowest_ranks(dag: DiGraph, size: int, seed: int) -> None:
    reach, rank = closure_matrix(dag), ranks_of(dag.n_nodes, seed)
    found = reach_sketch(dag, size=size, random_state=seed)
    for u in range(dag.n_nodes):
        all_of_them = np.flatnonzero(reach[u])
        lowest = all_of_them[np.argsort(rank[all_of_them])][:size]
        assert found.members[u, : found.counts[u]].tolist() == lowest.tolist()
        assert (found.members[u, found.counts[u] :] == -1).all()
        assert found.complete[u] == (len(all_of_them) <= size)
        if found.complete[u]:
            assert found.sizes[u] == len(all_of_them)
        else:
            assert found.sizes[u] > size


def test_sizes_are_right_on_average() -> None:
    dag = random_dag(300, 900, 1)
    true = closure_matrix(dag).sum(axis=1)
    guesses = np.mean(
        [reach_sketch(dag, size=8, random_state=seed).sizes for seed in range(200)], axis=0
    )
    large = true > 30
    assert large.sum() > 50
    np.testing.assert_allclose(guesses[large] / true[large], 1.0, atol=0.12)


def test_members_are_drawn_uniformly() -> None:
    dag = random_dag(40, 120, 3)
    u = int(closure_matrix(dag).sum(axis=1).argmax())
    hits = np.zeros(40)
    for seed in range(2000):
        hits[reach_sketch(dag, size=4, random_state=seed).members[u]] += 1
    reached = closure_matrix(dag)[u]
    assert (hits[~reached] == 0).all()
    np.testing.assert_allclose(hits[reached] / 2000, 4 / reached.sum(), atol=0.05)


@pytest.mark.parametrize("dag", [chain(3000), star(3000), random_dag(4000, 20_000, 2)])
def test_threads_and_tasks_do_not_matter(dag: DiGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def arrays(found: ReachSketch) -> list[bytes]:
        return [a.tobytes() for a in (found.members, found.counts, found.complete, found.sizes)]

    one = arrays(reach_sketch(dag, size=16, n_jobs=1))
    monkeypatch.setattr(panel, "_SMALL", 50)  # many tasks, many steps
    assert arrays(reach_sketch(dag, size=16, n_jobs=3)) == one


def test_a_deep_graph_takes_few_steps() -> None:
    dag = chain(100_000)
    for threads in (1, 2):
        assert len(panel._steps(Positions.of(dag), 64, threads)) < 10


@given(dags(min_nodes=2), st.integers(2, 5))
def test_popularity_is_of_the_paths_drawn(dag: DiGraph, count: int) -> None:
    reach = closure_matrix(dag)
    down, up = (reach_sketch(side, size=64) for side in (dag, dag.reverse()))  # all complete
    drawn = (
        reach * (np.minimum(count, reach.sum(axis=1)) / np.maximum(reach.sum(axis=1), 1))[:, None]
    )
    expected = drawn.sum(axis=0) / max(drawn.sum(), 1e-300)
    np.testing.assert_allclose(panel.popularity(up, down, count), expected, atol=1e-12)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="sketch is 1; it must be at least 2"):
        reach_sketch(chain(3), size=1)
    with pytest.raises(InputError, match="cycle"):
        reach_sketch(DiGraph.from_codes([0, 1], [1, 0], 2))


def test_it_says_what_it_is() -> None:
    found = reach_sketch(chain(4), size=2)
    assert repr(found).startswith("ReachSketch(nodes=4, size=2, pairs=")


def test_positions_that_nobody_asks_about_are_left_out() -> None:
    dag = random_dag(3000, 12_000, 1)
    view = Positions.of(dag)
    ranks = np.random.default_rng(0).permutation(3000).astype(np.int32)
    sizes = closure_matrix(dag).sum(axis=1)[view.nodes]
    unasked = sizes > 300  # and so are all that reach them
    room = np.full((3000, 8), -7, dtype=np.int32)
    for threads in (1, 3):
        with Workers(threads) as workers:
            every = panel.sketch_ranks(view, ranks, 8, workers)
            some = panel.sketch_ranks(view, ranks, 8, workers, unasked, room)
        assert some[0] is room
        for one, other in zip(every, some, strict=True):
            np.testing.assert_array_equal(one[~unasked], other[~unasked])
        assert 500 < unasked.sum() < 2500
        assert (some[1][unasked] == 8).all()
        assert (room[unasked] == -7).all()
