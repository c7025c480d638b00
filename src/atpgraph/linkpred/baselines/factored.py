"""Rows that factor a matrix: the adjacency, powers of it, PageRank, and ATP's M."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigs

from atpgraph.closure import closure_forests, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.errors import AtpError, InputError
from atpgraph.factorization.matrix import ImplicitMatrix
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import cyclic_edges
from atpgraph.hierarchy import levels
from atpgraph.linkpred.evidence import Local, PageRank
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.factor import Product, matrix_factors, singular_factors
from atpgraph.linkpred.protocols.method import EmbeddingMethod
from atpgraph.util.arrays import AnyArray, Float64Array, Int64Array
from atpgraph.util.jit import kernel
from atpgraph.util.random import RandomState, generator
from atpgraph.util.registry import Registry

# Lanczos iterations need products as exact as those with a stored matrix, whatever the tolerance of
# the singular values: with series cut at 1e-7 they returned one singular vector several times.
_EXACT = 1e-14
_MOST_TERMS = 1000  # of the series of HOPE
TOLERANCE = 1e-4  # relative accuracy of singular values

PROXIMITIES = Registry(
    "proximity",
    {"katz": "Katz", "common-neighbours": "CN", "adamic-adar": "AA", "rooted-pagerank": "RPR"},
)


@dataclass(eq=False)
class AdjacencySVD(EmbeddingMethod):
    """The best rank-k approximation of the adjacency matrix: A ≈ (U√Σ)(V√Σ)ᵀ.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1], [1, 2], 3)
    >>> svd = AdjacencySVD(n_components=3).fit(graph)
    >>> np.round(abs(svd.score(np.array([0, 1]), np.array([1, 0]))), 6).tolist()
    [1.0, 0.0]
    """

    name = "SVD of A"

    n_components: int = 64
    _: KW_ONLY
    random_state: RandomState = 0

    def fit(self, graph: DiGraph) -> Self:
        """Factor the adjacency matrix."""
        rng = generator(self.random_state)
        factors = matrix_factors(graph.to_scipy(), self.n_components, rng, TOLERANCE)
        self.source_, self.target_ = factors
        return self


@dataclass(eq=False)
class HOPE(EmbeddingMethod):
    """High-order proximity preserved embedding: the truncated SVD of S = M_g⁻¹ M_l.

    ===================  ============  =============
    proximity            M_g           M_l
    ===================  ============  =============
    Katz                 I − βA        βA
    common neighbours    I             A²
    Adamic-Adar          I             A D A
    rooted PageRank      I − αP        (1 − α) I
    ===================  ============  =============

    D_ii = 1 / (out-degree + in-degree of i); P = (out-degree)⁻¹ A, so that row u of S is the
    distribution of a walk from u that goes on with probability α and ends where a node has no
    out-edge. The singular vectors come from products with S and Sᵀ; a product with M_g⁻¹ sums the
    series Σ (βA)ˡ x until its terms vanish, which they do since β is below 1 / radius. (The paper's
    generalized SVD of the pair M_l, M_g gives the same vectors.)

    The default of β, as in the authors' code, is 0.5 / spectral radius of A; the radius of a graph
    with a cycle is at least 1, and an acyclic one (radius 0, where every β converges) is treated as
    if it were 1.

    Attributes
    ----------
    beta_ : float
        The decay used (Katz only).

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

    n_components: int = 64
    proximity: str = "katz"
    _: KW_ONLY
    beta: float | None = None  # decay of Katz
    alpha: float = 0.5  # chance that the walk of rooted PageRank goes on
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.name = f"HOPE-{PROXIMITIES[self.proximity]}"
        if not 0 <= self.alpha < 1:
            raise InputError(f"alpha is {self.alpha}; it must be in [0, 1).")

    def fit(self, graph: DiGraph) -> Self:
        """Factor the proximity of the graph."""
        rng = generator(self.random_state)
        product, transposed = self._products(graph, rng)
        self.source_, self.target_ = singular_factors(
            graph.n_nodes, self.n_components, product, transposed, rng, TOLERANCE
        )
        return self

    def _products(self, graph: DiGraph, rng: np.random.Generator) -> tuple[Product, Product]:
        A = graph.to_scipy()
        At = sp.csr_array(A.T)
        if self.proximity == "common-neighbours":
            return lambda x: A @ (A @ x), lambda x: At @ (At @ x)
        if self.proximity == "adamic-adar":
            degree = (graph.out_degree + graph.in_degree).astype(np.float64)
            D = sp.diags_array(_reciprocal(degree))
            return lambda x: A @ (D @ (A @ x)), lambda x: At @ (D @ (At @ x))
        if self.proximity == "katz":
            beta = self.beta
            if beta is None:
                beta = 0.5 / max(spectral_radius(graph, rng), 1.0)
            self.beta_ = beta
            B, Bt = beta * A, beta * At
            return lambda x: self._solve(B, B @ x), lambda x: Bt @ self._solve(Bt, x)
        out = np.asarray(A.sum(axis=1)).reshape(-1)
        P = sp.csr_array(self.alpha * (sp.diags_array(_reciprocal(out)) @ A))
        Pt, stay = sp.csr_array(P.T), 1.0 - self.alpha
        return lambda x: stay * self._solve(P, x), lambda x: stay * self._solve(Pt, x)

    def _solve(self, matrix: Any, x: Float64Array) -> Float64Array:
        """(I − matrix)⁻¹ x as the sum of the series x + matrix x + matrix² x + …"""
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
    """Largest absolute eigenvalue of the adjacency matrix.

    Only edges inside strongly connected components matter: an acyclic part has eigenvalue 0 and
    would only slow the eigenvalue solver down.
    """
    A = graph.to_scipy()
    inner = cyclic_edges(graph)
    if not inner.any():
        return 0.0
    nodes = np.unique(graph.sources[inner])
    at = np.full(graph.n_nodes, -1)
    at[nodes] = np.arange(len(nodes))
    data = A.data[inner]
    pairs = (at[graph.sources[inner]], at[graph.targets[inner]])
    core = sp.coo_array((data, pairs), shape=(len(nodes), len(nodes))).tocsr()
    if len(nodes) <= 64:
        return float(np.abs(np.linalg.eigvals(core.toarray())).max())
    # A + I has the same order of eigenvalues by real part and one dominant one, also for a core
    # that is a single cycle, where A alone has many eigenvalues of equal size.
    shifted = core + sp.eye_array(len(nodes), format="csr")
    try:
        value = eigs(
            shifted, k=1, which="LR", v0=rng.random(len(nodes)) + 0.5, return_eigenvectors=False
        )
        return float(np.real(value[0]) - 1.0)
    except ArpackNoConvergence:
        # An upper bound is always safe: no eigenvalue exceeds the largest row sum.
        return float(np.asarray(core.sum(axis=1)).max())


@dataclass(eq=False)
class STRAP(EmbeddingMethod):
    """Sparse transpose proximity: s_u·t_v ≈ log((π(u, v) + πᵀ(v, u)) · 2 / δ) where it is positive.

    π(u, v) is the personalized PageRank of v from u, πᵀ(v, u) that of u from v on the reversed
    graph. Both are found by local push to within δ / 2, smaller entries are zero, and the sparse
    matrix of logarithms is factored by a truncated SVD.

    References
    ----------
    Yin, Wei: Scalable graph embeddings via sparse transpose proximities. KDD 2019.

    Examples
    --------
    >>> graph = DiGraph.from_codes([0, 1, 2, 3], [1, 2, 3, 0], 5)
    >>> near, far = STRAP(5).fit(graph).score(np.array([0, 0]), np.array([1, 4]))
    >>> bool(near > far)
    True
    """

    name = "STRAP"

    n_components: int = 64
    _: KW_ONLY
    alpha: float = 0.5  # chance that a walk stops
    delta: float = 1e-5  # smallest proximity that counts
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < 1 or not 0 < self.delta < 1:
            raise InputError(
                f"alpha is {self.alpha} and delta {self.delta}; both must be between 0 and 1."
            )

    def fit(self, graph: DiGraph) -> Self:
        """Compute the proximities and factor their logarithms."""
        proximity = self._pagerank(graph, "out") + self._pagerank(graph, "in").T
        matrix = sp.csr_array(proximity)
        matrix.data = np.log(np.maximum(matrix.data * (2.0 / self.delta), 1.0))
        rng = generator(self.random_state)
        self.source_, self.target_ = matrix_factors(matrix, self.n_components, rng, 1e-3)
        return self

    def _pagerank(self, graph: DiGraph, direction: str) -> sp.csr_array:
        least = self.delta / 2
        column = PageRank(direction, restart=self.alpha, tolerance=least)  # type: ignore[arg-type]

        def visit(_: int, room: Room) -> tuple[AnyArray, AnyArray]:
            values = room.table[room.near, 0]
            return room.near[values >= least].copy(), values[values >= least]

        n = graph.n_nodes
        rows = Local([column]).fit(graph).scan(np.arange(n), visit)
        ends = np.concatenate([[0], np.cumsum([len(nodes) for nodes, _ in rows])])
        nodes, values = (np.concatenate(side) for side in zip(*rows, strict=True))
        return sp.csr_array((values.astype(np.float64), nodes, ends), shape=(n, n))


@dataclass(eq=False)
class SVDM(EmbeddingMethod):
    """Source vectors U√Σ and target vectors V√Σ of M, f(difference of levels) for every path.

    Examples
    --------
    >>> chain = DiGraph.from_codes([0, 1, 2], [1, 2, 3], 4)
    >>> there, back = SVDM(4, "harmonic").fit(chain).score(np.array([0, 3]), np.array([3, 0]))
    >>> bool(there > 1.0 > 0.1 > back)
    True
    """

    n_components: int = 64
    kernel: str = "log"  # f, see :class:`~atpgraph.ATP`
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.name = f"SVDM-{self.kernel}"

    def fit(self, graph: DiGraph) -> Self:
        """Break cycles, compute levels and paths, and decompose M."""
        dag = break_cycles(graph, random_state=self.random_state).dag
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


@dataclass(eq=False)
class NRP(EmbeddingMethod):
    """Node-reweighted PageRank: s_u·t_v ≈ f_u · out_u · PPR(u, v) · b_v.

    First, PPR = Σ_{i≥1} α (1 − α)ⁱ Pⁱ is factored: with the truncated SVD A ≈ UΣVᵀ and
    X₁ = D⁻¹U√Σ, Y = V√Σ, the sum is X Yᵀ where X = α(1 − α) Σ_i ((1 − α)P)ⁱ X₁. Then weights
    f, b ≥ 1/n are found by coordinate descent that make the predicted edges add up to the degrees.
    With X_u multiplied by out_u first, and f = b = 1 at the start:

    min Σ_u (Σ_{v≠u} f_u X_u·Y_v b_v − out_u)² + Σ_v (Σ_{u≠v} f_u X_u·Y_v b_v − in_v)²
    + λ Σ_u (f_u² + b_u²).

    Attributes
    ----------
    forward_, backward_ : arrays
        The weights f and b.

    Notes
    -----
    The update of one weight is the exact minimizer; it costs O(k) with sums over all nodes kept
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

    n_components: int = 64
    _: KW_ONLY
    alpha: float = 0.15  # chance that a walk stops
    steps: int = 20  # terms of the PageRank sum, the paper's ℓ₁
    epochs: int = 10  # rounds of reweighting, ℓ₂
    regularization: float = 10.0  # λ
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha}; it must be between 0 and 1.")

    def fit(self, graph: DiGraph) -> Self:
        """Factor personalized PageRank, then reweight."""
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
        U, V = matrix_factors(A, self.n_components, rng, TOLERANCE)
        out = np.asarray(A.sum(axis=1)).reshape(-1)
        inverse = _reciprocal(out)
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


def _reciprocal(x: Float64Array) -> Float64Array:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)
