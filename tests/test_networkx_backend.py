"""The NetworkX backend: NetworkX's own tests, and agreement on random graphs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings

from atpgraph.graph import DiGraph
from atpgraph.networkx_backend import BackendGraph, can_run, should_run
from atpgraph.networkx_info import FUNCTIONS, get_info
from tests.strategies import digraphs

OURS = {"backend": "atpgraph"}
MODULES = (
    "networkx.algorithms.tests.test_dag",
    "networkx.algorithms.components.tests.test_strongly_connected",
    "networkx.algorithms.shortest_paths.tests.test_generic",
)

pytestmark = pytest.mark.skipif(
    "atpgraph" not in nx.utils.backends.backends,
    reason="the backend's entry point is not installed; reinstall atpgraph",
)


@pytest.fixture(autouse=True, scope="module")
def cached_conversions_are_meant() -> Iterator[None]:
    nx.config.warnings_to_ignore.add("cache")
    yield
    nx.config.warnings_to_ignore.discard("cache")


def test_the_tests_of_networkx_pass(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", *MODULES],
        env=os.environ | {"NETWORKX_TEST_BACKEND": "atpgraph", "NETWORKX_FALLBACK_TO_NX": "1"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "1 xfailed" in done.stdout


def original(graph: DiGraph) -> nx.DiGraph:
    result = nx.DiGraph()
    result.add_nodes_from(graph.labels.tolist())
    result.add_edges_from(graph.edges())
    return result


@settings(max_examples=40)
@given(digraphs(max_nodes=10))
def test_functions_agree_with_networkx(graph: DiGraph) -> None:
    G = original(graph)
    for u in G:
        assert nx.descendants(G, u, **OURS) == nx.descendants(G, u)
        assert nx.ancestors(G, u, **OURS) == nx.ancestors(G, u)
        for v in G:
            assert nx.has_path(G, u, v, **OURS) == nx.has_path(G, u, v)
    as_sets = lambda groups: set(map(frozenset, groups))  # noqa: E731
    expected = as_sets(nx.strongly_connected_components(G))
    assert as_sets(nx.strongly_connected_components(G, **OURS)) == expected
    ours = nx.condensation(G, **OURS)
    assert as_sets(ours.nodes[at]["members"] for at in ours) == expected
    assert all(nx.has_path(G, *[min(ours.nodes[at]["members"]) for at in e]) for e in ours.edges)
    assert nx.is_directed_acyclic_graph(ours)
    for reflexive in (False, True, None):
        ours = nx.transitive_closure(G, reflexive=reflexive, **OURS)
        assert set(ours.edges) == set(nx.transitive_closure(G, reflexive=reflexive).edges)
    acyclic = nx.is_directed_acyclic_graph(G)
    assert nx.is_directed_acyclic_graph(G, **OURS) == acyclic
    if acyclic:
        assert list(map(set, nx.topological_generations(G, **OURS))) == list(
            map(set, nx.topological_generations(G))
        )
        assert nx.dag_longest_path_length(G, **OURS) == nx.dag_longest_path_length(G)
        ours = nx.transitive_closure_dag(G, **OURS)
        assert set(ours.edges) == set(nx.transitive_closure_dag(G).edges)


def test_weights_and_attributes() -> None:
    G = nx.DiGraph([("a", "b", {"weight": 2.5, "kind": "x"}), ("b", "c", {"weight": -1})])
    G.add_edge("a", "c", weight=2)
    assert nx.dag_longest_path_length(G, **OURS) == nx.dag_longest_path_length(G) == 2.5
    closure = nx.transitive_closure(G, **OURS)
    assert closure["a"]["b"] == {"weight": 2.5, "kind": "x"}
    assert can_run("dag_longest_path_length", (nx.DiGraph([(1, 2, {"weight": "much"})]),), {}) != 1
    assert nx.has_path(nx.Graph([(1, 2), (3, 2)]), 1, 3, **OURS)
    assert can_run("transitive_closure", (nx.MultiDiGraph([(1, 2)]),), {}) is not True


def test_errors_are_those_of_networkx() -> None:
    G = nx.DiGraph([(1, 2), (2, 1)])
    with pytest.raises(nx.NodeNotFound):
        nx.has_path(G, 1, 9, **OURS)
    with pytest.raises(nx.NetworkXError):
        nx.descendants(G, 9, **OURS)
    for function in (nx.transitive_closure_dag, nx.dag_longest_path_length):
        with pytest.raises(nx.NetworkXUnfeasible):
            function(G, **OURS)
    with pytest.raises(nx.NetworkXUnfeasible):
        list(nx.topological_generations(G, **OURS))


def test_changes_are_seen_and_conversion_waits_until_it_pays() -> None:
    G = nx.gnp_random_graph(60, 0.8, seed=1, directed=True)
    assert should_run("descendants", (nx.DiGraph([(1, 2)]),), {}) is not True
    asked = [should_run("has_path", (G, 0, 1), {}) for _ in range(12)]
    assert asked[0] is not True
    assert asked[-1] is True
    assert should_run("condensation", (G,), {}) is True
    assert should_run("has_path", (BackendGraph(G), 0, 1), {}) is True
    path = nx.DiGraph([(0, 1), (2, 3)])
    assert not nx.has_path(path, 0, 3, **OURS)
    path.add_edge(1, 2)
    assert nx.has_path(path, 0, 3, **OURS)


def test_info_names_functions_that_exist() -> None:
    import atpgraph.networkx_backend as backend

    assert set(get_info()["functions"]) == set(FUNCTIONS)
    assert all(callable(getattr(backend, name)) for name in FUNCTIONS)
