"""Rows that factor a matrix: the adjacency, powers of it, PageRank, and ATP's M."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigs

from atpgraph.closure import closure_forests, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.errors import AtpError
from atpgraph.factorization.nnls import ImplicitMatrix
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import cyclic_edges
from atpgraph.hierarchy import levels
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import Local, PageRank
from atpgraph.linkpred.factor import operator, singular_factors, stored
from atpgraph.linkpred.protocols.judging import EmbeddingMethod
from atpgraph.util.arrays import AnyArray, Float64Array, Int64Array
from atpgraph.util.checks import Registry
from atpgraph.util.jit import kernel
from atpgraph.util.random import RandomState, generator

# Lanczos iterations need products as exact as those with a stored matrix, whatever the tolerance of
# the singular values: with series cut at 1e-7 they returned one singular vector several times.
_EXACT = 1e-14
_MOST_TERMS = 1000  # of the series of HOPE

PROXIMITIES = Registry(
    "proximity",
    {"katz": "Katz", "common-neighbours": "CN", "adamic-adar": "AA", "rooted-pagerank": "RPR"},
)


@dataclass(eq=False)
class Factored(EmbeddingMethod):
    """Source vectors U√Σ and target vectors V√Σ of a matrix made from the graph."""

    n_components: int = 64
    random_state: RandomState = field(default=0, kw_only=True)
    tolerance: ClassVar[float] = 1e-4  # relative accuracy of singular values

    def fit(self, graph: DiGraph) -> Self:
        """Factor the matrix of the graph."""
        rng = generator(self.random_state)
        found = singular_factors(self.matrix(graph, rng), self.n_components, rng, self.tolerance)
        self.source_, self.target_ = found
        return self

    @abstractmethod
    def matrix(self, graph: DiGraph, rng: np.random.Generator) -> Any:
        """Return the operator to factor."""


@dataclass(eq=False)
class AdjacencySVD(Factored):
    """The best rank-k approximation of the adjacency matrix."""

    name = "SVD of A"

    def matrix(self, graph: DiGraph, rng: np.random.Generator) -> Any:
        return stored(graph.to_scipy())


@dataclass(eq=False)
class HOPE(Factored):
    """High-order proximity preserved embedding: the truncated SVD of S = M_g⁻¹ M_l.

    ===================  ============  =============
    proximity            M_g           M_l
    ===================  ============  =============
    Katz                 I − βA        βA
    common neighbors     I             A²
    Adamic-Adar          I             A D A
    rooted PageRank      I − αP        (1 − α) I
    ===================  ============  =============

    D_ii = 1 / (out-degree + in-degree of i); P = (out-degree)⁻¹ A, so that row u of S is the
    distribution of a walk from u that continues with probability α and ends where a node has no
    out-edge. A product with M_g⁻¹ sums the series Σ (βA)ˡ x until its terms vanish. (The paper's
    generalized SVD of the pair M_l, M_g gives the same vectors.) The default of β, as in the
    authors' code, is 0.5 / spectral radius of A, at most 0.5; ``beta_`` is the decay used.

    References
    ----------
    Ou, Cui, Pei, Zhang, Zhu: Asymmetric transitivity preserving graph embedding. KDD 2016.

    Examples
    --------
    >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> hope = HOPE(n_components=4, proximity="katz", beta=0.5).fit(graph)
    >>> a, b = graph.codes(["a", "b"])
    >>> round(float(hope.score(np.array([a]), np.array([b]))[0]), 4)  # 1/2 + 1/16 + 1/128 + …
    0.5714
    """

    shares = ("alpha",)

    proximity: str = "katz"
    beta: float | None = field(default=None, kw_only=True)  # decay of Katz
    alpha: float = field(
        default=0.5, kw_only=True
    )  # probability that the walk of PageRank continues

    def __post_init__(self) -> None:
        super().__post_init__()
        self.name = f"HOPE-{PROXIMITIES[self.proximity]}"

    def matrix(self, graph: DiGraph, rng: np.random.Generator) -> Any:
        A = graph.to_scipy()
        if self.proximity == "common-neighbours":
            return stored(A) @ stored(A)
        if self.proximity == "adamic-adar":
            degree = (graph.out_degree + graph.in_degree).astype(np.float64)
            return stored(A) @ stored(sp.diags_array(_reciprocal(degree))) @ stored(A)
        if self.proximity == "katz":
            beta = self.beta
            if beta is None:
                beta = 0.5 / max(spectral_radius(graph, rng), 1.0)
            self.beta_ = beta
            return self._inverse(beta * A) @ stored(beta * A)
        out = np.asarray(A.sum(axis=1)).reshape(-1)
        return (1.0 - self.alpha) * self._inverse(
            sp.csr_array(self.alpha * (sp.diags_array(_reciprocal(out)) @ A))
        )

    def _inverse(self, matrix: Any) -> Any:
        """Return (I − matrix)⁻¹."""
        back = sp.csr_array(matrix.T)
        series = self._series
        return operator(matrix.shape[0], lambda x: series(matrix, x), lambda x: series(back, x))

    def _series(self, matrix: Any, x: Float64Array) -> Float64Array:
        """Return x + matrix x + matrix² x + …"""
        total, term = x.copy(), x
        with np.errstate(over="ignore", invalid="ignore"):  # seen below as a size not finite
            for _ in range(_MOST_TERMS):
                term = matrix @ term
                total += term
                size = np.abs(term).max()
                if not np.isfinite(size):
                    break
                if size <= _EXACT * np.abs(total).max():
                    return total
        raise AtpError(
            f"{self.name}: the series of paths does not converge; choose a smaller beta."
        )


def spectral_radius(graph: DiGraph, rng: np.random.Generator) -> float:
    """Return the largest absolute eigenvalue of the adjacency matrix.

    Only edges inside strongly connected components matter: an acyclic part has eigenvalue 0 and
    would only slow the eigenvalue solver down.
    """
    inner = cyclic_edges(graph)
    if not inner.any():
        return 0.0
    nodes = np.unique(graph.sources[inner])
    core = sp.csr_array(graph.keep_edges(inner).to_scipy()[nodes][:, nodes])
    if len(nodes) <= 64:
        return float(np.abs(np.linalg.eigvals(core.toarray())).max())
    # A + I has the same order of eigenvalues by real part and one dominant one, also for a core
    # that is a single cycle, where A alone has many eigenvalues of equal size.
    shifted, start = core + sp.eye_array(len(nodes), format="csr"), rng.random(len(nodes)) + 0.5
    try:
        value = eigs(shifted, k=1, which="LR", v0=start, return_eigenvectors=False)
        return float(np.real(value[0]) - 1.0)
    except ArpackNoConvergence:
        # An upper bound is always safe: no eigenvalue exceeds the largest row sum.
        return float(np.asarray(core.sum(axis=1)).max())


@dataclass(eq=False)
class STRAP(Factored):
    """Sparse transpose proximity: s_u·t_v ≈ log((π(u, v) + πᵀ(v, u)) · 2 / δ) where it is positive.

    π(u, v) is the personalized PageRank of v from u, πᵀ(v, u) that of u from v on the reversed
    graph. Both are found by local push to within δ / 2, smaller entries are zero, and the sparse
    matrix of logarithms is factored by a truncated SVD.

    References
    ----------
    Yin, Wei: Scalable graph embeddings via sparse transpose proximities. KDD 2019.
    """

    name = "STRAP"
    shares = ("alpha", "delta")
    tolerance: ClassVar[float] = 1e-3

    alpha: float = field(default=0.5, kw_only=True)  # chance that a walk stops
    delta: float = field(default=1e-5, kw_only=True)  # smallest proximity that counts

    def matrix(self, graph: DiGraph, rng: np.random.Generator) -> Any:
        found = sp.csr_array(self._pagerank(graph, "out") + self._pagerank(graph, "in").T)
        found.data = np.log(np.maximum(found.data * (2.0 / self.delta), 1.0))
        return stored(found)

    def _pagerank(self, graph: DiGraph, direction: str) -> sp.csr_array:
        least = self.delta / 2
        column = PageRank(direction, restart=self.alpha, tolerance=least)

        def visit(_: int, room: Room) -> tuple[AnyArray, AnyArray]:
            values = room.table[room.near, 0]
            return room.near[values >= least].copy(), values[values >= least]

        n = graph.n_nodes
        rows = Local([column]).fit(graph).scan(np.arange(n), visit)
        ends = np.concatenate([[0], np.cumsum([len(nodes) for nodes, _ in rows])])
        nodes, values = (np.concatenate(side) for side in zip(*rows, strict=True))
        return sp.csr_array((values.astype(np.float64), nodes, ends), shape=(n, n))


@dataclass(eq=False)
class SVDM(Factored):
    """The SVD of ATP's M: f(difference of levels) for every pair that a path joins."""

    tolerance: ClassVar[float] = 1e-6

    kernel: str = "log"  # f, see :class:`~atpgraph.ATP`

    def __post_init__(self) -> None:
        super().__post_init__()
        self.name = f"SVDM-{self.kernel}"

    def matrix(self, graph: DiGraph, rng: np.random.Generator) -> Any:
        dag = break_cycles(graph, random_state=self.random_state).dag
        level = levels(dag)
        table = kernel_table(self.kernel, int(level.max(initial=1)))
        down, up = ImplicitMatrix.both(closure_forests(dag, level), level)

        def times(side: ImplicitMatrix, x: Float64Array) -> Float64Array:
            parts = np.ascontiguousarray(x.reshape(len(x), -1).T, dtype=np.float64)
            product = np.stack([side.times(table, part) for part in parts], axis=1)
            return product.reshape(x.shape)

        return operator(dag.n_nodes, lambda x: times(down, x), lambda x: times(up, x))


@dataclass(eq=False)
class NRP(EmbeddingMethod):
    """Node-reweighted PageRank: s_u·t_v ≈ f_u · out_u · PPR(u, v) · b_v.

    First, PPR = Σ_{i≥1} α (1 − α)ⁱ Pⁱ is factored: with the truncated SVD A ≈ UΣVᵀ and
    X₁ = D⁻¹U√Σ, Y = V√Σ, the sum is X Yᵀ where X = α(1 − α) Σ_i ((1 − α)P)ⁱ X₁. Then weights
    f, b ≥ 1/n are found by coordinate descent that make the predicted edges add up to the degrees.
    With X_u multiplied by out_u first, and f = b = 1 at the start:

    min Σ_u (Σ_{v≠u} f_u X_u·Y_v b_v − out_u)² + Σ_v (Σ_{u≠v} f_u X_u·Y_v b_v − in_v)²
    + λ Σ_u (f_u² + b_u²).

    The update of one weight is the exact minimizer; it costs O(k) with sums over all nodes kept
    up to date. Nodes without out-edges end the walk.

    References
    ----------
    Yang, Shi, Xiao, Yang, Bhowmick: Homogeneous network embedding for massive graphs via
    reweighted personalized PageRank. VLDB 2020.
    """

    name = "NRP"
    shares = ("alpha",)

    n_components: int = 64
    alpha: float = field(default=0.15, kw_only=True)  # chance that a walk stops
    steps: int = field(default=20, kw_only=True)  # terms of the PageRank sum, the paper's ℓ₁
    epochs: int = field(default=10, kw_only=True)  # rounds of reweighting, ℓ₂
    regularization: float = field(default=10.0, kw_only=True)  # λ
    random_state: RandomState = field(default=0, kw_only=True)

    def fit(self, graph: DiGraph) -> Self:
        """Factor personalized PageRank, then reweight."""
        rng = generator(self.random_state)
        n, A = graph.n_nodes, graph.to_scipy()
        U, V = singular_factors(stored(A), self.n_components, rng, Factored.tolerance)
        inverse = _reciprocal(np.asarray(A.sum(axis=1)).reshape(-1))
        go_on = sp.csr_array((1.0 - self.alpha) * (sp.diags_array(inverse) @ A))
        first = inverse[:, None] * U
        X = first
        for _ in range(1, self.steps):
            X = go_on @ X + first
        X = np.ascontiguousarray(self.alpha * (1.0 - self.alpha) * X)
        Y = np.ascontiguousarray(V)
        out, inn = graph.out_degree.astype(np.float64), graph.in_degree.astype(np.float64)
        X *= out[:, None]  # as in the authors' code: the penalty weighs changes to this start
        forward, backward = np.ones(n), np.ones(n)
        for _ in range(self.epochs):
            reweight(X, Y, forward, backward, out, inn, self.regularization, rng.permutation(n))
            reweight(Y, X, backward, forward, inn, out, self.regularization, rng.permutation(n))
        self.source_, self.target_ = X * forward[:, None], Y * backward[:, None]
        return self


def reweight(
    X: Float64Array,
    Y: Float64Array,
    f: Float64Array,
    b: Float64Array,
    wanted_x: Float64Array,
    wanted_y: Float64Array,
    penalty: float,
    order: Int64Array,
) -> None:
    """Improve the weights `b` of Y once, in place; with X and Y exchanged, those of X.

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


def _reciprocal(x: Float64Array) -> Float64Array:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)
