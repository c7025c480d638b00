"""Springs that give way, and when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from atpgraph import ATP, DiGraph, break_cycles, gnm, noisy_hierarchy
from atpgraph.cycles import methods, scores
from tests.strategies import digraphs


def slow_positions(graph: DiGraph) -> np.ndarray:
    """The same iterations with dense matrices."""
    n, u, v = graph.n_nodes, graph.sources, graph.targets
    x, k = np.zeros(n), np.ones(graph.n_edges)
    for _ in range(scores.ROUNDS if graph.n_edges else 0):
        matrix = scores.ANCHOR * np.eye(n)
        right = np.zeros(n)
        for a, b, strength in zip(u, v, k, strict=True):
            matrix[[a, b], [a, b]] += strength if a != b else 2 * strength
            matrix[a, b] -= strength
            matrix[b, a] -= strength
            right[a] -= strength
            right[b] += strength
        diagonal = np.full(n, scores.ANCHOR)
        np.add.at(diagonal, u, k)
        np.add.at(diagonal, v, k)
        residual = right - matrix @ x
        direction = residual / diagonal
        fit = residual @ direction
        for _ in range(scores.STEPS):
            if fit < 1e-12 * n:
                break
            product = matrix @ direction
            step = fit / (direction @ product)
            x = x + step * direction
            residual = residual - step * product
            before, fit = fit, residual @ (residual / diagonal)
            direction = residual / diagonal + fit / before * direction
        short = x[u] - x[v] + 1.0
        k = np.where(short > 0, 1 / (1 + short**2), 1 / (1 - np.minimum(short, 0)))
    return x


@given(digraphs(self_loops=False))
def test_positions_equal_their_slow_twin(graph: DiGraph) -> None:
    assert scores.spring_positions(graph) == pytest.approx(slow_positions(graph), abs=1e-3)


def test_springs_find_planted_edges() -> None:
    found = [
        break_cycles(graph, "springs", random_state=0).agreement(planted).f1
        for graph, planted in (noisy_hierarchy(1000, 4000, 300, random_state=s) for s in range(3))
    ]
    assert np.mean(found) >= 0.75


def test_auto_takes_the_cheap_method_where_the_core_is_large(monkeypatch, caplog) -> None:
    graph = gnm(60, 240, 0)
    assert break_cycles(graph).method == methods.AUTO
    monkeypatch.setattr(methods, "AUTO_EDGES", 10)
    with caplog.at_level("INFO"):
        broken = break_cycles(graph)
    assert broken.method == "springs"
    assert "springs" in caplog.text
    assert np.array_equal(broken.removed, break_cycles(graph, "springs").removed)
    model = ATP(4, max_iter=1).fit(graph)
    assert model.method_ == "springs"


def test_a_model_file_says_which_method_it_was(tmp_path) -> None:
    graph = gnm(30, 90, 0)
    for method, used in (("auto", methods.AUTO), ("sa-g", "sa-g")):
        ATP(4, max_iter=1, method=method).fit(graph).save(tmp_path / "model.npz")
        again = ATP.load(tmp_path / "model.npz")
        assert (again.method_, again.method) == (used, method)
