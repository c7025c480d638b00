"""Splits leak nothing and keep the graph connected."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.linkpred import PROTOCOLS, PairTest, RankingTest, make_split
from atpgraph.linkpred.protocols.splits import removable_edges
from tests.linkpred.helpers import as_networkx, as_set, brute_one_way, graphs


def sequential_removal(graph: DiGraph, count: int, rng: np.random.Generator) -> list[int]:
    """The obvious twin: try edges in random order, recount the components each time."""
    place = rng.permutation(graph.n_edges)
    twin = as_networkx(graph)
    pieces = nx.number_weakly_connected_components(twin)
    taken: list[int] = []
    for e in np.argsort(place).tolist():
        if len(taken) == count:
            break
        u, v = int(graph.sources[e]), int(graph.targets[e])
        if u == v:
            continue
        twin.remove_edge(u, v)
        if nx.number_weakly_connected_components(twin) == pieces:
            taken.append(e)
        else:
            twin.add_edge(u, v)
    return taken


@settings(deadline=None)
@given(graphs(), st.integers(0, 20), st.integers(0, 2**32))
def test_removal_equals_trying_edges_one_by_one(graph: DiGraph, count: int, seed: int) -> None:
    fast = removable_edges(graph, count, np.random.default_rng(seed))
    assert fast.tolist() == sequential_removal(graph, count, np.random.default_rng(seed))


@settings(deadline=None)
@given(graphs(), st.integers(0, 2**32), st.floats(0.05, 0.6))
def test_split_leaks_nothing_and_stays_connected(
    graph: DiGraph, seed: int, fraction: float
) -> None:
    try:
        split = make_split(graph, fraction=fraction, random_state=seed)
    except InputError:
        wanted = round(fraction * (graph.n_edges - graph.n_self_loops))
        assert wanted == 0 or not sequential_removal(graph, 1, np.random.default_rng(seed))
        return
    train = as_set(split.train)
    test = as_set(split.positives)
    everything = as_set(graph)
    assert train | test == everything
    assert not train & test
    assert all(u != v for u, v in test)
    assert split.train.n_nodes == graph.n_nodes
    assert nx.number_weakly_connected_components(
        as_networkx(split.train)
    ) == nx.number_weakly_connected_components(as_networkx(graph))
    assert set(split.tests) | set(split.unavailable) == set(PROTOCOLS)
    allowed = {
        "paper": brute_one_way(graph),
        "random": {
            pair
            for pair in itertools.permutations(range(graph.n_nodes), 2)
            if pair not in everything
        },
        "reversed": {(v, u) for u, v in test if (v, u) not in everything},
    }
    for name, pairs in allowed.items():
        if name not in split.tests:
            assert not pairs
            continue
        part = split.tests[name]
        assert isinstance(part, PairTest)
        negatives = as_set(part.negatives)
        assert negatives <= pairs
        assert len(negatives) == len(part.negatives) == min(len(pairs), len(split.positives))
        assert as_set(part.positives) <= test
    ranking = split.tests["ranking"]
    assert isinstance(ranking, RankingTest)
    for u, row in zip(ranking.queries.sources, ranking.sampled, strict=True):
        chosen = row[row >= 0].tolist()
        free = {w for w in range(graph.n_nodes) if w != u and (int(u), w) not in everything}
        assert set(chosen) <= free
        assert len(set(chosen)) == len(chosen) == min(len(free), 100)


@pytest.fixture(scope="module")
def medium() -> DiGraph:
    rng = np.random.default_rng(3)
    return DiGraph.from_codes(rng.integers(400, size=2500), rng.integers(400, size=2500), 400)


def test_same_seed_same_split_whatever_the_protocols(medium: DiGraph) -> None:
    full = make_split(medium, random_state=7)
    alone = make_split(medium, random_state=7, protocols=["random"])
    assert np.array_equal(full.positives.sources, alone.positives.sources)
    first, second = full.tests["random"], alone.tests["random"]
    assert isinstance(first, PairTest)
    assert isinstance(second, PairTest)
    assert np.array_equal(first.negatives.sources, second.negatives.sources)
    other = make_split(medium, random_state=8)
    assert not np.array_equal(full.positives.sources, other.positives.sources)


def test_sampled_candidates_are_distinct_non_neighbors(medium: DiGraph) -> None:
    test = make_split(medium, protocols=["ranking"], max_queries=50).tests["ranking"]
    assert isinstance(test, RankingTest)
    assert len(test.queries) == 50
    for u, row in zip(test.queries.sources, test.sampled, strict=True):
        assert len(set(row.tolist())) == 100
        assert u not in row
        assert (medium.find_edges(np.full(100, u), row) < 0).all()


def test_a_forest_has_nothing_to_take() -> None:
    path = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    with pytest.raises(InputError, match="disconnect"):
        make_split(path, fraction=0.5)


def test_a_cycle_has_no_one_way_pairs() -> None:
    n = 30
    ring = DiGraph.from_codes(
        list(range(n)) * 2, [(i + d) % n for d in (1, 2) for i in range(n)], n
    )
    split = make_split(ring)
    assert "one direction" in split.unavailable["paper"]
    assert "random" in split.tests


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0])
def test_bad_fraction(medium: DiGraph, fraction: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        make_split(medium, fraction=fraction)


def test_unknown_protocol(medium: DiGraph) -> None:
    with pytest.raises(InputError, match="paper, random, reversed, ranking"):
        make_split(medium, protocols=["papers"])
