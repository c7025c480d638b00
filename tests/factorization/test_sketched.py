from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from atpgraph.closure import closure_forests, kernel_table, reach_sketch
from atpgraph.closure.sketch import turned
from atpgraph.factorization import factorize
from atpgraph.factorization.matrix import ImplicitMatrix
from atpgraph.factorization.sketched import SketchedMatrix
from atpgraph.hierarchy import levels
from tests.dags import closure_matrix, random_dag

DAG = random_dag(300, 900, 1)
LEVELS = levels(DAG)
TABLE = kernel_table("log", int(LEVELS.max()))


def sketches(size: int):
    return (
        reach_sketch(DAG, LEVELS, size=size),
        reach_sketch(DAG.reverse(), turned(LEVELS), size=size),
    )


@pytest.mark.parametrize("zero_weight", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("k", [3, 20])
def test_sketches_of_everything_give_what_the_forest_gives(k: int, zero_weight: float) -> None:
    options = {"n_components": k, "zero_weight": zero_weight, "random_state": 0, "max_iter": 4}
    exact = factorize(*closure_forests(DAG), LEVELS, TABLE, dtype=np.float64, **options)
    found = factorize(*sketches(300), LEVELS, TABLE, dtype=np.float64, **options)
    np.testing.assert_allclose(found.source, exact.source, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.target, exact.target, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.objective, exact.objective, rtol=1e-9)


def test_a_row_is_the_weighted_least_squares_of_its_sample() -> None:
    k, size, zero_weight, penalty = 16, 8, 0.02, 0.1
    sketch = sketches(size)[0]
    matrix = SketchedMatrix.of_rows(sketch, LEVELS)
    rng = np.random.default_rng(0)
    T = rng.random((300, k))
    S = np.zeros((300, k))
    shared = zero_weight * T.T @ T
    values = np.ascontiguousarray(TABLE[:, None])
    matrix.update((0, 300), values, T, S, k, shared, 1 - zero_weight, penalty, 5000, 1e-15)
    for u in (int(np.argmax(sketch.sizes)), int(np.argmin(np.where(sketch.counts > 3, 0, 1)))):
        some = sketch.members[u, : sketch.counts[u]]
        weight = sketch.sizes[u] / sketch.counts[u]
        gram = (1 - zero_weight) * weight * T[some].T @ T[some] + shared
        gram += penalty * sketch.sizes[u] * np.eye(k)
        right = weight * TABLE[LEVELS[some] - LEVELS[u]] @ T[some]
        root = np.linalg.cholesky(gram).T
        best, _ = scipy.optimize.nnls(root, np.linalg.solve(root.T, right))
        np.testing.assert_allclose(S[u], best, atol=1e-6)
    assert (S[sketch.counts == 0] == 0).all()


def test_differences_are_estimated() -> None:
    true = ImplicitMatrix.of_rows(closure_forests(DAG)[0], LEVELS).differences()
    np.testing.assert_allclose(
        SketchedMatrix.of_rows(sketches(300)[0], LEVELS).differences(), true, rtol=1e-12
    )
    guess = SketchedMatrix.of_columns(sketches(32)[1], LEVELS).differences()
    assert abs(guess.sum() / true.sum() - 1) < 0.3


def test_threads_do_not_matter() -> None:
    one, two = (
        factorize(*sketches(8), LEVELS, TABLE, random_state=0, max_iter=2, n_jobs=jobs)
        for jobs in (1, 3)
    )
    assert one.source.tobytes() == two.source.tobytes()
    assert one.target.tobytes() == two.target.tobytes()


def test_a_sample_is_nearly_as_good_as_all() -> None:
    reach = closure_matrix(DAG)
    delta = LEVELS[None, :] - LEVELS[:, None]
    M = np.where(reach, TABLE[np.where(reach, delta, 0)], 0)

    def loss(found) -> float:
        return float(((found.source @ found.target.T - M)[reach] ** 2).mean())

    options = {"n_components": 4, "random_state": 0, "max_iter": 6, "regularization": 0.05}
    exact = loss(factorize(*closure_forests(DAG), LEVELS, TABLE, **options))
    sampled = loss(factorize(*sketches(24), LEVELS, TABLE, **options))
    assert sampled < 1.6 * exact
    assert sampled < 0.2 * float((M[reach] ** 2).mean())
