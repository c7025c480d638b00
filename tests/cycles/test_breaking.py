"""The front door: results, agreement, names."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.cycles import break_cycles
from atpgraph.errors import InputError
from atpgraph.graph import DiGraph


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
