"""SVDM: the truncated singular value decomposition of ATP's matrix M, never written out."""

from __future__ import annotations

from typing import Self

import numpy as np

from atpgraph.closure import closure_forests, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.factorization.matrix import ImplicitMatrix
from atpgraph.graph.digraph import DiGraph
from atpgraph.hierarchy import levels
from atpgraph.linkpred.factor import Product, singular_factors
from atpgraph.linkpred.protocols.method import EmbeddingMethod, check_components
from atpgraph.util.arrays import Float64Array


class SVDM(EmbeddingMethod):
    """Source vectors U√Σ and target vectors V√Σ of M, f(difference of levels) for every path.

    Parameters
    ----------
    n_components : int
    kernel : str
        f, see :class:`~atpgraph.ATP`.
    method : str
        How cycles are broken; see :func:`atpgraph.cycles.break_cycles`.
    random_state : int

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> there, back = SVDM(4, "harmonic").fit(chain).score(np.array([0, 3]), np.array([3, 0]))
    >>> bool(there > 1.0 > 0.1 > back)
    True
    """

    def __init__(
        self,
        n_components: int = 64,
        kernel: str = "log",
        method: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.n_components = check_components(n_components)
        self.kernel = kernel
        self.method = method
        self.random_state = random_state
        self.name = f"SVDM-{kernel}"

    def fit(self, graph: DiGraph) -> Self:
        """Break cycles, compute levels and paths, and decompose M."""
        dag = break_cycles(graph, self.method, random_state=self.random_state).dag
        level = levels(dag)
        table = kernel_table(self.kernel, int(level.max(initial=1)))
        rows, columns = closure_forests(dag, level)
        down = ImplicitMatrix.of_rows(rows, level)
        up = ImplicitMatrix.of_columns(columns, level)
        self.source_, self.target_ = singular_factors(
            dag.n_nodes, self.n_components, _product(down, table), _product(up, table),
            np.random.default_rng(self.random_state),
        )  # fmt: skip
        return self


def _product(matrix: ImplicitMatrix, table: Float64Array) -> Product:
    """Return the product with a vector or with the columns of an array."""

    def times(x: Float64Array) -> Float64Array:
        columns = np.ascontiguousarray(x.reshape(len(x), -1).T, dtype=np.float64)
        product = np.stack([matrix.times(table, column) for column in columns], axis=1)
        return product.reshape(x.shape)

    return times
