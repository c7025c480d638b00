"""Embeddings that factor a matrix: the adjacency, powers of it, PageRank, and ATP's M.

Each function takes a graph, the dimension of a side and a seed, and returns the source and the
target vector of every node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigs

from atpgraph.closure import closure_forests, kernel_table
from atpgraph.cycles import break_cycles
from atpgraph.embedding import ATP
from atpgraph.errors import AtpError
from atpgraph.factorization.nnls import ImplicitMatrix
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.scc import cyclic_edges
from atpgraph.hierarchy import levels
from atpgraph.linkpred.evidence.kernels import Room
from atpgraph.linkpred.evidence.local import Local, PageRank
from atpgraph.linkpred.factor import operator, singular_factors, stored
from atpgraph.util.arrays import AnyArray, Float64Array, FloatArray, Int64Array
from atpgraph.util.checks import unknown_name
from atpgraph.util.jit import kernel
from atpgraph.util.random import RandomState, generator

Vectors = tuple[FloatArray, FloatArray]
_TOLERANCE = 1e-4  # relative accuracy of singular values
# Lanczos iterations need products as exact as those with a stored matrix, whatever the tolerance of
# the singular values: with series cut at 1e-7 they returned one singular vector several times.
_EXACT = 1e-14
_MOST_TERMS = 1000  # of the series of HOPE
PROXIMITIES = {"katz": "Katz", "cn": "CN", "aa": "AA", "rpr": "RPR"}  # of HOPE


def atp(graph: DiGraph, k: int, seed: int = 0, kernel: str = "log") -> Vectors:
    """Run the four steps of ATP; the kernel is f, the weight of a reachable pair."""
    model = ATP(k, purpose="paper", kernel=kernel, zero_weight="auto", random_state=seed).fit(graph)
    return model.source_, model.target_


def adjacency_svd(graph: DiGraph, k: int, seed: RandomState = 0) -> Vectors:
    """Return the best rank-k approximation of the adjacency matrix."""
    return singular_factors(stored(graph.to_scipy()), k, generator(seed), _TOLERANCE)


def hope(
    graph: DiGraph,
    k: int,
    seed: RandomState = 0,
    proximity: str = "katz",
    beta: float | None = None,
    alpha: float = 0.5,
) -> Vectors:
    """High-order proximity preserved embedding: the truncated SVD of S = M_g⁻¹ M_l.

    ======  ================  ============  =============
    name    proximity         M_g           M_l
    ======  ================  ============  =============
    katz    Katz              I − βA        βA
    cn      common neighbors  I             A²
    aa      Adamic-Adar       I             A D A
    rpr     rooted PageRank   I − αP        (1 − α) I
    ======  ================  ============  =============

    D_ii = 1 / (out-degree + in-degree of i); P = (out-degree)⁻¹ A, so that row u of S is the
    distribution of a walk from u that continues with probability α and ends where a node has no
    out-edge. (The paper's generalized SVD of the pair M_l, M_g gives the same vectors.) The default
    of β, as in the authors' code, is 0.5 / spectral radius of A, at most 0.5.

    References
    ----------
    Ou, Cui, Pei, Zhang, Zhu: Asymmetric transitivity preserving graph embedding. KDD 2016.

    Examples
    --------
    >>> graph = DiGraph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> source, target = hope(graph, 4, beta=0.5)
    >>> a, b = graph.codes(["a", "b"])
    >>> round(float(source[a] @ target[b]), 4)  # 1/2 + 1/16 + 1/128 + …
    0.5714
    """
    rng, A = generator(seed), graph.to_scipy()
    if proximity == "katz":
        if beta is None:
            beta = 0.5 / max(spectral_radius(graph, rng), 1.0)
        S = _inverse(beta * A) @ stored(beta * A)
    elif proximity == "cn":
        S = stored(A) @ stored(A)
    elif proximity == "aa":
        degree = (graph.out_degree + graph.in_degree).astype(np.float64)
        S = stored(A) @ stored(sp.diags_array(_reciprocal(degree))) @ stored(A)
    elif proximity == "rpr":
        S = (1.0 - alpha) * _inverse(_walk_matrix(A, alpha))
    else:
        raise unknown_name("proximity", proximity, PROXIMITIES)
    return singular_factors(S, k, rng, _TOLERANCE)


def _walk_matrix(A: Any, share: float) -> Any:
    """Return share · D⁻¹ A, where D has the sums of the rows."""
    inverse = _reciprocal(np.asarray(A.sum(axis=1)).reshape(-1))
    return sp.csr_array(share * (sp.diags_array(inverse) @ A))


def _inverse(matrix: Any) -> Any:
    """Return (I − matrix)⁻¹, whose products sum the series x + matrix x + matrix² x + …"""

    def series(matrix: Any, x: Float64Array) -> Float64Array:
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
        raise AtpError("HOPE: the series of paths does not converge; choose a smaller beta.")

    back = sp.csr_array(matrix.T)
    return operator(matrix.shape[0], lambda x: series(matrix, x), lambda x: series(back, x))


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


def strap(
    graph: DiGraph, k: int, seed: RandomState = 0, stop: float = 0.5, delta: float = 1e-5
) -> Vectors:
    """Sparse transpose proximity: s_u·t_v ≈ log((π(u, v) + πᵀ(v, u)) · 2 / δ) where it is positive.

    π(u, v) is the personalized PageRank of v from u, by a walk that stops with probability `stop`,
    πᵀ(v, u) that of u from v on the reversed graph. Both are found by local push to within δ / 2,
    smaller entries are zero, and the sparse matrix of logarithms is factored by a truncated SVD.

    References
    ----------
    Yin, Wei: Scalable graph embeddings via sparse transpose proximities. KDD 2019.
    """

    def pagerank(direction: str) -> sp.csr_array:
        def visit(_: int, room: Room) -> tuple[AnyArray, AnyArray]:
            values = room.table[room.near, 0]
            return room.near[values >= delta / 2].copy(), values[values >= delta / 2]

        n, column = graph.n_nodes, PageRank(direction, restart=stop, tolerance=delta / 2)
        rows = Local([column]).fit(graph).scan(np.arange(n), visit)
        ends = np.concatenate([[0], np.cumsum([len(nodes) for nodes, _ in rows])])
        nodes, values = (np.concatenate(side) for side in zip(*rows, strict=True))
        return sp.csr_array((values.astype(np.float64), nodes, ends), shape=(n, n))

    found = sp.csr_array(pagerank("out") + pagerank("in").T)
    found.data = np.log(np.maximum(found.data * (2.0 / delta), 1.0))
    return singular_factors(stored(found), k, generator(seed), 1e-3)


def svdm(graph: DiGraph, k: int, seed: RandomState = 0, kernel: str = "log") -> Vectors:
    """Factor ATP's M by an SVD: f(difference of levels) for every pair that a path joins."""
    dag = break_cycles(graph, random_state=seed).dag
    level = levels(dag)
    table = kernel_table(kernel, int(level.max(initial=1)))
    down, up = ImplicitMatrix.both(closure_forests(dag, level), level)

    def times(side: ImplicitMatrix, x: Float64Array) -> Float64Array:
        parts = np.ascontiguousarray(x.reshape(len(x), -1).T, dtype=np.float64)
        product = np.stack([side.times(table, part) for part in parts], axis=1)
        return product.reshape(x.shape)

    M = operator(dag.n_nodes, lambda x: times(down, x), lambda x: times(up, x))
    return singular_factors(M, k, generator(seed))


def nrp(
    graph: DiGraph,
    k: int,
    seed: RandomState = 0,
    stop: float = 0.15,
    steps: int = 20,
    epochs: int = 10,
    penalty: float = 10.0,
) -> Vectors:
    """Node-reweighted PageRank: s_u·t_v ≈ f_u · out_u · PPR(u, v) · b_v.

    First, PPR = Σ_{i≥1} α (1 − α)ⁱ Pⁱ is factored, where α is the chance `stop` and `steps` the
    number of terms: with the truncated SVD A ≈ UΣVᵀ and X₁ = D⁻¹U√Σ, Y = V√Σ, the sum is X Yᵀ
    where X = α(1 − α) Σ_i ((1 − α)P)ⁱ X₁. Then weights f, b ≥ 1/n are found by rounds of coordinate
    descent that make the predicted edges add up to the degrees. With X_u multiplied by out_u first,
    and f = b = 1 at the start:

    min Σ_u (Σ_{v≠u} f_u X_u·Y_v b_v − out_u)² + Σ_v (Σ_{u≠v} f_u X_u·Y_v b_v − in_v)²
    + penalty · Σ_u (f_u² + b_u²).

    Nodes without out-edges end the walk.

    References
    ----------
    Yang, Shi, Xiao, Yang, Bhowmick: Homogeneous network embedding for massive graphs via
    reweighted personalized PageRank. VLDB 2020.
    """
    rng, A = generator(seed), graph.to_scipy()
    U, Y = singular_factors(stored(A), k, rng, _TOLERANCE)
    first = _reciprocal(np.asarray(A.sum(axis=1)).reshape(-1))[:, None] * U
    X, go_on = first, _walk_matrix(A, 1.0 - stop)
    for _ in range(1, steps):
        X = go_on @ X + first
    out, into = graph.out_degree.astype(np.float64), graph.in_degree.astype(np.float64)
    # As in the authors' code, out_u comes first: the penalty weighs changes to this start.
    X = np.ascontiguousarray(stop * (1.0 - stop) * X) * out[:, None]
    forward, backward = np.ones((2, graph.n_nodes))
    for _ in range(epochs):
        reweight(X, Y, forward, backward, out, into, penalty, rng.permutation(graph.n_nodes))
        reweight(Y, X, backward, forward, into, out, penalty, rng.permutation(graph.n_nodes))
    return X * forward[:, None], Y * backward[:, None]


@kernel
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
    x = f.reshape(-1, 1) * X
    total, squares, wanted = x.sum(axis=0), x.T @ x, wanted_x @ x
    itself = (x * Y).sum(axis=1)  # x_v·Y_v: the share of u = v in the sums
    reach, own = b @ Y, (b * itself) @ x
    for v in order:
        y, alone = Y[v], itself[v]
        toward, incoming = squares @ y, total @ y - alone
        constant = wanted @ y - wanted_x[v] * alone + incoming * wanted_y[v]
        # What the other weights predict already, v itself and the pairs (u, u) left out.
        others = toward @ reach - b[v] * (toward @ y) - alone * (x[v] @ reach - b[v] * alone)
        rest = constant - others + own @ y - b[v] * alone**2
        best = rest / (toward @ y - alone**2 + incoming**2 + penalty)
        change = max(best, 1.0 / len(b)) - b[v]
        b[v] += change
        reach += change * y
        own += change * alone * x[v]


def _reciprocal(x: Float64Array) -> Float64Array:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)
