"""Estimates and budgets of building."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph.closure import build, closure_forest, closure_forests, estimate_closure
from atpgraph.errors import BudgetError
from tests.dags import chain, random_dag


def test_estimate_is_near_the_truth() -> None:
    dag = random_dag(6000, 18_000, 0)
    forest = closure_forest(dag)
    estimate = estimate_closure(dag)
    assert estimate.pairs == pytest.approx(forest.n_pairs, rel=0.2)
    assert estimate.extras == pytest.approx(forest.n_extras, rel=0.3)
    assert estimate.bytes_held == pytest.approx(forest.nbytes, rel=0.3)


def test_refused_before_the_work_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = random_dag(6000, 18_000, 0)
    held = closure_forest(dag).nbytes
    monkeypatch.setattr(build, "_build", lambda *_: pytest.fail("the work started"))
    with pytest.raises(BudgetError, match=r"6,000 nodes.*reachable pairs.*extras.*budget is"):
        closure_forest(dag, memory=held)
    with pytest.raises(BudgetError, match="raise the memory budget"):
        closure_forests(dag, memory=f"{held}B")


def test_two_forests_share_one_budget() -> None:
    dag = random_dag(3000, 9000, 0)
    peaks = [estimate_closure(graph).bytes_peak for graph in (dag, dag.reverse())]
    with pytest.raises(BudgetError):
        closure_forests(dag, memory=max(peaks) + 1000)
    assert closure_forests(dag, memory=sum(peaks))[0].n_nodes == 3000


def test_estimate_of_a_chain_is_exact() -> None:
    estimate = estimate_closure(chain(5000))
    assert estimate.extras == 0
    assert estimate.pairs == pytest.approx(5000 * 4999 / 2, rel=0.1)
    assert np.isfinite(estimate.seconds)
