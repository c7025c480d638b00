"""What every baseline has to do."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph.evaluation.metrics import auc
from atpgraph.graph import DiGraph
from atpgraph.linkpred.baselines import adjacency_svd, app, hope, line, nrp, strap
from atpgraph.linkpred.registry import ROWS, Embedding


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
    ("learn", "k"),
    [
        (partial(line, samples_per_edge=400), 8),
        (partial(app, walks=300), 8),
        (partial(nrp, penalty=0.1), 2),
        (hope, 2),
        (strap, 2),
        (adjacency_svd, 2),
    ],
    ids=["line", "app", "nrp", "hope", "strap", "svd"],
)
def test_blocks_are_found(learn: Any, k: int) -> None:
    graph, held, across = two_communities()
    method = Embedding("row", learn, k).fit(graph)
    good = method.score(held[:, 0], held[:, 1])
    assert auc(good, method.score(across[:, 0], across[:, 1])) > 0.99


@pytest.mark.parametrize("key", ["line", "app", "nrp", "hope-katz", "strap", "svdm-log", "svd"])
def test_dimension_must_be_positive(small: DiGraph, key: str) -> None:
    with pytest.raises(InputError, match="at least 1"):
        ROWS[key].make(0, 0).fit(small)
