"""The front door: results, agreement, names."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import noisy_hierarchy
from atpgraph.cycles import METHODS, CycleBreak, break_cycles
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph, gnm
from tests.strategies import digraphs

WEIGHTED = [name for name in METHODS if METHODS[name].weighted]


def test_unknown_method_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'h-voting'"):
        break_cycles([(0, 1)], "h_voting")


def test_agreement() -> None:
    graph = DiGraph.from_edges([(0, 1), (1, 0), (2, 3), (3, 2)])
    result = break_cycles(graph, "sa-g")
    found = result.agreement(result.removed[:1])
    assert (found.precision, found.recall, found.f1) == (0.5, 1.0, pytest.approx(2 / 3))
    nothing = break_cycles([(0, 1)]).agreement(np.array([0]))
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)


def test_removed_edges_as_a_graph() -> None:
    result = break_cycles([("a", "b"), ("b", "a"), ("c", "c"), ("a", "c")], "sa-g")
    gone = result.removed_graph
    assert list(gone.edges()) == result.removed_edges
    assert gone.labels.tolist() == result.graph.labels.tolist()
    loop = gone.find_edges(gone.codes(["c"]), gone.codes(["c"]))
    assert np.isinf(result.scores).sum() == 1
    assert gone.weights is not None
    assert gone.weights[loop].item() == np.delete(gone.weights, loop).max() + 1
    assert break_cycles([("a", "a")]).removed_graph.weights.tolist() == [1.0]


def kept_graph(result: CycleBreak) -> nx.DiGraph:
    kept = nx.DiGraph()
    kept.add_nodes_from(result.graph.labels.tolist())
    kept.add_edges_from(result.graph.without_edges(result.removed).edges())
    return kept


def check_reasons(result: CycleBreak, *, maximal: bool) -> None:
    """Every reason is a cycle through its edge and edges that stayed, a shortest one."""
    kept = kept_graph(result)
    assert nx.is_directed_acyclic_graph(kept)
    reasons = result.reasons()
    assert sorted(reason.edge for reason in reasons) == sorted(result.removed_edges)
    assert [r.confidence for r in reasons] == sorted(result.scores.tolist(), reverse=True)
    for (u, v), _, cycle in reasons:
        if not cycle:
            assert not maximal, "an edge that could stay was removed"
            assert not nx.has_path(kept, v, u)
            continue
        steps = [*itertools.pairwise(cycle), (cycle[-1], cycle[0])]
        assert steps[0] == (u, v)
        assert all(kept.has_edge(*step) for step in steps[1:])
        assert len(cycle) == nx.shortest_path_length(kept, v, u) + 1


@given(digraphs(), st.integers(0, 9))
def test_each_removed_edge_closes_a_cycle_with_edges_that_stay(graph: DiGraph, seed: int) -> None:
    for method in METHODS:
        result = break_cycles(graph, method, random_state=seed)
        check_reasons(result, maximal=not METHODS[method].as_published)


@given(digraphs(self_loops=False), st.integers(0, 9), st.data())
def test_edges_to_keep_are_kept(graph: DiGraph, seed: int, data: st.DataObject) -> None:
    rank = data.draw(st.permutations(range(graph.n_nodes)))
    up = np.array([rank[u] < rank[v] for u, v in graph.edges()], dtype=bool)
    weights = np.random.default_rng(seed).integers(0, 4, graph.n_edges)
    for method in METHODS:
        costs = weights if METHODS[method].weighted else None
        result = break_cycles(graph, method, keep=up, weights=costs, random_state=seed)
        assert not np.any(up[result.removed]), method
        check_reasons(result, maximal=not METHODS[method].as_published)


def test_minimum_weight_equals_igraph() -> None:
    """ATP_RANDOM_GRAPHS sets how many graphs; every fifth is too large to try all orders."""
    for seed in range(int(os.environ.get("ATP_RANDOM_GRAPHS", "100"))):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 10)) if seed % 5 else 26
        graph = gnm(n, int(rng.integers(1, n * (n - 1) + 1)) if seed % 5 else 70, seed)
        weights = rng.integers(1, 9, graph.n_edges) / (1 if seed % 2 else 7)
        if seed % 6 == 0:
            weights[:] = 1
        theirs = igraph.Graph(
            n, list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)), directed=True
        )
        exact = theirs.feedback_arc_set(weights=weights.tolist(), method="ip")
        result = break_cycles(graph, "minimum", weights=weights)
        assert result.weight == pytest.approx(weights[exact].sum())
        assert result.proved
        assert result.lower_bound == pytest.approx(result.weight)


def test_minimum_without_time_is_not_proved_but_valid() -> None:
    graph = gnm(60, 300, 0)
    result = break_cycles(graph, "minimum", time_limit=0.0)
    assert not result.proved
    assert result.lower_bound is not None
    assert result.lower_bound <= result.weight == len(result.removed)
    check_reasons(result, maximal=True)
    assert break_cycles(graph, "sift").lower_bound is None


def test_time_spent_compiling_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import event

    from atpgraph.cycles import minimum

    def first_call(*arguments: object, **options: object) -> object:
        monkeypatch.setattr(minimum, "linprog", linprog)
        with event.trigger_event("numba:compile"):
            time.sleep(2.5)
        return linprog(*arguments, **options)

    linprog = minimum.linprog
    graph, _ = noisy_hierarchy(40, 160, 12, random_state=1)
    assert break_cycles(graph, "minimum").proved  # whatever there is to compile is compiled
    monkeypatch.setattr(minimum, "linprog", first_call)
    assert break_cycles(graph, "minimum", time_limit=2.0).proved


@pytest.mark.parametrize("method", WEIGHTED)
def test_a_heavy_edge_stays(method: str) -> None:
    triangles = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("d", "c")]
    result = break_cycles(triangles, method, weights={("c", "a"): 50})
    assert ("c", "a") not in result.removed_edges
    assert result.weight == len(result.removed)


def test_weights_by_name_array_and_mapping() -> None:
    graph = DiGraph.from_edges([("a", "b"), ("b", "a")], weights=[1, 3])
    for weights in ("weight", [1, 3], np.array([1.0, 3.0]), {("b", "a"): 3}):
        result = break_cycles(graph, "minimum", weights=weights)
        assert (result.removed_edges, result.weight, result.lower_bound) == ([("a", "b")], 1, 1)


def test_reversed_edges_leave_a_dag_with_all_pairs() -> None:
    graph, _ = noisy_hierarchy(60, 240, 40, random_state=1)
    for method in METHODS:
        result = break_cycles(graph, method, reverse=True)
        dag = nx.DiGraph(list(result.dag.edges()))
        assert nx.is_directed_acyclic_graph(dag)
        assert {frozenset(e) for e in dag.edges} == {frozenset(e) for e in graph.edges()}
        assert all(dag.has_edge(v, u) for u, v in result.removed_edges)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"keep": [("a", "b"), ("b", "c"), ("c", "a")]}, "the cycle "),
        ({"keep": [("d", "d")]}, "the cycle d → d"),
        ({"keep": [("a", "z")]}, "the edge a → z, which is not in the graph"),
        ({"weights": [1, 2]}, "6 edges but there are 2 weights"),
        ({"weights": {("a", "b"): -1}}, "a → b has the weight -1.0"),
        ({"weights": {("a", "z"): 1}}, "the edge a → z, which is not in the graph"),
        ({"weights": "weight"}, "no edge weights"),
        ({"weights": {}, "method": "h-voting"}, "h-voting ignores weights; use one of mfas"),
        ({"time_limit": -1}, "time_limit is -1"),
    ],
)
def test_mistakes(arguments: dict, said: str) -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "d"), ("c", "d"), ("a", "d")]
    with pytest.raises(InputError, match=said):
        break_cycles(edges, **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1e300, 1e308]}, "too much to add up"),
        ({"keep": np.array([7])}, "keep does not fit the edges"),
        ({"keep": np.array([True])}, "keep does not fit the edges"),
    ],
)
def test_odd_options_are_one_sentence(options, message):
    with pytest.raises(InputError, match=message):
        break_cycles([(1, 2), (2, 1)], **options)


def test_the_edges_to_keep_may_be_a_graph():
    kept = DiGraph.from_edges([("b", "a")])
    assert break_cycles([("a", "b"), ("b", "a")], keep=kept).removed_edges == [("a", "b")]


def test_odd_options_are_one_sentence_and_edges_to_keep_may_be_any_graph() -> None:
    triangle = [("a", "b"), ("b", "c"), ("c", "a")]
    for options in (
        {"weights": ["x", "y", "z"]},
        {"weights": {("a", "b"): "x"}},
        {"time_limit": "2"},
        {"keep": "no-such-file.csv"},
    ):
        with pytest.raises(InputError):
            break_cycles(triangle, "minimum", **options)
    for keep in (nx.DiGraph(triangle[:2]), {*triangle[:2]}, iter(triangle[:2])):
        assert break_cycles(triangle, keep=keep).removed_edges == [("c", "a")]
    assert break_cycles(triangle[:2]).proved  # nothing to remove


def test_the_old_class_warns() -> None:
    from atpgraph import cycles

    graph = DiGraph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)])
    with pytest.warns(DeprecationWarning, match="use break_cycles"):
        old = cycles.CycleBreaker(graph)
    assert old.run("sa-g").removed_edges == [(2, 0)]
    assert old.agony == cycles.agony(graph).value
    with pytest.raises(AttributeError, match="nothing"):
        cycles.nothing  # noqa: B018


@pytest.mark.parametrize("scale", [1e-9, 1e-7, 1e9])
def test_the_scale_of_weights_does_not_matter(scale: float) -> None:
    """Solvers take differences below 1e-7 for none."""
    graph = gnm(30, 120, random_state=1)
    weights = np.random.default_rng(0).random(graph.n_edges)
    expected = break_cycles(graph, "minimum", weights=weights)
    found = break_cycles(graph, "minimum", weights=scale * weights)
    assert expected.proved
    assert found.proved
    assert found.weight == pytest.approx(scale * expected.weight, rel=1e-9)
    assert found.lower_bound == pytest.approx(scale * expected.weight, rel=1e-9)
    assert not break_cycles(graph, "sift", weights=scale * weights).proved


def test_weights_by_the_name_of_an_attribute(tmp_path: Path) -> None:
    edges = [("a", "b", {"weight": 1, "cost": 9}), ("b", "a", {"weight": 5, "cost": 2})]
    file = tmp_path / "g.csv"
    file.write_text("source,target,weight,cost\na,b,1,9\nb,a,5,2\n")
    for graph in (nx.DiGraph(edges), file):
        assert break_cycles(graph, "minimum", weights="cost").removed_edges == [("b", "a")]
        assert break_cycles(graph, "minimum", weights="weight").removed_edges == [("a", "b")]


def test_a_bound_never_exceeds_the_weight() -> None:
    """Where one edge of a cycle costs far less than the others."""
    graph = DiGraph.from_codes(np.arange(8), (np.arange(8) + 1) % 8, 8)
    for seed in range(200):
        weights = 10.0 ** np.random.default_rng(seed).integers(-9, 6, 8)
        found = break_cycles(graph, "minimum", weights=weights, random_state=seed)
        assert found.lower_bound <= found.weight <= weights.min() + 1e-6 * weights.mean()
