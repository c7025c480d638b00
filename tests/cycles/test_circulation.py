from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from atpgraph.cycles import circulation
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


@pytest.mark.parametrize("work", [0, 1, 3, 1000])
def test_any_share_of_the_two_solvers_gives_the_same_optimum(
    work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no budget OR-Tools does it all; the optimum is the same wherever they hand over."""
    graphs = [generators.gnm(60, 300, seed) for seed in range(10)]
    graphs += [
        generators.gnm(300, 900, 1),
        generators.noisy_hierarchy(400, 1500, 200, random_state=2).graph,
        ladder(300),
    ]
    expected = [circulation.largest_circulation(g).sum() for g in graphs]
    monkeypatch.setattr(circulation, "WORK_PER_EDGE", work)
    for graph, best in zip(graphs, expected, strict=True):
        chosen = circulation.largest_circulation(graph)
        assert balanced(graph, chosen)
        assert chosen.sum() == best


@given(digraphs(self_loops=False))
def test_the_circulation_is_balanced(graph: DiGraph) -> None:
    assert balanced(graph, circulation.largest_circulation(graph))


def test_no_kernel_reads_what_it_did_not_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the kernels as Python, with fresh memory full of numbers that are no index."""

    def poisoned(shape: object, dtype: type = np.float64) -> np.ndarray:
        worst = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else True
        return np.full(shape, worst, dtype=dtype)

    graphs = [*(generators.gnm(60, 300, seed) for seed in range(3)), ladder(60)]
    expected = [circulation.largest_circulation(g) for g in graphs]
    for name in ("_cheapest_path", "move", "_rise", "_tight_graph", "_saturate"):
        monkeypatch.setattr(circulation, name, getattr(circulation, name).py_func)
    monkeypatch.setattr(np, "empty", poisoned)
    for graph, chosen in zip(graphs, expected, strict=True):
        again = circulation.largest_circulation(graph)
        assert again.tolist() == chosen.tolist()
