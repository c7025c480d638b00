"""What every baseline has to do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph
from atpgraph.linkpred import Method
from atpgraph.linkpred.baselines import (
    APP,
    HOPE,
    LINE,
    NRP,
    STRAP,
    AdjacencySVD,
)


def two_communities() -> tuple[DiGraph, np.ndarray, np.ndarray]:
    """Sources 0 … 19 point into 40 … 59, sources 20 … 39 into 60 … 79; some edges held out."""
    rng = np.random.default_rng(0)
    inside = [
        (u, v) for u, v in itertools.product(range(40), range(40, 80)) if (u < 20) == (v < 60)
    ]
    across = [
        (u, v) for u, v in itertools.product(range(40), range(40, 80)) if (u < 20) != (v < 60)
    ]
    held = rng.random(len(inside)) < 0.3
    train = np.array(inside)[~held]
    graph = DiGraph.from_codes(train[:, 0], train[:, 1], 80)
    return graph, np.array(inside)[held], np.array(across)


@pytest.mark.parametrize(
    "method",
    [
        LINE(8, samples_per_edge=400),
        APP(8, walks=300),
        NRP(2, regularization=0.1),
        HOPE(2, "katz"),
        STRAP(2),
        AdjacencySVD(2),
    ],
    ids=lambda method: method.name,
)
def test_blocks_are_found(method: Method) -> None:
    graph, held, across = two_communities()
    method.fit(graph)
    good = method.score(held[:, 0], held[:, 1])
    assert auc(good, method.score(across[:, 0], across[:, 1])) > 0.99


@pytest.mark.parametrize("make", [LINE, APP, NRP, HOPE, STRAP, AdjacencySVD])
def test_dimension_must_be_positive(make: type) -> None:
    with pytest.raises(InputError, match="at least 1"):
        make(0)
