"""NRP: personalised PageRank, factored and then reweighted to fit the degrees."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.factor import singular_factors
from atpgraph.linkpred.protocols.method import EmbeddingMethod, check_components
from atpgraph.util.arrays import Float64Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import RandomState, generator


class NRP(EmbeddingMethod):
    """Node-reweighted PageRank: s_u·t_v ≈ f_u · out_u · PPR(u, v) · b_v.

    First, PPR = Σ_{i≥1} α (1 − α)ⁱ Pⁱ is factored: with the truncated SVD A ≈ UΣVᵀ and
    X₁ = D⁻¹U√Σ, Y = V√Σ, the sum is X Yᵀ where X = α(1 − α) Σ_i ((1 − α)P)ⁱ X₁. Then weights
    f, b ≥ 1/n are found by coordinate descent that make the predicted edges add up to the degrees.
    With X_u multiplied by out_u first, and f = b = 1 at the start:

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
    The update of one weight is the exact minimiser; it costs O(k) with sums over all nodes kept
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
        X *= out[:, None]  # as in the authors' code: the penalty weighs changes to this start
        forward, backward = np.ones(n), np.ones(n)
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


def _reweight(
    X: Float64Array,
    Y: Float64Array,
    f: Float64Array,
    b: Float64Array,
    wanted_x: Float64Array,
    wanted_y: Float64Array,
    penalty: float,
    order: Int64Array,
) -> None:
    """One round over the weights `b` of Y, in place; with X and Y exchanged, over those of X.

    With x_u = f_u X_u, the best b_v solves one linear equation whose coefficients are sums over
    u ≠ v. Only Σ b_v Y_v and Σ b_u (x_u·Y_u) x_u change during the round.
    """
    x = f[:, None] * X
    itself = np.einsum("ik,ik->i", x, Y)  # x_v·Y_v: the share of u = v in the sums
    incoming = Y @ x.sum(axis=0) - itself
    toward = Y @ (x.T @ x)
    squares = np.einsum("ik,ik->i", toward, Y)
    constant = Y @ (wanted_x @ x) - wanted_x * itself + incoming * wanted_y
    scale = squares - itself**2 + incoming**2 + penalty
    reach = b @ Y
    own = (b * itself) @ x
    _descend(x, Y, b, itself, toward, squares, constant, scale, reach, own, order)


@kernel
def _descend(
    x: Float64Array,
    Y: Float64Array,
    b: Float64Array,
    itself: Float64Array,
    toward: Float64Array,
    squares: Float64Array,
    constant: Float64Array,
    scale: Float64Array,
    reach: Float64Array,
    own: Float64Array,
    order: Int64Array,
) -> None:
    k = len(reach)
    floor = 1.0 / len(b)
    for v in order:
        cross, at_home, doubles = 0.0, 0.0, 0.0
        for i in range(k):
            cross += toward[v, i] * reach[i]
            at_home += x[v, i] * reach[i]
            doubles += own[i] * Y[v, i]
        # What the other weights predict already, v itself and the pairs (u, u) left out.
        others = cross - b[v] * squares[v] - itself[v] * (at_home - b[v] * itself[v])
        best = (constant[v] - others + doubles - b[v] * itself[v] ** 2) / scale[v]
        change = max(best, floor) - b[v]
        b[v] += change
        for i in range(k):
            reach[i] += change * Y[v, i]
            own[i] += change * itself[v] * x[v, i]


def objective(
    X: Float64Array,
    Y: Float64Array,
    f: Float64Array,
    b: Float64Array,
    out: Float64Array,
    inn: Float64Array,
    penalty: float,
) -> float:
    """The objective of the reweighting, written out (dense: for small graphs)."""
    S = (f[:, None] * X) @ (b[:, None] * Y).T
    np.fill_diagonal(S, 0.0)
    rows, columns = S.sum(axis=1) - out, S.sum(axis=0) - inn
    return float(rows @ rows + columns @ columns + penalty * (f @ f + b @ b))
