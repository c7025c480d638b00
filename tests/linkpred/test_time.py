"""Predicting what comes next: splits by time, rows that know times, times from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from atpgraph import citation_dag
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph
from atpgraph.linkpred import RankingTest
from atpgraph.linkpred.benchmark import run
from atpgraph.linkpred.evidence.attributes import Clock, read_times
from atpgraph.linkpred.evidence.parts import Recency, Settings
from atpgraph.linkpred.protocols.splits import make_time_split
from tests.linkpred.helpers import formula


@pytest.fixture(scope="module")
def graph() -> DiGraph:
    return citation_dag(300, 2500, random_state=1)


def test_only_the_newest_sources_are_asked_about(graph: DiGraph) -> None:
    times = -np.arange(300.0)  # node 0 is the newest
    split = make_time_split(graph, times, fraction=0.1, random_state=1)
    warm, cold = split.tests["time"], split.tests["time-cold"]
    assert isinstance(warm, RankingTest)
    assert isinstance(cold, RankingTest)
    asked = np.union1d(warm.queries.sources, cold.queries.sources)
    others = np.setdiff1d(np.flatnonzero(graph.out_degree > 0), asked)
    assert asked.max() < np.quantile(others, 0.2)
    assert not set(warm.queries.sources.tolist()) & set(cold.queries.sources.tolist())
    assert (split.train.out_degree[np.unique(cold.queries.sources)] == 0).all()
    left = split.train.out_degree[np.unique(warm.queries.sources)]
    assert (left >= 1).all()
    whole = graph.out_degree[np.unique(warm.queries.sources)]
    assert (np.abs(whole - 2 * left) <= 1).all()
    assert split.train.n_edges + len(split.positives) == graph.n_edges


def test_times_of_edges_stay_with_their_edges(graph: DiGraph) -> None:
    times = np.random.default_rng(0).random(graph.n_edges)
    split = make_time_split(graph, times, fraction=0.1)
    assert split.times is not None
    at = graph.find_edges(split.train.sources, split.train.targets)
    assert np.array_equal(split.times, times[at])


def test_recent_links_are_counted_before_the_source_chooses() -> None:
    rng = np.random.default_rng(3)
    graph = DiGraph.from_codes(rng.integers(30, size=200), rng.integers(30, size=200), 30)
    times = rng.permutation(graph.n_edges).astype(float)
    clock = Clock.of(times, graph)
    found = Recency(Settings(clock=clock)).fit(graph).pairs(*np.divmod(np.arange(900), 30))
    share = times / graph.n_edges
    for u in range(30):
        own = times[graph.sources == u]
        now = own.max() / graph.n_edges if len(own) else 1.0
        for v in range(30):
            into = share[graph.targets == v]
            got = found[30 * u + v]
            assert got[0] == ((into < now) & (into >= now - 0.02 - 1e-12)).sum()
            assert got[3] == (into < now).sum()


def test_rows_with_times_in_a_benchmark(graph: DiGraph) -> None:
    splits = [
        make_time_split(graph, np.arange(300.0), fraction=0.1, random_state=seed)
        for seed in range(2)
    ]
    rows = "links,ppr,recent-popularity,recent-cosine,popularity"
    result = run(graph, rows, ["ranking"], splits=splits, dim=8)
    assert result.seeds == [0, 1]
    assert {"time", "time-cold"} <= set(result.protocols)
    found = {row.key: row.interval("time", "mrr").mean for row in result.methods}
    assert not any(row.failure for row in result.methods)
    assert found["links"] > found["popularity"]
    cold = {row.key: row.interval("time-cold", "mrr").mean for row in result.methods}
    assert cold["links"] > cold["ppr"]


def test_rows_agree_with_themselves(graph: DiGraph) -> None:
    for row in (formula("recent-popularity"), formula("recent-cosine")):
        row.fit(graph, times=np.arange(300.0))
        u, v = np.repeat([7, 280], 300), np.tile(np.arange(300), 2)
        assert np.allclose(row.score(u, v).reshape(2, 300), row.score_from(np.array([7, 280])))


def test_times_from_files(tmp_path: Path) -> None:
    graph = DiGraph.from_edges([("a", "b"), ("b", "c")])
    file = tmp_path / "times.txt"
    file.write_text("# label time\na 1\nb 2.5\nnobody 3\n")
    assert np.allclose(read_times(file, graph), [1, 2.5, np.nan], equal_nan=True)
    file.write_text("b,c,7\na,b,5\nc,a,1\n")
    assert read_times(file, graph).tolist() == [5, 7]
    for text, why in (
        ("a later\n", "row 1: the time 'later' is not a number"),
        ("x 1\n", "names no node"),
        ("a\n", "has 1 fields"),
        ("", "is empty"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=why):
            read_times(file, graph)


def test_as_many_edges_as_nodes(tmp_path: Path) -> None:
    edges = [(39, 0), (0, 5), *((at, at + 1) for at in range(38))]
    graph = DiGraph.from_edges(edges)
    assert graph.n_nodes == graph.n_edges
    file = tmp_path / "times.txt"
    file.write_text("".join(f"{u} {v} {at}\n" for at, (u, v) in enumerate(edges)))
    want = np.array([edges.index(edge) for edge in graph.edges()]) / len(edges)
    assert np.array_equal(Clock.of(read_times(file, graph), graph).edge, want)
    # As many are left for training as there are nodes.
    ends, left = np.random.default_rng(0).integers(30, size=(2, 200)), 30
    for _ in range(2):
        graph = DiGraph.from_codes(*ends, left)
        times = np.random.default_rng(1).permutation(np.arange(float(graph.n_edges)))
        split = make_time_split(graph, times, fraction=0.1)
        left = split.train.n_edges
    assert left == split.train.n_nodes
    kept = times[graph.find_edges(split.train.sources, split.train.targets)]
    assert np.array_equal(Clock.of(split.times, split.train).edge, kept.argsort().argsort() / left)


def test_times_by_label_and_by_pair(graph: DiGraph) -> None:
    rng = np.random.default_rng(1)
    by_node = pd.Series(rng.permutation(np.arange(300.0)), index=graph.labels)
    want = Clock.of(by_node.to_numpy(), graph)
    u, v = graph.edge_labels()
    by_edge = pd.Series(by_node[u].to_numpy(), index=pd.MultiIndex.from_arrays([u, v]))
    for times in (by_node, by_node.sample(frac=1.0, random_state=0)):
        assert np.array_equal(Clock.of(times, graph).now, want.now)
    for each in (by_edge, by_edge.to_dict() | {(u[0], "nobody"): 5.0, ("x", "y"): 7.0}):
        assert np.array_equal(Clock.of(each, graph).edge, want.edge)
    with pytest.raises(InputError, match="No time is a finite number"):
        Clock.of({("x", "y"): 7.0}, graph)
