"""NRP: personalised PageRank, factored and then reweighted to fit the degrees."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from atpgraph._jit import kernel
from atpgraph._random import RandomState, generator
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.method import EmbeddingMethod, check_components
from atpgraph.linkpred.rivals._factor import singular_factors

Floats = npt.NDArray[np.float64]


class NRP(EmbeddingMethod):
    """Node-reweighted PageRank: s_u·t_v ≈ f_u · PPR(u, v) · b_v.

    First, PPR = Σ_{i≥1} α (1 − α)ⁱ Pⁱ is factored: with the truncated SVD A ≈ UΣVᵀ and
    X₁ = D⁻¹U√Σ, Y = V√Σ, the sum is X Yᵀ where X = α(1 − α) Σ_i ((1 − α)P)ⁱ X₁. Then weights
    f, b ≥ 1/n are found by coordinate descent that make the predicted edges add up to the degrees:

    min Σ_u (Σ_{v≠u} f_u X_u·Y_v b_v − out_u)² + Σ_v (Σ_{u≠v} f_u X_u·Y_v b_v − in_v)²
    + λ Σ_u (f_u² + b_u²).

    Parameters
    ----------
    n_components : int
        Dimension of the source and of the target vectors.
    alpha : float
        Chance that a walk stops, α.
    steps : int
        Terms of the PageRank sum, ℓ₁.
    epochs : int
        Rounds of reweighting, ℓ₂.
    regularization : float
        λ.
    tolerance : float
        Relative accuracy of the singular values.
    random_state : int, Generator or None
        Start vector of the SVD and order of the nodes in each round.

    Attributes
    ----------
    source_, target_ : arrays of shape (nodes, n_components)
    forward_, backward_ : arrays
        The weights f and b.

    Notes
    -----
    The update of one weight is the exact minimiser; it costs O(k²) with sums over all nodes kept
    up to date. Nodes without out-edges end the walk.

    References
    ----------
    Yang, Shi, Xiao, Yang, Bhowmick: Homogeneous network embedding for massive graphs via
    reweighted personalized PageRank. VLDB 2020.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 0, 1, 2], [1, 2, 2, 3], 4)
    >>> nrp = NRP(n_components=4).fit(graph)
    >>> bool(nrp.score(np.array([0]), np.array([2])) > nrp.score(np.array([2]), np.array([0])))
    True
    """

    name = "NRP"

    def __init__(
        self,
        n_components: int = 64,
        *,
        alpha: float = 0.15,
        steps: int = 20,
        epochs: int = 10,
        regularization: float = 10.0,
        tolerance: float = 1e-4,
        random_state: RandomState = 0,
    ) -> None:
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha}; it must be between 0 and 1.")
        self.n_components = check_components(n_components)
        self.alpha = alpha
        self.steps = steps
        self.epochs = epochs
        self.regularization = regularization
        self.tolerance = tolerance
        self.random_state = random_state

    def fit(self, graph: DiGraph) -> Self:
        """Factor personalised PageRank, then reweight."""
        rng = generator(self.random_state)
        n = graph.n_nodes
        X, Y = self._pagerank_factors(graph, rng)
        out = graph.out_degree.astype(np.float64)
        inn = graph.in_degree.astype(np.float64)
        forward, backward = np.maximum(out, 1.0 / max(n, 1)), np.ones(n)
        for _ in range(self.epochs):
            _reweight(X, Y, forward, backward, out, inn, self.regularization, rng.permutation(n))
            _reweight(Y, X, backward, forward, inn, out, self.regularization, rng.permutation(n))
        self.forward_, self.backward_ = forward, backward
        self.source_ = X * forward[:, None]
        self.target_ = Y * backward[:, None]
        return self

    def _pagerank_factors(self, graph: DiGraph, rng: np.random.Generator) -> tuple[Any, Any]:
        A = graph.to_scipy()
        At = sp.csr_array(A.T)
        U, V = singular_factors(
            graph.n_nodes, self.n_components, lambda x: A @ x, lambda x: At @ x, rng, self.tolerance
        )
        out = np.asarray(A.sum(axis=1)).reshape(-1)
        inverse = np.divide(1.0, out, out=np.zeros_like(out), where=out > 0)
        go_on = sp.csr_array((1.0 - self.alpha) * (sp.diags_array(inverse) @ A))
        first = inverse[:, None] * U
        X = first
        for _ in range(1, self.steps):
            X = go_on @ X + first
        scaled = self.alpha * (1.0 - self.alpha) * X
        return np.ascontiguousarray(scaled), np.ascontiguousarray(V)


@kernel
def _reweight(
    X: Floats,
    Y: Floats,
    f: Floats,
    b: Floats,
    wanted_x: Floats,
    wanted_y: Floats,
    penalty: float,
    order: npt.NDArray[np.int64],
) -> None:
    """One round over the weights `b` of Y, in place; with X and Y exchanged, over those of X."""
    n, k = X.shape
    gram = np.zeros((k, k))  # Σ_u f_u² X_u X_uᵀ
    total = np.zeros(k)  # Σ_u f_u X_u
    demand = np.zeros(k)  # Σ_u wanted_u f_u X_u
    reach = np.zeros(k)  # Σ_v b_v Y_v
    own = np.zeros(k)  # Σ_u f_u² b_u (X_u·Y_u) X_u
    for u in range(n):
        self_dot = 0.0
        for i in range(k):
            self_dot += X[u, i] * Y[u, i]
        for i in range(k):
            x = f[u] * X[u, i]
            total[i] += x
            demand[i] += wanted_x[u] * x
            reach[i] += b[u] * Y[u, i]
            own[i] += f[u] * b[u] * self_dot * x
            for j in range(k):
                gram[i, j] += x * f[u] * X[u, j]
    for v in order:
        y = Y[v]
        dot, to_reach, square, cross = 0.0, 0.0, 0.0, 0.0
        sum_all, sum_demand, sum_own = 0.0, 0.0, 0.0
        for i in range(k):
            dot += X[v, i] * y[i]
            to_reach += X[v, i] * reach[i]
            sum_all += total[i] * y[i]
            sum_demand += demand[i] * y[i]
            sum_own += own[i] * y[i]
            gram_y = 0.0
            for j in range(k):
                gram_y += gram[i, j] * y[j]
            square += y[i] * gram_y
            cross += gram_y * reach[i]
        self_square = f[v] * f[v] * dot * dot
        # Sums over u ≠ v: the share of u = v is taken off each.
        incoming = sum_all - f[v] * dot
        squares = square - self_square
        others = cross - b[v] * square - f[v] * f[v] * dot * (to_reach - b[v] * dot)
        doubles = sum_own - b[v] * self_square
        pull = sum_demand - wanted_x[v] * f[v] * dot - others + doubles
        best = (pull + incoming * wanted_y[v]) / (squares + incoming * incoming + penalty)
        best = max(best, 1.0 / n)
        change = best - b[v]
        b[v] = best
        for i in range(k):
            reach[i] += change * y[i]
            own[i] += change * f[v] * f[v] * dot * X[v, i]


def objective(
    X: Floats,
    Y: Floats,
    f: Floats,
    b: Floats,
    out: Floats,
    inn: Floats,
    penalty: float,
) -> float:
    """The objective of the reweighting, written out (dense: for small graphs)."""
    S = (f[:, None] * X) @ (b[:, None] * Y).T
    np.fill_diagonal(S, 0.0)
    rows, columns = S.sum(axis=1) - out, S.sum(axis=0) - inn
    return float(rows @ rows + columns @ columns + penalty * (f @ f + b @ b))
