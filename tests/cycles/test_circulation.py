from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given

from atpgraph.cycles.agony import largest_circulation
from atpgraph.cycles.methods import Workspace
from atpgraph.graph import DiGraph, generators
from tests.strategies import digraphs


def balanced(graph: DiGraph, chosen: np.ndarray) -> bool:
    n = graph.n_nodes
    out = np.bincount(graph.sources[chosen], minlength=n)
    return bool(np.all(out == np.bincount(graph.targets[chosen], minlength=n)))


def ladder(n: int) -> DiGraph:
    """A long path with a few edges back: costs of paths are far from each other."""
    path, high = np.arange(n - 1), np.arange(20, n, 13)
    return DiGraph.from_codes(
        np.concatenate([path, high]), np.concatenate([path + 1, high // 3]), n
    )


def check_optimum(graph: DiGraph) -> None:
    """The prices prove that no circulation has more edges (complementary slackness)."""
    on, price = largest_circulation(graph)
    assert balanced(graph, on)
    rise = price[graph.targets] - price[graph.sources]
    assert np.all(rise[on] <= 1)
    assert np.all(rise[~on] >= 1)


@pytest.mark.parametrize(
    "graph",
    [
        generators.gnm(300, 900, 1),
        generators.noisy_hierarchy(400, 1500, 200, random_state=2).graph,
        ladder(300),
        ladder(5000),
    ],
    ids=["random", "hierarchy", "ladder", "long ladder"],
)
def test_the_circulation_is_a_largest_one(graph: DiGraph) -> None:
    check_optimum(Workspace(graph, 0).core)


@given(digraphs(self_loops=False))
def test_the_circulation_of_any_graph_is_a_largest_one(graph: DiGraph) -> None:
    check_optimum(graph)


def test_no_kernel_reads_what_it_did_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the kernels as Python, with fresh memory full of numbers that are no index."""

    def poisoned(shape: object, dtype: type = np.float64) -> np.ndarray:
        worst = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else True
        return np.full(shape, worst, dtype=dtype)

    graphs = [*(generators.gnm(60, 300, seed) for seed in range(3)), ladder(60)]
    expected = [largest_circulation(g)[0] for g in graphs]
    module = import_module("atpgraph.cycles.agony")  # the package has a function of that name
    for name in ("spread", "_move", "link", "unlink", "_enter", "_saturate"):
        monkeypatch.setattr(module, name, getattr(module, name).py_func)
    monkeypatch.setattr(np, "empty", poisoned)
    for graph, chosen in zip(graphs, expected, strict=True):
        again = largest_circulation(graph)[0]
        assert again.tolist() == chosen.tolist()
