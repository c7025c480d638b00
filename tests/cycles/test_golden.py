"""Against the authors' own graphs and outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atpgraph import as_graph
from atpgraph.cycles import agony, break_cycles
from atpgraph.graph import DiGraph, read_edgelist

pytestmark = pytest.mark.data
GNM = "peer_breaking_cycles/gnm_5000_25000"
AI = "peer_pystack_ai/competition_graph_index0"


def agony_of(graph: DiGraph, rank: np.ndarray) -> float:
    proper = graph.sources != graph.targets
    drop = rank[graph.sources[proper]] - rank[graph.targets[proper]] + 1
    return float(np.maximum(drop, 0).sum())


@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        (f"{GNM}_graph_w_extra_3000_path_len_0.edges", 13_256),
        (f"{AI}.edges", 103),
        ("graphs/wiki-Vote.txt.gz", 17_676),
        ("graphs/p2p-Gnutella31.txt.gz", 18_964),
        ("graphs/cit-HepPh.txt.gz", 2_674),
    ],
)
def test_agony_optimum_and_ranks(data_dir: Path, name: str, optimum: int) -> None:
    graph = read_edgelist(data_dir / name)
    result = agony(graph)
    assert result.value == optimum
    for rank in (result.lowest, result.highest, result.centred):
        assert agony_of(graph, rank) == optimum


@pytest.mark.parametrize("stem", [f"{GNM}_graph_w_extra_3000_path_len_0", AI])
def test_the_authors_ranks_are_no_better(data_dir: Path, stem: str) -> None:
    graph = read_edgelist(data_dir / f"{stem}.edges")
    stored = np.loadtxt(data_dir / f"{stem}_socialagony.txt")
    rank = np.zeros(graph.n_nodes)
    rank[graph.codes(stored[:, 0].astype(np.int64))] = stored[:, 1]
    assert agony_of(graph, rank) == agony(graph).value


def planted(data_dir: Path) -> tuple[DiGraph, np.ndarray]:
    graph = read_edgelist(data_dir / f"{GNM}_graph_w_extra_3000_path_len_0.edges")
    truth = read_edgelist(data_dir / f"{GNM}_extra_3000_path_len_0.edges")
    sources, targets = truth.edge_labels()
    return graph, graph.find_edges(graph.codes(sources), graph.codes(targets))


@pytest.mark.parametrize(("method", "floor"), [("h-voting", 0.77), ("sa-g", 0.77), ("bayes", 0.9)])
def test_quality_on_the_authors_planted_graph(data_dir: Path, method: str, floor: float) -> None:
    graph, truth = planted(data_dir)
    broken = (break_cycles(graph, method, random_state=seed) for seed in range(5))
    found = [result.agreement(truth).f1 for result in broken]
    assert np.mean(found) >= floor


def test_the_authors_h_voting_scores_as_they_say(data_dir: Path) -> None:
    """The measure is the authors': their stored removal has the F1 that they report."""
    graph, truth = planted(data_dir)
    name = f"{GNM}_graph_w_extra_3000_path_len_0_removed_by_H-Voting.edges"
    stored = set(as_graph(data_dir / name).edges())
    labels = graph.labels.tolist()
    right = {(labels[graph.sources[e]], labels[graph.targets[e]]) for e in truth}
    precision, recall = len(stored & right) / len(stored), len(stored & right) / len(right)
    assert 2 * precision * recall / (precision + recall) == pytest.approx(0.7776, abs=5e-5)
