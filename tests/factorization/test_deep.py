"""Deep graphs: sums of exponentials are the sums by level, and cost no more with depth."""

from __future__ import annotations

import numpy as np
import pytest

from atpgraph import ATP
from atpgraph.closure import closure_forests, kernel_table
from atpgraph.factorization import deep, factorize, svdm
from atpgraph.factorization.deep import Exponentials
from atpgraph.factorization.matrix import ImplicitMatrix
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels

KERNELS = ("log", "harmonic", "linear", "constant")


def deep_dag(n: int, seed: int = 0) -> DiGraph:
    """A path of n nodes with shortcuts and side branches."""
    rng = np.random.default_rng(seed)
    u = np.concatenate([np.arange(n - 1), rng.integers(0, n // 2, n // 4)])
    v = np.concatenate([np.arange(1, n), rng.integers(n // 2, n + n // 4, n // 4)])
    return DiGraph.from_codes(u, v, n + n // 4)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("n_levels", [2, 1100, 30_000])
def test_kernels_are_sums_of_exponentials(kernel, power, n_levels) -> None:
    table = kernel_table(kernel, n_levels) ** power
    found = Exponentials.of(table)
    assert found is not None
    assert len(found.rates) < 40
    delta = np.arange(1, n_levels)
    np.testing.assert_allclose(found(delta.astype(float)), table[1:], rtol=2e-7)


def test_a_function_that_jumps_has_no_such_form() -> None:
    assert Exponentials.of(np.where(np.arange(3000) % 2, 1.0, 2.0)) is None


@pytest.mark.parametrize("kernel", KERNELS)
def test_products_are_those_of_the_matrix(monkeypatch, kernel) -> None:
    dag = deep_dag(300)
    level = levels(dag)
    table = kernel_table(kernel, int(level.max()))
    form = Exponentials.of(table)
    monkeypatch.setattr(deep, "SHALLOW", 0)
    assert form is not None
    rows, columns = closure_forests(dag, level)
    dense = rows.to_sparse(level, kernel).toarray()
    x = np.random.default_rng(0).standard_normal(dag.n_nodes)
    down, up = ImplicitMatrix.of_rows(rows, level), ImplicitMatrix.of_columns(columns, level)
    assert down.is_deep
    scale = np.abs(dense).sum(axis=1).max()
    np.testing.assert_allclose(down.times(table, x), dense @ x, atol=2e-7 * scale)
    np.testing.assert_allclose(up.times(table, x), dense.T @ x, atol=2e-7 * scale)


@pytest.mark.parametrize("zero_weight", [0.0, 0.1])
def test_factors_are_those_of_the_sums_by_level(monkeypatch, zero_weight) -> None:
    dag = deep_dag(400)
    level = levels(dag)
    forests = closure_forests(dag, level)
    table = kernel_table("log", int(level.max()))

    def fit(shallow: int):
        monkeypatch.setattr(deep, "SHALLOW", shallow)
        return factorize(
            *forests, level, table, n_components=5, max_iter=2, random_state=0, dtype=np.float64,
            zero_weight=zero_weight, n_jobs=2,
        )  # fmt: skip

    by_level, by_terms = fit(10**9), fit(0)
    np.testing.assert_allclose(by_terms.objective, by_level.objective, rtol=1e-5)
    np.testing.assert_allclose(by_terms.source, by_level.source, rtol=1e-3, atol=1e-5)
    assert not np.array_equal(by_terms.source, by_level.source)  # the other way was taken


def test_singular_vectors_of_a_deep_graph(monkeypatch) -> None:
    dag = deep_dag(300)
    level = levels(dag)
    forests = closure_forests(dag, level)
    table = kernel_table("log", int(level.max()))
    found = []
    for shallow in (0, 10**9):
        monkeypatch.setattr(deep, "SHALLOW", shallow)
        fit = svdm(*forests, level, table, n_components=3, random_state=0)
        found.append(fit.source @ fit.target.T)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-4)


def test_a_long_path_is_quick() -> None:
    n = 60_000
    path = DiGraph.from_codes(np.arange(n - 1), np.arange(1, n), n)
    model = ATP(4, purpose="links", max_iter=1).fit(path)
    assert model.levels_.max() == n
    assert model.timings_["factorization"] < 30  # by level it takes minutes
