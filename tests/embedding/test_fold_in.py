"""New nodes."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph import ATP
from atpgraph.closure import closure_forests, kernel_table
from atpgraph.factorization import NnlsRows


def test_fold_in_is_the_row_a_refit_would_solve(links: ATP) -> None:
    fitted = links
    dag = fitted.dag_
    out = [int(np.argmax(dag.out_degree))]
    source, target = fitted.fold_in(out_edges=out)
    assert np.all(target == 0)
    rows, _ = closure_forests(dag)
    reached = np.union1d(rows.descendants(out), out)
    table = np.append(kernel_table("log", int(fitted.levels_.max())), 0.0)
    values = table[np.maximum(fitted.levels_[reached] - 1, 1)]
    how = fitted.settings_
    rows = NnlsRows(fitted.source_, fitted.target_, how.zero_weight, how.regularization)
    assert source == pytest.approx(rows.source(reached, values), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("model", ["fitted", "links"])
def test_fold_in_keeps_direction(model: str, request) -> None:
    """A new node between the bottom and the top leads up and is led to from below."""
    fitted = request.getfixturevalue(model)
    rank = fitted.levels_
    low, high = np.flatnonzero(rank <= 2)[:5].tolist(), np.flatnonzero(rank >= rank.max() - 1)
    source, target = fitted.fold_in(out_edges=high.tolist(), in_edges=low)
    assert np.mean(fitted.target_[high] @ source) > np.mean(fitted.target_[low] @ source)
    assert np.mean(fitted.source_[low] @ target) > np.mean(fitted.source_[high] @ target)
    source, target = fitted.fold_in()
    assert np.max(fitted.target_ @ source) <= 0
    assert np.max(fitted.source_ @ target) <= 0


def test_fold_in_does_not_take_ancestors_for_descendants() -> None:
    chain = ATP(n_components=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
    source, _ = chain.fold_in(out_edges=["b"], in_edges=["c"])  # would close b → c → new → b
    beyond, back = (float(source @ chain.target_[code]) for code in chain.graph_.codes(["d", "b"]))
    assert beyond > 0 > back
