"""ATP and its levels as rows of a benchmark."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph import ATP
from atpgraph.graph import DiGraph
from atpgraph.linkpred.baselines import svdm
from atpgraph.linkpred.registry import Embedding, choose
from tests.linkpred.helpers import all_scores, formula


def test_levels_follow_a_chain() -> None:
    chain = DiGraph.from_codes([0, 1, 2, 3], [1, 2, 3, 0], 4)  # one edge of the ring has to go
    scores = all_scores(formula("levels").fit(chain), 4)
    assert scores == pytest.approx(-scores.T)
    assert sorted(np.unique(np.abs(scores)).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("kernel", ["log", "harmonic", "linear", "constant"])
def test_plain_rows_are_atp_for_links(graph: DiGraph, kernel: str) -> None:
    (row,) = choose(f"atp-{kernel}")
    method = row.make(4, 7).fit(graph)
    wanted = ATP(4, purpose="paper", zero_weight="auto", kernel=kernel, random_state=7).fit(graph)
    assert method.name == f"ATP-{kernel}"
    assert isinstance(method, Embedding)
    assert np.array_equal(method.source_, wanted.source_)
    assert np.array_equal(method.target_, wanted.target_)


@pytest.mark.parametrize("kernel", ["log", "harmonic"])
def test_svdm_rows_use_the_svd(graph: DiGraph, kernel: str) -> None:
    (row,) = choose(f"svdm-{kernel}")
    method = row.make(4, 7).fit(graph)
    assert isinstance(method, Embedding)
    assert method.name == f"SVDM-{kernel}"
    assert np.array_equal(method.source_, svdm(graph, 4, 7, kernel)[0])
