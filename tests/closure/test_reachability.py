"""Exact reachability on any graph, against NetworkX."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import BudgetError, DiGraph, InputError, Reachability
from atpgraph.graph import generators
from atpgraph.util.archive import archive_format
from tests.strategies import digraphs


def by_networkx(graph: DiGraph) -> nx.DiGraph:
    result = nx.DiGraph()
    result.add_nodes_from(graph.labels.tolist())
    result.add_edges_from(graph.edges())
    return result


@given(digraphs(max_nodes=14), st.sampled_from([True, False, None, "forest", "labels"]))
def test_everything_is_what_networkx_says(graph: DiGraph, index: Any) -> None:
    other, reach = by_networkx(graph), Reachability(graph, index=index)
    assert reach.indexed is bool(index)
    nodes = list(other)
    for u in nodes:
        assert set(reach.descendants(u).tolist()) == nx.descendants(other, u)
        assert set(reach.ancestors(u).tolist()) == nx.ancestors(other, u)
        assert reach.n_descendants(u) == len(nx.descendants(other, u))
        for v in nodes:
            joined = nx.has_path(other, u, v)
            assert reach.reaches(u, v) is joined
            path = reach.path(u, v)
            if not joined:
                assert path is None
            else:
                assert path is not None
                assert len(path) == 1 + nx.shortest_path_length(other, u, v)
                assert (path[0], path[-1]) == (u, v)
                assert all(other.has_edge(a, b) for a, b in itertools.pairwise(path))
    everyone = np.array(nodes)
    whole = reach.reaches(np.repeat(everyone, len(nodes)), np.tile(everyone, len(nodes)))
    assert whole.tolist() == [nx.has_path(other, u, v) for u in nodes for v in nodes]
    assert reach.n_descendants().tolist() == [len(nx.descendants(other, u)) for u in nodes]
    assert reach.n_ancestors().tolist() == [len(nx.ancestors(other, u)) for u in nodes]
    assert reach.n_ancestors(nodes[:2]).tolist() == reach.n_ancestors().tolist()[:2]


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_targets_and_the_index_agree(seed: int) -> None:
    """More than 512 columns, components of all sizes: sweeps need several blocks."""
    graph = generators.gnm(1500, 1800, seed)
    searched, looked_up = Reachability(graph, index=False), Reachability(graph, index=True)
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, 1500, (2, 20_000))
    u, v = graph.labels[u % graph.n_nodes], graph.labels[v % graph.n_nodes]
    found = searched.reaches(u, v)
    assert found.tolist() == looked_up.reaches(u, v).tolist()
    for way in ("n_descendants", "n_ancestors"):
        assert getattr(searched, way)().tolist() == getattr(looked_up, way)().tolist()
    for at in range(0, 20_000, 400):
        assert searched.reaches(u[at], v[at]) == found[at]


def test_cycles_are_condensed_not_broken() -> None:
    reach = Reachability([("app", "lib"), ("lib", "core"), ("core", "lib"), ("lib", "libc")])
    assert reach.reaches("core", "libc")
    assert reach.reaches("core", "lib")
    assert not reach.reaches("libc", "app")
    assert reach.condensation.n_nodes == 3
    assert repr(reach) == "Reachability(nodes=4, edges=4, components=3, index=None)"


def test_itself() -> None:
    reach = Reachability([("a", "a"), ("a", "b"), ("b", "a"), ("b", "c")])
    for node in "abc":
        assert reach.reaches(node, node) is True
        assert reach.path(node, node) == [node]
        assert node not in reach.descendants(node).tolist()
    assert reach.n_descendants().tolist() == [2, 2, 0]


def test_labels_of_any_kind_and_broadcasting() -> None:
    reach = Reachability([(("x", 1), "b"), ("b", 3)])
    assert reach.reaches(("x", 1), 3) is True
    assert reach.reaches(("x", 1), ["b", 3, ("x", 1)]).tolist() == [True, True, True]
    assert reach.reaches(["b", 3], "b").tolist() == [True, False]
    assert reach.path(("x", 1), 3) == [("x", 1), "b", 3]
    for ask in (reach.reaches, reach.path):
        with pytest.raises(InputError, match="no node 'nobody'"):
            ask("b", "nobody")
    with pytest.raises(InputError, match="no node 'nobody'"):
        reach.descendants("nobody")
    with pytest.raises(InputError, match="same number"):
        reach.reaches(["b", 3], ["b", 3, "b"])


def test_no_nodes_at_all() -> None:
    reach = Reachability(DiGraph.from_edges([]), index=True)
    assert reach.n_descendants().tolist() == []
    assert reach.reaches([], []).tolist() == []


def test_the_index_is_built_once_it_pays() -> None:
    graph = generators.random_dag(400, 1200, 0)
    reach = Reachability(graph)
    reach.reaches(graph.labels[0], graph.labels[1])
    assert not reach.indexed
    every = np.repeat(graph.labels, 400), np.tile(graph.labels, 400)
    first = reach.reaches(*every)
    reach.reaches(*every)
    assert reach.indexed
    assert reach.reaches(*every).tolist() == first.tolist()
    assert reach.index == "forest"
    small = Reachability(graph, memory=1000)
    assert small.reaches(*every).tolist() == first.tolist()
    assert small.index == "labels"
    never = Reachability(graph, index=False)
    assert never.reaches(every[0][:2000], every[1][:2000]).tolist() == first[:2000].tolist()
    assert never.index is None
    with pytest.raises(BudgetError, match="budget is"):
        Reachability(graph, index="forest", memory=1000)
    with pytest.raises(InputError, match="index is"):
        Reachability(graph, index="tree")  # type: ignore[arg-type]


def updated(other: nx.DiGraph, reach: Reachability, rng: np.random.Generator) -> Reachability:
    """Add and remove some edges in both, a new node now and then."""
    before, inplace = reach.graph, bool(rng.integers(2))
    nodes = list(other)
    more = [tuple(rng.choice([*nodes, len(nodes)], 2).tolist()) for _ in range(rng.integers(1, 4))]
    result = reach.add_edges(more, inplace=inplace)
    other.add_edges_from(more)
    edges = list(other.edges)
    fewer = [edges[at] for at in rng.choice(len(edges), min(2, len(edges)), replace=False)]
    result = result.remove_edges(fewer, inplace=inplace)
    other.remove_edges_from(fewer)
    assert (result is reach) == inplace
    assert inplace or reach.graph is before
    return result


@given(
    digraphs(max_nodes=12),
    st.sampled_from([True, False, None, "forest", "labels"]),
    st.integers(0, 2**32 - 1),
)
def test_updates_give_what_a_new_graph_gives(graph: DiGraph, index: Any, seed: int) -> None:
    other, reach = by_networkx(graph), Reachability(graph, index=index)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        reach = updated(other, reach, rng)
        nodes = reach.graph.labels.tolist()
        assert set(nodes) == set(other)
        u, v = np.repeat(nodes, len(nodes)), np.tile(nodes, len(nodes))
        expected = [nx.has_path(other, a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
        assert reach.reaches(u, v).tolist() == expected
        assert reach.n_descendants().tolist() == [len(nx.descendants(other, x)) for x in nodes]


def test_random_graphs_are_what_networkx_says() -> None:
    """ATP_RANDOM_GRAPHS sets how many graphs; two updates each."""
    for seed in range(int(os.environ.get("ATP_RANDOM_GRAPHS", "100"))):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        graph = generators.gnm(n, int(rng.integers(0, min(3 * n, n * (n - 1)) + 1)), rng)
        kind = (True, False, None, "forest", "labels")[seed % 5]
        other, reach = by_networkx(graph), Reachability(graph, index=kind)
        for update in range(3):
            if update:
                reach = updated(other, reach, rng)
            nodes = reach.graph.labels.tolist()
            below = {node: nx.descendants(other, node) | {node} for node in nodes}
            u, v = np.repeat(nodes, len(nodes)), np.tile(nodes, len(nodes))
            pairs = zip(u.tolist(), v.tolist(), strict=True)
            assert reach.reaches(u, v).tolist() == [b in below[a] for a, b in pairs], seed


def test_updates_keep_an_index_that_stays_true(tmp_path: Path) -> None:
    for kind in ("forest", "labels"):
        reach = Reachability([(0, 1), (1, 2), (2, 3), (0, 2)], index=kind)
        kept = reach._index
        reach = reach.add_edges([(0, 3), (1, 3)])
        assert reach.reaches(0, 3)
        assert reach.remove_edges([(0, 2)], inplace=True)._index is kept
        reach = reach.add_edges([(3, 0)])
        assert reach._index is not kept
        assert reach.condensation.n_nodes == 1
        with pytest.raises(InputError, match="no edge from 0 to 2"):
            reach.remove_edges([(0, 2)])
        reach.remove_edges([(1, 3), (0, 3)]).save(tmp_path / "r.npz")
        assert Reachability.load(tmp_path / "r.npz").reaches(3, 2)


def test_labels_agree_with_the_forest_where_they_must_search() -> None:
    """Large enough that Bloom bits collide, dense enough that hubs are used in one graph."""
    hubs = []
    for n, m in ((3000, 6000), (3000, 30_000), (2000, 100_000)):
        graph = generators.random_dag(n, m, 1)
        labels, forest = (Reachability(graph, index=kind) for kind in ("labels", "forest"))
        u, v = np.random.default_rng(0).integers(0, n, (2, 100_000))
        assert np.array_equal(labels.reaches(u, v), forest.reaches(u, v))
        hubs.append(labels._index.arrays.hubs)  # type: ignore[union-attr]
        assert labels.nbytes == 64 * n
    assert set(hubs) == {True, False}


def test_several_nodes_and_sets() -> None:
    reach = Reachability([("a", "x"), ("b", "x"), ("b", "y"), ("x", "z")])
    both = reach.descendants(["a", "b"])
    assert both == {"x", "y", "z"}
    common = reach.descendants("a") & reach.descendants("b")
    assert common.tolist() == ["x", "z"]
    assert (both - common) == {"y"}
    assert (common | ["y"]) == both
    assert (common ^ both).tolist() == ["y"]
    assert "y" in both
    assert "nobody" not in both
    assert np.asarray(common).tolist() == ["x", "z"]
    assert reach.ancestors(["y", "z"]) == {"a", "b", "x"}
    assert repr(common) == "NodeSet(['x', 'z'])"
    # Of a graph that has more nodes.
    more = reach.add_edges([("z", "new")]).descendants("a")
    assert (common & more) == (common & [*more, "nobody"]) == common
    assert (both - more).tolist() == ["y"]
    with pytest.raises(InputError, match="no node 'new'"):
        both | more


def test_save_and_load(tmp_path: Path) -> None:
    graph = generators.gnm(300, 400, 0)
    for saved in (
        Reachability(graph),
        Reachability([("a", ("b", 2)), (("b", 2), "c")], index=True),
        Reachability(DiGraph.from_edges([])),
    ):
        path = tmp_path / "r.npz"
        saved.save(path)
        assert archive_format(path) == "atpgraph-reachability"
        first = path.read_bytes()
        loaded = Reachability.load(path)
        assert loaded.indexed
        labels = list(saved.graph.labels.tolist())
        assert loaded.graph.labels.tolist() == labels
        for u in labels[:20]:
            assert loaded.reaches(u, labels).tolist() == saved.reaches(u, labels).tolist()
        assert loaded.n_ancestors().tolist() == saved.n_ancestors().tolist()
        loaded.save(path)
        assert path.read_bytes() == first


def test_a_file_that_is_no_index_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    Reachability(generators.gnm(60, 90, 0)).save(path)
    with np.load(path) as archive:
        good = dict(archive)
    for change in (
        {"parent": good["parent"][::-1]},
        {"parent": np.full_like(good["parent"], -1)},
        {"parent": good["parent"].astype(float)},
        {"extras": good["extras"] + 1000},
        {"extras": good["extras"][:-1]},
        {"extras_indptr": good["extras_indptr"][::-1]},
        {"targets": good["targets"] + 60},
        {"indptr": good["indptr"][:-1]},
    ):
        np.savez(path, **(good | change))
        with pytest.raises(InputError, match="damaged or not a reachability index"):
            Reachability.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="reachability index"):
        Reachability.load(path)
    with pytest.raises(InputError, match="does not exist; make one"):
        Reachability.load(tmp_path / "none.npz")


def test_long_chains_and_one_large_cycle() -> None:
    n = 200_000
    chain = DiGraph.from_codes(np.arange(n - 1), np.arange(1, n), n)
    reach = Reachability(chain, index=True)
    assert reach.reaches(0, n - 1)
    assert reach.n_descendants()[[0, 10, n - 1]].tolist() == [n - 1, n - 11, 0]
    path = reach.path(0, n - 1)
    assert path is not None
    assert len(path) == n
    ring = Reachability(DiGraph.from_codes(np.arange(n), np.roll(np.arange(n), -1), n))
    assert ring.condensation.n_nodes == 1
    assert ring.n_ancestors(5) == n - 1
    assert ring.n_descendants()[7] == n - 1


def test_edges_of_some_types_only() -> None:
    edges = [("paw", "cat"), ("cat", "mammal"), ("cat", "pack"), ("pack", "mammal")]
    graph = DiGraph.from_edges(edges, types=["part_of", "is_a", "part_of", "is_a"])
    reach = Reachability(graph)
    parts = reach.only("part_of")
    assert parts is reach.only(["part_of"])
    assert parts.descendants("paw") == {"cat", "pack"}
    assert (reach.descendants("paw") - parts.descendants("paw")).tolist() == ["mammal"]
    assert reach.only(("is_a", "part_of")).reaches("paw", "mammal")
    assert not parts.reaches("paw", "mammal")
    assert parts.path("paw", "mammal") is None
    reach = reach.remove_edges([("cat", "pack")])
    assert reach.only("part_of").descendants("paw") == {"cat"}
    with pytest.raises(InputError, match="part_of"):
        reach.only("part_off")
    with pytest.raises(InputError, match="no types"):
        Reachability(edges).only("is_a")


def test_a_pair_is_not_a_list_of_edges():
    with pytest.raises(InputError, match="an edge is a pair of labels"):
        Reachability([(1, 2)]).remove_edges((1, 2))
