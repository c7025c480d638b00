"""The objective and its rows, written out."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from atpgraph.closure import closure_forest, closure_forests, kernel_table
from atpgraph.factorization import Factorization, Options, factorize
from atpgraph.graph import DiGraph
from atpgraph.hierarchy import levels


def fit(dag: DiGraph, kernel: str = "log", **options) -> Factorization:
    rank = levels(dag)
    table = kernel_table(kernel, int(rank.max(initial=0)))
    given = {
        "n_components": 64,
        "regularization": 0.01,
        "max_iter": 10,
        "random_state": 0,
    } | options
    weight = given.pop("zero_weight", 0.0)
    return factorize(closure_forests(dag), rank, table, Options(**given), zero_weight=weight)


def written_out(dag: DiGraph, kernel: str = "log") -> np.ndarray:
    return closure_forest(dag).to_sparse(levels(dag), kernel).toarray()


def objective(M: np.ndarray, S: np.ndarray, T: np.ndarray, w0: float, penalty: float) -> float:
    reach = M > 0
    product = S.astype(float) @ T.astype(float).T
    value = np.sum((M - product)[reach] ** 2) + w0 * np.sum(product[~reach] ** 2)
    value += penalty * np.sum(reach.sum(axis=1) * np.sum(S.astype(float) ** 2, axis=1))
    return value + penalty * np.sum(reach.sum(axis=0) * np.sum(T.astype(float) ** 2, axis=1))


def nnls_row(
    row: np.ndarray, reach: np.ndarray, T: np.ndarray, w0: float, penalty: float
) -> np.ndarray:
    """One row by scipy, the weighted and penalised problem written out as plain NNLS."""
    weight = np.sqrt(np.where(reach, 1.0, w0))
    k = T.shape[1]
    A = np.vstack([weight[:, None] * T, np.sqrt(penalty * reach.sum()) * np.eye(k)])
    return scipy.optimize.nnls(A, np.concatenate([weight * row, np.zeros(k)]))[0]
